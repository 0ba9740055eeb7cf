//! Reading what a script left behind.

use mle_star_exec::{Ended, Outcome};

use super::exit_code;
use crate::models::{EvaluationResult, parse_score};

/// How every Python traceback begins.
pub(super) const HEADER: &str = "Traceback (most recent call last):";

/// The result of a run, in the words of the specification.
pub fn build_evaluation_result(outcome: &Outcome) -> EvaluationResult {
    let is_error = detect_error(outcome);
    EvaluationResult {
        score: parse_score(&outcome.stdout.text),
        stdout: outcome.stdout.text.clone(),
        stderr: outcome.stderr.text.clone(),
        exit_code: exit_code(outcome),
        duration_seconds: outcome.duration_seconds,
        is_error,
        error_traceback: is_error.then(|| extract_traceback(&outcome.stderr.text)).flatten(),
    }
}

/// Whether a run failed: by its exit, by the clock, or by a traceback that it wrote all the same.
pub fn detect_error(outcome: &Outcome) -> bool {
    outcome.ended != Ended::Exited { code: 0 } || outcome.stderr.text.contains(HEADER)
}

/// The last traceback, from its header through the exception and its continued lines.
pub fn extract_traceback(stderr: &str) -> Option<String> {
    let traceback = stderr.get(stderr.rfind(HEADER)?..)?;
    let mut lines = traceback.lines();
    let mut kept: Vec<&str> = lines.next().into_iter().collect();
    let mut exception_seen = false;
    for line in lines {
        let indented = line.starts_with([' ', '\t']);
        if exception_seen && !indented {
            break;
        }
        exception_seen |= !indented && !line.is_empty();
        kept.push(line);
    }
    Some(kept.join("\n").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use mle_star_exec::limits::Usage;
    use mle_star_exec::sandbox::Tier;
    use mle_star_exec::{Captured, SubmissionInfo};
    use proptest::prelude::*;

    use super::*;

    fn outcome(ended: Ended, stdout: &str, stderr: &str) -> Outcome {
        let captured = |text: &str| Captured {
            text: text.to_owned(),
            total_bytes: text.len() as u64,
            truncated: false,
            file: None,
        };
        Outcome {
            ended,
            stdout: captured(stdout),
            stderr: captured(stderr),
            duration_seconds: 1.5,
            submission: SubmissionInfo::default(),
            usage: Usage::default(),
            limits: None,
            tier: Tier::Off,
        }
    }

    const TRACEBACK: &str = "Traceback (most recent call last):\n  File \"solution.py\", line 1, \
                             in <module>\n    1 / 0\nZeroDivisionError: division by zero";

    /// REQ-EX-012
    #[test]
    fn the_last_traceback_counts_through_its_exception() {
        let stderr = format!(
            "warning: x\n{}\n\nDuring handling:\n\n{TRACEBACK}\nbye\n",
            TRACEBACK.replace("1 / 0", "a")
        );
        assert_eq!(extract_traceback(&stderr).as_deref(), Some(TRACEBACK));
        assert_eq!(extract_traceback("  File \"x\"\nSyntaxError: invalid syntax"), None);
    }

    /// REQ-EX-013, REQ-EX-014, REQ-DM-021
    #[test]
    fn a_result_says_whether_and_how_the_run_failed() {
        let good = build_evaluation_result(&outcome(
            Ended::Exited { code: 0 },
            "Final Validation Performance: 0.82\n",
            "",
        ));
        assert_eq!((good.score.map(Into::into), good.is_error), (Some(0.82), false));
        assert_eq!(good.error_traceback, None);

        let logged = build_evaluation_result(&outcome(
            Ended::Exited { code: 0 },
            "Final Validation Performance: 0.82\n",
            TRACEBACK,
        ));
        assert!(logged.is_error && logged.score.is_some() && logged.usable_score().is_none());

        let killed = build_evaluation_result(&outcome(Ended::Signaled { signal: 9 }, "", ""));
        assert_eq!((killed.exit_code, killed.error_traceback), (-9, None));
        let late =
            build_evaluation_result(&outcome(Ended::TimedOut { after_seconds: 5.0 }, "", ""));
        assert_eq!((late.exit_code, late.is_error), (-1, true));
    }

    proptest! {
        #[test]
        fn arbitrary_output_never_panics(stderr: String) {
            let _traceback = extract_traceback(&format!("{stderr}{HEADER}{stderr}"));
        }
    }
}
