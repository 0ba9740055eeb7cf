//! Where rows are split: by a library, by a function of the script, by hand.

use tree_sitter::Node;

use super::{Flow, Rows, Value};
use crate::leaks::syntax::{called, keyword, positional, receiver, text};

impl<'a> Flow<'a> {
    /// Whether a node is a call that splits rows.
    pub(super) fn is_split(&self, node: Node<'a>) -> bool {
        if node.kind() != "call" {
            return false;
        }
        let name = called(self.source, node);
        match name {
            "train_test_split" | "cross_val_score" | "cross_val_predict" | "cross_validate" => true,
            "split" => {
                let words = receiver(node).is_some_and(|it| {
                    matches!(it.kind(), "string" | "subscript")
                        || text(self.source, it).ends_with(".str")
                });
                let first = positional(node).first().copied();
                !words && first.is_some_and(|it| it.kind() != "string")
            }
            _ => {
                self.splitting.contains(name)
                    || self.known.as_ref().is_some_and(|it| it.splitting.contains(name))
            }
        }
    }

    pub(super) fn note_split(&mut self, node: Node<'a>) {
        self.last_split = self.last_split.max(Some(node.start_byte()));
    }

    /// Whether rows are split at this place or later.
    pub(super) fn is_before_split(&self, node: Node<'a>) -> bool {
        let last = self.known.as_ref().and_then(|it| it.last_split);
        last.is_some_and(|last| node.start_byte() < last)
    }

    /// Splits by hand: `held = rows[800:]`, `valid = data[data.year == 2020]`.
    pub(super) fn named_part(&mut self, name: &str, value: Value, right: Node<'a>) -> Value {
        let lower = name.to_lowercase();
        let held = ["val", "hold", "dev", "eval"].iter().any(|it| lower.contains(it));
        let part = lower.contains("train") || lower.ends_with("_tr") || lower.contains("fit");
        let is_cut = match right.kind() {
            "subscript" => {
                let index = right.child_by_field_name("subscript");
                index.is_some_and(|it| {
                    matches!(
                        it.kind(),
                        "comparison_operator"
                            | "unary_operator"
                            | "identifier"
                            | "slice"
                            | "binary_operator"
                    )
                })
            }
            "call" => {
                matches!(called(self.source, right), "sample" | "query" | "drop" | "head" | "tail")
            }
            _ => false,
        };
        let whole = matches!(value.rows, Rows::All) && !value.is_statistic;
        let rows = match (held, part) {
            (true, false) => Rows::Held,
            (false, true) => Rows::Part,
            _ => return value,
        };
        let columns_only = right.kind() == "call"
            && called(self.source, right) == "drop"
            && (keyword(self.source, right, "columns").is_some()
                || keyword(self.source, right, "axis").is_some());
        if !whole || !is_cut || columns_only {
            return value;
        }
        if rows == Rows::Held {
            self.note_split(right);
        }
        Value { rows, ..value }
    }

    /// `a, b, c, d = train_test_split(x, y)`: every second name is held out.
    pub(super) fn split_into(&mut self, targets: &[&'a str], split: Node<'a>) {
        self.note_split(split);
        let known = called(self.source, split) == "train_test_split";
        let arguments = positional(split);
        for (position, name) in targets.iter().enumerate() {
            let source = if known { arguments.get(position / 2) } else { arguments.first() };
            let whole = source.map(|it| self.value(*it)).unwrap_or_default();
            let lower = name.to_lowercase();
            let rows = if known {
                if position % 2 == 0 { Rows::Part } else { Rows::Held }
            } else if ["val", "hold", "test"].iter().any(|it| lower.contains(it)) {
                Rows::Held
            } else if lower.contains("train") || lower.ends_with("_tr") {
                Rows::Part
            } else {
                Rows::Unknown
            };
            self.values.insert(name, Value { rows, is_statistic: false, is_index: false, ..whole });
        }
    }
}
