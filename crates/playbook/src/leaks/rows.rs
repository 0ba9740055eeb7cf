//! Follows rows through a script, and notices where something is learnt from the wrong ones.

mod fits;
mod splits;
mod statistics;
mod value;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use tree_sitter::Node;

use super::Leak;
use super::syntax::{
    all, called, children, lines, names, positional, receiver, string, strings, text,
};

/// Nobody nests statements deeper, and the walk recurses.
const MAX_DEPTH: usize = 100;

/// A leak, with what a correction has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Culprit {
    pub(super) leak: Leak,
    pub(super) reason: Reason,
    /// Where the statement stands.
    pub(super) at: Range<usize>,
    /// The expressions that hold the wrong rows.
    pub(super) places: Vec<Place>,
}

/// What kind of leak it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// Preparation is fitted on the wrong rows.
    Prepared,
    /// A statistic of the wrong rows becomes a feature.
    Statistic,
    /// A model is judged by rows that it was fitted on.
    Judged,
    /// The target is among the features.
    TargetLeft,
    /// A feature is computed from the target.
    FromTarget,
    /// Copies of rows come to stand on both sides of the split.
    Repeated,
}

/// An expression and the rows that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) range: Range<usize>,
    pub(super) rows: Rows,
}

/// Which rows a value holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Rows {
    #[default]
    Unknown,
    Test,
    /// The training part of a split, or the numbers of its rows.
    Part,
    /// The held-out part.
    Held,
    /// All labelled rows.
    All,
    /// Labelled and test rows together.
    Mixed,
}

/// What is known about a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Value {
    rows: Rows,
    /// Whether the target is one of its columns.
    has_target: bool,
    /// Whether it is a statistic of its rows rather than the rows.
    is_statistic: bool,
    /// Whether it is the numbers of rows.
    is_index: bool,
    /// The parameter of the function around it that it was made from, by its place.
    parameter: Option<usize>,
}

impl Value {
    fn of(rows: Rows) -> Self {
        Self { rows, ..Self::default() }
    }

    fn join(self, other: Self) -> Self {
        let rows = match (self.rows.min(other.rows), self.rows.max(other.rows)) {
            (Rows::Test, Rows::Part | Rows::Held | Rows::All | Rows::Mixed) => Rows::Mixed,
            (_, more) => more,
        };
        Self {
            rows,
            has_target: self.has_target || other.has_target,
            is_statistic: self.is_statistic && other.is_statistic,
            is_index: false,
            parameter: self.parameter.or(other.parameter),
        }
    }
}

/// A walk through a script.
pub(super) struct Flow<'a> {
    source: &'a str,
    values: HashMap<&'a str, Value>,
    /// What class an object is of, and the rows and the statement it was last fitted on.
    classes: HashMap<&'a str, &'a str>,
    fitted: HashMap<&'a str, (Rows, usize, usize)>,
    /// Functions that split rows inside.
    splitting: HashSet<&'a str>,
    /// Functions that learn from one of their parameters, and which.
    learning: HashSet<(&'a str, usize)>,
    /// The function that is being walked through.
    function: Option<&'a str>,
    /// The columns that are predicted, and columns that are made from them.
    targets: HashSet<&'a str>,
    last_split: Option<usize>,
    /// What the pass before found out.
    known: Option<Known<'a>>,
    /// From which expressions the statistics that names hold were taken.
    sources: HashMap<&'a str, Vec<Place>>,
    found: Vec<Culprit>,
}

struct Known<'a> {
    last_split: Option<usize>,
    targets: HashSet<&'a str>,
    splitting: HashSet<&'a str>,
    learning: HashSet<(&'a str, usize)>,
}

