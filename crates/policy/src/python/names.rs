//! What names stand for: modules, functions, and values.

use tree_sitter::Node;

use super::calls::{CALLS, RUNS, SHELLS, starts_programs};
use super::values::{Asked, Wanted};
use super::{Reading, children};
use crate::text::Text;

/// A name has one of these values from one place of the source to another.
#[derive(Debug)]
pub(super) struct Bound {
    from: usize,
    until: usize,
    values: Vec<Text>,
}

/// Modules whose functions write, under names that others have as well.
const OF_FILES: &[&str] = &["os", "shutil", "numpy", "torch", "joblib", "pickle", "pathlib"];

/// Code that takes more to be understood is denied.
pub(super) const MOST_WORK: usize = 8 << 20;

/// Longer names are not worked out.
const MOST_DOTS: u32 = 20;
/// Longer expressions are no names. Copies of each part of a long one would take minutes.
const LONGEST: usize = 1000;

impl<'a> Reading<'a> {
    pub(super) fn import(&mut self, node: Node<'_>) {
        let from = match node.kind() {
            "import_statement" => String::new(),
            "import_from_statement" => {
                let module = node.child_by_field_name("module_name");
                format!("{}.", module.map_or("", |it| self.text(it)))
            }
            _ => return,
        };
        if children(node).iter().any(|it| it.kind() == "wildcard_import") {
            self.all_of.push(from.trim_end_matches('.').to_owned());
        }
        let mut cursor = node.walk();
        for name in node.children_by_field_name("name", &mut cursor) {
            let alias = name.child_by_field_name("alias");
            let origin = name.child_by_field_name("name").map_or(name, |it| it);
            let own = alias.unwrap_or(origin);
            self.imports.insert(self.text(own), format!("{from}{}", self.text(origin)));
        }
    }

    /// The full name of what an expression names: `os.system`, also for `getattr(o, "system")`.
    pub(super) fn named(&self, node: Node<'_>) -> String {
        self.full_name(&self.dotted(node, 0))
    }

    /// What a dotted name stands for, with imports taken into account.
    fn full_name(&self, dotted: &str) -> String {
        let (first, rest) = dotted.split_once('.').unwrap_or((dotted, ""));
        match (self.imports.get(first), rest) {
            (Some(origin), "") => origin.clone(),
            (Some(origin), rest) => format!("{origin}.{rest}"),
            (None, "") => self.imported_with_all(first).unwrap_or_else(|| dotted.to_owned()),
            (None, _) => dotted.to_owned(),
        }
    }

    /// `from os import *` brings names that are not written down.
    fn imported_with_all(&self, name: &str) -> Option<String> {
        let known = SHELLS.contains(&name)
            || RUNS.contains(&name)
            || name.starts_with("exec")
            || name.contains("spawn")
            || CALLS.iter().any(|(own, _)| *own == name);
        let is_builtin = ["open", "exec", "eval", "compile"].contains(&name);
        let starts = |module: &&String| starts_programs(&format!("{module}.{name}"));
        let mut of_files = self.all_of.iter().filter(|it| OF_FILES.contains(&it.as_str()));
        let module = self.all_of.iter().find(starts).or_else(|| of_files.next());
        module.filter(|_| known && !is_builtin).map(|module| format!("{module}.{name}"))
    }

    fn dotted(&self, node: Node<'_>, depth: u32) -> String {
        let own = || Some(self.text(node)).filter(|it| it.len() < LONGEST).unwrap_or("").to_owned();
        if depth > MOST_DOTS {
            return own();
        }
        match node.kind() {
            "attribute" => {
                match (node.child_by_field_name("object"), node.child_by_field_name("attribute")) {
                    (Some(object), Some(name)) => {
                        let object = self.full_name(&self.dotted(object, depth + 1));
                        format!("{object}.{}", self.text(name))
                    }
                    _ => own(),
                }
            }
            "parenthesized_expression" => match children(node).first() {
                Some(inner) => self.dotted(*inner, depth + 1),
                None => own(),
            },
            "call" => {
                let function = node.child_by_field_name("function").map(|it| self.text(it));
                let given = node.child_by_field_name("arguments").map(children).unwrap_or_default();
                let string = |index: usize| {
                    let text = given.get(index).map(|it| self.value(*it, Asked::certain()))?;
                    text.as_literal().map(str::to_owned)
                };
                match (function, given.first()) {
                    (Some("getattr"), Some(object)) => match string(1) {
                        Some(name) => {
                            let object = self.full_name(&self.dotted(*object, depth + 1));
                            format!("{object}.{name}")
                        }
                        None => own(),
                    },
                    (Some("__import__" | "importlib.import_module" | "import_module"), _) => {
                        string(0).unwrap_or_else(own)
                    }
                    _ => own(),
                }
            }
            _ => own(),
        }
    }

