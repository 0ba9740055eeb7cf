//! What is known at a point of a command line.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use crate::place::Cwd;
use crate::text::{Text, Word};

/// What splits words unless something else is said to.
const BLANKS: &str = " \t\n";

/// What is known at a point of a command line.
#[derive(Debug, Clone)]
pub(crate) struct State<'tree> {
    pub(crate) cwd: Cwd,
    pub(crate) variables: BTreeMap<String, Word>,
    /// Variables that other programs surely get, too.
    pub(crate) exported: BTreeSet<String>,
    /// What variables were before the function that is running made them its own.
    pub(crate) hidden: BTreeMap<String, Option<Word>>,
    pub(crate) functions: BTreeMap<String, Function<'tree>>,
    /// The parameters of the function or script that is running; `None` if they are not known.
    pub(crate) parameters: Option<Vec<Word>>,
    pub(crate) stdin: Stdin,
}

/// At which characters values are split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Separators {
    Blanks,
    These(String),
    Unknown,
}

/// What is known of a function.
#[derive(Debug, Clone)]
pub(crate) struct Function<'tree> {
    /// Its body is one of these.
    pub(crate) bodies: Vec<Node<'tree>>,
    pub(crate) defined: Defined,
}

/// Whether a function is there. If it is not, its name is that of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defined {
    Surely,
    Perhaps,
}

/// What a command would read.
#[derive(Debug, Clone)]
pub(crate) enum Stdin {
    /// Whatever the shell has, which for an agent is nothing.
    Inherited,
    Text(Text),
    /// Lines, each of which is one of these.
    Lines(Vec<Text>),
    Unknown,
}

/// How a statement may end.
#[derive(Debug, Clone)]
pub(crate) struct Flow<'tree> {
    /// What is known if the statement succeeded, where that is more.
    pub(crate) success: Option<Box<State<'tree>>>,
    /// Nothing after it is run.
    pub(crate) ends: bool,
}

impl Flow<'_> {
    pub(crate) const PLAIN: Self = Self { success: None, ends: false };
}

impl<'tree> State<'tree> {
    pub(crate) fn new(cwd: Cwd) -> Self {
        Self {
            cwd,
            variables: BTreeMap::new(),
            exported: BTreeSet::new(),
            hidden: BTreeMap::new(),
            functions: BTreeMap::new(),
            parameters: None,
            stdin: Stdin::Inherited,
        }
    }

    /// What another source knows that is run from here; functions belong to their source.
    pub(crate) fn for_other_source<'other>(&self) -> State<'other> {
        State {
            cwd: self.cwd.clone(),
            variables: self.variables.clone(),
            exported: self.exported.clone(),
            hidden: BTreeMap::new(),
            functions: BTreeMap::new(),
            parameters: self.parameters.clone(),
            stdin: self.stdin.clone(),
        }
    }

    /// Takes over what another source has changed.
    pub(crate) fn take_over(&mut self, other: State<'_>) {
        self.cwd = other.cwd;
        self.variables = other.variables;
        self.exported = other.exported;
    }

    /// What a shell knows that is started from here: it may not get what is not exported.
    pub(crate) fn for_other_shell(&self) -> Self {
        let mut other = self.clone();
        for (name, word) in &mut other.variables {
            if !self.exported.contains(name) && name != "IFS" {
                *word = word.or(&Word::literal(""));
            }
        }
        other
    }

    /// The value of a variable; one that was not set may come from the environment.
    pub(crate) fn value_or_unknown(&self, name: &str) -> Word {
        match self.variables.get(name) {
            Some(word) => word.clone(),
            None if name == "IFS" => Word::literal(BLANKS),
            None => Word::any(),
        }
    }

    /// Any variable at all may have been set.
    pub(crate) fn forget_all(&mut self) {
        self.variables.values_mut().for_each(|word| *word = Word::any());
        self.variables.insert(String::from("IFS"), Word::any());
    }

    /// At which characters a value is split that is not quoted.
    pub(crate) fn separators(&self) -> Separators {
        let literals = self.value_or_unknown("IFS").texts;
        let literals: Option<Vec<&str>> = literals.iter().map(Text::as_literal).collect();
        match literals.as_deref() {
            Some([BLANKS]) => Separators::Blanks,
            Some(literals) => Separators::These(literals.concat()),
            None => Separators::Unknown,
        }
    }

    /// Whether the first of these words may name a function.
    pub(crate) fn calls_function(&self, words: &[Word]) -> bool {
        let mut names = words.iter().take(1).flat_map(|word| &word.texts);
        names.any(|it| it.as_literal().is_none_or(|it| self.functions.contains_key(it)))
    }

    /// What is known if either of two ways was taken.
    pub(crate) fn or(mut self, other: Self) -> Self {
        self.cwd = self.cwd.or(&other.cwd);
        for (name, word) in &other.variables {
            let own = self.value_or_unknown(name);
            self.variables.insert(name.clone(), own.or(word));
        }
        for (name, word) in &mut self.variables {
            if !other.variables.contains_key(name) {
                *word = word.or(&other.value_or_unknown(name));
            }
        }
        self.exported.retain(|name| other.exported.contains(name));
        for (name, function) in &mut self.functions {
            if !other.functions.contains_key(name) {
                function.defined = Defined::Perhaps;
            }
        }
        for (name, function) in other.functions {
            match self.functions.get_mut(&name) {
                Some(own) => own.or(function),
                None => {
                    let function = Function { defined: Defined::Perhaps, ..function };
                    self.functions.insert(name, function);
                }
            }
        }
        self
    }
}

impl Function<'_> {
    fn or(&mut self, other: Self) {
        for body in other.bodies {
            if self.bodies.iter().all(|it| it.id() != body.id()) {
                self.bodies.push(body);
            }
        }
        if other.defined == Defined::Perhaps {
            self.defined = Defined::Perhaps;
        }
    }
}
