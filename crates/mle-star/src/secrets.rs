//! What must never be written down.

use crate::dotenv;

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

/// `text` without the values of the environment's secrets.
pub fn mask(text: &str) -> String {
    mask_all(text, &secrets(utf8_environment()))
}

pub(crate) fn mask_all(text: &str, secrets: &[String]) -> String {
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "[redacted]"))
}

/// The environment and what `.env` adds to it, without what is not text.
pub(crate) fn utf8_environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .chain(dotenv::added().map(|(name, value)| (name.to_owned(), value.to_owned())))
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
        let secrets = secrets(variables);
        assert_eq!(secrets, ["sk-ant-12345", "ghp_abcdefgh"]);
        assert_eq!(mask_all("key sk-ant-12345, home", &secrets), "key [redacted], home");
    }
}
