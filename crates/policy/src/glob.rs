//! Wildcards, as the shell has them.

/// Whether the pattern matches the whole text. `*` is any characters, `?` and `[…]` any one.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let pattern = tokens(pattern);
    let text: Vec<char> = text.chars().collect();
    // The place after the last `*`, and the text that it has swallowed so far.
    let mut again: Option<(usize, usize)> = None;
    let (mut p, mut t) = (0, 0);
    while t < text.len() {
        match pattern.get(p) {
            Some(Token::Many) => {
                again = Some((p + 1, t));
                p += 1;
            }
            Some(token) if token.fits(text.get(t).copied()) => {
                p += 1;
                t += 1;
            }
            Some(_) | None => {
                let Some((after, swallowed)) = again else { return false };
                again = Some((after, swallowed + 1));
                (p, t) = (after, swallowed + 1);
            }
        }
    }
    pattern.iter().skip(p).all(|token| matches!(token, Token::Many))
}

/// Whether a text has wildcards at all.
pub(crate) fn is_wild(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

enum Token {
    Many,
    One,
    Just(char),
}

impl Token {
    fn fits(&self, character: Option<char>) -> bool {
        match self {
            Self::Many => false,
            Self::One => character.is_some(),
            Self::Just(own) => character == Some(*own),
        }
    }
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        tokens.push(match character {
            '*' => Token::Many,
            '?' => Token::One,
            '[' => match rest.as_str().char_indices().skip(1).find(|(_, it)| *it == ']') {
                Some((end, _)) => {
                    rest = rest.as_str().get(end + 1..).unwrap_or_default().chars();
                    Token::One
                }
                None => Token::Just('['),
            },
            other => Token::Just(other),
        });
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn wildcards_match_as_in_the_shell() {
        for (pattern, text) in [
            ("*.csv", "a.csv"),
            ("a*b*c", "aXbYbZc"),
            ("?", "x"),
            ("[ab]x", "bx"),
            ("[", "["),
            ("**", ""),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("*.csv", "a.csv2"), ("a*b", "ac"), ("?", ""), ("[ab]", "ab")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
