//! A draft as a task file with comments.
//!
//! Names come from data, which is hostile until shown otherwise: no name can leave its comment or
//! its quotes.

use std::fmt::Write;

use super::{Description, Draft, MetricSource, as_word, kind_of, listed};

impl Draft {
    /// The task file.
    pub fn to_yaml(&self) -> String {
        let mut file = File { text: String::new() };
        file.comment(
            "Written by `mle-star init` from what lies in this folder. Change what is wrong;",
        );
        file.comment("lines with CHECK are guesses.");
        file.blank();
        file.comment("The name of the task, for run directories and reports.");
        file.key("competition_id", &self.competition_id);
        file.blank();
        if let Some(seen) = &self.seen {
            file.comment(&format!("Target: {}, {}.", listed(&seen.targets), kind_of(seen)));
            let id = seen.id.as_ref().map_or_else(
                || "none; submissions follow the order of the test rows".to_owned(),
                |id| format!("`{id}`"),
            );
            file.comment(&format!("Id column: {id}."));
            let rows = if seen.rows == 1 { "row" } else { "rows" };
            file.comment(&format!(
                "Tables: `{}` ({} {rows}), `{}`.",
                seen.train, seen.rows, seen.test
            ));
        }
        self.check(&mut file, &["target", "kind"]);
        file.blank();
        file.comment("classification, regression, text_classification, image_classification,");
        file.comment("audio_classification, image_to_image, sequence_to_sequence or tabular");
        self.check(&mut file, &["task_type"]);
        file.key("task_type", &as_word(&self.task_type));
        file.comment("tabular, text, image, audio or mixed");
        file.key("data_modality", &as_word(&self.data_modality));
        file.blank();
        file.comment("How predictions are judged.");
        match self.metric.source {
            MetricSource::Told => {}
            MetricSource::Mentioned | MetricSource::Guessed => {
                self.check(&mut file, &["evaluation_metric"]);
            }
        }
        file.key("evaluation_metric", &self.metric.name);
        match self.direction {
            Some(direction) => file.key("metric_direction", &as_word(&direction)),
            None => {
                self.check(&mut file, &["metric_direction"]);
                file.comment("metric_direction: maximize");
            }
        }
        file.blank();
        match &self.description {
            Description::File(path) => {
                file.comment(
                    "What agents are told about the task. `description: …` is the same in place.",
                );
                file.key("description_file", path.as_str());
            }
            Description::Text(text) => {
                file.comment(
                    "What agents are told about the task. A column between backticks is the",
                );
                file.comment("target. `description_file: description.md` names a file instead.");
                self.check(&mut file, &["description"]);
                file.key("description", text);
            }
        }
        file.blank();
        file.comment("The data, relative to this file.");
        self.check(&mut file, &["data"]);
        file.key("data_dir", self.data_dir.as_str());
        file.text
    }

    /// Says what was not decided about these subjects.
    fn check(&self, file: &mut File, subjects: &[&str]) {
        for open in self.open.iter().filter(|it| subjects.contains(&it.subject)) {
            file.comment(&format!("CHECK: {}", open.remedy));
        }
    }
}

struct File {
    text: String,
}

impl File {
    fn blank(&mut self) {
        self.text.push('\n');
    }

    fn comment(&mut self, text: &str) {
        // YAML also ends lines where few others do, and forbids what is not printable.
        let is_odd = |it: char| {
            it.is_control()
                || matches!(it, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}'..='\u{ffff}')
        };
        let line: String = text.chars().map(|it| if is_odd(it) { ' ' } else { it }).collect();
        writeln!(self.text, "# {}", line.trim_end()).ok();
    }

    fn key(&mut self, key: &str, value: &str) {
        let is_plain = value.starts_with(|it: char| it.is_ascii_alphabetic())
            && value.chars().all(|it| it.is_ascii_alphanumeric() || "_-./".contains(it))
            && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
                .contains(&value.to_lowercase().as_str());
        let value = if is_plain { value.to_owned() } else { quoted(value) };
        writeln!(self.text, "{key}: {value}").ok();
    }
}

/// A text between double quotes, with everything escaped that is not printable everywhere.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            it if it.is_alphanumeric() || it.is_ascii_graphic() || it == ' ' => quoted.push(it),
            it => {
                write!(quoted, "\\U{:08X}", u32::from(it)).ok();
            }
        }
    }
    quoted + "\""
}
