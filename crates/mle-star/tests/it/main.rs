//! The product through its binary and its library, with scripted agents and real Python.
#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test looks for one kind of thing")]

mod bad_input;
mod bench;
#[path = "../../../claude/tests/it/binary.rs"]
mod binary;
mod browser;
mod claude;
mod cli;
mod containment;
mod held;
mod help;
mod kill;
mod leaks;
mod library;
mod limits;
mod odd;
mod playbook;
mod pty;
mod python;
mod requirements;
mod seeing;
mod shop;
mod starting;
mod taking;
mod terminal;
mod web;
mod whole_run;