    /// A function that starts programs is named, but not called: whoever gets it may call it.
    pub(super) fn passes_on(&self, node: Node<'_>) -> bool {
        if !matches!(node.kind(), "attribute" | "identifier") || !starts_programs(&self.named(node))
        {
            return false;
        }
        let Some(parent) = node.parent() else { return false };
        let is = |field: &str| parent.child_by_field_name(field).is_some_and(|it| it == node);
        match parent.kind() {
            "call" => !is("function"),
            "attribute" => !is("attribute"),
            "keyword_argument" => !is("name"),
            // That gives it another name, which is known.
            "assignment" => {
                let left = parent.child_by_field_name("left");
                !is("left") && left.is_some_and(|it| it.kind() != "identifier")
            }
            "dotted_name"
            | "aliased_import"
            | "import_from_statement"
            | "function_definition"
            | "parameters"
            | "default_parameter"
            | "type"
            | "expression_statement" => false,
            _ => true,
        }
    }

    /// Takes down what a node gives a name to.
    pub(super) fn bind(&mut self, node: Node<'_>) {
        let field = |name| node.child_by_field_name(name);
        match node.kind() {
            "assignment" => {
                if let (Some(left), Some(right)) = (field("left"), field("right")) {
                    self.alias(left, right);
                    if let Some(name) = left.child_by_field_name("attribute") {
                        self.attribute(name, right);
                    }
                    self.bind_all(left, &[right], node.end_byte(), usize::MAX);
                }
            }
            "pair" => {
                if let (Some(key), Some(value)) = (field("key"), field("value"))
                    && key.kind() == "string"
                {
                    let value = self.value(value, Asked::likely());
                    self.attributes.entry(self.key(key)).or_default().push(value);
                }
            }
            "named_expression" => {
                if let (Some(name), Some(value)) = (field("name"), field("value")) {
                    self.bind_all(name, &[value], value.end_byte(), usize::MAX);
                }
            }
            "augmented_assignment" => {
                if let Some(left) = field("left") {
                    self.bind_all(left, &[], node.end_byte(), usize::MAX);
                }
            }
            "for_statement" => self.bind_each(node, usize::MAX, None),
            "list_comprehension"
            | "set_comprehension"
            | "dictionary_comprehension"
            | "generator_expression" => {
                // What is said of each comes before the loop.
                for clause in children(node).into_iter().filter(|it| it.kind() == "for_in_clause") {
                    self.bind_each(clause, node.end_byte(), Some(node.start_byte()));
                }
            }
            "function_definition" | "lambda" => {
                let parameters = field("parameters").map(children).unwrap_or_default();
                for parameter in parameters {
                    let name = parameter.child_by_field_name("name");
                    let name = name.or_else(|| children(parameter).first().copied());
                    let default = parameter.child_by_field_name("value");
                    let name = name.unwrap_or(parameter);
                    self.bind_all(name, default.as_slice(), parameter.end_byte(), node.end_byte());
                    // The default is not all that it may be.
                    if default.is_some() {
                        self.bind_all(name, &[], 0, 0);
                    }
                }
            }
            "class_definition" => {
                let statements = field("body").map(children).unwrap_or_default();
                for assignment in statements.into_iter().flat_map(children) {
                    let field = |name| assignment.child_by_field_name(name);
                    if let ("assignment", Some(left), Some(right)) =
                        (assignment.kind(), field("left"), field("right"))
                        && left.kind() == "identifier"
                    {
                        self.attribute(left, right);
                    }
                }
            }
            "as_pattern_target" => {
                if let Some(name) = children(node).first() {
                    self.bind_all(*name, &[], node.end_byte(), usize::MAX);
                }
            }
            _ => {}
        }
    }

    /// `for name in (…)`: one of several values, if they are written down.
    fn bind_each(&mut self, node: Node<'_>, until: usize, from: Option<usize>) {
        let field = |name| node.child_by_field_name(name);
        if let (Some(left), Some(right)) = (field("left"), field("right")) {
            let is_list = matches!(right.kind(), "list" | "tuple" | "set" | "expression_list");
            let values = if is_list { children(right) } else { Vec::new() };
            self.bind_all(left, &values, from.unwrap_or(right.end_byte()), until);
        }
    }

