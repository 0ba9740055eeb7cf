//! The supervisor by itself: `mle-star-shim <folder of a job>`.

use std::process::ExitCode;

use camino::Utf8Path;

fn main() -> ExitCode {
    let folder = std::env::args().nth(1).unwrap_or_default();
    mle_star_exec::supervise(Utf8Path::new(&folder))
}
