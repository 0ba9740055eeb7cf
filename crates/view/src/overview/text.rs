//! Texts that agents and scripts wrote, cut to what a view can hold.

/// How much of a plan, a message or a summary is kept.
pub(crate) const KEPT_CHARS: usize = 2000;

/// A text, cut short if it is long.
pub(crate) fn shortened(text: &str) -> String {
    shortened_to(text, KEPT_CHARS)
}

pub(crate) fn shortened_to(text: &str, chars: usize) -> String {
    // Counting the characters of a megabyte for each of a thousand plans would be felt.
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
