//! Strings, comments, brackets and indentation: what CPython's tokenizer insists on and
//! tree-sitter's, made for editors, forgives.
//!
//! One pass over the bytes, which always reaches the end. It notes the first thing a tokenizer
//! would refuse and carries on with its best guess, so that even a broken source yields its text
//! with strings and comments blanked.

use std::ops::Range;

/// What the pass over a source found.
#[derive(Debug)]
pub(crate) struct Lexical {
    /// The source, byte for byte, with the insides of strings and all comments as spaces.
    /// Line ends stay.
    pub(crate) blanked: Vec<u8>,
    /// Where each top-level statement begins, in order, up to the first problem.
    pub(crate) statements: Vec<usize>,
    /// Where the code of each logical line begins, in order.
    pub(crate) lines: Vec<usize>,
    /// Every comment, in order.
    pub(crate) comments: Vec<Range<usize>>,
    /// The first thing Python's tokenizer would refuse.
    pub(crate) problem: Option<Problem>,
}

/// Something that is not Python, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

/// CPython's own limits: past them it refuses the source, so there is nothing to parse.
const MAX_INDENTS: usize = 100;
const MAX_NESTING: usize = 200;

pub(crate) fn scan(source: &str) -> Lexical {
    let mut lexer = Lexer::new(source);
    lexer.run();
    let Lexer { blanked, statements, lines, comments, problem, .. } = lexer;
    Lexical { blanked, statements, lines, comments, problem }
}

/// What the lexer is inside of, innermost last.
#[derive(Debug, Clone, Copy)]
enum Frame {
    /// An open `(`, `[` or `{`.
    Bracket { open: u8, at: usize },
    /// A string's text.
    Text(Quote),
    /// The expression of an f-string's `{...}`.
    Field { at: usize },
    /// What follows the `:` in an f-string's `{...:...}`.
    Spec { at: usize },
}

#[derive(Debug, Clone, Copy)]
struct Quote {
    byte: u8,
    triple: bool,
    formatted: bool,
    at: usize,
}

/// A width measured as CPython does: tabs to multiples of 8, and again with tabs as one column.
/// Two lines whose order differs between the measures mix tabs and spaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Indent {
    column: usize,
    alternate: usize,
}

struct Lexer<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    blanked: Vec<u8>,
    frames: Vec<Frame>,
    indents: Vec<Indent>,
    statements: Vec<usize>,
    lines: Vec<usize>,
    comments: Vec<Range<usize>>,
    problem: Option<Problem>,
    /// Whether the next byte begins a logical line.
    line_begins: bool,
    /// The last byte of code on this logical line; 0 when there is none yet.
    last_code: u8,
    /// Whether the line before ended in a colon and so wants an indented block.
    wants_block: bool,
    /// Whether the line before is a decorator, which the next line completes.
    decorated: bool,
}

impl<'a> Lexer<'a> {
    fn new(source: &'a str) -> Self {
        Self {
            source,
            bytes: source.as_bytes(),
            at: 0,
            blanked: source.as_bytes().to_vec(),
            frames: Vec::new(),
            indents: Vec::new(),
            statements: Vec::new(),
            lines: Vec::new(),
            comments: Vec::new(),
            problem: None,
            line_begins: true,
            last_code: 0,
            wants_block: false,
            decorated: false,
        }
    }

