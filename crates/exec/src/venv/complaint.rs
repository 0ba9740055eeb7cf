//! What went wrong when a program complained, read from its last words.

use super::VenvError;
use crate::machine::Interpreter;

/// How many lines of a complaint are shown.
const SHOWN_LINES: usize = 4;

/// The last words of a program that failed.
#[derive(Debug)]
pub(super) struct Complaint {
    /// What it printed, then what it wrote to standard error.
    pub(super) lines: Vec<String>,
    /// How it ended.
    pub(super) status: String,
}

impl Complaint {
    /// An empty environment could not be made.
    pub(super) fn about_creation(self, base: &Interpreter) -> VenvError {
        let detail =
            ["ensurepip is not available", "No module named venv", "No module named ensurepip"]
                .iter()
                .find(|mark| self.mentions(mark))
                .map_or_else(|| self.detail(), |mark| (*mark).to_owned());
        VenvError::NoVenv { python: base.path.clone(), detail }
    }

    /// The packages could not be installed.
    pub(super) fn about_packages(self, base: &Interpreter, command: Vec<String>) -> VenvError {
        if let Some(line) = self.lines.iter().find(|it| it.contains("No space left on device")) {
            return VenvError::Install { detail: line.trim().to_owned(), command };
        }
        if self.mentions("No module named pip") {
            let detail = "No module named pip".to_owned();
            return VenvError::NoVenv { python: base.path.clone(), detail };
        }
        // Without a network pip knows no versions either, and says the same as of an unknown name:
        // this comes first.
        if let Some(detail) = self.network_trouble() {
            return VenvError::Fetch { detail, command };
        }
        if let Some(requirement) = self.unknown_package() {
            return VenvError::NoSuchPackage { requirement, version: base.version.clone() };
        }
        if self.mentions("ResolutionImpossible") || self.mentions("No solution found") {
            return VenvError::Conflict { detail: self.disagreement() };
        }
        VenvError::Install { detail: self.detail(), command }
    }

    /// Who disagrees with whom: a paragraph of pip's, or all that uv has to say.
    fn disagreement(&self) -> String {
        let starts = ["The conflict is caused by:", "No solution found"];
        let begins = |line: &String| starts.iter().any(|start| line.contains(start));
        let said = self.lines.iter().skip_while(|line| !begins(line)).skip(1);
        let said: Vec<&str> =
            said.map(|line| line.trim()).take_while(|line| !line.is_empty()).collect();
        if said.is_empty() { self.detail() } else { said.join("; ") }
    }

    /// What the network said, in the words of pip or of uv.
    fn network_trouble(&self) -> Option<String> {
        let pip = "after connection broken by ";
        let last = |mark: &str| self.lines.iter().rev().find(|line| line.contains(mark));
        if let Some((_, trouble)) = last(pip).and_then(|line| line.split_once(pip)) {
            return Some(trouble.to_owned());
        }
        if let Some(line) = ["Read timed out", "Could not fetch URL"].iter().find_map(|it| last(it))
        {
            return Some(line.trim().to_owned());
        }
        // uv lists the causes, the deepest last.
        let uv = ["Failed to fetch", "Failed to download", "client error (Connect)"];
        let deepest = self.lines.iter().rev().find(|line| !line.trim().is_empty())?;
        uv.iter().any(|mark| self.mentions(mark)).then(|| deepest.trim().to_owned())
    }

    /// A module does not load.
    pub(super) fn about_modules(self) -> VenvError {
        let detail = self.detail();
        match detail.split_once(": ") {
            Some((module, detail)) if !module.contains(' ') => {
                VenvError::Broken { module: module.to_owned(), detail: detail.to_owned() }
            }
            _ => VenvError::Broken { module: "python".to_owned(), detail },
        }
    }

    /// The package that the index does not have, in the words of pip or of uv.
    fn unknown_package(&self) -> Option<String> {
        let pip = "No matching distribution found for ";
        if let Some(name) = self.lines.iter().find_map(|line| Some(line.split_once(pip)?.1)) {
            let name = name.split(" (from ").next().unwrap_or(name);
            return Some(name.trim().to_owned());
        }
        // uv wraps its sentences.
        let text = self.lines.join(" ");
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        for mark in [
            " was not found in the package registry",
            " was not found in the provided package locations",
            " has no wheels",
            " has no usable wheels",
        ] {
            if let Some((before, _)) = text.split_once(mark) {
                return before.split_whitespace().last().map(str::to_owned);
            }
        }
        let (_, after) = text.split_once("there is no version of ")?;
        after.split_whitespace().next().map(str::to_owned)
    }

    fn mentions(&self, mark: &str) -> bool {
        self.lines.iter().any(|line| line.contains(mark))
    }

    /// The lines that say most: those that are marked as errors, else the last ones.
    fn detail(&self) -> String {
        let said = || self.lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
        let mut lines: Vec<&str> = said().filter_map(|line| line.strip_prefix("ERROR: ")).collect();
        if lines.is_empty() {
            lines = said().collect();
        }
        let lines = lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default();
        if lines.is_empty() { format!("it ended with {}", self.status) } else { lines.join("; ") }
    }
}
