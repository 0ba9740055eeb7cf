//! The Python environment that a run makes for itself, with a stand-in for `uv` that installs
//! empty modules and needs no network.

use std::os::unix::fs::PermissionsExt;

use assert_cmd::Command;
use camino::Utf8PathBuf;
use mle_star_search::event::Record;

use crate::shop::{Shop, records};

const SMALL: &str = "M=1 T=1 K=1 L=1 R=1";

const UV: &str = r#"#!/bin/sh
case $1 in
--version) echo uv 0 ;;
venv) echo "$1" >>"$LOG"; exec "$3" -m venv --without-pip "$4" ;;
pip)
    echo "$1" >>"$LOG"
    if grep -q unheard-of "$7"; then
        echo 'Because unheard-of was not found in the package registry' >&2
        exit 1
    fi
    site=$("$5" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    for module in numpy pandas scipy sklearn lightgbm xgboost catboost pyarrow joblib; do
        : >"$site/$module.py"
    done
    mkdir "$site/stand_in-1.0.dist-info"
    printf 'Name: stand-in\nVersion: 1.0\n' >"$site/stand_in-1.0.dist-info/METADATA" ;;
esac
"#;

/// A command that finds the stand-in first, and a cache of its own.
fn managed(shop: &Shop, mut command: Command) -> Command {
    let uv = shop.path().join("bin/uv");
    if !uv.exists() {
        shop.write("bin/uv", UV);
        fs_err::set_permissions(&uv, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", shop.path().join("bin"), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("LOG", shop.path().join("log"));
    command.env_remove("MLE_STAR_PYTHON").env("MLE_STAR_CACHE", shop.path().join("cache"));
    command
}

fn stderr(mut command: Command, code: i32) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// What the stand-in was asked to do.
fn log(shop: &Shop) -> String {
    fs_err::read_to_string(shop.path().join("log")).unwrap_or_default()
}

fn environments(shop: &Shop) -> Vec<Utf8PathBuf> {
    let entries = shop.path().join("cache/python").read_dir_utf8().unwrap();
    entries.map(|it| it.unwrap().into_path()).filter(|it| it.is_dir()).collect()
}

#[test]
fn a_run_makes_its_python_environment_once_and_resume_makes_it_again() {
    let shop = Shop::new();
    let said = stderr(managed(&shop, shop.run(SMALL)), 0);
    assert!(said.starts_with("making a Python environment in "), "{said}");
    assert!(said.contains("\nthe Python environment is ready after "), "{said}");
    assert_eq!(log(&shop), "venv\npip\n");

    let run = shop.only_run();
    let Some(Record::Opened { header, .. }) = records(&run).into_iter().next() else {
        panic!("the journal has no header")
    };
    let python = environments(&shop)[0].join("bin/python");
    assert_eq!(header.machine.python, python.as_str());
    assert!(header.machine.packages.iter().any(|it| it.name == "stand-in"));

    let said = stderr(managed(&shop, shop.run(SMALL)), 0);
    assert!(said.starts_with("run directory: "), "{said}");
    assert_eq!(log(&shop), "venv\npip\n");

    // The cache was emptied, and an attempt to fill it again was interrupted.
    let lost = || fs_err::remove_dir_all(shop.path().join("cache")).unwrap();
    let half_made = || fs_err::remove_file(environments(&shop)[0].join("ready")).unwrap();
    for damage in [&lost as &dyn Fn(), &half_made] {
        damage();
        let mut resume = shop.command();
        resume.args(["resume", run.as_str()]);
        let said = stderr(managed(&shop, resume), 0);
        assert!(said.starts_with("making a Python environment in "), "{said}");
        assert!(python.is_file());
    }
}

#[test]
fn a_dry_run_only_announces_the_python_environment() {
    let shop = Shop::new();
    let mut command = managed(&shop, shop.run(SMALL));
    command.arg("--dry-run");
    let said = stderr(command, 0);
    let place = shop.path().join("cache/python");
    let announcement = format!("a Python environment will be made in {place}/");
    assert!(said.starts_with(&announcement), "{said}");
    assert!(!shop.path().join("cache").exists());
}

#[test]
fn nothing_is_said_when_quiet_was_asked_for() {
    let shop = Shop::new();
    let mut command = managed(&shop, shop.run(SMALL));
    command.arg("--quiet");
    assert_eq!(stderr(command, 0), "");
}

#[test]
fn packages_of_a_task_get_an_environment_of_their_own_or_a_clear_error() {
    let shop = Shop::new();
    let task = fs_err::read_to_string(shop.path().join("shop/task.yaml")).unwrap();
    shop.write("shop/task.yaml", &format!("{task}packages: [polars]\n"));
    stderr(managed(&shop, shop.run(SMALL)), 0);
    let requirements = environments(&shop)[0].join("requirements.txt");
    assert!(fs_err::read_to_string(requirements).unwrap().contains("\npolars\n"));

    for (package, code, expected) in [
        (
            "unheard-of",
            1,
            "error: the Python environment for the scripts cannot be made: no version of the \
             package `unheard-of` can be installed for Python ",
        ),
        (
            "--pre",
            2,
            "error: the Python environment for the scripts cannot be made: `--pre` is not the name \
             of a Python package\nhint: `packages` in a task lists names such as lightgbm or \
             torch>=2\n",
        ),
    ] {
        shop.write("shop/task.yaml", &format!("{task}packages: [{package}]\n"));
        let said = stderr(managed(&shop, shop.run(SMALL)), code);
        assert!(said.contains(expected), "{said}");
        assert!(said.contains("\nhint: "), "{said}");
    }
}
