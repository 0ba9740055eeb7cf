//! What an expression is, as far as it is a text or a path.

use tree_sitter::Node;

use super::names::furthest;
use super::{Arguments, Reading, children};
use crate::text::{Piece, Text};

/// Whether a value must be the only one, or may be the one that is most likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// For programs: what may be something else is not known.
    Certain,
    /// For paths: the value that was given last.
    Likely,
}

/// How a value is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    wanted: Wanted,
    depth: u32,
}

impl Asked {
    pub(super) fn certain() -> Self {
        Self { wanted: Wanted::Certain, depth: 0 }
    }

    pub(super) fn likely() -> Self {
        Self { wanted: Wanted::Likely, depth: 0 }
    }

    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

impl Reading<'_> {
    /// What an expression is, as far as it is a text or a path.
    pub(super) fn value(&self, node: Node<'_>, asked: Asked) -> Text {
        if asked.depth > 20 {
            return Text::any();
        }
        let inner = |node| self.value(node, asked.deeper());
        match node.kind() {
            "string" => self.string(node, asked),
            "concatenated_string" => {
                let mut whole = Text::default();
                for part in children(node) {
                    whole.extend(&self.string(part, asked));
                }
                whole
            }
            "identifier" => self.value_of(self.text(node), node.start_byte(), asked.wanted),
            "attribute" => match self.named(node).as_str() {
                "os.pardir" | "os.path.pardir" => Text::literal(".."),
                "os.curdir" | "os.path.curdir" => Text::literal("."),
                "os.sep" | "os.path.sep" => Text::literal("/"),
                full => {
                    let name = full.rsplit('.').next().unwrap_or_default();
                    self.value_of_attribute(name, asked.wanted)
                }
            },
            "subscript" if self.text(node).ends_with("environ['HOME']") => self.home_text(),
            "subscript" if self.text(node).ends_with("environ[\"HOME\"]") => self.home_text(),
            "subscript" => match node.child_by_field_name("subscript") {
                Some(key) if key.kind() == "string" => {
                    self.value_of_attribute(self.key(key), asked.wanted)
                }
                Some(_) | None => Text::any(),
            },
            "conditional_expression" => match (children(node).as_slice(), asked.wanted) {
                ([one, _, other], Wanted::Likely) => furthest(&[inner(*one), inner(*other)]),
                _ => Text::any(),
            },
            "parenthesized_expression" => {
                children(node).first().map_or_else(Text::any, |it| inner(*it))
            }
            "integer" => Text::of(Piece::Plain),
            "binary_operator" => {
                let (Some(left), Some(right), Some(operator)) = (
                    node.child_by_field_name("left"),
                    node.child_by_field_name("right"),
                    node.child_by_field_name("operator"),
                ) else {
                    return Text::any();
                };
                match operator.kind() {
                    "+" => joined(&inner(left), "", &inner(right)),
                    "/" => below(&inner(left), &inner(right)),
                    "%" => {
                        let format = inner(left);
                        let value = match right.kind() {
                            "tuple" => children(right).first().map(|it| inner(*it)),
                            _ => Some(inner(right)),
                        };
                        filled_in(&format, "%s", "%", value)
                    }
                    _ => Text::any(),
                }
            }
            "call" => self.called(node, asked),
            _ => Text::any(),
        }
    }

