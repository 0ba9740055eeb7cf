//! What the debugger is told.

use mle_star_exec::limits::size;
use mle_star_exec::{Ended, Outcome};

use super::Purpose;
use super::output::HEADER;
use crate::models::{EvaluationResult, read_score};
use crate::step::Ran;

/// How much of what a script complained about is shown.
const SHOWN_CHARS: usize = 6000;

/// What went wrong with a script, in words a model can act on. Always begins like a traceback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BugReport {
    text: String,
    headline: String,
}

impl BugReport {
    /// A report of `cause`, with what the script wrote about it.
    pub fn new(cause: &str, stderr: &str) -> Self {
        let tail = shown(stderr);
        let tail = if tail.is_empty() { tail } else { format!("\n\nThe script wrote:\n{tail}") };
        Self { text: format!("{HEADER}\n{cause}{tail}"), headline: cause.to_owned() }
    }

    /// What is wrong with a run, if anything is.
    pub(super) fn of(ran: &Ran, result: &EvaluationResult, purpose: Purpose) -> Option<Self> {
        let outcome = &ran.outcome;
        let stderr = &outcome.stderr.text;
        if result.is_error {
            return Some(match (&result.error_traceback, outcome.ended) {
                (_, Ended::TimedOut { after_seconds }) => {
                    Self::new(&format!("TimeoutError: exceeded {after_seconds} s"), stderr)
                }
                (_, Ended::Signaled { signal }) => {
                    Self::new(&format!("Killed: signal {signal}{}", hint(signal)), stderr)
                }
                (_, Ended::Exceeded { resource, used, limit }) => {
                    let what = resource.exceeded(used, limit);
                    Self::new(&format!("Killed: the script {what}"), stderr)
                }
                (Some(traceback), Ended::Exited { .. }) => {
                    Self::of_traceback(stderr, traceback).with_limits(outcome)
                }
                (None, Ended::Exited { code }) => {
                    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
                    let cause = last.map_or_else(
                        || format!("the script ended with exit code {code}"),
                        |line| line.trim().to_owned(),
                    );
                    Self::new(&cause, stderr)
                }
            });
        }
        match purpose {
            Purpose::Validation => read_score(&outcome.stdout.text)
                .err()
                .map(|reason| Self::new(&format!("RuntimeError: the script {reason}"), stderr)),
            Purpose::Submission if !outcome.submission.is_present() => {
                Some(Self::new("FileNotFoundError: ./final/submission.csv", stderr))
            }
            Purpose::Submission if !ran.fit.problems.is_empty() => {
                let problems = ran.fit.problems.join("; ");
                Some(Self::new(
                    &format!("ValueError: the submission is invalid: {problems}"),
                    stderr,
                ))
            }
            Purpose::Submission | Purpose::Ablation => None,
        }
    }

    /// The last traceback with all that led to it: the first exception is often the cause.
    fn of_traceback(stderr: &str, last: &str) -> Self {
        let chain = stderr.find(HEADER).and_then(|start| stderr.get(start..)).unwrap_or(last);
        let chain = chain.find(last).and_then(|at| chain.get(..at + last.len())).unwrap_or(last);
        let headline = last.lines().find(|line| !line.starts_with([' ', '\t']) && *line != HEADER);
        let text = match shown(chain) {
            text if text.starts_with(HEADER) => text,
            text => format!("{HEADER}\n{text}"),
        };
        Self { text, headline: headline.unwrap_or(last).to_owned() }
    }

    /// Says how large a file may be, if that was the trouble: the error itself does not.
    fn with_limits(self, outcome: &Outcome) -> Self {
        let Some(limits) = outcome.limits.filter(|_| self.headline.contains("[Errno 27]")) else {
            return self;
        };
        let text = format!("{}\n\nA file may have {}.", self.text, size(limits.file_bytes));
        Self { text, ..self }
    }

    /// The whole report.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The line that names the error.
    pub fn headline(&self) -> &str {
        self.headline.lines().next().unwrap_or_default()
    }
}

fn hint(signal: i32) -> &'static str {
    match signal {
        9 => " (often: out of memory)",
        11 => " (segmentation fault)",
        _ => "",
    }
}

/// The end of a long text.
fn shown(text: &str) -> String {
    let text = text.trim();
    let skipped = text.chars().count().saturating_sub(SHOWN_CHARS);
    text.chars().skip(skipped).collect()
}
