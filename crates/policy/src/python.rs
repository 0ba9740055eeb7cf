//! What a piece of Python would change, as far as it names its paths.
//!
//! Calls that write, remove, or start programs are found by the last name of what is called
//! (`open`, `to_csv`, `rmtree`, `system`), and their paths are worked out from strings, constants,
//! loops over lists, `os.path.join`, `Path(…) / …` and f-strings. A path that is computed otherwise is
//! not known, and left to the sandbox. A program that is computed is denied: it could be any.
//!
//! Reading order: `calls` (the lists), `names` (what names stand for), `values` (what expressions are).

mod calls;
mod names;
mod values;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use tree_sitter::Node;

use calls::{AMBIGUOUS, CALLS, FULL_CALLS, RUNS, SHELLS, Targets, WRITTEN_NAMES};
use names::{Bound, MOST_WORK};
use values::Asked;

use crate::text::Text;
use crate::{Denial, Judged};

/// Something that running the source would do, or mention.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Something is written, made or removed here.
    Writes(Text),
    /// A file is opened for reading and writing.
    Keeps(Text),
    /// A string that may be a path.
    Names(Text),
    /// A shell runs this, in a folder if one is named.
    RunsShell(Text, Option<Text>),
    /// A program is run with its words, in a folder if one is named.
    Runs(Vec<Text>, Option<Text>),
    RunsPython(Text),
}

/// All that running the source would do, in the order of the source.
pub(crate) fn effects(source: &str, home: Option<&Path>) -> Judged<Vec<Effect>> {
    let Some(tree) = mle_star_python::tree(source) else {
        return Err(Denial::new("the Python code cannot be read"));
    };
    let mut reading = Reading {
        source,
        home,
        names: BTreeMap::new(),
        attributes: BTreeMap::new(),
        imports: BTreeMap::new(),
        all_of: Vec::new(),
        effects: Vec::new(),
        work: Cell::new(0),
    };
    let nodes = all_below(tree.root_node());
    for &node in &nodes {
        reading.import(node);
    }
    for &node in &nodes {
        reading.bind(node);
    }
    for &node in &nodes {
        match node.kind() {
            "call" => reading.call(node),
            "string" => {
                let text = reading.string(node, Asked::likely());
                // Only what looks like a path is worth a look at the disk.
                if text.prefix().contains(['/', '.', '~']) && text.prefix().len() < 500 {
                    reading.name(&text);
                }
            }
            _ if reading.passes_on(node) => {
                reading.effects.push(Effect::Runs(vec![Text::any()], None));
            }
            _ => {}
        }
    }
    if reading.work.get() > MOST_WORK {
        return Err(Denial::new("the Python code is too long to be understood"));
    }
    Ok(reading.effects)
}

struct Reading<'a> {
    source: &'a str,
    home: Option<&'a Path>,
    /// The values that names are given, as far as they are known.
    names: BTreeMap<&'a str, Vec<Bound>>,
    /// The values that attributes are given, of whatever object.
    attributes: BTreeMap<&'a str, Vec<Text>>,
    /// What names stand for: `sp` for `subprocess`, `rmtree` for `shutil.rmtree`.
    imports: BTreeMap<&'a str, String>,
    /// Modules of which everything is imported.
    all_of: Vec<String>,
    effects: Vec<Effect>,
    /// How much was looked at and put in for names.
    work: Cell<usize>,
}

