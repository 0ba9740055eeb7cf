//! The supervisor by itself: `mle-star-shim <folder of a job>`.

use std::process::ExitCode;

use camino::Utf8Path;

fn main() -> ExitCode {
    let folder = std::env::args().nth(1).unwrap_or_default();
    match mle_star_exec::supervise(Utf8Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is the log of the job.
            std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{error}\n")).ok();
            ExitCode::FAILURE
        }
    }
}
