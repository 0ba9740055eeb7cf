use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;

use super::tool::{news, without_passwords};
use super::*;

/// Stand-ins for `uv` and for the interpreter that it makes an environment from.
struct Workshop {
    _dir: tempfile::TempDir,
    root: Utf8PathBuf,
}

/// Makes an environment whose interpreter loads everything.
const CREATE: &str = r#"mkdir -p "$4/bin" && printf '#!/bin/sh\nexit 0\n' >"$4/bin/python" && chmod +x "$4/bin/python""#;

impl Workshop {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        let workshop = Self { _dir: dir, root };
        workshop.program("base", "echo base \"$@\" >>log");
        workshop.uv(CREATE, "true");
        workshop
    }

    fn program(&self, name: &str, lines: &str) {
        let path = self.root.join(name);
        let lines = lines.replace(">>log", &format!(">>'{}/log'", self.root));
        fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// A `uv` that does this when it is asked to create an environment, and that to fill it.
    fn uv(&self, create: &str, install: &str) {
        let lines = format!(
            "case $1 in\n--version) echo uv 1 ;;\n\
             venv) echo create >>log\n{create} ;;\n\
             pip) echo install >>log\n{install} ;;\nesac"
        );
        self.program("uv", &lines);
    }

    fn base(&self) -> Interpreter {
        Interpreter { path: self.root.join("base"), version: "3.12.1".to_owned() }
    }

    fn venv(&self) -> Venv {
        let packages = Packages::standard();
        let venv = Venv::for_packages(&self.root.join("cache"), self.base(), packages);
        Venv { uv: self.root.join("uv"), limit: Duration::from_secs(20), ..venv }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.root.join("log")).unwrap_or_default()
    }
}

/// What is told while an environment is provided, and how that ends.
async fn provided(venv: &Venv) -> (Vec<String>, Result<Utf8PathBuf, VenvError>) {
    let told = Mutex::new(Vec::new());
    let result = venv.provide(&|line| told.lock().unwrap().push(line.to_owned())).await;
    (told.into_inner().unwrap(), result)
}

fn folder(base: Interpreter, extra: &[&str]) -> Utf8PathBuf {
    let extra: Vec<String> = extra.iter().map(|&it| it.to_owned()).collect();
    let packages = Packages::standard().with(&extra).unwrap();
    Venv::for_packages(Utf8Path::new("/cache"), base, packages).folder().to_owned()
}

#[test]
fn the_standard_packages_are_pinned_and_load() {
    let packages = Packages::standard();
    for Pinned { requirement, .. } in &packages.pinned {
        let (_, version) = requirement.split_once("==").unwrap();
        assert!(version.starts_with(|it: char| it.is_ascii_digit()), "{requirement}");
    }
    assert_eq!(
        packages.modules(),
        [
            "numpy", "pandas", "scipy", "sklearn", "lightgbm", "xgboost", "catboost", "pyarrow",
            "joblib"
        ]
    );
}

#[test]
fn an_environment_belongs_to_an_interpreter_and_a_set_of_packages() {
    let base =
        |path: &str, version: &str| Interpreter { path: path.into(), version: version.to_owned() };
    let ours = || base("/nonexistent/python", "3.12.1");
    let one = folder(ours(), &["a", "b>=2"]);

    assert_eq!(one, folder(ours(), &["b>=2", " a", "a"]));
    assert!(one.as_str().starts_with("/cache/python/3.12.1-"), "{one}");
    for other in [
        folder(ours(), &["a", "b>=3"]),
        folder(ours(), &[]),
        folder(base("/nonexistent/python", "3.12.2"), &["a", "b>=2"]),
        folder(base("/nonexistent/python3", "3.12.1"), &["a", "b>=2"]),
    ] {
        assert_ne!(one, other);
    }
}

#[test]
fn a_task_may_ask_for_another_version_of_a_pinned_package() {
    let packages = Packages::standard().with(&["Scikit_Learn[all]>=1.8".to_owned()]).unwrap();
    let requirements = packages.requirements();
    assert!(!requirements.contains("scikit-learn=="), "{requirements}");
    assert!(requirements.contains("\nScikit_Learn[all]>=1.8\nnumpy=="), "{requirements}");
    assert!(requirements.starts_with("--only-binary numpy\n--only-binary pandas\n"));
    assert!(!requirements.contains("--only-binary scikit-learn"), "{requirements}");
    assert!(requirements.contains("numpy==2.2.6; python_version < \"3.11\"\n"), "{requirements}");
    assert!(!packages.modules().contains(&"sklearn"));
}

