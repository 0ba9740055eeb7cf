//! What is said of a run while it goes on, for whoever listens. Nothing here prints.
//!
//! What became of the run is said by the caller, who reads scores and tracebacks.

use std::time::Duration;

use camino::Utf8Path;
use tracing::{debug, info, warn};

/// A script was written.
pub(crate) fn script_written(path: &Utf8Path, script: &str) {
    debug!(%path, content_length = script.len(), "script written");
}

/// A script is about to start in `dir`.
pub(crate) fn execution_started(path: &Utf8Path, dir: &Utf8Path, limit: Duration) {
    info!(%path, %dir, timeout_seconds = limit.as_secs_f64(), "execution started");
}

/// A script ran past its limit.
pub(crate) fn timed_out(path: &Utf8Path, limit: Duration) {
    warn!(%path, timeout_seconds = limit.as_secs_f64(), "execution timed out");
}
