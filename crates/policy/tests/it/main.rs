//! What is allowed and what is not, by example.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod allowed;
mod denied;
mod ground;
mod properties;
mod tools;
