//! The client against a program that can do anything, and against the real one.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod bench;
mod binary;
mod callbacks;
mod ends;
mod faults;
mod real;
