//! The web page of a run.
//!
//! [`Server`] serves the page on loopback, to whoever has the token in its address, and follows the
//! journals of runs on disk: it works on any run directory, whoever works on it, and costs nothing
//! while nobody looks. Read on in this order:
//!
//! 1. `server`: the thread, connections, and how a client that does not read is dropped.
//! 2. `gate`: who may ask. `route`: what can be asked for.
//! 3. `runs`: the runs in a folder, each read as far as its journal goes.
//! 4. `live`: what a page is sent while it is open. `detail`: what it asks for when something is
//!    opened. `diff`: what changed between two scripts.
//! 5. `assets/`: the page, as files that are served as they are.
//!
//! Deliberately absent: anything that changes a run, any other method than GET, any address but
//! loopback, and any use of the run's own memory. A page cannot slow a run, because it reads what
//! is on disk, in a thread of its own.
//!
//! What agents and scripts wrote is hostile. It leaves here as JSON only, and the page shows it as
//! text only; the content policy forbids the page anything else.

mod assets;
mod detail;
mod diff;
mod gate;
mod live;
mod route;
mod runs;
mod server;

pub use runs::Source;
pub use server::{Patience, Server};
