//! Statistics of all rows that become features.

use tree_sitter::Node;

use super::{Flow, Place, Reason, Rows, Value};
use crate::leaks::syntax::{all, called, keyword, positional, receiver, text};

impl<'a> Flow<'a> {
    /// Statistics of all rows that become features: `x = (x - x.mean()) / x.std()`.
    pub(super) fn statistics(
        &mut self,
        left: Option<Node<'a>>,
        right: Node<'a>,
        statement: Node<'a>,
    ) {
        let aggregates: Vec<Node<'a>> =
            all(right).into_iter().filter(|it| self.is_aggregate(*it)).collect();
        let rows = |flow: &Self, node: &Node<'a>| {
            receiver(*node).map(|it| flow.value(it).rows).unwrap_or_default()
        };
        let extremes = aggregates
            .iter()
            .filter(|it| matches!(called(self.source, **it), "min" | "max"))
            .count();
        let bad = |it: &&Node<'a>| {
            let rows = rows(self, it);
            let weak = matches!(called(self.source, **it), "min" | "max") && extremes < 2;
            !weak
                && (rows == Rows::Mixed
                    || rows == Rows::Test
                    || (rows == Rows::All && self.is_before_split(statement)))
        };
        let own: Vec<Node<'a>> = aggregates.iter().filter(bad).copied().collect();
        let remembered = |it: &Node<'a>| {
            let value = self.values.get(text(self.source, *it)).copied().unwrap_or_default();
            it.kind() == "identifier"
                && value.is_statistic
                && (value.rows == Rows::Mixed
                    || (value.rows == Rows::All && self.is_before_split(statement)))
        };
        let remembered: Vec<Node<'a>> = all(right).into_iter().filter(remembered).collect();
        if own.is_empty() && remembered.is_empty() {
            return;
        }
        // It must go into rows that are learnt from: a column, or the table itself.
        let into = match left {
            Some(left) if left.kind() == "subscript" => {
                left.child_by_field_name("value").map(|it| self.value(it)).unwrap_or_default()
            }
            Some(_) => self.outside_aggregates(right, &aggregates),
            None if matches!(
                called(self.source, right),
                "fillna" | "clip" | "replace" | "insert"
            ) =>
            {
                receiver(right).map(|it| self.value(it)).unwrap_or_default()
            }
            None => Value::default(),
        };
        let learns =
            matches!(into.rows, Rows::All | Rows::Mixed | Rows::Part) && !into.is_statistic;
        if learns {
            let own = own.iter().filter_map(|it| self.root(*it)).map(|it| self.place(it));
            let earlier =
                remembered.iter().filter_map(|it| self.sources.get(text(self.source, *it)));
            let places: Vec<Place> = own.chain(earlier.flatten().cloned()).collect();
            let why = "a statistic of all rows becomes a feature before they are split";
            self.report(statement, Reason::Statistic, places, why);
        }
    }

    /// The name that a chain of calls, columns and attributes begins with.
    pub(super) fn root(&self, node: Node<'a>) -> Option<Node<'a>> {
        let mut node = node;
        while node.kind() != "identifier" {
            node = match node.kind() {
                "call" => node.child_by_field_name("function")?,
                "attribute" => node.child_by_field_name("object")?,
                "subscript" => node.child_by_field_name("value")?,
                _ => return None,
            };
        }
        Some(node)
    }

    /// What a statement uses besides its aggregates.
    pub(super) fn outside_aggregates(&self, right: Node<'a>, aggregates: &[Node<'a>]) -> Value {
        let inside = |it: &Node<'a>| {
            aggregates.iter().any(|call| {
                call.byte_range().contains(&it.start_byte())
                    && receiver(*call).is_some_and(|receiver| {
                        it.end_byte() <= receiver.end_byte()
                            && receiver.start_byte() <= it.start_byte()
                    })
            })
        };
        let mut joined = Value::default();
        for node in all(right).into_iter().filter(|it| it.kind() == "identifier") {
            let counted = node.parent().and_then(|it| it.parent()).is_some_and(|it| {
                it.kind() == "call" && matches!(called(self.source, it), "len" | "print" | "range")
            });
            if inside(&node) || counted {
                continue;
            }
            let value = self.values.get(text(self.source, node)).copied().unwrap_or_default();
            if !value.is_statistic {
                joined = joined.join(value);
            }
        }
        joined
    }

    /// Whether a call sums up rows, not columns.
    pub(super) fn is_aggregate(&self, node: Node<'a>) -> bool {
        if node.kind() != "call" || receiver(node).is_none() {
            return false;
        }
        let across = keyword(self.source, node, "axis").map(|it| text(self.source, it));
        if across.is_some_and(|it| it.contains('1') || it.contains("columns")) {
            return false;
        }
        let summing = ["mean", "median", "std", "var", "sum", "target", "max", "min"];
        match called(self.source, node) {
            "mean" | "median" | "std" | "var" | "mode" | "corr" | "corrwith" | "min" | "max"
            | "rank" => true,
            "quantile" => node.parent().is_some_and(|it| it.kind() == "argument_list"),
            "transform" | "agg" | "aggregate" => {
                let grouped =
                    receiver(node).is_some_and(|it| text(self.source, it).contains("groupby"));
                let how = positional(node).first().map_or("", |it| text(self.source, *it));
                grouped && summing.iter().any(|it| how.contains(it))
            }
            _ => false,
        }
    }
}
