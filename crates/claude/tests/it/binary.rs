//! The real program, as the package of the official SDK for Python brings it.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use fs_err as fs;

/// The package that brings claude 2.1.325.
const PACKAGE: &str = "claude-agent-sdk";
const VERSION: &str = "0.2.182";

/// The program, fetched once into `folder`, which all tests share. `None`, and a line that says
/// so, if it cannot be had here.
pub(crate) fn claude(folder: &Path) -> Option<PathBuf> {
    match fetched(folder) {
        Ok(program) => Some(program),
        Err(why) => {
            writeln!(std::io::stderr(), "skipped: the real claude cannot be had: {why}").ok();
            None
        }
    }
}

fn fetched(folder: &Path) -> Result<PathBuf, String> {
    let folder = folder.join(format!("{PACKAGE}-{VERSION}"));
    let program = folder.join("claude");
    let told = |error: std::io::Error| error.to_string();
    fs::create_dir_all(&folder).map_err(told)?;
    // Tests run in many processes at once.
    let lock = fs::File::create(folder.join("lock")).map_err(told)?;
    lock.file().lock().map_err(told)?;
    if program.is_file() {
        return Ok(program);
    }
    let wheel = folder.join("wheel");
    fs::create_dir_all(&wheel).map_err(told)?;
    let wanted = format!("{PACKAGE}=={VERSION}");
    python(&["-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", &wanted], &wheel)?;
    let unpack = "import glob, zipfile\n\
                  with zipfile.ZipFile(glob.glob('*.whl')[0]) as wheel:\n\
                  \twheel.extract('claude_agent_sdk/_bundled/claude')\n";
    python(&["-c", unpack], &wheel)?;
    let unpacked = wheel.join("claude_agent_sdk/_bundled/claude");
    fs::set_permissions(&unpacked, std::fs::Permissions::from_mode(0o755)).map_err(told)?;
    fs::rename(unpacked, &program).map_err(told)?;
    fs::remove_dir_all(wheel).map_err(told)?;
    Ok(program)
}

fn python(arguments: &[&str], folder: &Path) -> Result<(), String> {
    let output = Command::new("python3").args(arguments).current_dir(folder).output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
