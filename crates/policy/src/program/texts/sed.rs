//! Just enough of sed's language to see what a script writes.

/// The files that a script writes; nothing if it runs programs or cannot be read.
pub(super) fn files(script: &str) -> Option<Vec<&str>> {
    let mut reader = Reader { rest: script };
    let mut files = Vec::new();
    loop {
        reader.skip(|it| it.is_whitespace() || ";{}".contains(it));
        if reader.rest.is_empty() {
            return Some(files);
        }
        if !reader.address()? {
            continue;
        }
        match reader.next()? {
            's' => {
                reader.delimited(2)?;
                reader.skip(|it| it.is_ascii_digit() || "gpiIMm".contains(it));
                if reader.rest.starts_with('e') {
                    return None;
                }
                if reader.rest.starts_with('w') {
                    reader.next()?;
                    files.push(reader.line());
                }
            }
            'y' => reader.delimited(2)?,
            'w' | 'W' => files.push(reader.line()),
            // Texts and labels are the rest of the line, or of the command.
            'a' | 'i' | 'c' => while reader.line().ends_with('\\') {},
            'r' | 'R' | '#' => {
                reader.line();
            }
            'b' | 't' | 'T' | ':' => reader.skip(|it| it != '\n' && it != ';' && it != '}'),
            'q' | 'Q' | 'l' | 'L' => reader.skip(|it| it.is_ascii_digit() || it == ' '),
            'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | '=' | 'F' => {}
            _ => return None,
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = self.rest.get(character.len_utf8()..).unwrap_or_default();
        Some(character)
    }

    fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(skipped);
    }

    fn line(&mut self) -> &'a str {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        line.trim()
    }

    /// Reads `3`, `$`, `/x/,+2!`; says whether a command follows.
    fn address(&mut self) -> Option<bool> {
        loop {
            self.skip(|it| it.is_ascii_digit() || "$,!~+ \t".contains(it));
            if self.rest.starts_with('/') {
                self.delimited(1)?;
                self.skip(|it| "IM".contains(it));
            } else if self.rest.starts_with('\\') {
                self.next()?;
                self.delimited(1)?;
                self.skip(|it| "IM".contains(it));
            } else {
                return Some(
                    !self.rest.is_empty() && !self.rest.starts_with(['{', '}', ';', '\n']),
                );
            }
        }
    }

    /// Reads a delimiter and so many parts that end with it.
    fn delimited(&mut self, parts: usize) -> Option<()> {
        let delimiter = self.next()?;
        let mut left = parts;
        let mut in_brackets = false;
        while left > 0 {
            match self.next()? {
                '\\' => {
                    self.next()?;
                }
                '[' if left == parts => in_brackets = true,
                ']' => in_brackets = false,
                // A delimiter in brackets is one to some seds only: both readings must hold.
                it if it == delimiter && in_brackets => return None,
                it if it == delimiter => left -= 1,
                _ => {}
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::files;

    #[test]
    fn files_are_found_wherever_they_are_written() {
        for (script, expected) in [
            ("s/a/b/w ../x", vec!["../x"]),
            ("s/a;w no/b/g;p", vec![]),
            ("1,/x;y/w out\np", vec!["out"]),
            ("$!{s|a|b|gw x\n}", vec!["x"]),
            ("/w x/d;\\,w y,d", vec![]),
            ("a w no\\\nmore\nw yes", vec!["yes"]),
            ("y/w/e/;2q5;:a;ba", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(files(script), Some(expected), "{script}");
        }
        for script in ["e", "1e ls", "s/a/b/e", "s/a/b/ge", "s/a/b", "s/[/]/x/w y/", "k", "s"] {
            assert_eq!(files(script), None, "{script}");
        }
    }
}
