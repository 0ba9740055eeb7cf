//! Tries to break whole runs, by seed, and says what did not hold.
//!
//! A [trial] runs the real `mle-star` program on a task of a second or two, twice with the
//! same [answers]: once in peace, and once while [faults](fault) befall it. After every
//! fault the run is resumed. In the end [`check`] compares the two and looks for what was left
//! behind.
//!
//! Reading order: [`random`] (everything follows from a seed), [`answers`] (what the agents say, and
//! what is wrong with it), [`stand_in`] (a `claude` program that misbehaves), [`place`] (a folder
//! with a task, and programs started in it), [`handicap`], [`tracer`], [`processes`], [`fault`],
//! [`trial`], [`check`], [`table`].
//!
//! [`simulation`] is a run inside this process, for what the real program cannot be put through:
//! clocks that are set, and runs of many thousand steps ([`soak`]).
//!
//! Deliberately absent: anything that the product depends on, and anything that changes the machine.

pub mod answers;
pub mod check;
pub mod fault;
pub mod handicap;
pub mod place;
pub mod processes;
pub mod random;
pub mod simulation;
pub mod soak;
pub mod stand_in;
pub mod table;
pub mod tracer;
pub mod trial;
