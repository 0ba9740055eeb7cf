//! The keeper by itself: `claude-keeper <program> <arguments>...`.

use std::process::ExitCode;

fn main() -> ExitCode {
    mle_star_claude::keep(std::env::args_os().skip(1))
}
