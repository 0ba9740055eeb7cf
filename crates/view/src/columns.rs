//! Text in the columns of a terminal: how wide it is, cut and folded to a width, with or without
//! colour. A character may take no column, one or two; what is counted here is never less than what
//! a terminal takes, so that nothing wraps.

use unicode_width::UnicodeWidthChar;

/// The part of a terminal that there is to draw on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// How wide it is.
    pub columns: usize,
    /// How high it is.
    pub rows: usize,
    /// Whether it is drawn with colours.
    pub colour: Colour,
}

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Only characters.
    Never,
    /// Colours and weights.
    Always,
}

/// How a piece of text is drawn. It says nothing that the text does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// As everything else.
    Plain,
    /// What to look at first.
    Strong,
    /// What can be overlooked.
    Faint,
    /// What went well.
    Good,
    /// What may need a person.
    Warning,
    /// What went wrong.
    Bad,
}

impl Colour {
    /// `text` in a style.
    pub fn paint(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Plain => return text.to_owned(),
            Style::Strong => 1,
            Style::Faint => 2,
            Style::Bad => 31,
            Style::Good => 32,
            Style::Warning => 33,
        };
        match self {
            Self::Never => text.to_owned(),
            Self::Always if text.is_empty() => String::new(),
            Self::Always => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}

/// One line, which is never wider than it may be.
#[derive(Debug)]
pub(crate) struct Row {
    text: String,
    left: usize,
    colour: Colour,
}

impl Row {
    /// An empty line of a window. Its last column stays free: some terminals go to the next line as
    /// soon as it is written.
    pub(crate) fn of(window: Window) -> Self {
        let left = window.columns.saturating_sub(1);
        Self { text: String::new(), left, colour: window.colour }
    }

    /// How many columns are left.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Adds as much of `text` as there is room for.
    pub(crate) fn push(&mut self, style: Style, text: &str) {
        let text = cut(text, self.left);
        self.left -= width(&text);
        self.text.push_str(&self.colour.paint(style, &text));
    }

    /// Adds `text` and as many spaces as make it `columns` wide.
    pub(crate) fn push_padded(&mut self, style: Style, text: &str, columns: usize) {
        self.push(style, text);
        self.push(Style::Plain, &" ".repeat(columns.saturating_sub(width(text))));
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// How many columns a text takes at most.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

fn columns(it: char) -> usize {
    match it {
        // It makes the character before it as wide as a picture.
        '\u{fe0f}' => 1,
        it => it.width().unwrap_or(0),
    }
}

/// The beginning of a text, with `…` where something is missing.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut kept = as_much_as(text.chars(), most.saturating_sub(1));
    kept.extend((most > 0).then_some('…'));
    kept
}

/// The end of a text, with `…` where something is missing.
pub(crate) fn cut_front(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let kept = as_much_as(text.chars().rev(), most.saturating_sub(1));
    (most > 0).then_some('…').into_iter().chain(kept.chars().rev()).collect()
}

fn as_much_as(characters: impl Iterator<Item = char>, most: usize) -> String {
    let fits = |taken: &mut usize, it: char| {
        *taken += columns(it);
        (*taken <= most).then_some(it)
    };
    characters.scan(0, fits).collect()
}

/// A text in lines that do not wrap in a terminal of so many columns; what does not fit goes on
/// below, a little to the right. Lines that the text has are kept.
pub fn folded(text: &str, columns: usize) -> String {
    let most = columns.saturating_sub(1).max(8);
    let lines = text.lines().map(|line| fold_line(line, most));
    lines.collect::<Vec<_>>().join("\n")
}

fn fold_line(line: &str, most: usize) -> String {
    let (mut folded, mut used) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        let needed = width(word.trim_end_matches(' '));
        if used > INDENT && used + needed > most {
            folded.truncate(folded.trim_end_matches(' ').len());
            folded.push_str(NEXT_LINE);
            used = INDENT;
        }
        for it in word.chars() {
            // A word that is wider than a line, such as a path.
            if used + columns(it) > most && it != ' ' {
                folded.push_str(NEXT_LINE);
                used = INDENT;
            }
            folded.push(it);
            used += columns(it);
        }
    }
    folded.truncate(folded.trim_end_matches(' ').len());
    folded
}

const INDENT: usize = 4;
const NEXT_LINE: &str = "\n    ";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_is_cut_at_either_end() {
        assert_eq!(cut("outer-1/inner-2", 8), "outer-1…");
        assert_eq!(cut_front("outer-1/inner-2", 8), "…inner-2");
        assert_eq!([cut("模型模型", 4), cut_front("模型模型", 4)], ["模…", "…型"]);
        assert_eq!([cut("ab", 0), cut("ab", 1), cut("ab", 2)], ["", "…", "ab"]);
        assert_eq!(width("☁\u{fe0f}"), 2);
    }

    #[test]
    fn a_long_line_goes_on_below() {
        assert_eq!(
            folded("phase1/merge-1 accepted · 0.5 -> 0.6\n  no landlock", 24),
            "phase1/merge-1 accepted\n    · 0.5 -> 0.6\n  no landlock"
        );
        assert_eq!(folded("/a/very/long/path", 10), "/a/very/l\n    ong/p\n    ath");
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_it_may_be(text in "\\PC{0,60}", most in 0_usize..30) {
            prop_assert!(width(&cut(&text, most)) <= most);
            prop_assert!(width(&cut_front(&text, most)) <= most);
            let columns = most + 10;
            let is_narrow = |line: &str| width(line.trim_end_matches(' ')) < columns;
            prop_assert!(folded(&text, columns).lines().all(is_narrow));
        }

        #[test]
        fn folding_loses_nothing_but_spaces(text in "\\PC{0,80}") {
            let letters = |text: &str| text.replace([' ', '\n'], "");
            prop_assert_eq!(letters(&folded(&text, 20)), letters(&text));
        }
    }
}
