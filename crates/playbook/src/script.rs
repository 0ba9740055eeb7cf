//! A script of the playbook is a sequence of sections, each with a header line of its own.
//!
//! Reading a script and writing it again changes nothing, whatever the script is: text that is not
//! ours becomes the preamble. Edits work on whole sections.

use std::fmt;

/// What a section is for. Sections stand in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Setup,
    Data,
    /// A solution within an ensemble.
    Solution,
    Target,
    Features,
    Table,
    Model,
    Members,
    Blend,
    Ensemble,
    Decision,
    Validation,
    /// What an ablation study adds.
    Study,
    Submission,
}

const KINDS: [(Kind, &str); 14] = [
    (Kind::Setup, "setup"),
    (Kind::Data, "data"),
    (Kind::Solution, "solution"),
    (Kind::Target, "target"),
    (Kind::Features, "features"),
    (Kind::Table, "table"),
    (Kind::Model, "model"),
    (Kind::Members, "members"),
    (Kind::Blend, "blend"),
    (Kind::Ensemble, "ensemble"),
    (Kind::Decision, "decision"),
    (Kind::Validation, "validation"),
    (Kind::Study, "study"),
    (Kind::Submission, "submission"),
];

impl Kind {
    pub(crate) fn named(word: &str) -> Option<Self> {
        KINDS.iter().find(|(_, name)| *name == word).map(|(kind, _)| *kind)
    }

    pub(crate) fn word(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }
}

/// One section: its header and everything to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) kind: Kind,
    pub(crate) name: Option<String>,
    /// All of it, with the header and the blank lines at its end.
    pub(crate) text: String,
}

/// A script as sections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    /// What stands before the first header.
    preamble: String,
    pub(crate) sections: Vec<Section>,
}

impl Section {
    /// A section around `body`.
    pub(crate) fn new(kind: Kind, name: Option<&str>, body: &str) -> Self {
        let name = name.map(str::to_owned);
        let title = match &name {
            Some(name) => format!("{}: {name}", kind.word()),
            None => kind.word().to_owned(),
        };
        let text = format!("# === {title} ===\n{}\n\n\n", body.trim_matches(['\n', ' ']));
        Self { kind, name, text }
    }

    /// What people and summaries call it, such as `model: lightgbm`.
    pub(crate) fn title(&self) -> String {
        match &self.name {
            Some(name) => format!("{}: {name}", self.kind.word()),
            None => self.kind.word().to_owned(),
        }
    }

    /// The text as it is quoted: without the line breaks at its end.
    pub(crate) fn quoted(&self) -> &str {
        self.text.trim_end_matches(['\n', '\r', ' '])
    }

    /// Replaces the line that begins with `start` at the outermost level.
    pub(crate) fn with_line(&self, start: &str, line: &str) -> Self {
        let lines = self
            .text
            .split_inclusive('\n')
            .map(|it| if it.starts_with(start) { format!("{line}\n") } else { it.to_owned() });
        Self { text: lines.collect(), ..self.clone() }
    }

    /// The line that begins with `start`, without its line break.
    pub(crate) fn line(&self, start: &str) -> Option<&str> {
        self.text.lines().find(|line| line.starts_with(start))
    }
}

impl Script {
    /// Divides any text into sections.
    pub(crate) fn parse(text: &str) -> Self {
        let mut preamble = String::new();
        let mut sections: Vec<Section> = Vec::new();
        for line in text.split_inclusive('\n') {
            if let Some((kind, name)) = header(line) {
                sections.push(Section { kind, name, text: line.to_owned() });
                continue;
            }
            match sections.last_mut() {
                Some(section) => section.text.push_str(line),
                None => preamble.push_str(line),
            }
        }
        Self { preamble, sections }
    }

    pub(crate) fn new(sections: Vec<Section>) -> Self {
        Self { preamble: String::new(), sections }
    }

    /// Whether the playbook wrote it: it has what every script of ours has.
    pub(crate) fn is_ours(&self) -> bool {
        self.first(Kind::Setup).is_some() && self.first(Kind::Data).is_some()
    }

    pub(crate) fn is_ensemble(&self) -> bool {
        self.first(Kind::Solution).is_some()
    }

