//! git: where the repository is, and what is done to it.

use std::path::Path;

use super::Options;
use crate::place::{Cwd, Last, Place};
use crate::shell::{State, Walk};
use crate::text::{Text, Word};
use crate::{Denial, Judged};

const READS: &[&str] = &[
    "blame",
    "cat-file",
    "check-ignore",
    "count-objects",
    "describe",
    "diff",
    "diff-tree",
    "grep",
    "help",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "reflog",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "status",
    "version",
    "whatchanged",
];

const WRITES: &[&str] = &[
    "add",
    "apply",
    "branch",
    "checkout",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "config",
    "gc",
    "init",
    "merge",
    "mv",
    "remote",
    "reset",
    "restore",
    "revert",
    "rm",
    "stash",
    "switch",
    "tag",
];

/// Settings by which git starts no programs.
const HARMLESS: &[&str] = &["user.", "color.", "advice.", "safe.directory", "init.defaultBranch"];

impl<'tree> Walk<'_, 'tree> {
    pub(super) fn git(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let mut at = state.cwd.clone();
        let mut rest = words.iter();
        let mut subcommand = None;
        while let Some(word) = rest.next() {
            let Some(text) = word.as_literal() else {
                return Err(Denial::new("it cannot be told what it would do"));
            };
            match text {
                "-C" => {
                    let folder = rest.next().and_then(Word::as_literal);
                    at = match (folder, &at) {
                        (Some(folder), Cwd::Among(places)) => {
                            Cwd::Among(places.iter().map(|place| place.join(folder)).collect())
                        }
                        _ => Cwd::Unknown,
                    };
                }
                "-c" => {
                    let setting = rest.next().and_then(Word::as_literal).unwrap_or_default();
                    if !is_harmless(setting) && setting != "core.pager=cat" {
                        return Err(Denial::new(format_args!("-c {setting} is not allowed")));
                    }
                }
                "--no-pager" | "--version" | "--help" | "-P" | "-p" | "--no-optional-locks" => {}
                _ if text.starts_with('-') => {
                    return Err(Denial::new(format_args!("{text} is not allowed; use -C")));
                }
                _ => {
                    subcommand = Some(text);
                    break;
                }
            }
        }
        let Some(subcommand) = subcommand else { return Ok(()) };
        let words: Vec<Word> = rest.cloned().collect();
        self.git_subcommand(subcommand, &words, &State { cwd: at, ..state.clone() })
    }

    fn git_subcommand(&self, subcommand: &str, words: &[Word], state: &State<'tree>) -> Judged {
        let mut is_output = false;
        for text in words.iter().flat_map(|word| &word.texts) {
            let prefix = text.prefix();
            if let Some(at) = prefix.strip_prefix("--output").and_then(|it| it.find('=')) {
                let file = text.without_prefix("--output".len() + at + 1);
                self.policy.may_write(&file, &state.cwd, Last::Followed)?;
            } else if is_output {
                self.policy.may_write(text, &state.cwd, Last::Followed)?;
            }
            is_output = ["-o", "--output", "--output-directory"].contains(&prefix);
            let runs = [
                "--exec",
                "--upload-pack",
                "--receive-pack",
                "--ext-diff",
                "--template",
                "--open-files-in-pager",
                "--textconv",
                "-O",
            ];
            if runs.iter().any(|it| prefix.starts_with(it)) {
                return Err(Denial::new(format_args!("{prefix} would run programs unseen")));
            }
        }
        let unsafe_paths =
            |word: &Word| word.texts.iter().any(|it| it.prefix().starts_with("--uns"));
        if words.iter().any(unsafe_paths) {
            return Err(Denial::new("a patch may name any path with --unsafe-paths"));
        }
        if READS.contains(&subcommand) {
            return Ok(());
        }
        if !WRITES.contains(&subcommand) {
            return Err(Denial::new(format_args!("git {subcommand} is not allowed")));
        }
        self.write_here(state)?;
        let options = Options::read(words, "", &[]);
        match subcommand {
            "config" => self.git_config(&options)?,
            "init" | "clone" => {
                self.hand_over_all(words, state)?;
                return self.write_into(options.positional.iter(), state);
            }
            // A message may say anything.
            "commit" | "tag" | "merge" | "stash" => {}
            _ => self.hand_over_all(words, state)?,
        }
        self.repository_is_inside(state)
    }

    fn git_config(&self, options: &Options) -> Judged {
        if options.has(&["--global", "--system", "--file", "-f", "--edit", "-e"]) {
            return Err(Denial::new("settings outside the working directory must stay"));
        }
        let setting = options.subcommands().first().copied().unwrap_or_default();
        if options.positional.len() > 1 && !is_harmless(setting) {
            return Err(Denial::new(format_args!("the setting {setting} must stay")));
        }
        Ok(())
    }

    /// A repository above the working directory belongs to somebody else.
    fn repository_is_inside(&self, state: &State<'tree>) -> Judged {
        let Cwd::Among(places) = &state.cwd else { return Ok(()) };
        for place in places {
            let repository =
                place.ancestors().map(Path::to_owned).find(|it| it.join(".git").exists());
            let Some(repository) = repository else { continue };
            let folder = Text::literal(repository.join(".git").to_string_lossy());
            if self.policy.place(&folder, &state.cwd, Last::Followed) != Place::Inside {
                return Err(Denial::new(format_args!(
                    "the repository {} is outside the working directory",
                    repository.display()
                )));
            }
        }
        Ok(())
    }
}

fn is_harmless(setting: &str) -> bool {
    HARMLESS.iter().any(|it| setting.starts_with(it)) && !setting.contains('!')
}
