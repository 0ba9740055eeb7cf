//! Variables from a file `.env` in the current folder.
//!
//! A line is `NAME=value`, with or without `export`. A value in single quotes is taken as it is; in
//! double quotes, `\n`, `\"` and `\\` stand for what they usually do; without quotes it ends at the
//! end of the line or before ` #`. The environment takes precedence.
//!
//! Such a file is mostly there for other programs. Only what this one would use is read, and lines
//! about anything else may look as they like. The environment of the process is not changed: scripts
//! never inherit what was read here. Absent on purpose: names such as `PATH`, substitution
//! of variables (passwords contain dollar signs), values over several lines.

use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::sync::OnceLock;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::claude::leads_to_a_model;

/// Larger files are not made for this.
const MAX_BYTES: u64 = 1024 * 1024;

/// Why a file cannot be used. Says nothing of the values: they are secrets.
#[derive(Debug, thiserror::Error)]
pub enum DotenvError {
    /// It cannot be read. The message names it.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// It is not a file of lines.
    #[error("`{path}` is not a file of variables: {reason}")]
    NotText {
        /// The file.
        path: Utf8PathBuf,
        /// What it is instead.
        reason: &'static str,
    },
    /// A value is not written as values are.
    #[error("line {line} of `{path}`: {reason} of `{name}`")]
    Value {
        /// The file.
        path: Utf8PathBuf,
        /// Which line, counted from one.
        line: usize,
        /// The variable.
        name: String,
        /// What is wrong.
        reason: &'static str,
    },
}

/// What was read for this process.
static READ: OnceLock<Vec<(String, String)>> = OnceLock::new();

/// Reads `.env` in `folder` for the whole process, once: whoever looks for settings and keys, and
/// whoever masks secrets, finds them from now on.
pub fn read(folder: &Utf8Path) -> Result<(), DotenvError> {
    let variables = variables(folder)?;
    READ.get_or_init(|| variables);
    Ok(())
}

/// A variable of the environment, or else of `.env`.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    let read = || added().find(|(known, _)| *known == name).map(|(_, value)| value.into());
    std::env::var_os(name).or_else(read)
}

/// What `.env` adds to the environment.
pub(crate) fn added() -> impl Iterator<Item = (&'static str, &'static str)> {
    let read = READ.get().map(Vec::as_slice).unwrap_or_default();
    let is_new = |(name, _): &&(String, String)| std::env::var_os(name).is_none();
    read.iter().filter(is_new).map(|(name, value)| (name.as_str(), value.as_str()))
}

/// The variables of `.env` in `folder` that this program uses, the last of a name only. Without the
/// file there are none; a folder of that name is somebody's Python environment.
fn variables(folder: &Utf8Path) -> Result<Vec<(String, String)>, DotenvError> {
    let path = folder.join(".env");
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let mut bytes = Vec::new();
    match fs::File::open(&path) {
        Ok(file) => file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let not_text = |reason| DotenvError::NotText { path: path.clone(), reason };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(not_text("it is larger than a megabyte"));
    }
    let text = String::from_utf8(bytes).map_err(|_| not_text("it is not UTF-8"))?;
    parse(&text).map_err(|Unclear { line, name, reason }| DotenvError::Value {
        path: path.clone(),
        line,
        name,
        reason,
    })
}

/// A value that cannot be read.
#[derive(Debug, PartialEq, Eq)]
struct Unclear {
    line: usize,
    name: String,
    reason: &'static str,
}

fn parse(text: &str) -> Result<Vec<(String, String)>, Unclear> {
    let mut variables: Vec<(String, String)> = Vec::new();
    for (line, text) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let text = text.trim();
        let text = text.strip_prefix("export ").unwrap_or(text);
        let Some((name, value)) = text.split_once('=') else { continue };
        let name = name.trim();
        if !is_ours(name) {
            continue;
        }
        let unclear = |reason| Unclear { line, name: name.to_owned(), reason };
        let value = unquoted(value.trim()).map_err(unclear)?;
        variables.retain(|(known, _)| known != name);
        variables.push((name.to_owned(), value));
    }
    Ok(variables)
}

