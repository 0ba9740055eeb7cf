//! What a word may turn out to be when the shell has expanded it.

use std::fmt;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Piece {
    Literal(String),
    /// Letters, digits, `_` or `-`: a number, an exit status, a date.
    Plain,
    /// Anything without a slash. It may be `..`.
    Name,
    /// A path downwards: slashes, but no `..` and no way through a link.
    Beneath,
    /// The number of a process that this very command started.
    Job,
    Any,
}

/// One possible value.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Text(Vec<Piece>);

/// All possible values of a word; never none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) texts: Vec<Text>,
    pub(crate) count: Count,
}

/// How many words the shell makes of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    One,
    Several,
}

/// More possible values than this are no longer told apart.
const MOST: usize = 64;

impl Text {
    pub(crate) fn literal(text: impl Into<String>) -> Self {
        let mut new = Self::default();
        new.push(Piece::Literal(text.into()));
        new
    }

    pub(crate) fn any() -> Self {
        Self(vec![Piece::Any])
    }

    pub(crate) fn of(piece: Piece) -> Self {
        Self(vec![piece])
    }

    pub(crate) fn push(&mut self, piece: Piece) {
        match (self.0.last_mut(), piece) {
            (_, Piece::Literal(text)) if text.is_empty() => {}
            (Some(Piece::Literal(last)), Piece::Literal(text)) => last.push_str(&text),
            (_, piece) => self.0.push(piece),
        }
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        for piece in &other.0 {
            self.push(piece.clone());
        }
    }

    /// How many bytes of it are known.
    pub(crate) fn size(&self) -> usize {
        let size = |piece: &Piece| if let Piece::Literal(text) = piece { text.len() } else { 1 };
        self.0.iter().map(size).sum()
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// The whole text, if all of it is known.
    pub(crate) fn as_literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// What is known of its beginning.
    pub(crate) fn prefix(&self) -> &str {
        match self.0.first() {
            Some(Piece::Literal(text)) => text,
            Some(Piece::Plain | Piece::Name | Piece::Beneath | Piece::Job | Piece::Any) | None => {
                ""
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has_any(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Any))
    }

    /// The text with zeros for its plain parts, if it has no others that are unknown.
    pub(crate) fn sample(&self) -> Option<String> {
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Literal(text) => Some(text.as_str()),
            Piece::Plain | Piece::Job => Some("0"),
            Piece::Name | Piece::Beneath | Piece::Any => None,
        });
        pieces.collect()
    }

    /// The text without so many bytes of its literal beginning.
    pub(crate) fn without_prefix(&self, bytes: usize) -> Self {
        let mut pieces = self.0.iter();
        let mut rest = Self::default();
        rest.push(Piece::Literal(self.prefix().get(bytes..).unwrap_or_default().to_owned()));
        if !self.prefix().is_empty() {
            pieces.next();
        }
        for piece in pieces {
            rest.push(piece.clone());
        }
        rest
    }

    /// The texts between slashes.
    pub(crate) fn components(&self) -> Vec<Self> {
        let mut components = vec![Self::default()];
        for piece in &self.0 {
            let mut parts: Vec<Self> = if let Piece::Literal(text) = piece {
                text.split('/').map(Self::literal).collect()
            } else {
                vec![Self::of(piece.clone())]
            };
            let following = parts.split_off(1.min(parts.len()));
            if let (Some(last), Some(first)) = (components.last_mut(), parts.first()) {
                last.extend(first);
            }
            components.extend(following);
        }
        components
    }
}

impl Word {
    /// How many bytes are known, over all values.
    pub(crate) fn size(&self) -> usize {
        self.texts.iter().map(Text::size).sum()
    }

    pub(crate) fn literal(text: impl Into<String>) -> Self {
        Self::one(Text::literal(text))
    }

    pub(crate) fn one(text: Text) -> Self {
        Self { texts: vec![text], count: Count::One }
    }

    pub(crate) fn any() -> Self {
        Self::one(Text::any())
    }

    /// These possible values. Too many are taken for any.
    pub(crate) fn among(texts: impl IntoIterator<Item = Text>, count: Count) -> Self {
        let mut texts: Vec<Text> = texts.into_iter().take(MOST * 4).collect();
        texts.sort();
        texts.dedup();
        if texts.is_empty() || texts.len() > MOST {
            texts = vec![Text::any()];
        }
        Self { texts, count }
    }

    pub(crate) fn as_literal(&self) -> Option<&str> {
        match (self.texts.as_slice(), self.count) {
            ([text], Count::One) => text.as_literal(),
            _ => None,
        }
    }

    /// Either this or the other.
    pub(crate) fn or(&self, other: &Self) -> Self {
        let count = match (self.count, other.count) {
            (Count::One, Count::One) => Count::One,
            (Count::Several, _) | (_, Count::Several) => Count::Several,
        };
        Self::among(self.texts.iter().chain(&other.texts).cloned(), count)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => f.write_str(text)?,
                Piece::Plain | Piece::Name | Piece::Beneath | Piece::Job | Piece::Any => {
                    f.write_str("…")?;
                }
            }
        }
        Ok(())
    }
}