    fn run(&mut self) {
        // A byte order mark is Python's to ignore, at the very start only.
        if self.source.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
        while let Some(byte) = self.peek(0) {
            match self.frames.last().copied() {
                Some(Frame::Text(quote)) => self.text(byte, quote),
                Some(Frame::Spec { .. }) => self.spec(byte),
                Some(Frame::Bracket { .. } | Frame::Field { .. }) => self.code(byte),
                None if self.line_begins => self.begin_line(),
                None => self.code(byte),
            }
        }
        self.end();
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn refuse(&mut self, offset: usize, message: impl Into<String>) {
        if self.problem.is_none() {
            self.problem = Some(Problem { offset, message: message.into() });
        }
    }

    fn blank(&mut self, from: usize, to: usize) {
        for byte in self.blanked.get_mut(from..to).unwrap_or_default() {
            if !matches!(*byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }

    /// Takes the next `count` bytes as string text.
    fn take_text(&mut self, count: usize) {
        self.blank(self.at, (self.at + count).min(self.bytes.len()));
        self.at += count;
    }

    fn begin_line(&mut self) {
        let start = self.at;
        let mut indent = Indent::default();
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' => {
                    indent.column += 1;
                    indent.alternate += 1;
                }
                b'\t' => {
                    indent.column = (indent.column / 8 + 1) * 8;
                    indent.alternate += 1;
                }
                b'\x0c' => indent = Indent::default(),
                _ => break,
            }
            self.at += 1;
        }
        match self.peek(0) {
            None => {}
            Some(b'#') => self.comment(),
            Some(b'\n') => self.at += 1,
            Some(b'\r') if self.peek(1) == Some(b'\n') => self.at += 2,
            Some(first) => {
                self.line_begins = false;
                self.indent_to(indent);
                self.last_code = 0;
                self.lines.push(self.at);
                self.begin_statement(first, start);
            }
        }
    }

    fn indent_to(&mut self, indent: Indent) {
        let outer = self.indents.last().copied().unwrap_or_default();
        let wants_block = std::mem::take(&mut self.wants_block);
        if indent.column > outer.column {
            if !wants_block {
                self.refuse_indent();
            } else if indent.alternate <= outer.alternate {
                self.refuse(self.at, "inconsistent use of tabs and spaces in indentation");
            } else if self.indents.len() + 1 >= MAX_INDENTS {
                self.refuse(self.at, "too many levels of indentation");
            }
            self.indents.push(indent);
            return;
        }
        if wants_block {
            self.refuse(self.at, "expected an indented block");
        }
        while self.indents.last().is_some_and(|level| level.column > indent.column) {
            self.indents.pop();
        }
        let level = self.indents.last().copied().unwrap_or_default();
        if level.column != indent.column {
            self.refuse(self.at, "unindent does not match any outer indentation level");
        } else if level.alternate != indent.alternate {
            self.refuse(self.at, "inconsistent use of tabs and spaces in indentation");
        }
    }

    /// An indent that no colon announced: more often than not, the colon is what is missing.
    fn refuse_indent(&mut self) {
        let above = self.lines.last().copied().filter(|above| opens_block(self.word_at(*above)));
        match above {
            Some(above) => self.refuse(above, "expected ':'"),
            None => self.refuse(self.at, "unexpected indent"),
        }
    }

