//! The server as a client sees it.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests may panic")]

mod answers;
mod client;
mod misfortunes;
