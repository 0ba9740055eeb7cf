//! Samples of what the long modes of `chaos` do by the hundred, and what needs no program at all.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy sees only functions marked `#[test]` as tests"
)]

mod clock;
mod fuzz;
mod limits;
mod samples;
mod soak;