fn is_ours(name: &str) -> bool {
    name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
        && (name.starts_with("MLE_STAR_") || leads_to_a_model(name.as_ref()))
}

fn unquoted(value: &str) -> Result<String, &'static str> {
    const OPEN: &str = "the quote is not closed in the value";
    const MORE: &str = "something follows the quoted value";
    if value.contains('\0') {
        return Err("there is a zero byte in the value");
    }
    let (value, rest) = if let Some(quoted) = value.strip_prefix('\'') {
        let (value, rest) = quoted.split_once('\'').ok_or(OPEN)?;
        (value.to_owned(), rest)
    } else if let Some(quoted) = value.strip_prefix('"') {
        let mut value = String::new();
        let mut characters = quoted.chars();
        loop {
            match characters.next().ok_or(OPEN)? {
                '"' => break (value, characters.as_str()),
                '\\' => match characters.next().ok_or(OPEN)? {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                other => value.push(other),
            }
        }
    } else {
        let end = value.find(" #").or_else(|| value.find("\t#")).unwrap_or(value.len());
        return Ok(value.get(..end).unwrap_or(value).trim_end().to_owned());
    };
    match rest.trim_start() {
        "" => Ok(value),
        rest if rest.starts_with('#') => Ok(value),
        _ => Err(MORE),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(variables: &[(&str, &str)]) -> Vec<(String, String)> {
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn values_are_read_with_and_without_quotes() {
        let text = "\u{feff}# a comment\nexport ANTHROPIC_API_KEY = sk-1$2#3 # mine\n\
                    MLE_STAR_MODEL=\"o\\\"p\\\\us\\n\" # quoted\r\nMLE_STAR_SEED='4 # 5'\n\
                    MLE_STAR_LOG_FILE=\nMLE_STAR_SEED=6\n";
        let expected = pairs(&[
            ("ANTHROPIC_API_KEY", "sk-1$2#3"),
            ("MLE_STAR_MODEL", "o\"p\\us\n"),
            ("MLE_STAR_LOG_FILE", ""),
            ("MLE_STAR_SEED", "6"),
        ]);
        assert_eq!(parse(text), Ok(expected));
    }

    #[test]
    fn what_is_for_other_programs_is_left_alone() {
        let text = "PATH=/tmp\nLD_PRELOAD=x.so\nDATABASE=\"never closed\n  body\n=\nMLE STAR_A=1\n";
        assert_eq!(parse(text), Ok(Vec::new()));
    }

    #[test]
    fn an_error_names_the_line_and_the_variable_but_never_the_value() {
        let place = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(place.path()).unwrap();
        fs::write(folder.join(".env"), "\nANTHROPIC_API_KEY=\"sk-secret\n").unwrap();
        let error = variables(folder).unwrap_err().to_string();
        let path = folder.join(".env");
        let expected = format!(
            "line 2 of `{path}`: the quote is not closed in the value of `ANTHROPIC_API_KEY`"
        );
        assert_eq!(error, expected);
    }

    #[test]
    fn a_folder_of_that_name_is_no_file_of_variables() {
        let place = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(place.path()).unwrap();
        assert_eq!(variables(folder).unwrap(), []);
        fs::create_dir(folder.join(".env")).unwrap();
        assert_eq!(variables(folder).unwrap(), []);
    }

    proptest! {
        #[test]
        fn any_value_in_double_quotes_comes_back(value in "[^\0\r\n]*") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let expected = vec![("MLE_STAR_MODEL".to_owned(), value)];
            prop_assert_eq!(parse(&format!("MLE_STAR_MODEL=\"{quoted}\"")), Ok(expected));
        }

        #[test]
        fn no_text_is_too_odd(text in "(?s).*") {
            parse(&text).ok();
        }
    }
}