    fn word_at(&self, offset: usize) -> &'a [u8] {
        let rest = self.bytes.get(offset..).unwrap_or_default();
        let length = rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
        rest.get(..length).unwrap_or_default()
    }

    /// Notes the line as a top-level statement, unless it continues the one above.
    fn begin_statement(&mut self, first: u8, start: usize) {
        if !self.indents.is_empty() || self.problem.is_some() {
            return;
        }
        let continues = matches!(self.word_at(self.at), b"else" | b"elif" | b"except" | b"finally");
        if !continues && !self.decorated {
            self.statements.push(start);
        }
        self.decorated = first == b'@';
    }

    fn code(&mut self, byte: u8) {
        match byte {
            b' ' | b'\t' | b'\x0c' => self.at += 1,
            b'\r' if self.peek(1) == Some(b'\n') => self.at += 1,
            b'\n' => self.newline(),
            b'#' => self.comment(),
            b'\\' => self.continuation(),
            b'"' | b'\'' => self.open_string(self.at, b""),
            b'(' | b'[' | b'{' => {
                self.push(Frame::Bracket { open: byte, at: self.at });
                self.take_code(byte);
            }
            b')' | b']' | b'}' => self.close(byte),
            b':' if matches!(self.frames.last(), Some(Frame::Field { .. })) => {
                self.frames.pop();
                self.frames.push(Frame::Spec { at: self.at });
                self.take_code(byte);
            }
            byte if is_word(byte) => self.word(),
            b'`' => {
                let line = self.bytes.get(self.at..self.at + 3).unwrap_or_default();
                self.refuse(
                    self.at,
                    if line == b"```" { "stray markdown fence" } else { "invalid syntax" },
                );
                self.take_code(byte);
            }
            b'$' | b'?' => {
                self.refuse(self.at, "invalid syntax");
                self.take_code(byte);
            }
            byte if byte < b' ' || byte == 0x7f => {
                self.refuse(self.at, format!("invalid non-printable character U+{byte:04X}"));
                self.at += 1;
            }
            byte => self.take_code(byte),
        }
    }

    fn take_code(&mut self, byte: u8) {
        self.last_code = byte;
        self.at += 1;
    }

    fn newline(&mut self) {
        self.at += 1;
        if self.frames.is_empty() {
            self.line_begins = true;
            self.wants_block = self.last_code == b':';
        }
    }

    fn comment(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        self.comments.push(self.at..self.at + length);
        self.take_text(length);
    }

    /// A backslash outside strings: only a line end, and then something, may follow.
    fn continuation(&mut self) {
        let length = match (self.peek(1), self.peek(2)) {
            (Some(b'\n'), _) => 2,
            (Some(b'\r'), Some(b'\n')) => 3,
            (Some(_), _) => {
                self.refuse(self.at, "unexpected character after line continuation character");
                1
            }
            (None, _) => 1,
        };
        if self.at + length >= self.bytes.len() {
            self.refuse(self.at, "unexpected end of file after a line continuation");
        }
        self.at += length;
    }

    /// A name, keyword or number, taken whole because it may be the prefix of a string.
    fn word(&mut self) {
        let start = self.at;
        while self.peek(0).is_some_and(is_word) {
            self.at += 1;
        }
        let text = self.source.get(start..self.at).unwrap_or_default();
        if let Some((place, found)) = text.char_indices().find(|(_, found)| is_invisible(*found)) {
            let message = format!("invalid non-printable character U+{:04X}", u32::from(found));
            self.refuse(start + place, message);
        }
        self.last_code = b'a';
        if matches!(self.peek(0), Some(b'"' | b'\'')) && is_string_prefix(text) {
            self.open_string(start, text.as_bytes());
        }
    }

    fn open_string(&mut self, at: usize, prefix: &[u8]) {
        let Some(byte) = self.peek(0) else { return };
        let triple = self.peek(1) == Some(byte) && self.peek(2) == Some(byte);
        let formatted = prefix.iter().any(|letter| matches!(letter, b'f' | b'F' | b't' | b'T'));
        self.push(Frame::Text(Quote { byte, triple, formatted, at }));
        self.last_code = byte;
        self.at += if triple { 3 } else { 1 };
    }

    /// One step inside a string. Raw strings need no mode of their own: there too, a backslash
    /// keeps the quote after it from closing the string.
    fn text(&mut self, byte: u8, quote: Quote) {
        let closes = byte == quote.byte
            && (!quote.triple || (self.peek(1) == Some(byte) && self.peek(2) == Some(byte)));
        if closes {
            self.frames.pop();
            // A field's code may have come last, and its colon announces no block.
            self.last_code = byte;
            self.at += if quote.triple { 3 } else { 1 };
        } else if byte == b'\n' && !quote.triple {
            self.break_string();
        } else if byte == b'\\' {
            let crlf = self.peek(1) == Some(b'\r') && self.peek(2) == Some(b'\n');
            // A brace after a backslash still opens a field; only in `\N{...}` it does not.
            let length = match (self.peek(1), self.peek(2)) {
                _ if crlf => 3,
                (Some(b'{' | b'}'), _) if quote.formatted => 1,
                (Some(b'N'), Some(b'{')) if quote.formatted => 3,
                _ => 2,
            };
            self.take_text(length);
        } else if quote.formatted && matches!(byte, b'{' | b'}') {
            if self.peek(1) == Some(byte) {
                self.take_text(2);
            } else if byte == b'{' {
                self.push(Frame::Field { at: self.at });
                self.at += 1;
            } else {
                // The `}` that ends `\N{...}` comes here too; tree-sitter knows the difference.
                self.take_text(1);
            }
        } else {
            self.take_text(1);
        }
    }

    fn spec(&mut self, byte: u8) {
        let quote = self.frames.iter().rev().find_map(|frame| match frame {
            Frame::Text(quote) => Some(*quote),
            Frame::Bracket { .. } | Frame::Field { .. } | Frame::Spec { .. } => None,
        });
        match byte {
            b'{' => {
                self.push(Frame::Field { at: self.at });
                self.at += 1;
            }
            b'}' => {
                self.frames.pop();
                self.at += 1;
            }
            b'\n' if quote.is_none_or(|quote| !quote.triple) => self.break_string(),
            _ if quote.is_some_and(|quote| quote.byte == byte && !quote.triple) => {
                self.refuse(self.at, "f-string: expecting '}'");
                self.frames.pop();
            }
            _ => self.take_text(1),
        }
    }

    /// A line end inside a string that may not hold one: the string ends here.
    fn break_string(&mut self) {
        while let Some(frame) = self.frames.pop() {
            if let Frame::Text(quote) = frame {
                self.refuse(quote.at, "unterminated string literal");
                break;
            }
        }
    }

    fn push(&mut self, frame: Frame) {
        if self.frames.len() >= MAX_NESTING {
            self.refuse(self.at, "too many nested parentheses");
        }
        self.frames.push(frame);
    }

    fn close(&mut self, byte: u8) {
        match self.frames.last().copied() {
            Some(Frame::Field { .. }) if byte == b'}' => {
                self.frames.pop();
            }
            Some(Frame::Bracket { open, .. }) => {
                if closing(open) != byte {
                    let (open, byte) = (char::from(open), char::from(byte));
                    self.refuse(
                        self.at,
                        format!("closing '{byte}' does not match opening '{open}'"),
                    );
                }
                self.frames.pop();
            }
            Some(Frame::Field { .. } | Frame::Text(_) | Frame::Spec { .. }) | None => {
                self.refuse(self.at, format!("unmatched '{}'", char::from(byte)));
            }
        }
        self.take_code(byte);
    }

    fn end(&mut self) {
        match self.frames.last().copied() {
            Some(Frame::Bracket { open, at }) => {
                self.refuse(at, format!("'{}' was never closed", char::from(open)));
            }
            Some(Frame::Text(quote)) => self.refuse(quote.at, "unterminated string literal"),
            Some(Frame::Field { at } | Frame::Spec { at }) => {
                self.refuse(at, "f-string: expecting '}'");
            }
            None if self.wants_block || (!self.line_begins && self.last_code == b':') => {
                let line = self.lines.last().copied().unwrap_or_default();
                self.refuse(line, "expected an indented block");
            }
            None => {}
        }
    }
}

fn opens_block(word: &[u8]) -> bool {
    matches!(
        word,
        b"if"
            | b"elif"
            | b"else"
            | b"for"
            | b"while"
            | b"try"
            | b"except"
            | b"finally"
            | b"with"
            | b"def"
            | b"class"
            | b"async"
    )
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Characters that tree-sitter takes for white space, or that nobody can see, and Python refuses.
fn is_invisible(found: char) -> bool {
    !found.is_ascii()
        && (found.is_whitespace()
            || found.is_control()
            || matches!(found, '\u{feff}' | '\u{2060}' | '\u{200b}'..='\u{200f}'))
}

pub(crate) fn is_string_prefix(text: &str) -> bool {
    matches!(
        text.to_ascii_lowercase().as_str(),
        "r" | "u" | "b" | "br" | "rb" | "f" | "fr" | "rf" | "t" | "tr" | "rt"
    )
}

fn closing(open: u8) -> u8 {
    match open {
        b'(' => b')',
        b'[' => b']',
        _ => b'}',
    }
}
