//! Real environments, made by a real Python. They need a package index, which not every machine
//! can reach: the tests say so and pass.

use std::io::Write;
use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use mle_star_exec::machine;
use mle_star_exec::venv::{Packages, Venv, VenvError};

/// A cache of its own for each test.
fn cache() -> (tempfile::TempDir, Utf8PathBuf) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
    (dir, path)
}

/// The environment with one small package.
async fn venv(cache: &Utf8Path, package: &str) -> Venv {
    let base = machine::interpreter(None).await.unwrap();
    Venv::for_packages(cache, base, Packages::none().with(&[package.to_owned()]).unwrap())
}

/// The interpreter and what was told meanwhile; nothing where there is no index.
async fn provide(venv: &Venv) -> Option<(Utf8PathBuf, Vec<String>)> {
    let told = Mutex::new(Vec::new());
    match venv.provide(&|line| told.lock().unwrap().push(line.to_owned())).await {
        Ok(python) => Some((python, told.into_inner().unwrap())),
        Err(error) => {
            assert!(is_elsewhere(&error), "{error}");
            None
        }
    }
}

/// Whether it is the machine that lacks something, and says so.
fn is_elsewhere(error: &VenvError) -> bool {
    let elsewhere = matches!(error, VenvError::Fetch { .. } | VenvError::NoVenv { .. });
    if elsewhere {
        // Not `eprintln`, which the test runner keeps to itself when a test passes.
        writeln!(std::io::stderr(), "skipped: no environment can be made here: {error}").ok();
    }
    elsewhere
}

#[tokio::test]
async fn an_environment_is_made_reused_and_repaired() {
    let (_dir, cache) = cache();
    let six = venv(&cache, "six==1.17.0").await;

    // Two at once: one makes it, the other waits for it.
    let both = futures::future::join(provide(&six), provide(&six)).await;
    let (Some((python, one)), Some((_, other))) = both else { return };
    let made = |told: &[String]| told.iter().filter(|it| it.starts_with("making")).count();
    assert_eq!(made(&one) + made(&other), 1, "{one:?} {other:?}");

    let machine = machine::detect(Some(&python)).await.unwrap();
    assert_eq!(machine.python, python.as_str());
    assert!(machine.packages.iter().any(|it| it.name == "six" && it.version == "1.17.0"));
    let lib = six.folder().join("lib");
    let version: Vec<&str> = machine.python_version.split('.').take(2).collect();
    let site = lib.join(format!("python{}/site-packages", version.join(".")));
    let compiled = site.join(format!("__pycache__/six.cpython-{}.pyc", version.concat()));
    assert!(compiled.is_file(), "{compiled}");

    let marker = fs::metadata(six.folder().join("ready")).unwrap().modified().unwrap();
    let (_, told) = provide(&six).await.unwrap();
    assert_eq!(told, [""; 0]);
    let untouched = fs::metadata(six.folder().join("ready")).unwrap().modified().unwrap();
    assert_eq!(untouched, marker);

    fs::remove_file(six.folder().join("ready")).unwrap();
    fs::remove_file(site.join("six.py")).unwrap();
    let Some((_, told)) = provide(&six).await else { return };
    assert_eq!(made(&told), 1, "{told:?}");
    assert!(site.join("six.py").is_file());
}

#[tokio::test]
async fn a_package_that_does_not_exist_is_named() {
    let (_dir, cache) = cache();
    let unknown = venv(&cache, "six==0.0.0.99").await;
    let error = unknown.provide(&|_| ()).await.unwrap_err();
    if is_elsewhere(&error) {
        return;
    }
    let VenvError::NoSuchPackage { requirement, .. } = error else { panic!("{error}") };
    assert_eq!(requirement, "six==0.0.0.99");
    assert!(!unknown.is_ready());
}
