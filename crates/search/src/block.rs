//! Where in a script a quoted block stands.

use serde::{Deserialize, Serialize};

use crate::models::SolutionScript;

/// A block of a script, as it stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Located<'script> {
    /// The exact text in the script. Never empty.
    pub text: &'script str,
    /// How it was recognised.
    pub matched: Match,
}

/// How a quoted block was recognised in a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// To the letter.
    Exact,
    /// But for whitespace at the ends of lines.
    TrailingWhitespace,
}

/// Whether `code_block` stands in the solution to the letter.
pub fn validate_code_block(code_block: &str, solution: &SolutionScript) -> bool {
    !code_block.is_empty() && solution.content.contains(code_block)
}

/// Finds the first place where `quoted` stands in `script`: to the letter, else but for whitespace
/// at the ends of lines, else nowhere.
///
/// A block neither begins nor ends with a line break, even if it was quoted so: what replaces it
/// comes out of a fence without one, and would be glued to the next line.
pub fn locate<'script>(script: &'script str, quoted: &str) -> Option<Located<'script>> {
    let quoted = quoted.trim_matches(['\n', '\r']);
    if quoted.trim().is_empty() {
        return None;
    }
    if let Some(start) = script.find(quoted) {
        let text = script.get(start..start + quoted.len())?;
        return Some(Located { text, matched: Match::Exact });
    }
    let quoted = Stripped::of(quoted);
    let stripped = Stripped::of(script);
    let start = stripped.text.find(&quoted.text)?;
    let last = start + quoted.text.len() - 1;
    let text = script.get(stripped.origin(start)?..=stripped.origin(last)?)?;
    Some(Located { text, matched: Match::TrailingWhitespace })
}

/// A text without the whitespace at the ends of its lines, and where each byte came from.
struct Stripped {
    text: String,
    origins: Vec<usize>,
}

impl Stripped {
    fn of(source: &str) -> Self {
        let (mut text, mut origins) = (String::new(), Vec::new());
        let mut offset = 0;
        for line in source.split_inclusive('\n') {
            let kept = line.trim_end();
            text.push_str(kept);
            origins.extend(offset..offset + kept.len());
            if line.ends_with('\n') {
                text.push('\n');
                origins.push(offset + line.len() - 1);
            }
            offset += line.len();
        }
        Self { text, origins }
    }

    fn origin(&self, byte: usize) -> Option<usize> {
        self.origins.get(byte).copied()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::models::SolutionPhase;

    /// REQ-P2O-017
    #[test]
    fn validation_is_to_the_letter() {
        let block = "scaler = StandardScaler()\nX_train = scaler.fit_transform(X_train)";
        let solution = SolutionScript::new(
            format!("import x\n{block}\nprint(1)"),
            SolutionPhase::Init,
            Timestamp::UNIX_EPOCH,
        );
        assert!(validate_code_block(block, &solution));
        assert!(!validate_code_block(&block.replace("()", "( )"), &solution));
        assert!(!validate_code_block(&format!("{block} "), &solution));
        assert!(!validate_code_block("", &solution));
    }

    /// REQ-P2O-018
    #[test]
    fn trailing_whitespace_is_forgiven_and_the_scripts_own_text_returned() {
        let script = "a = 1  \nb = 2\t\nc = 3\n";
        assert_eq!(
            locate(script, "a = 1\nb = 2"),
            Some(Located { text: "a = 1  \nb = 2", matched: Match::TrailingWhitespace })
        );
        assert_eq!(
            locate(script, "c = 3   "),
            Some(Located { text: "c = 3", matched: Match::TrailingWhitespace })
        );
        assert_eq!(
            locate("x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
            Some(Located { text: "x = 1\r\ny = 2", matched: Match::TrailingWhitespace })
        );
        assert_eq!(
            locate("a = 1\nb = 2\n", "\na = 1\n"),
            Some(Located { text: "a = 1", matched: Match::Exact })
        );
        assert_eq!(locate(script, "  a = 1"), None);
        assert_eq!(locate(script, " \n "), None);
    }

    proptest! {
        #[test]
        fn any_piece_of_a_script_is_found_and_is_really_there(script in "[a-c \t\n]{0,60}", quoted in "[a-c \t\n]{0,12}") {
            if let Some(found) = locate(&script, &quoted) {
                prop_assert!(!found.text.is_empty());
                prop_assert!(script.contains(found.text));
            } else {
                prop_assert!(quoted.trim().is_empty() || !script.contains(&quoted));
            }
        }

        #[test]
        fn padding_the_ends_of_lines_hides_nothing(lines in proptest::collection::vec("[a-z=]{1,6}", 1..8), pad in "[ \t]{0,3}", from in 0usize..8, to in 0usize..8) {
            let (from, to) = (from.min(lines.len() - 1), to.min(lines.len() - 1));
            let (from, to) = (from.min(to), from.max(to));
            let script: String = lines.iter().map(|line| format!("{line}{pad}\n")).collect();
            let quoted = lines[from..=to].join("\n");
            prop_assert!(locate(&script, &quoted).is_some());
        }

        #[test]
        fn arbitrary_text_never_panics(script: String, quoted: String) {
            let _found = locate(&script, &quoted);
        }
    }
}
