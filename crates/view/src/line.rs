//! One record in one line.

use std::collections::BTreeSet;

use mle_star_exec::sandbox::{Containment, Tier};
use mle_star_search::evaluate::Purpose;
use mle_star_search::event::{Event, Output, Phase, Record};
use mle_star_search::models::{LogLevel, Score, SolutionPhase};
use mle_star_search::summary::Summary;

use crate::format::{dollars, duration, score as rounded};

/// How much of a plan or message a line shows.
const SHOWN_CHARS: usize = 100;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What was found and decided.
    Events,
    /// Every step as well.
    Steps,
}

/// What a record says to someone who watches; `None` if it is not worth a line.
pub fn line(record: &Record, detail: Detail) -> Option<String> {
    match record {
        Record::Opened { header, .. } => Some(format!(
            "task {} · {} ({}) · agents: {}{}",
            plain(&header.task.competition_id),
            plain(&header.task.evaluation_metric),
            header.task.metric_direction.in_words(),
            plain(&header.agents),
            held(header.containment.as_ref()),
        )),
        Record::Resumed { containment, .. } => {
            Some(format!("resumed{}", held(containment.as_deref())))
        }
        Record::Settings { config, .. } => {
            let budget = config.max_budget_usd.map(|it| format!(", ${it:.2}")).unwrap_or_default();
            Some(format!("new limits: {} s{budget}", config.time_limit_seconds))
        }
        Record::Decided { .. } => None,
        Record::Finished { .. } if detail == Detail::Events => None,
        Record::Started { .. } | Record::Abandoned { .. } => None,
        Record::Finished { key, output, .. } => match output {
            Output::Asked { reply, no_answer } => {
                let cost = reply.cost_usd.map(|cost| format!(" · ${cost:.2}")).unwrap_or_default();
                let answer = if no_answer.is_some() { "gave no answer" } else { "answered" };
                Some(format!("{key} {answer}{cost}"))
            }
            Output::Ran { outcome, .. } => {
                Some(format!("{key} ended after {:.1} s", outcome.duration_seconds))
            }
            Output::NotDone { lack, .. } => {
                Some(format!("{key} was not done: {}", brief(&lack.to_string())))
            }
            Output::Totals { .. } => None,
        },
        Record::Happened { key, event, .. } => happened(key.as_str(), event)
            .filter(|_| detail == Detail::Steps || !is_told_again(key.as_str(), event)),
    }
}

/// How much a record matters to someone who watches.
pub fn level(record: &Record) -> LogLevel {
    let Record::Happened { event, .. } = record else {
        let is_done = !matches!(record.finished(), Some((_, Output::NotDone { .. })));
        return if is_done { LogLevel::Info } else { LogLevel::Warning };
    };
    let is_warning = matches!(
        event,
        Event::Warned { .. }
            | Event::CutShort { .. }
            | Event::Waiting { .. }
            | Event::OuterStepSkipped { .. }
            | Event::PathEnded { failure: Some(_), .. }
    );
    match (matches!(event, Event::PhaseFailed { .. }), is_warning) {
        (true, _) => LogLevel::Error,
        (false, true) => LogLevel::Warning,
        (false, false) => LogLevel::Info,
    }
}

/// A line about the sandbox, and one for each reason why it is not a better one.
fn held(containment: Option<&Containment>) -> String {
    let Some(containment) = containment else { return String::new() };
    let summary = containment.summary();
    let loud = if containment.tier <= Tier::Limits { "WARNING: " } else { "" };
    let refused = containment.refused.iter().map(|why| format!("\n  no {}", plain(why)));
    format!("\n{loud}{}{}", plain(&summary), refused.collect::<String>())
}

