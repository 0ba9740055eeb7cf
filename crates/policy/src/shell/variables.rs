//! Variables: which may be set, and to what they are.

use tree_sitter::Node;

use super::call::check_subscripts;
use super::state::Defined;
use super::{Flow, State, Walk, named_children};
use crate::place::{Cwd, Last, Place};
use crate::text::{Count, Text, Word};
use crate::{Denial, Judged};

/// Variables that make programs run or write something else.
const DENIED: &[&str] = &[
    "BASHOPTS",
    "BASH_ENV",
    "BROWSER",
    "CDPATH",
    "CLAUDE_CONFIG_DIR",
    "EDITOR",
    "ENV",
    "GCC_EXEC_PREFIX",
    "GZIP",
    "HISTFILE",
    "HOME",
    "JAVA_TOOL_OPTIONS",
    "LD_AUDIT",
    "LD_PRELOAD",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "NODE_OPTIONS",
    "OLDPWD",
    "PAGER",
    "PERL5DB",
    "PERL5OPT",
    "PIP_PREFIX",
    "PIP_TARGET",
    "PROMPT_COMMAND",
    "PS4",
    "PWD",
    "PYTHONHOME",
    "PYTHONPYCACHEPREFIX",
    "PYTHONSTARTUP",
    "RIPGREP_CONFIG_PATH",
    "RSYNC_RSH",
    "RUBYOPT",
    "SHELLOPTS",
    "TAR_OPTIONS",
    "TMPDIR",
    "UNZIP",
    "VISUAL",
    "ZIPOPT",
];

/// Variables that builtins set without being told their names.
pub(crate) const IMPLIED: [&str; 3] = ["MAPFILE", "OPTARG", "REPLY"];

/// Whose a variable is that is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The function's that is running, after which it is what it was before.
    Function,
    Shell,
    Either,
}

/// Builtins for which some shells keep the variables that were set for them alone.
pub(super) const SPECIAL: &[&str] = &[
    ".", ":", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set",
    "shift", "source", "times", "trap", "unset",
];

/// Variables that are set for one command, as in `x=1 command`.
pub(super) struct Bindings {
    all: Vec<Binding>,
    kept: Kept,
}

struct Binding {
    name: String,
    before: Option<Word>,
    value: Word,
    /// Whether only this command gets it.
    is_new: bool,
}

/// Whether such variables keep their value after the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    Perhaps,
    No,
}

impl Bindings {
    /// Sets variables for a command of these words.
    pub(super) fn make(
        assigned: Vec<(String, Word)>,
        words: &[Word],
        state: &mut State<'_>,
    ) -> Self {
        let special =
            |name: &Text| name.as_literal().is_none_or(|it| it.is_empty() || SPECIAL.contains(&it));
        let kept = match words.first() {
            None => Kept::Yes,
            Some(name) if state.calls_function(words) || name.texts.iter().any(special) => {
                Kept::Perhaps
            }
            Some(_) => Kept::No,
        };
        let all = assigned
            .into_iter()
            .map(|(name, value)| {
                let before = state.variables.insert(name.clone(), value.clone());
                let is_new = state.exported.insert(name.clone());
                Binding { name, before, value, is_new }
            })
            .collect();
        Self { all, kept }
    }

    /// What is known after the command.
    pub(super) fn undo(&self, state: &mut State<'_>) {
        for Binding { name, before, value, is_new } in self.all.iter().rev() {
            if *is_new {
                state.exported.remove(name);
            }
            if self.kept == Kept::Yes {
                continue;
            }
            let after = state.variables.remove(name);
            if let Some(before) = before {
                state.variables.insert(name.clone(), before.clone());
            }
            if self.kept == Kept::Perhaps {
                let either = state.value_or_unknown(name).or(value);
                let either = after.map_or_else(Word::any, |after| either.or(&after));
                state.variables.insert(name.clone(), either);
            }
        }
    }
}

