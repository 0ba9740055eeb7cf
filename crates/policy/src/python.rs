//! What a piece of Python would change, as far as it names its paths.
//!
//! Calls that write, remove, or start programs are found by the last name of what is called
//! (`open`, `to_csv`, `rmtree`, `system`), and their paths are worked out from strings, constants,
//! `os.path.join`, `Path(…) / …` and f-strings. A path that is computed otherwise is not known, and
//! left to the sandbox. A program that is computed is denied: it could be any.

use std::collections::BTreeMap;
use std::path::Path;

use tree_sitter::Node;

use crate::text::{Piece, Text};
use crate::{Denial, Judged};

/// Something that running the source would do, or mention.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Something is written, made or removed here.
    Writes(Text),
    /// A string that may be a path.
    Names(Text),
    RunsShell(Text),
    Runs(Vec<Text>),
    RunsPython(Text),
}

/// Which arguments of a call are written.
#[derive(Debug, Clone, Copy)]
enum Targets {
    First,
    Second,
    All,
    /// What the method is called on, and whatever it is given.
    Receiver,
    /// The first, or the receiver of a method, if a mode says that it is written.
    Opened,
}

const CALLS: &[(&str, Targets)] = &[
    ("open", Targets::Opened),
    ("to_csv", Targets::First),
    ("to_parquet", Targets::First),
    ("to_pickle", Targets::First),
    ("to_json", Targets::First),
    ("to_excel", Targets::First),
    ("to_feather", Targets::First),
    ("to_hdf", Targets::First),
    ("write_csv", Targets::First),
    ("write_parquet", Targets::First),
    ("savefig", Targets::First),
    ("save_model", Targets::First),
    ("save_pretrained", Targets::First),
    ("savez", Targets::First),
    ("savez_compressed", Targets::First),
    ("savetxt", Targets::First),
    ("tofile", Targets::First),
    ("save", Targets::All),
    ("dump", Targets::Second),
    ("copy", Targets::Second),
    ("copy2", Targets::Second),
    ("copyfile", Targets::Second),
    ("copytree", Targets::Second),
    ("copymode", Targets::Second),
    ("move", Targets::All),
    ("rmtree", Targets::First),
    ("make_archive", Targets::First),
    ("unpack_archive", Targets::Second),
    ("extractall", Targets::First),
    ("remove", Targets::First),
    ("unlink", Targets::Receiver),
    ("rmdir", Targets::Receiver),
    ("removedirs", Targets::First),
    ("mkdir", Targets::Receiver),
    ("makedirs", Targets::First),
    ("mknod", Targets::First),
    ("mkfifo", Targets::First),
    ("rename", Targets::Receiver),
    ("renames", Targets::All),
    ("replace", Targets::Receiver),
    ("symlink", Targets::All),
    ("link", Targets::All),
    ("symlink_to", Targets::Receiver),
    ("hardlink_to", Targets::Receiver),
    ("truncate", Targets::First),
    ("chmod", Targets::Receiver),
    ("chown", Targets::First),
    ("touch", Targets::Receiver),
    ("write_text", Targets::Receiver),
    ("write_bytes", Targets::Receiver),
    ("chdir", Targets::First),
    ("urlretrieve", Targets::Second),
];

/// Methods of strings and lists have some of those names too; on these modules they are files.
const AMBIGUOUS: &[&str] =
    &["copy", "move", "remove", "replace", "rename", "save", "dump", "truncate", "link", "touch"];

const SHELLS: &[&str] = &["system", "popen", "getoutput", "getstatusoutput"];
const RUNS: &[&str] = &["run", "call", "check_call", "check_output", "Popen"];