#[test]
fn an_option_of_the_installer_is_not_a_package() {
    for requirement in ["--index-url=x", "-r secrets", "", "a\n--pre", "./folder"] {
        let error = Packages::none().with(&[requirement.to_owned()]).unwrap_err();
        assert!(matches!(error, VenvError::Requirement { .. }), "{error}");
    }
}

#[test]
fn the_cache_is_where_the_user_wants_it() {
    let cache = |set: &[(&str, &str)]| {
        let variable = |name: &str| set.iter().find(|it| it.0 == name).map(|it| it.1.into());
        cache_folder(variable).map(Utf8PathBuf::into_string)
    };
    let (own, standard) = (("MLE_STAR_CACHE", "/own"), ("XDG_CACHE_HOME", "/standard"));
    let (home, empty, relative) = (("HOME", "/home/me"), ("MLE_STAR_CACHE", ""), "relative");
    assert_eq!(cache(&[own, standard, home]).unwrap(), "/own");
    assert_eq!(cache(&[empty, standard, home]).unwrap(), "/standard/mle-star");
    assert_eq!(cache(&[home]).unwrap(), "/home/me/.cache/mle-star");
    assert_eq!(cache(&[home, ("XDG_CACHE_HOME", relative)]).unwrap(), "/home/me/.cache/mle-star");
    assert!(matches!(cache(&[]), Err(VenvError::NoCache)));
}

#[tokio::test]
async fn an_environment_is_made_once() {
    let workshop = Workshop::new();
    let venv = workshop.venv();
    assert!(!venv.is_ready());

    let (told, python) = provided(&venv).await;
    assert_eq!(python.unwrap(), venv.folder().join("bin/python"));
    assert_eq!(
        told,
        [
            format!("making a Python environment in {} ({EFFORT})", venv.folder()),
            "installing 25 Python packages with uv".to_owned(),
            "the Python environment is ready after 0 s".to_owned(),
        ]
    );
    assert!(venv.is_ready());

    let (told, python) = provided(&workshop.venv()).await;
    assert_eq!(python.unwrap(), venv.python());
    assert_eq!(told, [""; 0]);
    assert_eq!(workshop.log(), "create\ninstall\n");
}