impl<'tree> Walk<'_, 'tree> {
    pub(super) fn assign(&mut self, node: Node<'tree>, state: &mut State<'tree>) -> Judged {
        let (name, value) = self.assigned(node, state)?;
        state.variables.insert(name, value);
        Ok(())
    }

    /// The name and the value of an assignment.
    pub(super) fn assigned(
        &mut self,
        node: Node<'tree>,
        state: &mut State<'tree>,
    ) -> Judged<(String, Word)> {
        self.seen.insert(node.id());
        self.check_variable(node)?;
        let value = self.value_of(node, state)?;
        check_subscripts(&value)?;
        let name = node.child_by_field_name("name").ok_or_else(|| {
            Denial::new(format_args!("`{}` could not be understood", self.text(node)))
        })?;
        // `list[3]=x` adds to what is there, and so does `x+=y`.
        let adds = name.kind() == "subscript"
            || node.children(&mut node.walk()).any(|child| child.kind() == "+=");
        let name = self.text(name).split('[').next().unwrap_or_default().to_owned();
        let value = if adds { Word { count: Count::Several, ..Word::any() } } else { value };
        Ok((name, value))
    }

    /// Some variables change what programs are or do.
    fn check_variable(&self, node: Node<'tree>) -> Judged {
        let name = node.child_by_field_name("name").map(|name| self.text(name)).unwrap_or_default();
        let value = node.child_by_field_name("value").map(|value| self.text(value));
        // `IFS=: read a b` splits what is read, of which nothing is known anyway.
        let command = node.parent().and_then(|it| it.child_by_field_name("name"));
        if name == "IFS" && command.is_some_and(|it| self.text(it) == "read") {
            return Ok(());
        }
        self.check_variable_named(name, value.unwrap_or_default())
    }

    pub(crate) fn check_variable_named(&self, name: &str, value: &str) -> Judged {
        let identity = ["GIT_AUTHOR_", "GIT_COMMITTER_"].iter().any(|it| name.starts_with(it));
        let of_git = name.starts_with("GIT_") && !identity;
        let splits_otherwise =
            name == "IFS" && !["", "$'\\n'", "','", "\",\"", ","].contains(&value);
        let finds_own_programs = name == "PATH" && !value.split(':').all(|it| self.is_foreign(it));
        if DENIED.contains(&name) || of_git || splits_otherwise || finds_own_programs {
            return Err(Denial::new(format_args!("the variable {name} must not be set so")));
        }
        Ok(())
    }

    /// Whether a folder of programs is none that the agent can write.
    fn is_foreign(&self, folder: &str) -> bool {
        let folder = folder.trim_matches(['"', '\'']);
        if ["$PATH", "${PATH}"].contains(&folder) {
            return true;
        }
        let below_home = ["~/", "$HOME/", "${HOME}/"].iter().find_map(|it| folder.strip_prefix(it));
        let path = match (below_home, self.policy.home()) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => std::path::PathBuf::from(folder),
        };
        let text = Text::literal(path.to_string_lossy());
        matches!(self.policy.place(&text, &Cwd::Unknown, Last::Followed), Place::Outside(_))
    }

    fn value_of(&mut self, node: Node<'tree>, state: &mut State<'tree>) -> Judged<Word> {
        let Some(value) = node.child_by_field_name("value") else {
            return Ok(Word::literal(""));
        };
        if value.kind() == "array" {
            let mut texts = Vec::new();
            for item in named_children(value) {
                let words = self.words(item.start_byte(), item.end_byte(), value, state)?;
                // `[key]=value` is an element of its own, of which only the value counts.
                if ["]=", "]+="].iter().any(|it| self.text(item).contains(it)) {
                    texts.push(Text::any());
                }
                texts.extend(words.into_iter().flat_map(|word| word.texts));
            }
            let texts = if texts.is_empty() { vec![Text::default()] } else { texts };
            return Ok(Word::among(texts, Count::Several));
        }
        // Nothing is split in an assignment.
        self.value(value.start_byte(), node.end_byte(), node, state)
    }

    pub(super) fn declaration(
        &mut self,
        node: Node<'tree>,
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        let unsets = node.kind() == "unset_command";
        let scope = self.scope_of(node);
        let children = named_children(node);
        let exports = node.child(0).is_some_and(|it| self.text(it) == "export")
            || children.iter().any(|it| it.kind() == "word" && self.text(*it).contains('x'));
        for child in children {
            let text = self.text(child);
            let name = child.child_by_field_name("name").unwrap_or(child);
            if exports && !unsets {
                state.exported.insert(self.text(name).to_owned());
            }
            match child.kind() {
                "variable_assignment" => {
                    let (name, value) = self.assigned(child, state)?;
                    state.declare(name, Some(value), scope);
                }
                "variable_name" | "word" if unsets => {
                    // Without an option, a variable of that name comes first.
                    if let Some(function) = state.functions.get_mut(text) {
                        function.defined = Defined::Perhaps;
                    }
                    state.exported.remove(text);
                    // Without it, words are split at blanks again.
                    if text == "IFS" {
                        state.variables.remove(text);
                    } else {
                        state.variables.insert(text.to_owned(), Word::literal(""));
                    }
                }
                "variable_name" => state.declare(text.to_owned(), None, scope),
                // `declare -n` makes a name for another variable, and `-g` passes over those of all
                // functions that are running.
                "word" if text.starts_with('-') && !text.contains(['n', 'g']) => {}
                _ => return Err(Denial::new(format_args!("`{text}` could not be understood"))),
            }
        }
        Ok(Flow::PLAIN)
    }

    /// Whose the variables of a declaration are.
    pub(super) fn scope_of(&self, declaration: Node<'tree>) -> Scope {
        let keyword = declaration.child(0).map(|it| self.text(it)).unwrap_or_default();
        let parents: Vec<_> = std::iter::successors(declaration.parent(), Node::parent).collect();
        let is_in_function = parents.iter().any(|it| it.kind() == "function_definition");
        let is_surely_run = parents.get(1).is_some_and(|it| it.kind() == "function_definition");
        match keyword {
            "local" if is_in_function && is_surely_run => Scope::Function,
            "local" => Scope::Either,
            "declare" | "typeset" if is_in_function => Scope::Either,
            _ => Scope::Shell,
        }
    }
}

impl State<'_> {
    fn declare(&mut self, name: String, value: Option<Word>, scope: Scope) {
        let before = self.variables.get(&name).cloned();
        let unknown = self.value_or_unknown(&name);
        // Of a function's own variable nothing is known yet.
        let value = match (value, scope) {
            (Some(value), Scope::Function | Scope::Shell) => value,
            (Some(value), Scope::Either) => value.or(&unknown),
            (None, Scope::Function) => Word::literal(""),
            (None, Scope::Either) => unknown.or(&Word::literal("")),
            (None, Scope::Shell) => return,
        };
        if scope == Scope::Function {
            self.hidden.entry(name.clone()).or_insert(before);
        }
        self.variables.insert(name, value);
    }
}
