//! The product through its binary and its library, with scripted agents and real Python.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod bad_input;
mod cli;
mod kill;
mod library;
mod requirements;
mod shop;
mod whole_run;
