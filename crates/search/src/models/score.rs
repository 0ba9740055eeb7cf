//! The number that a script is judged by.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::MetricDirection;

/// A validation score: always finite, so any two of them can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Score(f64);

/// Why the output of a script holds no usable score.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoScore {
    /// The line is not there.
    #[error("finished without printing Final Validation Performance")]
    Missing,
    /// The line is there, but what follows is not one finite number.
    #[error("printed `Final Validation Performance: {0}`, which is not a finite plain number")]
    NotANumber(String),
}

impl Score {
    /// `None` if `value` is not finite.
    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value))
    }

    /// The plain number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// Whether `new` is strictly better than `old`.
pub fn is_improvement(new: Score, old: Score, direction: MetricDirection) -> bool {
    match direction {
        MetricDirection::Maximize => new.0 > old.0,
        MetricDirection::Minimize => new.0 < old.0,
    }
}

/// Whether `new` is better than `old` or ties with it: the test of Algorithms 1 and 2.
pub fn is_improvement_or_equal(new: Score, old: Score, direction: MetricDirection) -> bool {
    new == old || is_improvement(new, old, direction)
}

/// The better of what was best and what is new, which a tie goes to.
pub fn best_of(best: Option<Score>, new: Score, direction: MetricDirection) -> Score {
    best.filter(|best| !is_improvement_or_equal(new, *best, direction)).unwrap_or(new)
}

/// The last score that a script printed, if it printed a usable one.
pub fn parse_score(stdout: &str) -> Option<Score> {
    read_score(stdout).ok()
}

/// The last score that a script printed, or why there is none.
///
/// A score is what matches `Final Validation Performance:\s*([\d.eE+-]+)`. It is looked for from
/// the end, where it stands, so that a megabyte of output before it costs nothing.
pub fn read_score(stdout: &str) -> Result<Score, NoScore> {
    const MARKER: &str = "Final Validation Performance:";
    let numeral = |it: char| it.is_ascii_digit() || matches!(it, '.' | 'e' | 'E' | '+' | '-');
    let mut printed = stdout.rmatch_indices(MARKER).filter_map(|(start, marker)| {
        let after = stdout.get(start + marker.len()..)?.trim_start();
        let rest = after.trim_start_matches(numeral);
        let text = after.get(..after.len() - rest.len())?;
        (!text.is_empty()).then_some((text, rest))
    });
    let (text, rest) = printed.next().ok_or(NoScore::Missing)?;
    if starts_with_thousands_group(rest) {
        // `1,234.5` would read as 1: a score off by three orders is worse than none.
        let shown: String = rest.chars().take_while(|it| !it.is_whitespace()).collect();
        return Err(NoScore::NotANumber(format!("{text}{shown}")));
    }
    let value = text.parse().or_else(|_| text.strip_suffix('.').unwrap_or(text).parse());
    value.ok().and_then(Score::new).ok_or_else(|| NoScore::NotANumber(text.to_owned()))
}

fn starts_with_thousands_group(rest: &str) -> bool {
    rest.strip_prefix(',')
        .and_then(|rest| rest.get(..3))
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

impl fmt::Display for Score {
    /// Prints `1.0` as `1.0`, so that a score never looks like a count.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl TryFrom<f64> for Score {
    type Error = &'static str;

    fn try_from(value: f64) -> Result<Self, Self::Error> {
        Self::new(value).ok_or("a score must be finite")
    }
}

impl From<Score> for f64 {
    fn from(score: Score) -> Self {
        score.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(stdout: &str) -> Option<f64> {
        parse_score(stdout).map(Score::get)
    }

    /// REQ-DM-027, REQ-EX-011
    #[test]
    fn the_last_printed_score_counts() {
        assert_eq!(parsed("Final Validation Performance: 0.8196"), Some(0.8196));
        assert_eq!(parsed("Training complete."), None);
        assert_eq!(
            parsed("Final Validation Performance: 0.5\nFinal Validation Performance: 0.8196\n"),
            Some(0.8196)
        );
        assert_eq!(parsed("Final Validation Performance:-1.5e-3"), Some(-0.0015));
    }

    #[test]
    fn what_is_not_one_finite_number_is_no_score() {
        assert_eq!(parsed("Final Validation Performance: 0.8196."), Some(0.8196));
        assert_eq!(parsed("Final Validation Performance: 1,234.5"), None);
        assert_eq!(parsed("Final Validation Performance: 0.5, 0.6"), Some(0.5));
        assert_eq!(parsed("Final Validation Performance: 1e999"), None);
        assert_eq!(parsed("Final Validation Performance: nan"), None);
        assert_eq!(parsed("Final Validation Performance: ٣"), None);
        assert_eq!(
            read_score("Final Validation Performance: 1,234.5").unwrap_err().to_string(),
            "printed `Final Validation Performance: 1,234.5`, which is not a finite plain number"
        );
    }

    /// REQ-DM-028, REQ-DM-029, REQ-EX-022
    #[test]
    fn a_tie_is_accepted_but_is_no_improvement() {
        let [low, high] = [0.1, 0.2].map(|value| Score::new(value).unwrap());
        for (better, worse, direction) in
            [(high, low, MetricDirection::Maximize), (low, high, MetricDirection::Minimize)]
        {
            assert!(is_improvement(better, worse, direction));
            assert!(!is_improvement(worse, better, direction));
            assert!(!is_improvement(low, low, direction));
            assert!(is_improvement_or_equal(better, worse, direction));
            assert!(!is_improvement_or_equal(worse, better, direction));
            assert!(is_improvement_or_equal(low, low, direction));
        }
    }

    #[test]
    fn a_whole_score_still_looks_like_a_score() {
        assert_eq!(Score::new(1.0).unwrap().to_string(), "1.0");
        assert_eq!(Score::new(0.82).unwrap().to_string(), "0.82");
    }

    proptest! {
        #[test]
        fn any_finite_number_that_is_printed_is_read_back(value in proptest::num::f64::NORMAL, noise: String) {
            let stdout = format!("{noise}\nFinal Validation Performance: {value:?}\n");
            prop_assert_eq!(parsed(&stdout), Some(value));
        }

        #[test]
        fn arbitrary_output_never_panics(stdout: String) {
            let _score = parsed(&stdout);
        }
    }
}