fn happened(key: &str, event: &Event) -> Option<String> {
    Some(match event {
        Event::PhaseStarted { phase } => format!("=== {} ===", title(*phase)),
        Event::PhaseEnded { best, .. } => format!("{key} ended · best {}", shown(*best)),
        Event::Retrieved { models } => format!("{key} found {}", brief(&models.join(", "))),
        Event::Evaluated { purpose, score, repairs, error } => {
            let repaired =
                if *repairs > 0 { format!(" · repairs: {repairs}") } else { String::new() };
            let error = error.as_ref().map(|it| format!(" · {}", brief(it))).unwrap_or_default();
            let outcome = match purpose {
                Purpose::Validation => format!("score {}", shown(*score)),
                Purpose::Ablation | Purpose::Submission if error.is_empty() => "ran".to_owned(),
                Purpose::Ablation | Purpose::Submission => "failed".to_owned(),
            };
            format!("{key} {outcome}{repaired}{error}")
        }
        Event::Merged { base, score, accepted, .. } => {
            let (verdict, base) = (verdict(*accepted), rounded(*base));
            format!("{key} {verdict} · {base} -> {}", shown(*score))
        }
        Event::LeakageChecked { found: true, changed } => {
            let mended = if *changed { "mended" } else { "could not be mended" };
            format!("{key} leakage found and {mended}")
        }
        Event::DataUsageChecked { changed: true } => format!("{key} now uses more of the data"),
        Event::Refined { plan, score, best, accepted } => {
            format!(
                "{key} {} · {} (best {}) · {}",
                verdict(*accepted),
                shown(*score),
                rounded(*best),
                brief(plan)
            )
        }
        Event::OuterStepSkipped { reason } => format!("{key} skipped: {}", brief(reason)),
        Event::PathEnded { path, best, failure, .. } => {
            let why =
                failure.as_ref().map(|it| format!(" · failed: {}", brief(it))).unwrap_or_default();
            format!("path {path} ended · best {}{why}", rounded(*best))
        }
        Event::Ensembled { plan, score } => format!("{key} {} · {}", shown(*score), brief(plan)),
        Event::Selected { from, score } => {
            format!("{key} takes the {} solution · {}", kind(*from), rounded(*score))
        }
        Event::CutShort { lack } => format!("{key} skipped: {}", brief(&lack.to_string())),
        Event::Waiting { seconds, reason } => {
            format!("{key} waiting for the API, {seconds} s: {}", brief(reason))
        }
        Event::BrokenOff { .. } => format!("{key} broke off and is asked again"),
        Event::Published { score, from } => {
            let (kind, score) = (kind(*from), rounded(*score));
            format!("{key} final/submission.csv is that of the {kind} solution · {score}")
        }
        Event::Summarized { summary } => {
            let Summary { costs, durations, .. } = &**summary;
            format!(
                "time {} (phase 1: {}, phase 2: {}, phase 3: {}, finalization: {}) · cost {}",
                duration(durations.total_duration_seconds),
                duration(durations.phase1_duration_seconds),
                duration(durations.phase2_duration_seconds),
                duration(durations.phase3_duration_seconds),
                duration(durations.finalization_duration_seconds),
                dollars(costs.total_cost_usd),
            )
        }
        Event::Submitted { rows } => {
            let rows = rows.map(|rows| format!(" · rows: {rows}")).unwrap_or_default();
            format!("{key} wrote the submission{rows}")
        }
        Event::Warned { message } => format!("warning: {key}: {}", brief(message)),
        Event::PhaseSkipped { phase, .. } => format!("{} is not needed", title(*phase)),
        Event::PhaseFailed { reason, .. } => format!("{key} failed: {}", brief(reason)),
        Event::SubsamplingChecked { before: Some(_), after: Some(_) } => {
            format!("{key} now uses all training data")
        }
        Event::ContaminationChecked { overall: Some(verdict), verdicts } => {
            format!("{key} compared with {} discussions: {verdict:?}", verdicts.len())
        }
        Event::LeakageChecked { found: false, .. }
        | Event::DataUsageChecked { changed: false }
        | Event::SubsamplingChecked { .. }
        | Event::ContaminationChecked { overall: None, .. }
        | Event::Ranked { .. }
        | Event::OuterStepStarted { .. }
        | Event::BlockChecked { .. }
        | Event::BlockReplaced { .. }
        | Event::InnerLoopStarted { .. }
        | Event::InnerLoopEnded { .. }
        | Event::RoundStarted { .. }
        | Event::OuterLoopEnded { .. }
        | Event::OuterStepEnded { .. } => return None,
    })
}