/// All that running the source would do, in the order of the source.
pub(crate) fn effects(source: &str, home: Option<&Path>) -> Judged<Vec<Effect>> {
    let Some(tree) = mle_star_python::tree(source) else {
        return Err(Denial::new("the Python code cannot be read"));
    };
    let mut reading = Reading {
        source,
        home,
        constants: BTreeMap::new(),
        imports: BTreeMap::new(),
        effects: Vec::new(),
    };
    let nodes = all_below(tree.root_node());
    for &node in &nodes {
        reading.import(node);
    }
    for &node in &nodes {
        reading.constant(node);
    }
    for &node in &nodes {
        match node.kind() {
            "call" => reading.call(node),
            "string" => {
                let text = reading.string(node);
                // Only what looks like a path is worth a look at the disk.
                if text.prefix().contains(['/', '.', '~']) && text.prefix().len() < 500 {
                    reading.name(&text);
                }
            }
            _ => {}
        }
    }
    Ok(reading.effects)
}

struct Reading<'a> {
    source: &'a str,
    home: Option<&'a Path>,
    /// Names that are given one value only, as far as it is known.
    constants: BTreeMap<&'a str, Text>,
    /// What names stand for: `sp` for `subprocess`, `rmtree` for `shutil.rmtree`.
    imports: BTreeMap<&'a str, String>,
    effects: Vec<Effect>,
}

