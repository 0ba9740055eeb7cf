//! System calls of a process at work that fail from one moment on, as on a disk that breaks. `strace`
//! does it, from outside and for one file, so that nothing else of the process notices.

use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use camino::Utf8Path;
use fs_err as fs;

/// How long it may take to get hold of a process.
const ATTACHING: Duration = Duration::from_secs(30);

/// Makes calls of a process fail while it is there.
#[derive(Debug)]
pub struct Tracer {
    strace: Child,
}

impl Tracer {
    /// From now on the `call`s of the process on `file` fail with `EIO`. Only those of its first
    /// thread, which is the one that writes. Nothing if the process is gone or not to be had.
    pub fn failing(pid: i32, call: &str, file: &Utf8Path) -> anyhow::Result<Option<Self>> {
        let strace = Command::new("strace")
            .args(["-qq", "-o", "/dev/null", "-P", file.as_str()])
            .args(["-e", &format!("trace={call}"), "-e", &format!("inject={call}:error=EIO")])
            .arg(format!("--attach={pid}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start strace")?;
        let mut tracer = Self { strace };
        let began = Instant::now();
        while began.elapsed() < ATTACHING && tracer.strace.try_wait()?.is_none() {
            if is_traced(pid) {
                return Ok(Some(tracer));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(None)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.strace.kill().ok();
        self.strace.wait().ok();
    }
}

/// Whether processes can be traced here: there is a `strace`, and the system lets it.
pub fn can_trace() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let Ok(mut other) = Command::new("sleep").arg("60").spawn() else { return false };
        let pid = other.id().cast_signed();
        let tracer = Tracer::failing(pid, "write", Utf8Path::new("/nonexistent"));
        let can = matches!(tracer, Ok(Some(_)));
        other.kill().ok();
        other.wait().ok();
        can
    })
}

fn is_traced(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|it| it.trim() != "0")
}
