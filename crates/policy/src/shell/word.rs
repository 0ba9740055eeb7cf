//! From source to words: quotes, expansions, braces, splitting.

mod expand;

use tree_sitter::Node;

pub(super) use expand::assigned_name;
pub(crate) use expand::folder_of;

use super::state::Separators;
use super::{State, Walk};
use crate::text::{Count, Piece, Text, Word};
use crate::{Denial, Judged};

/// A part of a word before it is split.
#[derive(Debug, Clone)]
pub(super) enum Atom {
    Char(char, Quoting),
    Value(Word, Quoting),
    /// `"$@"`: as many words as there are parameters.
    Parameters(Vec<Word>),
}

impl Atom {
    fn size(&self) -> usize {
        match self {
            Self::Char(..) => 1,
            Self::Value(word, _) => word.size(),
            Self::Parameters(words) => words.iter().map(Word::size).sum(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    Quoted,
    Bare,
}

/// What ends a stretch of source, and what is special in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Bare,
    Double,
    Heredoc,
}

/// More words than this are not made of one.
const MOST_WORDS: usize = 256;
/// More braces than this in one word are not followed.
const MOST_BRACES: usize = 16;

impl<'tree> Walk<'_, 'tree> {
    /// The words that the shell makes of a stretch of source.
    pub(crate) fn words(
        &mut self,
        start: usize,
        end: usize,
        node: Node<'tree>,
        state: &mut State<'tree>,
    ) -> Judged<Vec<Word>> {
        let mut atoms = Vec::new();
        self.scan(start, end, Mode::Bare, node, state, &mut atoms)?;
        let separators = state.separators();
        if separators != Separators::Blanks {
            atoms.iter_mut().for_each(|atom| split_otherwise(atom, &separators));
        }
        let opened = atoms.iter().filter(|it| matches!(it, Atom::Char('{', Quoting::Bare))).count();
        if opened > MOST_BRACES {
            return Err(not_understood());
        }
        let mut words = Vec::new();
        for alternative in braces(&atoms) {
            words.extend(split(&alternative));
            if words.len() > MOST_WORDS {
                return Err(Denial::new("there are too many words to be understood"));
            }
        }
        Ok(words)
    }

    /// The value of a stretch of source where nothing is split, as in an assignment.
    pub(crate) fn value(
        &mut self,
        start: usize,
        end: usize,
        node: Node<'tree>,
        state: &mut State<'tree>,
    ) -> Judged<Word> {
        let mut atoms = Vec::new();
        self.scan(start, end, Mode::Bare, node, state, &mut atoms)?;
        Ok(joined(&atoms))
    }

    /// The text of a heredoc whose delimiter is not quoted.
    pub(super) fn heredoc_text(
        &mut self,
        body: Node<'tree>,
        state: &mut State<'tree>,
    ) -> Judged<Text> {
        let mut atoms = Vec::new();
        let (start, end) = (body.start_byte(), body.end_byte());
        self.scan(start, end, Mode::Heredoc, body, state, &mut atoms)?;
        match joined(&atoms).texts.as_slice() {
            [text] => Ok(text.clone()),
            _ => Ok(Text::any()),
        }
    }

    /// Reads source into atoms; says where it stopped.
    fn scan(
        &mut self,
        start: usize,
        end: usize,
        mode: Mode,
        node: Node<'tree>,
        state: &mut State<'tree>,
        atoms: &mut Vec<Atom>,
    ) -> Judged<usize> {
        let quoting = if mode == Mode::Bare { Quoting::Bare } else { Quoting::Quoted };
        let mut at = start;
        while let Some(character) = self.char_at(at, end) {
            let next = at + character.len_utf8();
            let following = self.char_at(next, end);
            match (character, mode) {
                ('\\', _) => {
                    let Some(escaped) = following else {
                        atoms.push(Atom::Char('\\', Quoting::Quoted));
                        return Ok(next);
                    };
                    let special = mode == Mode::Bare
                        || matches!(escaped, '$' | '`' | '\\' | '\n')
                        || (mode == Mode::Double && escaped == '"');
                    if !special {
                        atoms.push(Atom::Char('\\', Quoting::Quoted));
                    }
                    // A line break after a backslash is no line break at all.
                    if escaped != '\n' {
                        atoms.push(Atom::Char(escaped, Quoting::Quoted));
                    }
                    at = next + escaped.len_utf8();
                }
                ('\'', Mode::Bare) => {
                    let rest = self.source.get(next..end).unwrap_or_default();
                    let length = rest.find('\'').ok_or_else(not_understood)?;
                    push_all(atoms, rest.get(..length).unwrap_or_default());
                    at = next + length + 1;
                }
                ('"', Mode::Bare) => {
                    // Even an empty string is a word.
                    atoms.push(Atom::Value(Word::literal(""), Quoting::Quoted));
                    at = self.scan(next, end, Mode::Double, node, state, atoms)?;
                }
                ('"', Mode::Double) => return Ok(next),
                ('$', _) => {
                    at = self.dollar(at, end, quoting, node, state, atoms)?;
                    self.bounds.expand(atoms.last().map_or(0, Atom::size))?;
                }
                ('`', _) => {
                    let (word, after) = self.substitution(at, node, state)?;
                    self.bounds.expand(word.size())?;
                    atoms.push(Atom::Value(word, quoting));
                    at = after;
                }
                ('<' | '>', Mode::Bare) if following == Some('(') => {
                    let (_, after) = self.substitution(at, node, state)?;
                    atoms.push(Atom::Value(Word::literal("/dev/fd/63"), Quoting::Quoted));
                    at = after;
                }
                ('~', Mode::Bare) if atoms.is_empty() => {
                    let named = following.is_some_and(|it| it != '/');
                    let home = self.policy.home().filter(|_| !named);
                    let home =
                        home.map_or_else(Word::any, |it| Word::literal(it.to_string_lossy()));
                    atoms.push(Atom::Value(home, Quoting::Quoted));
                    at = next;
                }
                ('\n' | ' ' | '\t' | ';' | '|' | '&', Mode::Bare) => return Err(not_understood()),
                _ => {
                    atoms.push(Atom::Char(character, quoting));
                    at = next;
                }
            }
        }
        if mode == Mode::Double { Err(not_understood()) } else { Ok(at) }
    }

    fn char_at(&self, at: usize, end: usize) -> Option<char> {
        self.source.get(at..end)?.chars().next()
    }

    fn dollar(
        &mut self,
        at: usize,
        end: usize,
        quoting: Quoting,
        node: Node<'tree>,
        state: &mut State<'tree>,
        atoms: &mut Vec<Atom>,
    ) -> Judged<usize> {
        let rest = self.source.get(at + 1..end).unwrap_or_default();
        let mut characters = rest.chars();
        match characters.next() {
            Some('(') if rest.starts_with("((") => {
                let inner = self
                    .node_at(node, at, &["arithmetic_expansion", "command_substitution"])
                    .ok_or_else(not_understood)?;
                self.substitutions(inner, state)?;
                // In a heredoc the grammar takes sums for commands.
                let is_sum = |it: char| it.is_ascii_alphanumeric() || "_ +-*/%$()".contains(it);
                let plain =
                    inner.kind() == "arithmetic_expansion" || self.text(inner).chars().all(is_sum);
                let text = if plain { Text::of(Piece::Plain) } else { Text::any() };
                atoms.push(Atom::Value(Word::one(text), quoting));
                Ok(inner.end_byte())
            }
            Some('(') => {
                let (word, after) = self.substitution(at, node, state)?;
                atoms.push(Atom::Value(word, quoting));
                Ok(after)
            }
            Some('[') => Err(not_understood()),
            Some('{') => {
                let inner = self.node_at(node, at, &["expansion"]).ok_or_else(not_understood)?;
                let text = self.text(inner).trim_start();
                // The value is read once more as a prompt, and commands in it are run.
                if text.contains("@P") {
                    return Err(not_understood());
                }
                let text = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
                let text = text.ok_or_else(not_understood)?;
                let word = self.expansion(text, state);
                self.substitutions(inner, state)?;
                if let Some(name) = assigned_name(text) {
                    state.variables.insert(name.to_owned(), word.clone());
                }
                atoms.push(Atom::Value(word, quoting));
                Ok(inner.end_byte())
            }
            Some('\'') if quoting == Quoting::Bare => {
                let (text, length) = expand::ansi(rest).ok_or_else(not_understood)?;
                push_all(atoms, &text);
                Ok(at + 1 + length)
            }
            Some('"') if quoting == Quoting::Bare => Ok(at + 1),
            Some('@' | '*') => {
                atoms.push(match (&state.parameters, rest.starts_with('@')) {
                    (Some(parameters), true) => Atom::Parameters(parameters.clone()),
                    _ => Atom::Value(Word { count: Count::Several, ..Word::any() }, quoting),
                });
                Ok(at + 2)
            }
            Some(special)
                if "#?$!-0123456789_".contains(special) || special.is_ascii_alphabetic() =>
            {
                let name_length = rest
                    .find(|it: char| !it.is_ascii_alphanumeric() && it != '_')
                    .unwrap_or(rest.len());
                let one = special.is_ascii_digit() || name_length == 0;
                let length = if one { 1 } else { name_length };
                let name = rest.get(..length).unwrap_or_default();
                atoms.push(Atom::Value(self.lookup(name, state), quoting));
                Ok(at + 1 + length)
            }
            Some(_) | None => {
                atoms.push(Atom::Char('$', Quoting::Quoted));
                Ok(at + 1)
            }
        }
    }

    /// Runs what is between backquotes or parentheses, and says what it would print.
    fn substitution(
        &mut self,
        at: usize,
        node: Node<'tree>,
        state: &mut State<'tree>,
    ) -> Judged<(Word, usize)> {
        let kinds = ["command_substitution", "process_substitution"];
        let inner = self.node_at(node, at, &kinds).ok_or_else(not_understood)?;
        self.substitutions(inner, state)?;
        Ok((self.substituted(inner, state), inner.end_byte()))
    }

    /// The node of one of these kinds that begins here. To the grammar, blanks before it in a string
    /// belong to it.
    fn node_at(&self, below: Node<'tree>, at: usize, kinds: &[&str]) -> Option<Node<'tree>> {
        let mut node = below.descendant_for_byte_range(at, at + 1);
        while let Some(candidate) = node {
            let before = self.source.get(candidate.start_byte()..at);
            let begins = before.is_some_and(|it| it.chars().all(char::is_whitespace));
            if begins && kinds.contains(&candidate.kind()) {
                return Some(candidate);
            }
            if candidate.id() == below.id() || !begins {
                return None;
            }
            node = candidate.parent();
        }
        None
    }
}

fn not_understood() -> Denial {
    Denial::new("a word of the command could not be understood")
}

fn push_all(atoms: &mut Vec<Atom>, text: &str) {
    atoms.push(Atom::Value(Word::literal(text), Quoting::Quoted));
}

/// The atoms as one value.
fn joined(atoms: &[Atom]) -> Word {
    let mut texts = vec![Text::default()];
    let mut count = Count::One;
    for atom in atoms {
        let one;
        let word = match atom {
            Atom::Char(character, _) => {
                one = Word::literal(*character);
                &one
            }
            Atom::Value(word, _) => word,
            Atom::Parameters(_) => {
                one = Word { count: Count::Several, ..Word::any() };
                &one
            }
        };
        if word.count == Count::Several {
            count = Count::Several;
        }
        // One value is appended where it stands; a long text is not copied for each of its letters.
        if let [only] = word.texts.as_slice() {
            for text in &mut texts {
                text.extend(only);
            }
            continue;
        }
        if texts.len() * word.texts.len() > MOST_WORDS {
            return Word { count, ..Word::any() };
        }
        texts = texts
            .iter()
            .flat_map(|text| {
                word.texts.iter().map(|more| {
                    let mut both = text.clone();
                    both.extend(more);
                    both
                })
            })
            .collect();
    }
    Word::among(texts, count)
}

/// Splits at the blanks that unquoted values bring in.
fn split(atoms: &[Atom]) -> Vec<Word> {
    if let [Atom::Value(empty, Quoting::Quoted), Atom::Parameters(words)] = atoms
        && empty.as_literal() == Some("")
    {
        return words.clone();
    }
    if let [Atom::Parameters(words)] = atoms {
        return words.clone();
    }
    let mut words = Vec::new();
    let mut current: Vec<Atom> = Vec::new();
    for atom in atoms {
        let Atom::Value(word, Quoting::Bare) = atom else {
            current.push(atom.clone());
            continue;
        };
        let blank = |text: &Text| {
            let mut literals = text.pieces().iter();
            literals
                .any(|it| matches!(it, Piece::Literal(text) if text.contains(char::is_whitespace)))
        };
        match word.texts.as_slice() {
            // Nothing at all, and not even a word if it stands alone.
            [text] if text.is_empty() => {}
            [text] if blank(text) => {
                for piece in text.pieces() {
                    let Piece::Literal(literal) = piece else {
                        current.push(bare(Text::of(piece.clone())));
                        continue;
                    };
                    for (index, part) in literal.split(char::is_whitespace).enumerate() {
                        if index > 0 && !current.is_empty() {
                            words.push(joined(&std::mem::take(&mut current)));
                        }
                        if !part.is_empty() {
                            current.push(bare(Text::literal(part)));
                        }
                    }
                }
            }
            texts if texts.iter().any(blank) => {
                let several = Word { count: Count::Several, ..Word::any() };
                current.push(Atom::Value(several, Quoting::Bare));
            }
            _ => current.push(atom.clone()),
        }
    }
    if !current.is_empty() {
        words.push(joined(&current));
    }
    words
}

/// A value is no longer known if it may be split at something else than blanks.
fn split_otherwise(atom: &mut Atom, separators: &Separators) {
    let Atom::Value(word, Quoting::Bare) = atom else { return };
    let separates = |it: char| match separators {
        Separators::Blanks => it.is_whitespace(),
        Separators::These(characters) => it.is_whitespace() || characters.contains(it),
        Separators::Unknown => !it.is_ascii_alphanumeric(),
    };
    let stays = |text: &Text| {
        text.pieces().iter().all(|piece| match piece {
            Piece::Literal(literal) => !literal.contains(separates),
            Piece::Plain | Piece::Job | Piece::Name => true,
            Piece::Beneath | Piece::Any => false,
        })
    };
    if !word.texts.iter().all(stays) {
        *word = Word { count: Count::Several, ..Word::any() };
    }
}

fn bare(text: Text) -> Atom {
    Atom::Value(Word::one(text), Quoting::Bare)
}

/// All words that braces make of one.
fn braces(atoms: &[Atom]) -> Vec<Vec<Atom>> {
    let is =
        |atom: &Atom, wanted: char| matches!(atom, Atom::Char(c, Quoting::Bare) if *c == wanted);
    let mut from = 0;
    while let Some(open) = atoms.iter().skip(from).position(|atom| is(atom, '{')) {
        let open = from + open;
        let mut depth = 0_usize;
        let mut cuts = vec![open];
        let mut close = None;
        for (index, atom) in atoms.iter().enumerate().skip(open) {
            match atom {
                _ if is(atom, '{') => depth += 1,
                _ if is(atom, '}') => depth -= 1,
                _ if is(atom, ',') && depth == 1 => cuts.push(index),
                Atom::Char(..) | Atom::Value(..) | Atom::Parameters(_) => {}
            }
            if depth == 0 {
                close = Some(index);
                break;
            }
        }
        let Some(close) = close else { break };
        cuts.push(close);
        let slice = |from: usize, to: usize| atoms.get(from..to).unwrap_or_default();
        let parts: Vec<Vec<Atom>> = if cuts.len() > 2 {
            cuts.windows(2)
                .filter_map(|pair| match pair {
                    [left, right] => Some(slice(left + 1, *right).to_vec()),
                    _ => None,
                })
                .flat_map(|part| braces(&part))
                .collect()
        } else if let Some(range) = range_of(slice(open + 1, close)) {
            range
        } else {
            from = open + 1;
            continue;
        };
        let mut all = Vec::new();
        for rest in braces(slice(close + 1, atoms.len())) {
            for part in &parts {
                if all.len() > MOST_WORDS {
                    return all;
                }
                all.push([slice(0, open), part, &rest].concat());
            }
        }
        return all;
    }
    vec![atoms.to_vec()]
}

/// `1..5` and `a..e`.
fn range_of(atoms: &[Atom]) -> Option<Vec<Vec<Atom>>> {
    let text: Option<String> = atoms
        .iter()
        .map(|atom| match atom {
            Atom::Char(character, Quoting::Bare) => Some(*character),
            Atom::Char(_, Quoting::Quoted) | Atom::Value(..) | Atom::Parameters(_) => None,
        })
        .collect();
    let text = text?;
    let (first, rest) = text.split_once("..")?;
    let last = rest.split("..").next()?;
    let known = |it: &str| it.parse::<i64>().is_ok() || it.chars().count() == 1;
    // A range of characters may have a dot or a slash in it.
    let letters = |it: &str| it.chars().all(|it| it.is_ascii_alphanumeric() || it == '-');
    let plain = known(first) && known(last) && letters(first) && letters(last);
    let same_kind = first.parse::<i64>().is_ok() == last.parse::<i64>().is_ok();
    if !plain || !same_kind {
        return None;
    }
    Some(vec![vec![bare(Text::of(Piece::Plain))]])
}
