//! What a person sees of a run.
//!
//! Everything here is a function of the records of a run: [`Overview`] is the one fold over them,
//! [`line()`] says one record in one line, [`live()`] where the run is in a few, [`report`] all of it
//! in one document, [`log`] what a log says of each record. Text that agents and scripts wrote is hostile, and is
//! stripped of control characters before it reaches a terminal.

mod columns;
mod condition;
mod forecast;
mod format;
mod line;
mod live;
pub mod log;
mod overview;
pub mod report;

pub use columns::{Colour, Style, Window, folded};
pub use condition::{Condition, Work};
pub use forecast::Forecast;
pub use format::score;
pub use line::{Detail, level, line, plain, plain_json, plain_lines, shell_word};
pub use live::{live, preparing};
pub use overview::{
    Budget, Effect, Glance, Lane, LaneState, OpenStep, Overview, PhaseOutcome, PhaseSpan, Point,
    Said, Selected, Solution, SolutionKind, SolutionOutcome, State, Study, Subject, Submission,
    Trouble, TroubleKind, Whole,
};
