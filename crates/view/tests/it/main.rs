//! The views of a run, over the record of a real one.
#![expect(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "tests")]

mod fixture;
mod forecast;
mod live;
mod log;
mod overview;
mod report;
