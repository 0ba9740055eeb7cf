//! Long options that are cut short.
//!
//! Most programs take `--targ` for `--target-directory`. Who reads options here knows whole names, so
//! the beginnings of those that say where something is written, or what is started, are denied.

use crate::text::Word;
use crate::{Denial, Judged};

/// Programs, and their options that matter. A name that is here in full is judged elsewhere, also if
/// another one begins with it.
const IN_FULL: &[(&[&str], &[&str])] = &[
    (
        &["cp", "mv", "ln", "link", "install"],
        &[
            "--archive",
            "--directory",
            "--link",
            "--no-dereference",
            "--recursive",
            "--relative",
            "--suffix",
            "--symbolic",
            "--symbolic-link",
            "--target-directory",
        ],
    ),
    (
        &["chmod", "chown", "chgrp", "touch", "truncate"],
        &["--reference", "--from", "--date", "--size"],
    ),
    (
        &["awk", "gawk"],
        &[
            "--debug",
            "--dump-variables",
            "--exec",
            "--file",
            "--include",
            "--load",
            "--pretty-print",
            "--profile",
            "--source",
        ],
    ),
    (&["sed", "gsed"], &["--in-place", "--expression", "--file"]),
    (
        &["sort", "split", "shuf", "uniq"],
        &[
            "--output",
            "--compress-program",
            "--temporary-directory",
            "--filter",
            "--key",
            "--field-separator",
        ],
    ),
    (
        &["tar", "bsdtar"],
        &[
            "--absolute-names",
            "--checkpoint",
            "--checkpoint-action",
            "--directory",
            "--file",
            "--files-from",
            "--index-file",
            "--info-script",
            "--listed-incremental",
            "--new-volume-script",
            "--one-top-level",
            "--rmt-command",
            "--rsh-command",
            "--to-command",
            "--use-compress-program",
            "--volno-file",
        ],
    ),
    (
        &["git"],
        &[
            "--exec",
            "--extcmd",
            "--open-files-in-pager",
            "--output",
            "--separate-git-dir",
            "--template",
        ],
    ),
    (
        &["wget"],
        &[
            "--append-output",
            "--body-data",
            "--body-file",
            "--config",
            "--directory-prefix",
            "--execute",
            "--hsts-file",
            "--input-file",
            "--output-document",
            "--output-file",
            "--post-data",
            "--post-file",
            "--save-cookies",
            "--use-askpass",
            "--warc-file",
        ],
    ),
    (
        &["curl"],
        &[
            "--alt-svc",
            "--config",
            "--cookie-jar",
            "--data",
            "--data-ascii",
            "--data-binary",
            "--data-raw",
            "--data-urlencode",
            "--dump-header",
            "--etag-save",
            "--form",
            "--form-string",
            "--hsts",
            "--json",
            "--libcurl",
            "--netrc",
            "--netrc-file",
            "--output",
            "--output-dir",
            "--stderr",
            "--trace",
            "--trace-ascii",
            "--upload-file",
            "--write-out",
        ],
    ),
    (&["env"], &["--chdir", "--split-string", "--unset"]),
    (&["nice"], &["--adjustment"]),
    (&["ionice"], &["--class", "--classdata"]),
    (&["timeout"], &["--kill-after", "--signal"]),
    (&["time"], &["--append", "--format", "--output"]),
    (&["stdbuf"], &["--error", "--input", "--output"]),
];

/// Programs whose words are another program's from the first one that is no option.
const WRAPPERS: &[&str] = &["env", "nice", "ionice", "timeout", "time", "stdbuf"];

/// Denies options that matter unless they are written in full.
pub(super) fn check(base: &str, words: &[Word]) -> Judged {
    let known = IN_FULL.iter().filter(|(programs, _)| programs.contains(&base));
    let names: Vec<&str> = known.flat_map(|(_, names)| *names).copied().collect();
    let is_wrapper = WRAPPERS.contains(&base);
    let prefixes = |word: &'_ Word| -> Vec<String> {
        word.texts.iter().map(|text| text.prefix().to_owned()).collect()
    };
    for word in words {
        let is_option = prefixes(word).iter().any(|it| it.starts_with('-'));
        if word.as_literal() == Some("--") || (is_wrapper && !is_option) {
            return Ok(());
        }
        for prefix in prefixes(word).iter().filter(|it| it.starts_with("--")) {
            let name = prefix.split('=').next().unwrap_or_default();
            let full = names.iter().find(|full| full.starts_with(name));
            if let (Some(full), false) = (full, names.contains(&name)) {
                return Err(Denial::new(format_args!("{name} may be {full}; write it in full")));
            }
        }
    }
    Ok(())
}
