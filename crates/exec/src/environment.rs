//! The variables a script sees: a list of what passes, so that no credential does, whatever its
//! name.

use std::ffi::{OsStr, OsString};

use camino::Utf8Path;

use crate::slots::Slot;

/// Where a script's home is inside its workspace.
pub(crate) const HOME: &str = ".home";
/// Where a script's temporary files go inside its workspace.
pub(crate) const TMP: &str = ".tmp";

/// The variables that pass. `PYTHONPATH` is absent: it would put modules of ours before theirs.
///
/// The locale's names are spelled out, because ssh servers let any `LC_` name in and people use
/// that to carry secrets along.
const PASSED: [&str; 18] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "TZ",
    "LANG",
    "LC_ALL",
    "LC_ADDRESS",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
];

/// The variables of a whole family that pass.
const PASSED_PREFIX: &str = "CUDA_";

/// Which devices a script may use.
const DEVICES: &str = "CUDA_VISIBLE_DEVICES";

/// How many threads the numerical libraries start, each by its own name for that.
///
/// PyTorch and LightGBM have none of their own and follow OpenMP's; XGBoost asks the system which
/// cores it may use. Python itself counts cores by the last one, from 3.13 on.
const THREADS: [&str; 13] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMEXPR_MAX_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "LOKY_MAX_CPU_COUNT",
    "PYTHON_CPU_COUNT",
];

/// What every script gets, so that it gives the same numbers each time and opens no window.
///
/// `TF_DETERMINISTIC_OPS` is absent: with it, TensorFlow refuses scripts that set no seed. CUDA's
/// matrix products need the workspace before anybody can ask them to be deterministic.
const ALWAYS: [(&str, &str); 7] = [
    ("PYTHONUNBUFFERED", "1"),
    ("PYTHONHASHSEED", "0"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),
    ("MPLBACKEND", "Agg"),
    ("USER", "script"),
    ("LOGNAME", "script"),
];

/// Where a script finds what others left for it.
const SHARED: &str = "MLE_STAR_SHARED";

/// The environment of a script in `workspace`, made from `ours`. Without a `slot` it sees the
/// cores and devices that we see.
pub(crate) fn environment(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    workspace: &Utf8Path,
    shared: Option<&Utf8Path>,
    slot: Option<&Slot>,
) -> Vec<(OsString, OsString)> {
    let mut theirs: Vec<(OsString, OsString)> =
        ours.into_iter().filter(|(name, _)| passes(name)).collect();
    let mut set = |name: &str, value: &str| {
        theirs.retain(|(known, _)| known != name);
        theirs.push((name.into(), value.into()));
    };
    set("HOME", workspace.join(HOME).as_str());
    // Joblib would put its large arrays into memory that nobody counts.
    for name in ["TMPDIR", "JOBLIB_TEMP_FOLDER"] {
        set(name, workspace.join(TMP).as_str());
    }
    for (name, value) in ALWAYS {
        set(name, value);
    }
    if let Some(shared) = shared {
        set(SHARED, shared.as_str());
    }
    let Some(slot) = slot else { return theirs };
    if !slot.cores.is_empty() {
        let threads = slot.cores.len().to_string();
        for name in THREADS {
            set(name, &threads);
        }
        // A thread that waits lets the others have the core.
        set("OMP_WAIT_POLICY", "passive");
    }
    if let Some(gpus) = &slot.gpus {
        set(DEVICES, &gpus.join(","));
    }
    theirs
}

fn passes(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| PASSED.contains(&name) || name.starts_with(PASSED_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ours: &[(&str, &str)], slot: Option<&Slot>) -> Vec<String> {
        let ours = ours.iter().map(|(name, value)| (name.into(), value.into()));
        let theirs = environment(ours, Utf8Path::new("/work"), None, slot);
        let line = |(name, value): &(OsString, OsString)| {
            format!("{}={}", name.to_str().unwrap(), value.to_str().unwrap())
        };
        let mut seen: Vec<String> = theirs.iter().map(line).collect();
        seen.sort();
        seen
    }

    fn slot(cores: &[usize], gpus: Option<&[&str]>) -> Slot {
        let gpus = gpus.map(|gpus| gpus.iter().map(|&gpu| gpu.to_owned()).collect());
        Slot { cores: cores.into(), gpus }
    }

    const SEEN_ALWAYS: [&str; 10] = [
        "CUBLAS_WORKSPACE_CONFIG=:4096:8",
        "HOME=/work/.home",
        "JOBLIB_TEMP_FOLDER=/work/.tmp",
        "LOGNAME=script",
        "MPLBACKEND=Agg",
        "PYTHONDONTWRITEBYTECODE=1",
        "PYTHONHASHSEED=0",
        "PYTHONUNBUFFERED=1",
        "TMPDIR=/work/.tmp",
        "USER=script",
    ];

    /// REQ-EX-004
    #[test]
    fn only_listed_variables_pass() {
        let ours = [
            ("ANTHROPIC_API_KEY", "secret"),
            ("AWS_SECRET", "secret"),
            ("LC_API_KEY", "secret"),
            ("SSH_AUTH_SOCK", "secret"),
            ("PYTHONPATH", "/ours"),
            ("PYTHONSTARTUP", "/ours/start.py"),
            ("HOME", "/root"),
            ("TMPDIR", "/tmp"),
            ("PATH_OF_SECRET", "secret"),
            ("OMP_NUM_THREADS", "64"),
        ];
        assert_eq!(seen(&ours, None), SEEN_ALWAYS);
    }

    #[test]
    fn what_a_script_needs_to_run_passes() {
        let needed = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("LD_LIBRARY_PATH", "/cuda/lib"),
            ("CUDA_HOME", "/cuda"),
            ("VIRTUAL_ENV", "/venv"),
        ];
        let seen = seen(&needed, None);
        for (name, value) in needed {
            assert!(seen.contains(&format!("{name}={value}")), "{name} in {seen:?}");
        }
    }

    /// REQ-EX-004
    #[test]
    fn devices_are_inherited_listed_or_hidden() {
        let ours = [(DEVICES, "7")];
        let seen = |slot: Option<&Slot>| seen(&ours, slot);
        assert!(seen(None).contains(&format!("{DEVICES}=7")));
        assert!(seen(Some(&slot(&[], None))).contains(&format!("{DEVICES}=7")));
        assert!(seen(Some(&slot(&[], Some(&["0", "1"])))).contains(&format!("{DEVICES}=0,1")));
        assert!(seen(Some(&slot(&[], Some(&[])))).contains(&format!("{DEVICES}=")));
        assert_eq!(seen(Some(&slot(&[], Some(&["GPU-a"])))).len(), SEEN_ALWAYS.len() + 1);
    }

    #[test]
    fn every_library_is_told_how_many_cores_there_are() {
        let seen = seen(&[], Some(&slot(&[4, 5, 6], None)));
        for name in THREADS {
            assert!(seen.contains(&format!("{name}=3")), "{name} in {seen:?}");
        }
        assert!(seen.contains(&"OMP_WAIT_POLICY=passive".to_owned()));
        assert_eq!(seen.len(), SEEN_ALWAYS.len() + THREADS.len() + 1);
    }
}
