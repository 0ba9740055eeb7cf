//! `mle-star ui`

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use camino::Utf8PathBuf;
use clap::Args;
use mle_star_web::{Patience, Server, Source};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// Look at runs in a browser, live or long finished; the page is served until ctrl-C
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// A run directory, or the folder that holds them
    #[arg(default_value = "runs")]
    runs: Utf8PathBuf,

    /// The port on 127.0.0.1 [default: any that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
}

const AFTER_HELP: &str = "\
Examples:
  mle-star ui                       all runs in runs/
  mle-star ui runs/titanic-1        one of them, also while it runs
  mle-star ui --port 8080           the same port each time, for a tunnel

The page is for this machine only. From elsewhere, tunnel the port:
  ssh -L 8080:127.0.0.1:8080 <machine>
Whoever has the address, with its token, can read the runs. Nobody can change them.";

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let runs = arguments.runs.canonicalize_utf8().map_err(|_| {
        Failure::usage(
            anyhow!("there is no folder `{}`", arguments.runs),
            "name a run directory, or the folder that holds them",
        )
    })?;
    let page = Server::start(Source::at(&runs), arguments.port, Patience::default())
        .with_context(|| format!("cannot serve a page on port {}", arguments.port))?;
    super::print(page.address())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // It is printed too, so nothing is lost where nothing opens.
        let is_wanted = !arguments.no_open && can_open();
        let _opener = is_wanted.then(|| mle_star_exec::desktop::open(page.address()));
        writeln!(anstream::stderr(), "ctrl-C ends it").ok(); // standard error may be closed
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Whether somebody sits before a screen.
fn can_open() -> bool {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|it| std::env::var_os(it).is_some());
    std::io::stdout().is_terminal() && (has_screen || cfg!(target_os = "macos"))
}
