//! What is known about an expression: which rows it holds, and whether the target is among them.

use tree_sitter::Node;

use super::{Flow, Rows, Value};
use crate::leaks::syntax::{all, called, children, keyword, positional, receiver, strings, text};

impl<'a> Flow<'a> {
    /// What is known about an expression.
    pub(super) fn value(&self, node: Node<'a>) -> Value {
        match node.kind() {
            "identifier" => self.values.get(text(self.source, node)).copied().unwrap_or_default(),
            "attribute" => {
                let base =
                    node.child_by_field_name("object").map(|it| self.value(it)).unwrap_or_default();
                let name =
                    node.child_by_field_name("attribute").map_or("", |it| text(self.source, it));
                match name {
                    "columns" => Value { has_target: base.has_target, ..Value::default() },
                    "shape" | "index" | "dtypes" | "size" => Value::default(),
                    _ => base,
                }
            }
            "subscript" => self.subscript(node),
            "call" => self.result(node),
            "list_comprehension" => {
                let filtered = all(node).into_iter().any(|it| it.kind() == "if_clause");
                let joined = self.joined(node);
                Value { has_target: joined.has_target && !filtered, ..joined }
            }
            "lambda" | "string" | "integer" | "float" => Value::default(),
            _ => self.joined(node),
        }
    }

    pub(super) fn joined(&self, node: Node<'a>) -> Value {
        let values = children(node).into_iter().map(|it| self.value(it));
        values.reduce(Value::join).unwrap_or_default()
    }

    pub(super) fn subscript(&self, node: Node<'a>) -> Value {
        let of = node.child_by_field_name("value");
        let base = of.map(|it| self.value(it)).unwrap_or_default();
        let indices: Vec<Node<'a>> =
            node.children_by_field_name("subscript", &mut node.walk()).collect();
        // `train_test_split(x)[0]` is the training part, and every second one held out.
        if let ([place], Some(call)) = (indices.as_slice(), of)
            && call.kind() == "call"
            && called(self.source, call) == "train_test_split"
            && let Ok(place) = text(self.source, *place).parse::<usize>()
        {
            let whole = positional(call).get(place / 2).map(|it| self.value(*it));
            let rows = if place % 2 == 0 { Rows::Part } else { Rows::Held };
            return Value { rows, ..whole.unwrap_or_default() };
        }
        let mut value = base;
        for index in indices {
            let chosen = self.value(index);
            if chosen.is_index && matches!(base.rows, Rows::All | Rows::Mixed) {
                value.rows = chosen.rows;
            }
            match index.kind() {
                "string" | "list" => {
                    let named = strings(self.source, index);
                    value.has_target = base.has_target
                        && named.iter().any(|it| self.is_target(it))
                        && named.len() > 1;
                }
                "identifier" if !chosen.is_index => {
                    value.has_target = base.has_target && chosen.has_target
                }
                // `y[part.index]` has the rows of `part`, whatever they are.
                "attribute" if text(self.source, index).ends_with(".index") => {
                    let other = index.child_by_field_name("object");
                    value.rows = other.map(|it| self.value(it).rows).unwrap_or_default();
                }
                "list_comprehension" | "binary_operator" => value.has_target = chosen.has_target,
                "slice" if base.rows == Rows::Mixed => {
                    let from_start = text(self.source, index).trim_start().starts_with(':');
                    value.rows = if from_start { Rows::All } else { Rows::Test };
                }
                _ => {}
            }
        }
        value
    }

    /// What a call gives.
    pub(super) fn result(&self, call: Node<'a>) -> Value {
        let name = called(self.source, call);
        let arguments = positional(call);
        match name {
            "read_csv" | "read_parquet" | "read_table" | "read_feather" | "read_excel" => {
                let path = strings(self.source, call).concat().to_lowercase();
                if path.contains("sample") || path.contains("submission") {
                    Value::default()
                } else if path.contains("test") && !path.contains("train") {
                    Value::of(Rows::Test)
                } else {
                    Value { has_target: true, ..Value::of(Rows::All) }
                }
            }
            "concat" | "vstack" | "append" | "concatenate" | "hstack" => {
                let parts: Vec<Value> = all(call)
                    .into_iter()
                    .filter(|it| it.kind() == "list" || it.kind() == "tuple")
                    .take(1)
                    .flat_map(children)
                    .map(|it| self.value(it))
                    .collect();
                let has = |rows: Rows| parts.iter().any(|it| it.rows == rows);
                let joined = parts.iter().copied().reduce(Value::join).unwrap_or_default();
                let across = keyword(self.source, call, "axis").is_some() || name == "hstack";
                if has(Rows::Part) && has(Rows::Held) && !across {
                    Value { rows: Rows::All, ..joined }
                } else {
                    joined
                }
            }
            "len" | "range" | "print" | "unique" | "nunique" => Value::default(),
            _ => {
                let base = receiver(call).map(|it| self.value(it)).unwrap_or_default();
                if self.is_aggregate(call) && base.rows != Rows::Unknown {
                    return Value { is_statistic: true, has_target: false, ..base };
                }
                if base.is_statistic {
                    return base;
                }
                if name == "drop" || name == "difference" {
                    let gone = self.drops_target(call);
                    return Value { has_target: base.has_target && !gone, ..base };
                }
                let values: Vec<Value> = arguments.iter().map(|it| self.value(*it)).collect();
                let known =
                    call.child_by_field_name("function").is_some_and(|it| it.kind() == "attribute");
                let joined = match known {
                    true => values.into_iter().reduce(Value::join).unwrap_or_default(),
                    // A function of the script: what it is given first is most often what it gives.
                    false => values.first().copied().unwrap_or_default(),
                };
                if base.rows == Rows::Unknown {
                    joined
                } else {
                    Value { has_target: base.has_target, ..base }
                }
            }
        }
    }

    pub(super) fn drops_target(&self, call: Node<'a>) -> bool {
        let Some(arguments) = call.child_by_field_name("arguments") else { return false };
        let named = strings(self.source, arguments).iter().any(|it| self.is_target(it));
        // A variable may well hold the name of the target.
        let variable = all(arguments).into_iter().any(|it| {
            it.kind() == "identifier"
                && !it.parent().is_some_and(|parent| {
                    parent.kind() == "keyword_argument"
                        && parent.child_by_field_name("name") == Some(it)
                })
        });
        let unknown =
            self.targets.is_empty() && self.known.as_ref().is_none_or(|it| it.targets.is_empty());
        named || variable || unknown
    }
}
