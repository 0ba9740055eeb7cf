//! The lists: programs, secrets, devices.

use std::path::Path;

use crate::glob;
use crate::place::may_start_with;

/// A program with words that it must not be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    program: String,
    words: Vec<String>,
    reason: String,
}

/// What lies below a home and is nobody else's business.
const SECRETS_BELOW_HOME: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".pypirc",
    ".npmrc",
    ".cargo/credentials.toml",
    ".claude",
    ".claude.json",
    ".anthropic",
    ".kaggle",
    ".config/gcloud",
    ".config/gh",
    ".config/anthropic",
    ".config/op",
    ".huggingface",
    ".cache/huggingface/token",
    ".password-store",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".local/share/keyrings",
    ".mozilla",
];

/// Where the machine keeps secrets, whoever asks.
const SECRETS: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/run/secrets",
    "/var/run/secrets",
    "/dev/mem",
    "/dev/kmem",
    "/dev/tcp",
    "/dev/udp",
    "/proc/kcore",
    "/root/.ssh",
];

/// Files of any folder that hold keys.
const SECRET_NAMES: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "kaggle.json"];

const DEVICES: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/zero"];

impl Pattern {
    /// Reads words; nothing if there are none.
    pub(crate) fn parse(words: &str, reason: &str) -> Option<Self> {
        let mut words = words.split_whitespace().map(str::to_owned);
        let program = words.next()?;
        Some(Self { program, words: words.collect(), reason: reason.to_owned() })
    }

    /// Why a program must not be given these words, if it must not.
    pub(crate) fn denies(&self, program: &str, words: &[&str]) -> Option<&str> {
        let named = self.program == program
            || (glob::is_wild(&self.program) && glob::matches(&self.program, program));
        if !named {
            return None;
        }
        let mut given = words.iter();
        let all = self.words.iter().all(|own| given.any(|word| glob::matches(own, word)));
        all.then_some(&self.reason)
    }
}

pub(crate) fn defaults() -> Vec<Pattern> {
    include_str!("denied.txt")
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(": "))
        .filter_map(|(words, reason)| Pattern::parse(words, reason))
        .collect()
}

pub(crate) fn is_device(path: &Path) -> bool {
    DEVICES.iter().any(|device| path == Path::new(device)) || path.starts_with("/dev/fd")
}

pub(crate) fn secrets_below_home() -> impl Iterator<Item = &'static str> {
    SECRETS_BELOW_HOME.iter().copied()
}

/// Secrets that are where they are whatever the home is.
pub(crate) fn is_secret_anywhere(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let of_a_process = path.starts_with("/proc") && ["environ", "mem"].contains(&name);
    of_a_process
        || SECRET_NAMES.contains(&name)
        || SECRETS.iter().any(|secret| may_start_with(path, Path::new(secret)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_list_is_read() {
        let lines = include_str!("denied.txt")
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(defaults().len(), lines.count());
    }

    #[test]
    fn words_are_looked_for_in_order() {
        let pattern = Pattern::parse("kaggle * submit", "no").unwrap();
        assert_eq!(pattern.denies("kaggle", &["competitions", "submit", "-f"]), Some("no"));
        assert_eq!(pattern.denies("kaggle", &["submit", "x"]), None);
        assert_eq!(pattern.denies("kaggl", &["x", "submit"]), None);
    }
}
