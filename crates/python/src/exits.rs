//! Which calls in a script would end the interpreter.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use tree_sitter::{Node, Tree};

use crate::lexical;
use crate::reading::{Below, Reading, children, line, read, text, unified_line_ends, walk};

/// A call that ends the interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitCall {
    /// The call as the script spells it, without arguments, such as `sys.exit()`.
    pub call: String,
    /// Its line, counted from 1.
    pub line: usize,
}

/// The calls that would end the interpreter: `exit()`, `quit()`, `sys.exit()` and `os._exit()`,
/// also under the names an `import` or a plain assignment gives them.
///
/// Names are resolved for the script as a whole, not per scope: a script that defines its own
/// `exit` anywhere is taken to mean its own. `raise SystemExit` is not a call and not listed.
///
/// In a source that does not parse, or is too large to be read, the same calls are looked for by
/// their spelling in the text without strings and comments.
pub fn exit_calls(source: &str) -> Vec<ExitCall> {
    match read(source) {
        Reading::Parsed(tree) => called(source, &tree),
        Reading::Broken(_) | Reading::Unread => spelled(source),
    }
}

/// The functions that end the interpreter, by module. `exit` and `quit` need no import.
const EXITS: [(&str, &str); 4] =
    [("builtins", "exit"), ("builtins", "quit"), ("sys", "exit"), ("os", "_exit")];

/// What the names of a script stand for, as far as ending the interpreter goes.
struct Names<'a> {
    /// Names of `sys`, `os` and `builtins`.
    modules: HashMap<&'a str, &'a str>,
    /// Names that can be called to exit.
    exits: HashSet<&'a str>,
    /// Names that the script gives another meaning.
    own: HashSet<&'a str>,
}

fn called(source: &str, tree: &Tree) -> Vec<ExitCall> {
    let names = Names::of(source, tree);
    let mut calls = Vec::new();
    walk(tree.root_node(), |node, _| {
        let function = node.child_by_field_name("function").filter(|_| node.kind() == "call");
        if let Some(function) = function
            && names.exits(source, function)
        {
            let spelling: String = text(source, function).split_whitespace().collect();
            calls.push(ExitCall { call: format!("{spelling}()"), line: line(node) });
        }
        ControlFlow::Continue(Below::Visit)
    });
    calls
}

impl<'a> Names<'a> {
    fn of(source: &'a str, tree: &Tree) -> Self {
        let mut names = Self {
            modules: HashMap::from([("sys", "sys"), ("os", "os"), ("builtins", "builtins")]),
            exits: HashSet::new(),
            own: HashSet::new(),
        };
        let mut assigned = Vec::new();
        walk(tree.root_node(), |node, ancestors| {
            match node.kind() {
                "import_statement" => names.import(source, node),
                "import_from_statement" => names.import_from(source, node),
                "function_definition" | "class_definition" if !is_method(ancestors) => {
                    if let Some(name) = node.child_by_field_name("name") {
                        names.own.insert(text(source, name));
                    }
                }
                "assignment" => {
                    let left = node.child_by_field_name("left");
                    let right = node.child_by_field_name("right");
                    if let Some(left) = left.filter(|left| left.kind() == "identifier") {
                        assigned.push((text(source, left), right));
                    }
                }
                _ => {}
            }
            ControlFlow::Continue(Below::Visit)
        });
        // `bye = sys.exit` needs the imports, wherever they stand. A chain of assignments is
        // followed in the order it is written.
        for (name, right) in assigned {
            if right.is_some_and(|right| names.exits(source, right)) {
                names.exits.insert(name);
            } else {
                names.own.insert(name);
            }
        }
        names
    }

    fn import(&mut self, source: &'a str, node: Node<'_>) {
        for (name, alias) in imported(source, node) {
            if matches!(name, "sys" | "os" | "builtins") {
                self.modules.insert(alias, name);
            }
        }
    }

    fn import_from(&mut self, source: &'a str, node: Node<'_>) {
        let module = node.child_by_field_name("module_name").map_or("", |node| text(source, node));
        for (name, alias) in imported(source, node) {
            if EXITS.contains(&(module, name)) {
                self.exits.insert(alias);
            } else {
                self.own.insert(alias);
            }
        }
        if module == "os" && children(node).iter().any(|child| child.kind() == "wildcard_import") {
            self.exits.insert("_exit");
        }
    }

    fn exits(&self, source: &str, function: Node<'_>) -> bool {
        match function.kind() {
            "identifier" => {
                let name = text(source, function);
                let builtin = matches!(name, "exit" | "quit") && !self.own.contains(name);
                builtin || self.exits.contains(name)
            }
            "attribute" => {
                let module = function.child_by_field_name("object");
                let name = function.child_by_field_name("attribute");
                let (Some(module), Some(name)) = (module, name) else { return false };
                self.modules
                    .get(text(source, module))
                    .is_some_and(|module| EXITS.contains(&(*module, text(source, name))))
            }
            _ => false,
        }
    }
}

/// What an import brings in, with the name it goes by.
fn imported<'a>(source: &'a str, node: Node<'_>) -> Vec<(&'a str, &'a str)> {
    node.children_by_field_name("name", &mut node.walk())
        .filter_map(|name| match name.kind() {
            "aliased_import" => {
                let alias = name.child_by_field_name("alias")?;
                let name = name.child_by_field_name("name")?;
                Some((text(source, name), text(source, alias)))
            }
            _ => Some((text(source, name), text(source, name))),
        })
        .collect()
}

/// Whether a definition stands in a class, where its name is no name of the script's.
fn is_method(ancestors: &[Node<'_>]) -> bool {
    ancestors
        .iter()
        .rev()
        .map(|node| node.kind())
        .find(|kind| !matches!(*kind, "block" | "decorated_definition"))
        == Some("class_definition")
}

/// The calls by their spelling, for a source that no tree could be had of. Methods of other
/// things (`parser.exit()`) and definitions (`def exit()`) are told apart here too.
fn spelled(source: &str) -> Vec<ExitCall> {
    let blanked = lexical::scan(&unified_line_ends(source)).blanked;
    let mut calls = Vec::new();
    for (index, code) in blanked.split(|byte| *byte == b'\n').enumerate() {
        let mut at = 0;
        let mut before: Vec<&[u8]> = Vec::new();
        while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
            let length = rest.iter().take_while(|byte| is_name(**byte)).count().max(1);
            let token = rest.get(..length).unwrap_or_default();
            at += length;
            if token.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if token == b"("
                && let Some(call) = exit_spelled(&before)
            {
                calls.push(ExitCall { call: call.to_owned(), line: index + 1 });
            }
            // The longest spelling is `def exit` or `os . _exit`, after one token of context.
            if before.len() == 3 {
                before.remove(0);
            }
            before.push(token);
        }
    }
    calls
}

fn exit_spelled(before: &[&[u8]]) -> Option<&'static str> {
    match before {
        [.., b"sys", b".", b"exit"] => Some("sys.exit()"),
        [.., b"os", b".", b"_exit"] => Some("os._exit()"),
        [.., b"." | b"def", _] => None,
        [.., b"exit"] => Some("exit()"),
        [.., b"quit"] => Some("quit()"),
        _ => None,
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
