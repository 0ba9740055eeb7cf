//! What must never be written down.

/// Shorter values are too common to be looked for in every text.
const MIN_LENGTH: usize = 8;

const MARKS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];

/// The values of all variables whose name says that they are secret.
pub(crate) fn secrets(variables: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    let secret = |name: &str| MARKS.iter().any(|mark| name.to_uppercase().contains(mark));
    let values = variables
        .into_iter()
        .filter(|(name, value)| secret(name) && value.len() >= MIN_LENGTH)
        .map(|(_, value)| value);
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_a_secret_is_one() {
        let variables = [
            ("ANTHROPIC_API_KEY", "sk-ant-12345"),
            ("github_token", "ghp_abcdefgh"),
            ("SOME_KEY", "short"),
            ("HOME", "/home/somebody"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(secrets(variables), ["sk-ant-12345", "ghp_abcdefgh"]);
    }
}
