//! Real scripts, run by a real Python under a real supervisor.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod attacks;
mod bench;
mod hold;
mod libraries;
mod scripts;
mod venv;
