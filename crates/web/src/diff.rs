//! What changed between two scripts, line by line.

use std::time::Duration;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// Lines around a change that are shown too.
const CONTEXT: usize = 3;
/// How long may be spent on finding the shortest way from one script to the other.
const PATIENCE: Duration = Duration::from_millis(300);
/// More lines than this are not shown.
const MAX_LINES: usize = 5000;

/// What changed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Diff {
    added: usize,
    removed: usize,
    /// Places that changed, with the lines around them.
    hunks: Vec<Vec<Line>>,
    /// Whether there is more.
    truncated: bool,
}

/// A line of one script or of both.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Line {
    /// `+`, `-` or a space.
    sign: char,
    old: Option<usize>,
    new: Option<usize>,
    text: String,
}

impl Diff {
    /// What leads from `old` to `new`.
    pub(crate) fn of(old: &str, new: &str) -> Self {
        let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
        let mut found = Self { added: 0, removed: 0, hunks: Vec::new(), truncated: false };
        let mut lines = 0;
        for group in diff.grouped_ops(CONTEXT) {
            let mut hunk = Vec::new();
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let sign = match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Insert => '+',
                    ChangeTag::Delete => '-',
                };
                found.added += usize::from(sign == '+');
                found.removed += usize::from(sign == '-');
                lines += 1;
                if lines > MAX_LINES {
                    found.truncated = true;
                    continue;
                }
                hunk.push(Line {
                    sign,
                    old: change.old_index().map(|it| it + 1),
                    new: change.new_index().map(|it| it + 1),
                    text: change.value().trim_end_matches(['\n', '\r']).to_owned(),
                });
            }
            if !hunk.is_empty() {
                found.hunks.push(hunk);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_changed_line_is_shown_with_those_around_it() {
        let old: String = (1..=9).map(|it| format!("line {it}\n")).collect();
        let diff = Diff::of(&old, &old.replace("line 5", "other"));
        let shown: Vec<String> = diff.hunks.concat_lines();
        assert_eq!((diff.added, diff.removed, diff.truncated), (1, 1, false));
        assert_eq!(
            shown,
            [" line 2", " line 3", " line 4", "-line 5", "+other", " line 6", " line 7", " line 8"]
        );
        assert_eq!(Diff::of(&old, &old).hunks, Vec::<Vec<Line>>::new());
    }

    trait ConcatLines {
        fn concat_lines(&self) -> Vec<String>;
    }

    impl ConcatLines for Vec<Vec<Line>> {
        fn concat_lines(&self) -> Vec<String> {
            self.iter().flatten().map(|it| format!("{}{}", it.sign, it.text)).collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_scripts_are_too_strange(old in "[ab\n\r]{0,60}", new in "[ab\n\r]{0,60}") {
            let diff = Diff::of(&old, &new);
            prop_assert_eq!(diff.hunks.is_empty(), old == new);
        }
    }
}
