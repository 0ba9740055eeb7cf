//! The server through its port.
#![expect(clippy::unwrap_used, reason = "tests")]

mod client;
mod followed;
mod guarded;
