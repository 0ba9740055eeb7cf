//! Calls: what the first word of a command names, and functions.

use tree_sitter::Node;

use super::state::{Defined, Function};
use super::variables::Scope;
use super::{Flow, State, Walk, descendants, named_children};
use crate::place::Cwd;
use crate::text::{Count, Text, Word};
use crate::{Denial, Judged};

/// More words of one command are not looked at.
const MAX_WORDS: usize = 1000;

/// What a name may stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Callee {
    FunctionOrProgram,
    Program,
}

impl<'tree> Walk<'_, 'tree> {
    /// Calls what the first word names: a function, or a program.
    pub(crate) fn call(
        &mut self,
        words: Vec<Word>,
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        self.call_any(words, state, Callee::FunctionOrProgram)
    }

    /// Calls a program even if a function has its name.
    pub(crate) fn call_program(
        &mut self,
        words: Vec<Word>,
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        self.call_any(words, state, Callee::Program)
    }

    fn call_any(
        &mut self,
        words: Vec<Word>,
        state: &mut State<'tree>,
        callee: Callee,
    ) -> Judged<Flow<'tree>> {
        if let Some(alternatives) = told_apart(&words) {
            let mut after: Option<State<'tree>> = None;
            for words in alternatives {
                self.bounds.descend()?;
                let mut own = state.clone();
                self.call_any(words, &mut own, callee)?;
                self.bounds.ascend();
                after = Some(either(after, own));
            }
            self.bounds.disk.removes = true;
            *state = after.unwrap_or_else(|| state.clone());
            return Ok(Flow::PLAIN);
        }
        if words.len() > MAX_WORDS {
            return Err(Denial::new("there are too many words to be understood"));
        }
        for word in &words {
            check_subscripts(word)?;
        }
        let Some((name, arguments)) = words.split_first() else { return Ok(Flow::PLAIN) };
        let unknown = || Denial::new("it cannot be told which program would be run");
        if name.count == Count::Several {
            return Err(unknown());
        }
        let mut flow = Flow::PLAIN;
        let before = state.clone();
        let mut after: Option<State<'tree>> = None;
        for text in &name.texts {
            let Some(name) = text.as_literal() else { return Err(unknown()) };
            *state = before.clone();
            let function = match callee {
                Callee::FunctionOrProgram => state.functions.get(name).cloned(),
                Callee::Program => None,
            };
            flow = match function {
                // A variable without a value is no word at all.
                _ if name.is_empty() => self.call_any(arguments.to_vec(), state, callee)?,
                Some(function) => self.call_function(name, &function, arguments, state)?,
                None => self.program(name, arguments, state)?,
            };
            after = Some(either(after, state.clone()));
        }
        *state = after.unwrap_or(before);
        Ok(if name.texts.len() == 1 { flow } else { Flow::PLAIN })
    }

    /// Calls whatever a function may be; where it may not be there, also the program of its name.
    fn call_function(
        &mut self,
        name: &str,
        function: &Function<'tree>,
        arguments: &[Word],
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        let before = state.clone();
        let mut after: Option<State<'tree>> = None;
        for &body in &function.bodies {
            let mut own = before.clone();
            self.run_body(body, arguments, &mut own)?;
            after = Some(either(after, own));
        }
        if function.defined == Defined::Perhaps {
            let mut own = before.clone();
            self.program(name, arguments, &mut own)?;
            after = Some(either(after, own));
        }
        *state = after.unwrap_or(before);
        Ok(Flow::PLAIN)
    }

    fn run_body(
        &mut self,
        body: Node<'tree>,
        arguments: &[Word],
        state: &mut State<'tree>,
    ) -> Judged {
        self.called.insert(body.id());
        self.bounds.enter()?;
        let before = state.clone();
        state.hidden.clear();
        state.parameters = Some(arguments.to_vec());
        self.run(body, state)?;
        self.bounds.leave();
        let own = std::mem::replace(&mut state.hidden, before.hidden.clone());
        for (name, hidden) in own.clone() {
            match hidden {
                Some(word) => state.variables.insert(name, word),
                None => state.variables.remove(&name),
            };
        }
        self.forget_declared(body, &before, state);
        if self.may_end_early(body) {
            let mut names = self.assigned_below(body);
            names.retain(|name| !own.contains_key(name));
            state.variables.extend(names.into_iter().map(|name| (name, Word::any())));
            *state = state.clone().or(before.clone());
            if self.moves_below(body) > 1 {
                state.cwd = Cwd::Unknown;
            }
        }
        state.parameters = before.parameters;
        Ok(())
    }

    /// Variables of which it is not known whether they were the function's own may be either.
    fn forget_declared(&self, body: Node<'tree>, before: &State<'tree>, state: &mut State<'tree>) {
        for node in descendants(body) {
            if node.kind() != "declaration_command" || self.scope_of(node) != Scope::Either {
                continue;
            }
            for child in named_children(node) {
                let name = child.child_by_field_name("name").unwrap_or(child);
                let name = self.text(name);
                if state.variables.contains_key(name) {
                    let either = state.value_or_unknown(name).or(&before.value_or_unknown(name));
                    state.variables.insert(name.to_owned(), either);
                }
            }
        }
    }

    /// Whether a function may end before its last statement.
    fn may_end_early(&self, body: Node<'tree>) -> bool {
        let last = named_children(body).last().map(Node::id);
        self.commands_below(body).any(|(node, name)| name == "return" && Some(node.id()) != last)
    }

    /// How often a directory is changed below a node.
    pub(super) fn moves_below(&self, node: Node<'tree>) -> usize {
        self.commands_below(node)
            .filter(|(_, name)| ["cd", "pushd", "popd", "builtin", "command"].contains(name))
            .count()
    }

    /// The commands below a node with their names.
    pub(super) fn commands_below(
        &self,
        node: Node<'tree>,
    ) -> impl Iterator<Item = (Node<'tree>, &'tree str)> {
        let commands = descendants(node).into_iter().filter(|it| it.kind() == "command");
        commands.filter_map(|it| Some((it, self.text(it.child_by_field_name("name")?))))
    }

    pub(super) fn definition(
        &mut self,
        node: Node<'tree>,
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        if let (Some(name), Some(body)) =
            (node.child_by_field_name("name"), node.child_by_field_name("body"))
        {
            let function = Function { bodies: vec![body], defined: Defined::Surely };
            state.functions.insert(self.text(name).to_owned(), function);
        }
        for child in named_children(node) {
            if child.kind() == "file_redirect" {
                let redirected = self.redirection(child, state)?;
                self.forget_content(&redirected, state);
            }
        }
        Ok(Flow::PLAIN)
    }
}