impl<'a> Reading<'a> {
    fn text(&self, node: Node<'_>) -> &'a str {
        self.source.get(node.byte_range()).unwrap_or_default()
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
        let full = self.named(function);
        let (module, name) = full.rsplit_once('.').unwrap_or(("", &full));
        let arguments = Arguments::read(arguments, self.source);
        let first = arguments.at(0);
        let code = first.map(|it| self.value(it, Asked::certain()));
        self.written_names(&arguments);
        if matches!(module, "" | "builtins") && ["exec", "eval", "compile"].contains(&name) {
            self.effects.extend(code.map(Effect::RunsPython));
        } else if (SHELLS.contains(&name) && !module.is_empty())
            || (module == "pexpect" && ["run", "spawn"].contains(&name))
        {
            let code = code.or_else(|| self.certain(arguments.named("cmd")));
            let at = self.folder(&arguments);
            self.effects.extend(code.map(|it| Effect::RunsShell(it, at)));
        } else if (RUNS.contains(&name) && module.ends_with("subprocess")) || full == "pty.spawn" {
            self.subprocess(&arguments);
        } else if name == "create_subprocess_exec" {
            let words = arguments.positional.iter().map(|it| self.word(*it)).collect();
            let at = self.folder(&arguments);
            self.effects.push(Effect::Runs(words, at));
        } else if full == "runpy.run_path" {
            let words = [Some(Text::literal("python")), code].into_iter().flatten().collect();
            self.effects.push(Effect::Runs(words, None));
        } else if (matches!(module, "os" | "posix")
            && ["exec", "spawn", "posix_spawn"].iter().any(|it| name.starts_with(it)))
            || ["subprocess_shell", "subprocess_exec"].contains(&name)
        {
            self.effects.push(Effect::Runs(vec![Text::any()], None));
        } else if let Some((_, targets)) = FULL_CALLS.iter().find(|(own, _)| *own == full) {
            self.targets(*targets, receiver, &arguments);
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

    fn likely(&self, node: Option<Node<'_>>) -> Option<Text> {
        node.map(|it| self.value(it, Asked::likely()))
    }

    fn certain(&self, node: Option<Node<'_>>) -> Option<Text> {
        node.map(|it| self.value(it, Asked::certain()))
    }

    /// Arguments whose name says that they are written.
    fn written_names(&mut self, arguments: &Arguments<'_>) {
        for (name, value) in &arguments.named {
            if WRITTEN_NAMES.contains(&name.as_str()) {
                let text = self.value(*value, Asked::likely());
                self.effects.extend((!text.prefix().is_empty()).then_some(Effect::Writes(text)));
            }
        }
    }

    /// In which folder a program is started. One that is computed is left to the sandbox.
    fn folder(&self, arguments: &Arguments<'_>) -> Option<Text> {
        self.likely(arguments.named("cwd")).filter(|it| it.as_literal().is_some())
    }

    fn word(&self, node: Node<'_>) -> Text {
        match self.named(node).as_str() {
            "sys.executable" => Text::literal("python"),
            _ => self.value(node, Asked::certain()),
        }
    }

    fn subprocess(&mut self, arguments: &Arguments<'_>) {
        let Some(what) = arguments.at(0).or_else(|| arguments.named("args")) else { return };
        let at = self.folder(arguments);
        let by_shell = arguments.named("shell").is_some_and(|it| self.text(it) != "False");
        if matches!(what.kind(), "list" | "tuple") {
            let mut words: Vec<Text> =
                children(what).into_iter().map(|item| self.word(item)).collect();
            // The others are parameters of the shell.
            if let (true, Some(code)) = (by_shell, words.first()) {
                self.effects.push(Effect::RunsShell(code.clone(), at));
                return;
            }
            if let (Some(program), Some(first)) = (arguments.named("executable"), words.first_mut())
            {
                *first = self.word(program);
            }
            self.effects.push(Effect::Runs(words, at));
        } else {
            self.effects.push(Effect::RunsShell(self.value(what, Asked::certain()), at));
        }
    }

    fn targets(&mut self, targets: Targets, receiver: Option<Node<'_>>, arguments: &Arguments<'_>) {
        // A receiver counts if it is a path: `Path("x").mkdir()`, but not `os.mkdir("x")`.
        let path =
            receiver.map(|it| self.value(it, Asked::likely())).filter(|it| !it.prefix().is_empty());
        let mut written: Vec<Text> = Vec::new();
        let first = arguments.at(0).or_else(|| named_files(arguments).next());
        match targets {
            Targets::First => written.extend(first.map(|it| self.value(it, Asked::likely()))),
            Targets::Second => {
                let second = ["dst", "extract_dir", "filename"];
                let second = second.iter().find_map(|it| arguments.named(it));
                let second = arguments.at(1).or(second);
                written.extend(second.map(|it| self.value(it, Asked::likely())));
            }
            Targets::All => {
                let all = arguments.positional.iter().copied().chain(named_files(arguments));
                written.extend(all.map(|it| self.value(it, Asked::likely())));
            }
            Targets::Receiver => match path {
                Some(path) => {
                    written.push(path);
                    written.extend(arguments.at(0).map(|it| self.value(it, Asked::likely())));
                }
                None => written
                    .extend(arguments.positional.iter().map(|it| self.value(*it, Asked::likely()))),
            },
            Targets::Opened => {
                let (file, mode) = match path {
                    Some(path) => (Some(path), arguments.at(0)),
                    None => (first.map(|it| self.value(it, Asked::likely())), arguments.at(1)),
                };
                let mode = mode
                    .or_else(|| arguments.named("mode"))
                    .map(|it| self.value(it, Asked::likely()));
                let writes = match mode.as_ref().map(Text::as_literal) {
                    None => false,
                    Some(Some(mode)) => mode.contains(['w', 'a', 'x', '+']),
                    Some(None) => true,
                };
                written.extend(file.filter(|_| writes));
            }
            Targets::Mapped => {
                let mode = self.likely(arguments.named("mode"));
                let reads = mode.is_none_or(|it| matches!(it.as_literal(), Some("r" | "c")));
                written.extend(self.likely(first).filter(|_| !reads));
            }
            Targets::Kept => {
                let kept = self.likely(first).filter(|it| !it.prefix().is_empty());
                self.effects.extend(kept.map(Effect::Keeps));
            }
            Targets::InPlace => {
                let in_place =
                    arguments.named("inplace").is_some_and(|it| self.text(it) != "False");
                let files = first.filter(|_| in_place);
                match files.filter(|it| matches!(it.kind(), "list" | "tuple")) {
                    Some(list) => written.extend(
                        children(list).into_iter().map(|it| self.value(it, Asked::likely())),
                    ),
                    None => written.extend(self.likely(files)),
                }
            }
            Targets::Folder => written.extend(self.likely(arguments.named("dir"))),
        }
        let literal = written.into_iter().filter(|text| !text.prefix().is_empty());
        self.effects.extend(literal.map(Effect::Writes));
    }
}

/// Arguments whose names say that they are the file that is meant.
fn named_files<'tree>(arguments: &Arguments<'tree>) -> impl Iterator<Item = Node<'tree>> {
    const NAMES: &[&str] = &[
        "path",
        "file",
        "files",
        "f",
        "fname",
        "filename",
        "filepath",
        "fp",
        "dst",
        "path_or_buf",
        "database",
        "name",
    ];
    NAMES.iter().filter_map(|name| arguments.named(name))
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
