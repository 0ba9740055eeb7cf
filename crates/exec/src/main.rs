//! The supervisor by itself: `mle-star-shim <folder of a job>`, or
//! `mle-star-shim --hold <file> <program> <arguments>...`.

use std::process::{Command, ExitCode};

use camino::Utf8Path;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next().and_then(|it| it.into_string().ok()).unwrap_or_default();
    match first.as_str() {
        "--hold" => {
            let file = arguments.next().unwrap_or_default();
            let program = arguments.next().unwrap_or_default();
            let folder = std::env::current_dir();
            mle_star_exec::hold(file, || {
                let mut command = Command::new(program);
                command.args(arguments).current_dir(folder?);
                Ok(command)
            })
        }
        folder => mle_star_exec::supervise(Utf8Path::new(folder)),
    }
}