/// Whether the verdict on a script, which comes next, says all that its evaluation says.
fn is_told_again(key: &str, event: &Event) -> bool {
    let judged = |part: &str| ["inner-", "merge-", "round-"].iter().any(|it| part.starts_with(it));
    matches!(event, Event::Evaluated { repairs: 0, error: None, .. })
        && key.rsplit('/').next().is_some_and(judged)
}

pub(crate) fn title(phase: Phase) -> &'static str {
    match phase {
        Phase::Phase1 => "Phase 1: Initial Solution Generation",
        Phase::Phase2 => "Phase 2: Refinement",
        Phase::Phase3 => "Phase 3: Ensemble",
        Phase::Finalization => "Finalization",
    }
}

fn kind(phase: SolutionPhase) -> &'static str {
    match phase {
        SolutionPhase::Init => "initial",
        SolutionPhase::Merged => "merged",
        SolutionPhase::Refined => "refined",
        SolutionPhase::Ensemble => "ensemble",
        SolutionPhase::Final => "final",
    }
}

fn verdict(accepted: bool) -> &'static str {
    if accepted { "accepted" } else { "rejected" }
}

fn shown(score: Option<Score>) -> String {
    score.map_or_else(|| "failed".to_owned(), rounded)
}

/// A text on one line, cut short, without control characters.
fn brief(text: &str) -> String {
    // A reply may have a megabyte, of which a line shows nothing.
    let text = plain(&text.chars().take(4 * SHOWN_CHARS).collect::<String>());
    if text.chars().count() <= SHOWN_CHARS {
        return text;
    }
    let cut: String = text.chars().take(SHOWN_CHARS - 1).collect();
    format!("{cut}…")
}

/// A text on one line, without what a terminal would obey.
pub fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split(|it: char| it.is_control() || it == ' ').collect();
    let words = words.into_iter().filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").replace(is_hidden, "")
}

/// A text with its line breaks and indentation, without anything else that a terminal would obey.
pub fn plain_lines(text: &str) -> String {
    let harmless = |it: &char| *it == '\t' || !(it.is_control() || is_hidden(*it));
    let lines = text.lines().map(|line| line.chars().filter(harmless).chain(['\n']));
    lines.flatten().collect()
}

/// JSON in which what a terminal would obey is escaped. `json` must be as `serde_json` writes it,
/// with such characters in strings only, where JSON can escape them, and line breaks elsewhere.
pub fn plain_json(json: &str) -> String {
    let is_obeyed = |it: char| it != '\n' && (it.is_control() || is_hidden(it));
    let escaped = json.chars().filter(|it| is_obeyed(*it)).collect::<BTreeSet<char>>();
    escaped
        .into_iter()
        .fold(json.to_owned(), |json, it| json.replace(it, &format!("\\u{:04x}", u32::from(it))))
}

/// A text as one word of a command that can be pasted into a shell.
pub fn shell_word(text: &str) -> String {
    let is_plain = |it: char| it.is_alphanumeric() || "-_./=:,+@".contains(it);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Invisible characters that turn the reading direction around can make a line lie.
fn is_hidden(it: char) -> bool {
    matches!(it, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_cannot_command_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\r\nc\u{202e}d\u{9b}31m"), "a [2Jb cd 31m");
        assert_eq!(plain_lines("a\u{1b}[2Jb\r\n\tc\u{202e}d\u{9b}31m"), "a[2Jb\n\tcd31m\n");
        let json = serde_json::to_string_pretty(&["a\u{1b}\n\u{9b}\u{202e}"]).unwrap();
        assert_eq!(plain_json(&json), "[\n  \"a\\u001b\\n\\u009b\\u202e\"\n]");
        let event = Event::Warned { message: "x\u{1b}]0;owned\u{7}".repeat(40) };
        let line = happened("phase1", &event).unwrap();
        assert!(!line.contains(char::is_control) && line.chars().count() < 130, "{line}");
    }

    #[test]
    fn a_command_can_be_pasted_whatever_the_folder_is_called() {
        assert_eq!(shell_word("/runs/shop-1"), "/runs/shop-1");
        assert_eq!(shell_word("my runs; ls"), "'my runs; ls'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
    }
}