impl<'a> Reading<'a> {
    fn text(&self, node: Node<'_>) -> &'a str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    fn import(&mut self, node: Node<'_>) {
        let from = match node.kind() {
            "import_statement" => String::new(),
            "import_from_statement" => {
                let module = node.child_by_field_name("module_name");
                format!("{}.", module.map_or("", |it| self.text(it)))
            }
            _ => return,
        };
        let mut cursor = node.walk();
        for name in node.children_by_field_name("name", &mut cursor) {
            let alias = name.child_by_field_name("alias");
            let origin = name.child_by_field_name("name").map_or(name, |it| it);
            let own = alias.unwrap_or(origin);
            self.imports.insert(self.text(own), format!("{from}{}", self.text(origin)));
        }
    }

    /// What a dotted name stands for, with imports taken into account.
    fn full_name(&self, dotted: &str) -> String {
        let (first, rest) = dotted.split_once('.').unwrap_or((dotted, ""));
        match (self.imports.get(first), rest) {
            (Some(origin), "") => origin.clone(),
            (Some(origin), rest) => format!("{origin}.{rest}"),
            (None, _) => dotted.to_owned(),
        }
    }

    fn constant(&mut self, node: Node<'_>) {
        if node.kind() != "assignment" {
            return;
        }
        let (Some(name), Some(value)) =
            (node.child_by_field_name("left"), node.child_by_field_name("right"))
        else {
            return;
        };
        if name.kind() == "identifier" {
            let value = self.value(value, 0);
            let name = self.text(name);
            let known = self.constants.get(name).is_none_or(|before| *before == value);
            self.constants.insert(name, if known { value } else { Text::any() });
        }
    }

    fn name(&mut self, text: &Text) {
        let expanded = match (text.prefix().strip_prefix('~'), self.home) {
            (Some(rest), Some(home)) if rest.starts_with('/') => {
                let mut expanded = Text::literal(home.to_string_lossy());
                expanded.extend(&text.without_prefix(1));
                expanded
            }
            _ => text.clone(),
        };
        self.effects.push(Effect::Names(expanded));
    }

    fn call(&mut self, node: Node<'_>) {
        let (Some(function), Some(arguments)) =
            (node.child_by_field_name("function"), node.child_by_field_name("arguments"))
        else {
            return;
        };
        let receiver = function.child_by_field_name("object");
        let full = self.full_name(self.text(function));
        let (module, name) = full.rsplit_once('.').unwrap_or(("", &full));
        let arguments = Arguments::read(arguments, self.source);
        let code = arguments.at(0);
        if receiver.is_none() && ["exec", "eval", "compile"].contains(&name) {
            self.effects.extend(code.map(|it| Effect::RunsPython(self.value(it, 0))));
        } else if SHELLS.contains(&name) && !module.is_empty() {
            self.effects.extend(code.map(|it| Effect::RunsShell(self.value(it, 0))));
        } else if RUNS.contains(&name) && module.ends_with("subprocess") {
            self.subprocess(&arguments);
        } else if module == "os"
            && ["exec", "spawn", "posix_spawn"].iter().any(|it| name.starts_with(it))
        {
            self.effects.push(Effect::Runs(vec![Text::any()]));
        } else if let Some((_, targets)) = CALLS.iter().find(|(own, _)| *own == name) {
            let of_files =
                ["os", "shutil", "np", "numpy", "torch", "joblib", "pickle", "Path", "pathlib"]
                    .iter()
                    .any(|it| module.starts_with(it));
            if !AMBIGUOUS.contains(&name) || of_files {
                self.targets(*targets, receiver, &arguments);
            }
        }
    }

    fn subprocess(&mut self, arguments: &Arguments<'_>) {
        let Some(what) = arguments.at(0).or_else(|| arguments.named("args")) else { return };
        if matches!(what.kind(), "list" | "tuple") {
            let mut words = Vec::new();
            for item in children(what) {
                words.push(match self.text(item) {
                    "sys.executable" => Text::literal("python"),
                    _ => self.value(item, 0),
                });
            }
            self.effects.push(Effect::Runs(words));
        } else {
            self.effects.push(Effect::RunsShell(self.value(what, 0)));
        }
    }

    fn targets(&mut self, targets: Targets, receiver: Option<Node<'_>>, arguments: &Arguments<'_>) {
        // A receiver counts if it is a path: `Path("x").mkdir()`, but not `os.mkdir("x")`.
        let path = receiver.map(|it| self.value(it, 0)).filter(|it| !it.prefix().is_empty());
        let mut written: Vec<Text> = Vec::new();
        let named = ["path", "file", "fname", "filename", "dst", "path_or_buf"];
        let first = arguments.at(0).or_else(|| named.iter().find_map(|it| arguments.named(it)));
        match targets {
            Targets::First => written.extend(first.map(|it| self.value(it, 0))),
            Targets::Second => {
                let second = arguments.at(1).or_else(|| arguments.named("dst"));
                written.extend(second.map(|it| self.value(it, 0)));
            }
            Targets::All => {
                written.extend(arguments.positional.iter().map(|it| self.value(*it, 0)))
            }
            Targets::Receiver => match path {
                Some(path) => {
                    written.push(path);
                    written.extend(arguments.at(0).map(|it| self.value(it, 0)));
                }
                None => written.extend(arguments.positional.iter().map(|it| self.value(*it, 0))),
            },
            Targets::Opened => {
                let (file, mode) = match path {
                    Some(path) => (Some(path), arguments.at(0)),
                    None => (first.map(|it| self.value(it, 0)), arguments.at(1)),
                };
                let mode = mode.or_else(|| arguments.named("mode")).map(|it| self.value(it, 0));
                let writes = match mode.as_ref().map(Text::as_literal) {
                    None => false,
                    Some(Some(mode)) => mode.contains(['w', 'a', 'x', '+']),
                    Some(None) => true,
                };
                written.extend(file.filter(|_| writes));
            }
        }
        let literal = written.into_iter().filter(|text| !text.prefix().is_empty());
        self.effects.extend(literal.map(Effect::Writes));
    }

    /// What an expression is, as far as it is a text or a path.
    fn value(&self, node: Node<'_>, depth: u32) -> Text {
        if depth > 20 {
            return Text::any();
        }
        let inner = |node| self.value(node, depth + 1);
        match node.kind() {
            "string" => self.string(node),
            "concatenated_string" => {
                let mut whole = Text::default();
                for part in children(node) {
                    whole.extend(&self.string(part));
                }
                whole
            }
            "identifier" => self.constants.get(self.text(node)).cloned().unwrap_or_else(Text::any),
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
                        let known = format.prefix().split('%').next().unwrap_or_default();
                        joined(&Text::literal(known), "", &Text::any())
                    }
                    _ => Text::any(),
                }
            }
            "call" => self.called(node, depth),
            _ => Text::any(),
        }
    }

    fn called(&self, node: Node<'_>, depth: u32) -> Text {
        let (Some(function), Some(arguments)) =
            (node.child_by_field_name("function"), node.child_by_field_name("arguments"))
        else {
            return Text::any();
        };
        let arguments = Arguments::read(arguments, self.source);
        let name = self.text(function);
        let last = name.rsplit('.').next().unwrap_or_default();
        let home = || self.home.map_or_else(Text::any, |it| Text::literal(it.to_string_lossy()));
        match last {
            "Path" | "PurePath" | "PosixPath" | "join" | "str" | "fspath" | "abspath"
            | "realpath" | "normpath" => {
                if last == "join" && !name.ends_with("path.join") {
                    return Text::any();
                }
                let mut parts = arguments.positional.iter().map(|it| self.value(*it, depth + 1));
                let first = parts.next().unwrap_or_else(|| Text::literal("."));
                parts.fold(first, |path, part| below(&path, &part))
            }
            "joinpath" => {
                let object = function.child_by_field_name("object");
                let first = object.map_or_else(Text::any, |it| self.value(it, depth + 1));
                let parts = arguments.positional.iter().map(|it| self.value(*it, depth + 1));
                parts.fold(first, |path, part| below(&path, &part))
            }
            "expanduser" => match arguments.at(0).map(|it| self.value(it, depth + 1)) {
                Some(text) if text.prefix().starts_with('~') => {
                    joined(&home(), "", &text.without_prefix(1))
                }
                Some(text) => text,
                None => Text::any(),
            },
            "home" if name.ends_with("Path.home") => home(),
            "getcwd" | "cwd" => Text::literal("."),
            "format" => {
                let object = function.child_by_field_name("object");
                let format = object.map_or_else(Text::any, |it| self.value(it, depth + 1));
                let known = format.prefix().split('{').next().unwrap_or_default();
                joined(&Text::literal(known), "", &Text::any())
            }
            "resolve" | "absolute" => function
                .child_by_field_name("object")
                .map_or_else(Text::any, |it| self.value(it, depth + 1)),
            _ => Text::any(),
        }
    }

    /// A string literal, with unknown pieces where an f-string has expressions.
    fn string(&self, node: Node<'_>) -> Text {
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
                "interpolation" => whole.push(Piece::Any),
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

struct Arguments<'tree> {
    positional: Vec<Node<'tree>>,
    named: Vec<(String, Node<'tree>)>,
}

impl<'tree> Arguments<'tree> {
    fn read(list: Node<'tree>, source: &str) -> Self {
        let (mut positional, mut named) = (Vec::new(), Vec::new());
        for child in children(list) {
            match (child.child_by_field_name("name"), child.child_by_field_name("value")) {
                (Some(name), Some(value)) if child.kind() == "keyword_argument" => {
                    let name = source.get(name.byte_range()).unwrap_or_default();
                    named.push((name.to_owned(), value));
                }
                _ if child.kind() == "comment" => {}
                _ => positional.push(child),
            }
        }
        Self { positional, named }
    }

    fn at(&self, index: usize) -> Option<Node<'tree>> {
        self.positional.get(index).copied()
    }

    fn named(&self, name: &str) -> Option<Node<'tree>> {
        self.named.iter().find(|(own, _)| own == name).map(|(_, value)| *value)
    }
}

fn children(node: Node<'_>) -> Vec<Node<'_>> {
    node.named_children(&mut node.walk()).collect()
}

fn all_below(node: Node<'_>) -> Vec<Node<'_>> {
    let mut all = vec![node];
    let mut next = 0;
    while let Some(&node) = all.get(next) {
        all.extend(children(node));
        next += 1;
    }
    all.sort_by_key(Node::start_byte);
    all
}