/// What is known after one more of several ways.
fn either<'tree>(others: Option<State<'tree>>, own: State<'tree>) -> State<'tree> {
    match others {
        Some(others) => others.or(own),
        None => own,
    }
}

/// A word that is an option or is not makes different commands; each is looked at by itself. So is
/// each of the codes that a shell or Python may be given.
fn told_apart(words: &[Word]) -> Option<Vec<Vec<Word>>> {
    let name = words.first()?.as_literal().unwrap_or_default();
    let base = name.rsplit('/').next().unwrap_or_default();
    let runs_code = ["bash", "sh"].contains(&base) || base.starts_with("python");
    let index = words.windows(2).position(|pair| {
        let [before, word] = pair else { return false };
        let is_option = |text: &Text| text.prefix().starts_with('-');
        let takes_code = |it: &str| it.starts_with('-') && it.ends_with('c');
        let is_code = runs_code
            && before.as_literal().is_some_and(takes_code)
            && word.count == Count::One
            && word.texts.iter().all(|it| it.as_literal().is_some());
        word.texts.len() > 1 && (is_code || word.texts.iter().any(is_option))
    })?;
    let texts = words.get(index + 1)?.texts.clone();
    let alternatives = texts.into_iter().map(|text| {
        let mut words = words.to_vec();
        if let Some(word) = words.get_mut(index + 1) {
            *word = Word::one(text);
        }
        words
    });
    Some(alternatives.collect())
}

/// The shell runs what stands in the subscript of a name, even if it is quoted.
pub(super) fn check_subscripts(word: &Word) -> Judged {
    let runs = |text: &Text| {
        let text = text.to_string();
        text.contains("[$(") || text.contains("[`")
    };
    if word.texts.iter().any(runs) {
        return Err(Denial::new("commands in subscripts are not allowed"));
    }
    Ok(())
}