#[tokio::test]
async fn without_uv_the_interpreter_makes_its_own_environment() {
    let workshop = Workshop::new();
    let create = CREATE.replace("$4", "$3").replace("exit 0", r#"echo "$*" >>"$0.log""#);
    workshop.program("base", &format!("echo \"$1 $2\" >>log\n{create}"));
    let venv = Venv { uv: workshop.root.join("no-uv"), ..workshop.venv() };

    let (told, python) = provided(&venv).await;
    python.unwrap();
    assert!(told.contains(&"installing 25 Python packages with pip".to_owned()), "{told:?}");
    assert_eq!(workshop.log(), "-m venv\n");
    let did = fs::read_to_string(venv.folder().join("bin/python.log")).unwrap();
    let install = did.lines().next().unwrap();
    let requirements = venv.folder().join("requirements.txt");
    assert_eq!(install, format!("-m pip install --compile --no-input -r {requirements}"));
    let listed = fs::read_to_string(requirements).unwrap();
    assert_eq!(listed, Packages::standard().requirements());
}

#[tokio::test]
async fn what_was_left_half_made_is_made_anew() {
    let workshop = Workshop::new();
    let venv = workshop.venv();
    for ready in [None, Some(""), Some("another recipe")] {
        fs::create_dir_all(venv.folder().join("bin")).unwrap();
        fs::write(venv.folder().join("bin/left"), "").unwrap();
        fs::write(venv.python(), "").unwrap();
        ready.iter().for_each(|text| fs::write(venv.folder().join(READY), text).unwrap());
        assert!(!venv.is_ready());
        let cache = workshop.root.join("cache");
        assert_eq!(is_half_made(&cache, &venv.python()), ready.is_none());
        assert!(!is_half_made(&cache, &workshop.base().path));

        provided(&venv).await.1.unwrap();
        assert!(venv.is_ready() && !venv.folder().join("bin/left").exists());
        fs::remove_dir_all(venv.folder()).unwrap();
    }
}

#[tokio::test]
async fn an_attempt_that_fails_at_any_step_can_be_repeated() {
    let workshop = Workshop::new();
    let venv = workshop.venv();
    let broken = r#"echo "numpy: ImportError: no libgomp" >&2; exit 1"#;
    let broken = CREATE.replace("exit 0", broken);

    workshop.uv("echo 'No module named venv'; exit 1", "true");
    let error = provided(&venv).await.1.unwrap_err().to_string();
    let python = workshop.root.join("base");
    let expected = format!("python at `{python}` cannot make an environment: No module named venv");
    assert_eq!(error, expected);

    workshop.uv(CREATE, "echo 'error: Failed to fetch: `index`' >&2; exit 2");
    let error = provided(&venv).await.1.unwrap_err();
    let VenvError::Fetch { detail, command } = error else { panic!("{error}") };
    assert_eq!(detail, "error: Failed to fetch: `index`");
    assert_eq!(command.last().unwrap(), venv.folder().join("requirements.txt").as_str());

    workshop.uv(&broken, "true");
    let error = provided(&venv).await.1.unwrap_err().to_string();
    let expected = "the Python package `numpy` was installed but does not load: \
                    ImportError: no libgomp";
    assert_eq!(error, expected);

    workshop.uv(CREATE, "echo 'OSError: [Errno 28] No space left on device'; exit 1");
    let error = provided(&venv).await.1.unwrap_err();
    assert!(matches!(error, VenvError::DiskFull { .. }), "{error}");

    assert!(!venv.is_ready());
    workshop.uv(CREATE, "true");
    provided(&venv).await.1.unwrap();
    assert!(venv.is_ready());
}

#[tokio::test]
async fn only_one_process_makes_it() {
    let workshop = Workshop::new();
    let venv = workshop.venv();
    let other = venv.lock(&|_| ()).await.unwrap();
    let release = async {
        sleep(LOOK / 2).await;
        drop(other);
    };
    let ((told, python), ()) = futures::future::join(provided(&venv), release).await;
    python.unwrap();
    assert_eq!(told[0], "waiting for another process that makes the Python environment");
    assert_eq!(told.len(), 4, "{told:?}");
}

#[tokio::test]
async fn waiting_for_another_process_has_an_end() {
    let workshop = Workshop::new();
    let venv = Venv { limit: LOOK, ..workshop.venv() };
    let _other = venv.lock(&|_| ()).await.unwrap();
    let error = provided(&venv).await.1.unwrap_err();
    assert!(matches!(error, VenvError::Busy { .. }), "{error}");
    assert_eq!(workshop.log(), "");
}

#[tokio::test]
async fn a_stalled_installer_is_killed_with_all_it_started() {
    let workshop = Workshop::new();
    workshop.uv(CREATE, "exec 3<&0; sleep 600 <&3 & echo $! >>log\nwait");
    let stalled = Venv { limit: Duration::from_secs(1), ..workshop.venv() };
    let error = provided(&stalled).await.1.unwrap_err();
    assert!(matches!(error, VenvError::TimedOut { .. }), "{error}");
    assert!(!stalled.is_ready());

    // Its worker had the lock open too, which is free only when it is dead.
    let log = workshop.log();
    assert_eq!(log.lines().count(), 3, "{log}");
    workshop.uv(CREATE, "true");
    provided(&workshop.venv()).await.1.unwrap();
}

#[tokio::test]
async fn an_installer_that_outlives_us_keeps_the_lock() {
    let workshop = Workshop::new();
    workshop.uv(CREATE, "exec 3<&0; setsid sleep 1 <&3 & sleep 600");
    let abandoned = Venv { limit: Duration::from_millis(500), ..workshop.venv() };
    provided(&abandoned).await.1.unwrap_err();

    workshop.uv(CREATE, "true");
    let (told, python) = provided(&workshop.venv()).await;
    python.unwrap();
    assert_eq!(told[0], "waiting for another process that makes the Python environment");
}

#[test]
fn complaints_are_told_apart() {
    let base = Interpreter { path: "/usr/bin/python3".into(), version: "3.12.1".to_owned() };
    let about = |text: &str| {
        let lines = text.lines().map(str::to_owned).collect();
        Complaint { lines, status: "exit status: 1".to_owned() }
            .about_packages(&base, vec!["pip".to_owned()])
    };
    let unknown = "no version of the package `no-such>=2` can be installed for Python 3.12.1";
    for text in [
        "ERROR: Could not find a version that satisfies the requirement no-such>=2 (from \
         versions: none)\nERROR: No matching distribution found for no-such>=2",
        "ERROR: No matching distribution found for no-such>=2 (from other)",
    ] {
        assert_eq!(about(text).to_string(), unknown);
    }
    let uv = [
        "  × No solution found when resolving dependencies:\n  ╰─▶ Because no-such was not found in \
         the package registry and you require\n      no-such, we can conclude that your \
         requirements are unsatisfiable.",
        "  × No solution found when resolving dependencies:\n  ╰─▶ Because there is no version of \
         no-such==99 and you require",
    ];
    let names = uv.map(|text| {
        let error = about(text);
        let VenvError::NoSuchPackage { requirement, .. } = error else { panic!("{error}") };
        requirement
    });
    assert_eq!(names, ["no-such", "no-such==99"]);

    let offline = "WARNING: Retrying (Retry(total=0)) after connection broken by 'Refused': /six/\n\
                   ERROR: Could not find a version that satisfies the requirement six\n\
                   ERROR: No matching distribution found for six";
    let refused = "the Python packages could not be fetched: 'Refused': /six/";
    assert_eq!(about(offline).to_string(), refused);
    let uv = "error: Failed to fetch: `index`\n  Caused by: Connection refused\n\n";
    let refused = "the Python packages could not be fetched: Caused by: Connection refused";
    assert_eq!(about(uv).to_string(), refused);
    let conflict = "ERROR: Cannot install -r file (line 1) and b==1\n\nThe conflict is caused by:\n    \
                    The user requested b==1\n    a 1 depends on b>=2\n\nTo fix this you could\n\
                    ERROR: ResolutionImpossible: see the manual";
    let uv = "Using Python 3.12.1\n  × No solution found when resolving dependencies:\n  \
              ╰─▶ Because a==1 depends on b>=2 and you require b==1";
    let told = "the Python packages do not go together: ";
    let pip_says = "The user requested b==1; a 1 depends on b>=2";
    assert_eq!(about(conflict).to_string(), format!("{told}{pip_says}"));
    let uv_says = "╰─▶ Because a==1 depends on b>=2 and you require b==1";
    assert_eq!(about(uv).to_string(), format!("{told}{uv_says}"));
    let silent = "the Python packages could not be installed: it ended with exit status: 1";
    assert_eq!(about("").to_string(), silent);
}

#[test]
fn only_what_takes_long_is_told() {
    let told = |line: &str| news(line).unwrap_or_default();
    let wheel = "  Downloading https://host/a/numpy-2.3.5-cp311-cp311-linux.whl (16.9 MB)";
    assert_eq!(told(wheel), "downloading numpy-2.3.5 (16.9 MB)");
    assert_eq!(told("Downloading catboost (94.1MiB)"), "downloading catboost (94.1MiB)");
    assert_eq!(told("Downloading six-1.17.0-py2.py3-none-any.whl (11 kB)"), "");
    assert_eq!(told("Downloading pillow (7.0MiB)"), "");
    assert_eq!(told("Downloading torch (1.2GiB)"), "downloading torch (1.2GiB)");
    assert_eq!(told("Collecting numpy==2.3.5"), "");
    assert_eq!(told("Installing collected packages: six"), "unpacking and compiling");
    assert_eq!(told("  Building wheel for old (setup.py): started"), "building old");
}

#[test]
fn passwords_in_addresses_are_not_told() {
    let line = "Looking in indexes: https://me:secret@host/simple, https://other/simple";
    let clean = "Looking in indexes: https://host/simple, https://other/simple";
    assert_eq!(without_passwords(line), clean);
    assert_eq!(without_passwords("a@b: nothing"), "a@b: nothing");
}
