//! The same attacks where there are fewer privileges: for an unprivileged user, and where
//! namespaces are refused, as in most containers.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use mle_star_exec::sandbox::{Tier, Wish};
use mle_star_exec::{ExecError, Executor, Setup, Supervisor};

use super::attack::{Tally, say, skip};
use crate::bench::{COPY_OF_SUPERVISOR, setup, supervisor};

/// The system's Python: others may be in a home that nobody else can read.
const PYTHON: &str = "/usr/bin/python3";
const NOBODY: u32 = 65534;

/// The attacks that are tried again.
const AGAIN: [&str; 7] = [
    "attacks::the_strong",
    "attacks::the_fallback",
    "attacks::without_",
    "attacks::greed::bombs",
    "attacks::greed::memory_of_any_kind_is_counted_in_the_strong",
    "attacks::greed::whoever",
    "attacks::survivors::a_killed_supervisor",
];

fn as_nobody() -> Command {
    let mut command = Command::new("setpriv");
    let id = format!("={NOBODY}");
    command.args([format!("--reuid{id}"), format!("--regid{id}"), "--clear-groups".to_owned()]);
    command.arg("--").env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
    command
}

/// Starts these tests once more, as a user who may do nothing.
#[tokio::test]
async fn nobody_special_is_held_as_well() {
    if !rustix::process::geteuid().is_root() {
        return; // then all tests are such
    }
    let version = "import sys; sys.exit(sys.version_info < (3, 10))";
    let works = as_nobody().args([PYTHON, "-c", version]).status();
    if !works.is_ok_and(|status| status.success()) {
        return skip("attacks of an unprivileged user: no setpriv, or no Python for it");
    }
    let dir = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
    let everyone = || PermissionsExt::from_mode(0o755);
    fs::set_permissions(&root, everyone()).unwrap();
    let (tests, shim) = (root.join("tests"), root.join("supervisor"));
    fs::copy(std::env::current_exe().unwrap(), &tests).unwrap();
    fs::copy(supervisor().program, &shim).unwrap();
    for program in [&tests, &shim] {
        fs::set_permissions(program, everyone()).unwrap();
    }
    let temporary = root.join("tmp");
    fs::create_dir(&temporary).unwrap();
    std::os::unix::fs::chown(&temporary, Some(NOBODY), Some(NOBODY)).unwrap();

    let output = as_nobody()
        .arg(&tests)
        .args(AGAIN)
        .current_dir(&temporary)
        .env("TMPDIR", &temporary)
        .env(COPY_OF_SUPERVISOR, &shim)
        .output()
        .unwrap();
    let [out, err] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert!(output.status.success(), "as nobody\n{out}\n{err}");
    assert!(!out.contains("running 0 tests"), "{out}");
    for line in err.lines().filter(|line| !line.is_empty()) {
        say(&format!("as nobody: {line}"));
    }
}

/// A supervisor in a user namespace in which there can be no others. The number is one of that
/// namespace, and nothing outside feels it.
fn without_namespaces() -> Supervisor {
    let Supervisor { program, arguments } = supervisor();
    let refuse = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let before = ["-U", "-r", "/bin/sh", "-c", refuse, "sh", program.as_str()];
    let arguments = before.map(str::to_owned).into_iter().chain(arguments).collect();
    Supervisor { program: "/usr/bin/unshare".into(), arguments }
}

fn can_refuse_namespaces() -> bool {
    let here = Utf8Path::new("/usr/bin/unshare").exists();
    here && Command::new("/usr/bin/unshare")
        .args(["-U", "-r", "/bin/sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[tokio::test]
async fn where_namespaces_are_refused_the_fallback_is_found_and_says_why() {
    if !can_refuse_namespaces() {
        return skip("a place without namespaces: it takes one to make it");
    }
    let refusing = async |wish| Setup { supervisor: without_namespaces(), ..setup(wish).await };
    let local = refusing(Wish::Best).await.try_out().await.unwrap();
    let containment = local.containment().unwrap();
    assert_eq!(containment.tier, Tier::Fallback);
    assert_eq!(containment.refused.len(), 1, "{:?}", containment.refused);
    assert!(containment.refused.iter().all(|why| why.starts_with("strong: ")));

    let error = refusing(Wish::AtLeast(Tier::Strong)).await.try_out().await.unwrap_err();
    assert!(matches!(&error, ExecError::Sandbox { refused } if refused.len() == 1), "{error}");

    let attacks = [super::sockets::attacks(), super::processes::attacks()].concat();
    let tally = Tally::with(refusing(Wish::Best).await, &attacks).await;
    say("where namespaces are refused:");
    tally.print();
}
