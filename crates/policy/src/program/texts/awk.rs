//! Just enough of awk's language to tell operators from texts.

/// A program with a mark in place of each string and nothing in place of patterns and comments, and
/// the strings in order; nothing if it does not end where it should.
pub(super) fn without_strings(program: &str) -> Option<(String, Vec<String>)> {
    let mut code = String::new();
    let mut strings = Vec::new();
    let mut rest = program.chars();
    while let Some(character) = rest.next() {
        match character {
            '"' => {
                strings.push(until(&mut rest, '"')?);
                code.push('\u{1}');
            }
            // A slash divides after a value, and begins a pattern elsewhere.
            '/' if code
                .trim_end_matches(' ')
                .ends_with(['(', ',', '~', '!', '{', ';', '&', '|', '\n'])
                || code.trim().is_empty() =>
            {
                until(&mut rest, '/')?;
            }
            '#' => {
                let end = rest.as_str().find('\n').unwrap_or(rest.as_str().len());
                rest = rest.as_str().get(end..).unwrap_or_default().chars();
            }
            other => code.push(other),
        }
    }
    Some((code, strings))
}

/// The text up to a character that is not escaped.
fn until(rest: &mut std::str::Chars<'_>, end: char) -> Option<String> {
    let mut text = String::new();
    loop {
        match rest.next()? {
            '\\' => text.extend(rest.next()),
            '\n' => return None,
            character if character == end => return Some(text),
            character => text.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_strings;

    #[test]
    fn strings_and_patterns_are_told_from_operators() {
        let read = |program: &str| without_strings(program);
        assert_eq!(
            read(r#"/a|b/ {print "x > y" > "f"} # |"#),
            Some((" {print \u{1} > \u{1}} ".into(), vec!["x > y".into(), "f".into()]))
        );
        assert_eq!(
            read("{print $1 / $2 | $3 / 4}").map(|it| it.0),
            Some("{print $1 / $2 | $3 / 4}".into())
        );
        assert_eq!(read(r#"{print "x}"#), None);
        assert_eq!(read("/x"), None);
    }
}