    pub(crate) fn first(&self, kind: Kind) -> Option<&Section> {
        self.of(kind).next()
    }

    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(move |section| section.kind == kind)
    }

    /// The names of all sections of a kind.
    pub(crate) fn names(&self, kind: Kind) -> Vec<String> {
        self.of(kind).filter_map(|section| section.name.clone()).collect()
    }

    pub(crate) fn has(&self, kind: Kind, name: &str) -> bool {
        self.of(kind).any(|section| section.name.as_deref() == Some(name))
    }

    /// Puts a section where its kind belongs, after others of the same kind.
    pub(crate) fn insert(&mut self, section: Section) {
        let after = self.sections.iter().rposition(|it| it.kind <= section.kind);
        self.sections.insert(after.map_or(0, |it| it + 1), section);
    }

    /// Puts a section in the place of the first of its kind, or where it belongs.
    pub(crate) fn replace(&mut self, section: Section) {
        match self.sections.iter_mut().find(|it| it.kind == section.kind) {
            Some(place) => *place = section,
            None => self.insert(section),
        }
    }

    /// Removes the sections for which `gone` holds.
    pub(crate) fn remove(&mut self, gone: impl Fn(&Section) -> bool) {
        self.sections.retain(|section| !gone(section));
    }

    /// Writes the lists of features and models anew, after sections came or went.
    pub(crate) fn relist(&mut self) {
        let (features, models) = (self.names(Kind::Features), self.names(Kind::Model));
        for section in &mut self.sections {
            match section.kind {
                Kind::Table => *section = section.with_line("FEATURES = ", &list(&features)),
                Kind::Members if !models.is_empty() => {
                    *section = section.with_line("MODELS = ", &dictionary(&models));
                }
                Kind::Setup
                | Kind::Data
                | Kind::Solution
                | Kind::Target
                | Kind::Features
                | Kind::Model
                | Kind::Members
                | Kind::Blend
                | Kind::Ensemble
                | Kind::Decision
                | Kind::Validation
                | Kind::Study
                | Kind::Submission => {}
            }
        }
    }
}

/// `FEATURES = [features_a, features_b]`
pub(crate) fn list(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("features_{name}")).collect();
    format!("FEATURES = [{}]", names.join(", "))
}

/// `MODELS = {"a": model_a}`
pub(crate) fn dictionary(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\": model_{name}")).collect();
    format!("MODELS = {{{}}}", names.join(", "))
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.preamble)?;
        self.sections.iter().try_for_each(|section| f.write_str(&section.text))
    }
}

/// Reads `# === KIND: NAME ===`.
fn header(line: &str) -> Option<(Kind, Option<String>)> {
    let title = line.trim_end().strip_prefix("# === ")?.strip_suffix(" ===")?;
    let (word, name) = match title.split_once(": ") {
        Some((word, name)) => (word, Some(name.to_owned())),
        None => (title, None),
    };
    Some((Kind::named(word)?, name))
}

/// Text moved to the right, blank lines aside.
pub(crate) fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| {
        if line.trim().is_empty() { String::from("\n") } else { format!("    {line}\n") }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sections_are_found_by_their_headers() {
        let text = "import os\n# === data ===\nx = 1\n\n# === model: a ===\ny = 2\n# === odd ===\n";
        let script = Script::parse(text);
        assert_eq!(script.preamble, "import os\n");
        assert_eq!(script.sections.len(), 2);
        assert_eq!(script.names(Kind::Model), ["a"]);
        assert_eq!(script.sections[1].text, "# === model: a ===\ny = 2\n# === odd ===\n");
        assert_eq!(script.to_string(), text);
    }

    #[test]
    fn sections_go_where_they_belong() {
        let mut script = Script::parse("");
        for (kind, name) in [
            (Kind::Members, None),
            (Kind::Model, Some("a")),
            (Kind::Setup, None),
            (Kind::Table, None),
            (Kind::Model, Some("b")),
        ] {
            let body = if kind == Kind::Members { "MODELS = {}" } else { "FEATURES = []" };
            script.insert(Section::new(kind, name, body));
        }
        script.relist();
        let titles: Vec<String> = script.sections.iter().map(Section::title).collect();
        assert_eq!(titles, ["setup", "table", "model: a", "model: b", "members"]);
        let listed = "# === members ===\nMODELS = {\"a\": model_a, \"b\": model_b}";
        assert_eq!(script.sections[4].quoted(), listed);
    }

    proptest! {
        #[test]
        fn reading_and_writing_changes_nothing(lines in proptest::collection::vec("(# === (data|model: [a-z]{1,3}|odd) ===|[ -~]{0,20})\r?\n?", 0..20)) {
            let text = lines.concat();
            prop_assert_eq!(Script::parse(&text).to_string(), text);
        }

        #[test]
        fn any_text_is_kept(text: String) {
            prop_assert_eq!(Script::parse(&text).to_string(), text);
        }
    }
}
