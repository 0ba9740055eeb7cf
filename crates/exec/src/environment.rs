//! The variables a script sees: a list of what passes, so that no credential does, whatever its
//! name.

use std::ffi::{OsStr, OsString};

use camino::Utf8Path;

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

/// The environment of a script in `workspace`, made from `ours`.
pub(crate) fn environment(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    workspace: &Utf8Path,
    gpus: Option<&[u32]>,
) -> Vec<(OsString, OsString)> {
    let mut theirs: Vec<(OsString, OsString)> =
        ours.into_iter().filter(|(name, _)| passes(name)).collect();
    let mut set = |name: &str, value: String| {
        theirs.retain(|(known, _)| known != name);
        theirs.push((name.into(), value.into()));
    };
    set("HOME", workspace.join(HOME).into_string());
    set("TMPDIR", workspace.join(TMP).into_string());
    set("PYTHONUNBUFFERED", "1".to_owned());
    set("PYTHONHASHSEED", "0".to_owned());
    set("PYTHONDONTWRITEBYTECODE", "1".to_owned());
    if let Some(gpus) = gpus {
        let list: Vec<String> = gpus.iter().map(u32::to_string).collect();
        set(DEVICES, list.join(","));
    }
    theirs
}

fn passes(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| PASSED.contains(&name) || name.starts_with(PASSED_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ours: &[(&str, &str)], gpus: Option<&[u32]>) -> Vec<String> {
        let ours = ours.iter().map(|(name, value)| (name.into(), value.into()));
        let theirs = environment(ours, Utf8Path::new("/work"), gpus);
        let line = |(name, value): &(OsString, OsString)| {
            format!("{}={}", name.to_str().unwrap(), value.to_str().unwrap())
        };
        let mut seen: Vec<String> = theirs.iter().map(line).collect();
        seen.sort();
        seen
    }

    const ALWAYS: [&str; 5] = [
        "HOME=/work/.home",
        "PYTHONDONTWRITEBYTECODE=1",
        "PYTHONHASHSEED=0",
        "PYTHONUNBUFFERED=1",
        "TMPDIR=/work/.tmp",
    ];

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
        ];
        assert_eq!(seen(&ours, None), ALWAYS);
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

    #[test]
    fn devices_are_inherited_listed_or_hidden() {
        let ours = [(DEVICES, "7")];
        assert!(seen(&ours, None).contains(&format!("{DEVICES}=7")));
        assert!(seen(&ours, Some(&[0, 1])).contains(&format!("{DEVICES}=0,1")));
        assert!(seen(&ours, Some(&[])).contains(&format!("{DEVICES}=")));
        assert_eq!(seen(&ours, Some(&[0])).len(), ALWAYS.len() + 1);
    }
}
