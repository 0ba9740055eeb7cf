//! What the crate says about Python sources.

mod blocks;
mod calls;
mod programs;
mod properties;
mod syntax;