    /// A string as it stands between its quotes.
    pub(super) fn key(&self, string: Node<'_>) -> &'a str {
        self.text(string).trim_matches(['\'', '"'])
    }

    /// A name, or several, stands for one of these from here to there; for anything if there are none.
    fn bind_all(&mut self, left: Node<'_>, values: &[Node<'_>], from: usize, until: usize) {
        if left.kind() == "identifier" {
            let mut texts: Vec<Text> =
                values.iter().map(|it| self.value(*it, Asked::likely())).collect();
            if texts.is_empty() {
                texts.push(Text::any());
            }
            let bound = Bound { from, until, values: texts };
            self.names.entry(self.text(left)).or_default().push(bound);
            return;
        }
        if !matches!(left.kind(), "pattern_list" | "tuple_pattern" | "list_pattern") {
            return;
        }
        let names = children(left);
        for (index, name) in names.iter().enumerate() {
            let own: Option<Vec<Node<'_>>> = values
                .iter()
                .map(|value| match value.kind() {
                    "tuple" | "list" | "expression_list" => {
                        let items = children(*value);
                        items.get(index).copied().filter(|_| items.len() == names.len())
                    }
                    _ => None,
                })
                .collect();
            if name.kind() == "identifier" {
                self.bind_all(*name, &own.unwrap_or_default(), from, until);
            }
        }
    }

    /// `f = os.system`: another name for what starts programs or writes.
    fn alias(&mut self, left: Node<'_>, right: Node<'_>) {
        if left.kind() != "identifier"
            || !matches!(right.kind(), "attribute" | "identifier" | "call")
        {
            return;
        }
        let full = self.named(right);
        let last = full.rsplit('.').next().unwrap_or_default();
        let is_module = ["os", "subprocess", "shutil", "pty", "asyncio"].contains(&full.as_str());
        let writes = right.kind() != "call" && CALLS.iter().any(|(own, _)| *own == last);
        if is_module || writes || starts_programs(&full) {
            self.imports.insert(self.text(left), full);
        }
    }

    /// `self.folder = "x"`, or `folder = "x"` in a class.
    fn attribute(&mut self, name: Node<'_>, value: Node<'_>) {
        let value = self.value(value, Asked::likely());
        self.attributes.entry(self.text(name)).or_default().push(value);
    }

    /// What a name stands for at a place of the source.
    pub(super) fn value_of(&self, name: &str, at: usize, wanted: Wanted) -> Text {
        let Some(bound) = self.names.get(name) else { return Text::any() };
        if !self.may_go_on(bound.len()) {
            return Text::any();
        }
        let mut all = bound.iter().flat_map(|it| &it.values);
        let first = all.next();
        let value = if let (Some(only), true) = (first, all.all(|it| Some(it) == first)) {
            only.clone()
        } else {
            let here =
                bound.iter().filter(|it| it.from <= at && at < it.until).max_by_key(|it| it.from);
            match (wanted, here) {
                (Wanted::Certain, _) | (_, None) => Text::any(),
                (Wanted::Likely, Some(here)) => furthest(&here.values),
            }
        };
        if self.may_go_on(value.size()) { value } else { Text::any() }
    }

    /// Counts what is looked at and put in for names: with each line that says `x = x + x` it would
    /// be twice as much.
    fn may_go_on(&self, more: usize) -> bool {
        self.work.set(self.work.get().saturating_add(more));
        self.work.get() <= MOST_WORK
    }

    /// What an attribute of whatever object is, if all that have it agree.
    pub(super) fn value_of_attribute(&self, name: &str, wanted: Wanted) -> Text {
        let Some([first, rest @ ..]) = self.attributes.get(name).map(Vec::as_slice) else {
            return Text::any();
        };
        let is_worth_it = wanted == Wanted::Likely && self.may_go_on(rest.len() + first.size());
        if is_worth_it && rest.iter().all(|it| it == first) { first.clone() } else { Text::any() }
    }
}

/// The one of several values that seems to lead away, if one does.
pub(super) fn furthest(values: &[Text]) -> Text {
    let leads_away =
        |text: &&Text| text.prefix().starts_with(['/', '~']) || text.prefix().starts_with("..");
    let furthest = values.iter().find(leads_away).or_else(|| values.first());
    furthest.cloned().unwrap_or_else(Text::any)
}
