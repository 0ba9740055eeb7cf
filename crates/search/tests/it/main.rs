//! The algorithm through its public interface, with scripted agents and a toy interpreter.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test looks for one kind of thing")]

mod world;

mod agents;
mod budgets;
mod finalization;
mod logging;
mod orchestration;
mod phase1;
mod phase2_inner;
mod phase2_outer;
mod phase3;
mod resume;
mod safety;
mod sessions;
mod smoke;
