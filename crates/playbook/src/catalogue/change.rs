//! Pieces that say only how they differ from another.
//!
//! A change is a diff without line numbers: hunks with an empty line between them, each line behind
//! a `-`, a `+` or a space. What a hunk takes away or leaves must stand in the text exactly once.

/// `text` with the hunks of `change` applied, or why one cannot be.
pub(super) fn apply(change: &str, text: &str) -> Result<String, String> {
    let mut text = format!("\n{text}");
    for hunk in change.split("\n\n").map(|it| it.trim_matches('\n')).filter(|it| !it.is_empty()) {
        let (mut before, mut after) = (String::from("\n"), String::from("\n"));
        for line in hunk.lines() {
            let (mark, line) = line.split_at_checked(1).unwrap_or_default();
            let (old, new) = match mark {
                "-" => (true, false),
                "+" => (false, true),
                " " => (true, true),
                _ => return Err(format!("a line of a change begins with `{mark}`: `{line}`")),
            };
            for (side, holds) in [(&mut before, old), (&mut after, new)] {
                if holds {
                    side.push_str(line);
                    side.push('\n');
                }
            }
        }
        match text.matches(&before).count() {
            1 => text = text.replacen(&before, &after, 1),
            count => {
                return Err(format!("what a change replaces stands there {count} times:{before}"));
            }
        }
    }
    Ok(text.split_off(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = 1\nif a:\n    b = 2\n    c = 2\n";

    #[test]
    fn hunks_replace_add_and_take_away_whole_lines() {
        let change = "-a = 1\n+a = 2\n\n if a:\n+    print(a)\n-    b = 2\n";
        assert_eq!(apply(change, TEXT).unwrap(), "a = 2\nif a:\n    print(a)\n    c = 2\n");
        assert_eq!(apply("", TEXT).unwrap(), TEXT);
    }

    #[test]
    fn a_hunk_without_one_place_of_its_own_is_refused() {
        let twice = "a\nb\na\n";
        assert!(apply("-a\n+c\n", twice).unwrap_err().contains("2 times"));
        assert!(apply("-= 2\n+= 3\n", TEXT).unwrap_err().contains("0 times"));
        assert!(apply("~a\n", TEXT).unwrap_err().contains("begins with `~`"));
        assert!(apply("+a\n", TEXT).unwrap_err().contains("5 times"), "nothing says where it goes");
    }
}