impl<'a> Flow<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self {
            source,
            values: HashMap::new(),
            classes: HashMap::new(),
            fitted: HashMap::new(),
            splitting: HashSet::new(),
            learning: HashSet::new(),
            function: None,
            targets: HashSet::new(),
            last_split: None,
            known: None,
            sources: HashMap::new(),
            found: Vec::new(),
        }
    }

    /// A second walk that knows what this one found out.
    pub(super) fn again(self) -> Self {
        let Self { source, last_split, targets, splitting, learning, .. } = self;
        let known = Known { last_split, targets, splitting, learning };
        Self { known: Some(known), ..Self::new(source) }
    }

    /// What was found, in the order of the script.
    pub(super) fn found(mut self) -> Vec<Culprit> {
        self.found.sort_by_key(|it| it.at.start);
        self.found.dedup_by(|a, b| a.leak.block == b.leak.block);
        self.found
    }

    /// The columns that are predicted.
    pub(super) fn targets(&self) -> Vec<&'a str> {
        let known = self.known.iter().flat_map(|it| &it.targets);
        let mut targets: Vec<&str> = self.targets.iter().chain(known).copied().collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    pub(super) fn visit(&mut self, root: Node<'a>) {
        self.statements(root, 0);
    }

    fn statements(&mut self, parent: Node<'a>, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        for node in children(parent) {
            self.statement(node, depth);
        }
    }

    fn statement(&mut self, node: Node<'a>, depth: usize) {
        match node.kind() {
            "expression_statement" => {
                for part in children(node) {
                    match part.kind() {
                        "assignment" | "augmented_assignment" => self.assignment(part, node),
                        _ => self.expression(part, node),
                    }
                }
            }
            "return_statement" => self.expression(node, node),
            "delete_statement" => {
                for target in all(node).into_iter().filter(|it| it.kind() == "subscript") {
                    self.drop_target(target.child_by_field_name("value"));
                }
            }
            "for_statement" => self.for_loop(node, depth),
            "function_definition" => self.function(node, depth),
            "comment" | "import_statement" | "import_from_statement" => {}
            _ => self.statements(node, depth + 1),
        }
    }

    /// A function's own names hide those outside; of its parameters, only their places are known.
    fn function(&mut self, node: Node<'a>, depth: usize) {
        let before = (self.values.clone(), self.fitted.clone());
        let splits = self.last_split;
        self.last_split = None;
        if let Some(parameters) = node.child_by_field_name("parameters") {
            for (place, parameter) in children(parameters).into_iter().enumerate() {
                for name in all(parameter).into_iter().filter(|it| it.kind() == "identifier") {
                    let value = Value { parameter: Some(place), ..Value::default() };
                    self.values.insert(text(self.source, name), value);
                }
            }
        }
        let name = node.child_by_field_name("name").map(|it| text(self.source, it));
        let outer = std::mem::replace(&mut self.function, name);
        if let Some(body) = node.child_by_field_name("body") {
            self.statements(body, depth + 1);
        }
        if let (Some(_), Some(name)) = (self.last_split, node.child_by_field_name("name")) {
            self.splitting.insert(text(self.source, name));
        }
        self.function = outer;
        self.last_split = splits.max(self.last_split);
        (self.values, self.fitted) = before;
    }

    /// `for fold, (fit, valid) in enumerate(folds.split(x, y)):`
    fn for_loop(&mut self, node: Node<'a>, depth: usize) {
        let (left, right) = (node.child_by_field_name("left"), node.child_by_field_name("right"));
        if let (Some(left), Some(right)) = (left, right) {
            self.expression(right, right);
            let names = names(self.source, left);
            if all(right).into_iter().any(|it| self.is_split(it)) {
                // The last two names are the rows, whatever counts before them.
                if let [.., fit, held] = names.as_slice() {
                    self.values.insert(fit, Value { is_index: true, ..Value::of(Rows::Part) });
                    self.values.insert(held, Value { is_index: true, ..Value::of(Rows::Held) });
                }
            } else {
                for name in names {
                    self.values.remove(name);
                }
            }
        }
        self.statements(node, depth + 1);
    }

    fn is_target(&self, column: &str) -> bool {
        self.targets.contains(column)
            || self.known.as_ref().is_some_and(|it| it.targets.contains(column))
    }

    fn report(
        &mut self,
        statement: Node<'a>,
        reason: Reason,
        places: Vec<Place>,
        why: &'static str,
    ) {
        if self.known.is_some() {
            let block = lines(self.source, statement, statement).to_owned();
            let (leak, at) = (Leak { block, why }, statement.byte_range());
            self.found.push(Culprit { leak, reason, at, places });
        }
    }

    /// An expression as the place of a leak.
    fn place(&self, node: Node<'a>) -> Place {
        Place { range: node.byte_range(), rows: self.value(node).rows }
    }

    fn assignment(&mut self, node: Node<'a>, statement: Node<'a>) {
        let Some(left) = node.child_by_field_name("left") else { return };
        let Some(right) = node.child_by_field_name("right") else { return };
        self.expression(right, statement);
        self.statistics(Some(left), right, statement);
        let targets = names(self.source, left);
        if targets.iter().any(|name| is_y(name)) && targets.len() == 1 {
            self.learn_target(right);
        }
        if let ([name], true) = (targets.as_slice(), right.kind() == "string") {
            // TARGET = "price"
            if name.to_lowercase().contains("target") || *name == "LABEL" {
                self.targets.extend(string(self.source, right));
            }
        }
        if left.kind() == "subscript" {
            self.column(left, right, statement);
            return;
        }
        let split = all(right).into_iter().find(|it| self.is_split(*it));
        if let (Some(split), true) = (split, targets.len() > 1) {
            self.split_into(&targets, split);
            return;
        }
        if let ("tuple" | "expression_list", true) = (right.kind(), targets.len() > 1) {
            let parts = children(right);
            if parts.len() == targets.len() {
                for (name, part) in targets.iter().zip(parts) {
                    let value = self.value(part);
                    self.bind(name, value, part, statement);
                }
                return;
            }
        }
        // What each of several results of an unknown function holds cannot be told.
        let value = if targets.len() > 1 { Value::default() } else { self.value(right) };
        for name in targets {
            self.bind(name, value, right, statement);
        }
    }

    fn bind(&mut self, name: &'a str, value: Value, right: Node<'a>, statement: Node<'a>) {
        let value = self.named_part(name, value, right);
        self.values.insert(name, value);
        self.sources.remove(name);
        if value.is_statistic {
            let aggregates = all(right).into_iter().filter(|it| self.is_aggregate(*it));
            let sources = aggregates.filter_map(|it| self.root(it)).map(|it| self.place(it));
            let sources = sources.collect();
            self.sources.insert(name, sources);
        }
        if right.kind() != "call" {
            return;
        }
        match called(self.source, right) {
            // `model = LogisticRegression().fit(x, y)`
            "fit" | "train" => {
                let class = receiver(right).filter(|it| it.kind() == "call");
                if let Some(class) = class {
                    self.classes.insert(name, called(self.source, class));
                }
                let first = if called(self.source, right) == "train" { 1 } else { 0 };
                if let Some(rows) = positional(right).get(first) {
                    let rows = self.value(*rows).rows;
                    self.fitted.insert(name, (rows, statement.start_byte(), statement.end_byte()));
                }
            }
            class => {
                self.classes.insert(name, class);
                self.fitted.remove(name);
            }
        }
    }

    /// `y = data["price"]`, `y = data.pop("price")`
    fn learn_target(&mut self, right: Node<'a>) {
        for node in all(right) {
            match node.kind() {
                "subscript" => {
                    let index = node.child_by_field_name("subscript");
                    self.targets.extend(index.and_then(|it| string(self.source, it)));
                }
                "call" if called(self.source, node) == "pop" => {
                    let first = positional(node).first().copied();
                    self.targets.extend(first.and_then(|it| string(self.source, it)));
                }
                "attribute" if node == right => {
                    let name =
                        node.child_by_field_name("attribute").map(|it| text(self.source, it));
                    self.targets.extend(name.filter(|it| *it != "values"));
                }
                _ => {}
            }
        }
    }

    /// `data["x"] = ...`
    fn column(&mut self, left: Node<'a>, right: Node<'a>, statement: Node<'a>) {
        let index = left.child_by_field_name("subscript");
        let Some(column) = index.and_then(|it| string(self.source, it)) else { return };
        let base = left.child_by_field_name("value").map(|it| self.value(it)).unwrap_or_default();
        let aggregated = all(right).into_iter().any(|it| {
            it.kind() == "call"
                && matches!(called(self.source, it), "groupby" | "transform" | "map")
        });
        let from_target = all(right).into_iter().any(|it| {
            it.kind() == "subscript"
                && it
                    .child_by_field_name("subscript")
                    .and_then(|it| string(self.source, it))
                    .is_some_and(|it| self.is_target(it))
        });
        if !from_target || aggregated || self.is_target(column) || base.rows == Rows::Unknown {
            return;
        }
        // Harmless if it is put aside again, or is what is predicted.
        let mentions = self.source.matches(column).count();
        let put_aside = self.known.is_some() && self.is_put_aside(column, statement);
        if !put_aside && mentions > 0 {
            let why = "a feature is computed from the target";
            self.report(statement, Reason::FromTarget, Vec::new(), why);
        }
    }

    /// Whether a column is dropped somewhere, or all features are listed and it is not.
    fn is_put_aside(&self, column: &str, statement: Node<'a>) -> bool {
        let mut root = statement;
        while let Some(parent) = root.parent() {
            root = parent;
        }
        let nodes = all(root);
        let dropped = nodes.iter().any(|it| {
            it.kind() == "call"
                && matches!(called(self.source, *it), "drop" | "pop" | "remove" | "difference")
                && strings(self.source, *it).contains(&column)
        });
        let excluded = nodes.iter().any(|it| {
            matches!(it.kind(), "comparison_operator" | "if_clause")
                && strings(self.source, *it).contains(&column)
        });
        let drops =
            nodes.iter().any(|it| it.kind() == "call" && called(self.source, *it) == "drop");
        let listed = nodes
            .iter()
            .any(|it| it.kind() == "list" && strings(self.source, *it).contains(&column));
        dropped || excluded || (!drops && !listed)
    }

    fn drop_target(&mut self, frame: Option<Node<'a>>) {
        let Some(frame) = frame.filter(|it| it.kind() == "identifier") else { return };
        if let Some(value) = self.values.get_mut(text(self.source, frame)) {
            value.has_target = false;
        }
    }

    /// Looks at every call in an expression.
    fn expression(&mut self, node: Node<'a>, statement: Node<'a>) {
        for call in all(node).into_iter().filter(|it| it.kind() == "call") {
            if self.is_split(call) {
                self.note_split(call);
            }
            self.call(call, statement);
        }
        if node.kind() == "call" && statement.kind() == "expression_statement" {
            self.statistics(None, node, statement);
        }
    }
}

/// Whether a name is that of the target.
fn is_y(name: &str) -> bool {
    let lower = name.to_lowercase();
    lower == "y"
        || lower.starts_with("y_")
        || matches!(lower.as_str(), "target" | "labels" | "label")
}
