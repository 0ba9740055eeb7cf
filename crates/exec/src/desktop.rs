//! Asking the desktop to show something. Not a script, but a program that is started all the same.

use std::process::Stdio;

use tokio::process::{Child, Command};

/// Asks the desktop to open a page in a browser. `None` if there is nobody to ask.
pub fn open(address: &str) -> Option<Child> {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(opener);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().ok()
}