    fn called(&self, node: Node<'_>, asked: Asked) -> Text {
        let (Some(function), Some(arguments)) =
            (node.child_by_field_name("function"), node.child_by_field_name("arguments"))
        else {
            return Text::any();
        };
        let arguments = Arguments::read(arguments, self.source);
        let name = self.named(function);
        let last = name.rsplit('.').next().unwrap_or_default();
        match last {
            "Path" | "PurePath" | "PosixPath" | "join" | "str" | "fspath" | "abspath"
            | "realpath" | "normpath" => {
                if last == "join" && !name.ends_with("path.join") {
                    let parts = arguments.at(0).filter(|it| matches!(it.kind(), "list" | "tuple"));
                    let object = function.child_by_field_name("object");
                    let (Some(parts), Some(object)) = (parts, object) else { return Text::any() };
                    let between = self.value(object, asked.deeper());
                    let mut whole = Text::default();
                    for (index, part) in children(parts).into_iter().enumerate() {
                        if index > 0 {
                            whole.extend(&between);
                        }
                        whole.extend(&self.value(part, asked.deeper()));
                    }
                    return whole;
                }
                let mut parts =
                    arguments.positional.iter().map(|it| self.value(*it, asked.deeper()));
                let first = parts.next().unwrap_or_else(|| Text::literal("."));
                parts.fold(first, |path, part| below(&path, &part))
            }
            "joinpath" => {
                let object = function.child_by_field_name("object");
                let first = object.map_or_else(Text::any, |it| self.value(it, asked.deeper()));
                let parts = arguments.positional.iter().map(|it| self.value(*it, asked.deeper()));
                parts.fold(first, |path, part| below(&path, &part))
            }
            "expanduser" => match arguments.at(0).map(|it| self.value(it, asked.deeper())) {
                Some(text) if text.prefix().starts_with('~') => {
                    joined(&self.home_text(), "", &text.without_prefix(1))
                }
                Some(text) => text,
                None => Text::any(),
            },
            "home" if name.ends_with("Path.home") => self.home_text(),
            "getenv" | "get" => match arguments.at(0).map(|it| self.value(it, asked.deeper())) {
                Some(variable) if variable.as_literal() == Some("HOME") => self.home_text(),
                Some(_) | None => Text::any(),
            },
            "getcwd" | "cwd" => Text::literal("."),
            "format" => {
                let object = function.child_by_field_name("object");
                let format = object.map_or_else(Text::any, |it| self.value(it, asked.deeper()));
                let first = arguments.at(0).map(|it| self.value(it, asked.deeper()));
                filled_in(&format, "{}", "{", first)
            }
            "resolve" | "absolute" => function
                .child_by_field_name("object")
                .map_or_else(Text::any, |it| self.value(it, asked.deeper())),
            _ => Text::any(),
        }
    }

    fn home_text(&self) -> Text {
        self.home.map_or_else(Text::any, |it| Text::literal(it.to_string_lossy()))
    }

    /// A string literal, with unknown pieces where an f-string has expressions.
    pub(super) fn string(&self, node: Node<'_>, asked: Asked) -> Text {
        let mut whole = Text::default();
        let prefix = self.text(node).split(['"', '\'']).next().unwrap_or_default().to_lowercase();
        for part in children(node) {
            match part.kind() {
                "string_content" => {
                    let mut at = part.start_byte();
                    for escape in children(part) {
                        let before = self.source.get(at..escape.start_byte()).unwrap_or_default();
                        whole.push(Piece::Literal(before.to_owned()));
                        at = escape.end_byte();
                        if prefix.contains('r') || escape.kind() != "escape_sequence" {
                            whole.push(Piece::Literal(self.text(escape).to_owned()));
                        } else {
                            whole.push(unescaped(self.text(escape)));
                        }
                    }
                    let rest = self.source.get(at..part.end_byte()).unwrap_or_default();
                    whole.push(Piece::Literal(rest.to_owned()));
                }
                "interpolation" => {
                    let conversion = part.child_by_field_name("type_conversion");
                    let plain = part.child_by_field_name("format_specifier").is_none()
                        && conversion.is_none_or(|it| self.text(it) == "!s");
                    match part.child_by_field_name("expression").filter(|_| plain) {
                        Some(inner) => whole.extend(&self.value(inner, asked.deeper())),
                        None => whole.push(Piece::Any),
                    }
                }
                _ => {}
            }
        }
        whole
    }
}

fn unescaped(escape: &str) -> Piece {
    Piece::Literal(match escape {
        "\\n" => "\n".to_owned(),
        "\\t" => "\t".to_owned(),
        "\\\n" => String::new(),
        "\\\\" | "\\'" | "\\\"" => escape.get(1..).unwrap_or_default().to_owned(),
        // Numbers can spell anything.
        _ => return Piece::Any,
    })
}

/// A format whose first mark is replaced by a value. What comes after the next one is not known.
fn filled_in(format: &Text, mark: &str, any_mark: &str, value: Option<Text>) -> Text {
    let (known, rest) = format.prefix().split_once(any_mark).unwrap_or((format.prefix(), ""));
    let known = Text::literal(known);
    let rest = rest.strip_prefix(mark.trim_start_matches(any_mark));
    match (rest, value) {
        (Some(rest), Some(value)) => {
            let rest = rest.split(any_mark).next().unwrap_or_default();
            joined(&joined(&known, "", &value), rest, &Text::any())
        }
        _ => joined(&known, "", &Text::any()),
    }
}

fn joined(left: &Text, between: &str, right: &Text) -> Text {
    let mut whole = left.clone();
    whole.push(Piece::Literal(between.to_owned()));
    whole.extend(right);
    whole
}

/// A path below another; an absolute one stands for itself.
fn below(left: &Text, right: &Text) -> Text {
    if right.prefix().starts_with('/') { right.clone() } else { joined(left, "/", right) }
}
