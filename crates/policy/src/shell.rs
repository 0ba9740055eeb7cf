//! A walk through a command line in the order in which it would run.
//!
//! The grammar tells statements apart; words are read from the source itself (`word`), because the
//! grammar cuts some of them in two. At the end the walk looks back at the whole tree: a command or
//! a redirection that it did not come by is denied, so that a gap in the walk is never a hole.

mod call;
mod control;
mod disk;
mod heredoc;
mod redirect;
mod state;
mod traps;
mod unseen;
mod variables;
mod word;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use control::check_test;
use disk::Disk;
pub(crate) use state::{Flow, State, Stdin};
use traps::Traps;
use variables::Bindings;
pub(crate) use variables::IMPLIED;
pub(crate) use word::folder_of;

use crate::place::Cwd;
use crate::text::Word;
use crate::{Denial, Judged, Policy};

/// Longer sources are not read.
const MAX_SOURCE: usize = 256 << 10;
/// Deeper nesting of shells in shells, or of functions, is not followed.
const MAX_DEPTH: u32 = 12;
/// How long the parser may take. Commands take microseconds; some made to be slow take minutes.
const PARSE_TIME: Duration = Duration::from_secs(2);
/// How long all of it may take; a function of many words that is called a thousand times takes minutes.
const WALK_TIME: Duration = Duration::from_secs(5);
/// How deep the walk may recurse, over all sources: deeper trees would use up the stack.
const MAX_LEVEL: u32 = 150;
/// More statements than this are not followed.
const MAX_STEPS: u32 = 20_000;
/// More than this is not put in for variables, over all sources: with each line that says `$x$x` it
/// would be twice as much.
const MAX_EXPANDED: usize = 4 << 20;

/// Judges a command line.
pub(crate) fn judge(policy: &Policy, source: &str, cwd: Cwd) -> Judged {
    let (disk, traps) = (Disk::default(), Traps::default());
    let mut bounds =
        Bounds { depth: 0, level: 0, steps: 0, expanded: 0, begun: Instant::now(), disk, traps };
    run_source(policy, source, &mut State::new(cwd), &mut bounds)?;
    // They may have been run at any time since they were set.
    while let Some((source, mut state)) = bounds.traps.next() {
        run_source(policy, &source, &mut state, &mut bounds)?;
    }
    Ok(())
}

/// How far the walk has gone and what it has come by, over all sources.
#[derive(Debug)]
pub(crate) struct Bounds {
    depth: u32,
    level: u32,
    steps: u32,
    expanded: usize,
    begun: Instant,
    pub(crate) disk: Disk,
    pub(crate) traps: Traps,
}

impl Bounds {
    pub(crate) fn enter(&mut self) -> Judged {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Denial::new("it is too deeply nested to be understood, or calls itself"));
        }
        Ok(())
    }

    fn descend(&mut self) -> Judged {
        self.level += 1;
        if self.level > MAX_LEVEL {
            return Err(too_long());
        }
        self.count()
    }

    /// One more step is made.
    fn count(&mut self) -> Judged {
        self.steps += 1;
        let is_long = self.steps > MAX_STEPS || self.begun.elapsed() > WALK_TIME;
        if is_long { Err(too_long()) } else { Ok(()) }
    }

    /// So much was put in for a variable.
    fn expand(&mut self, bytes: usize) -> Judged {
        self.expanded += bytes;
        if self.expanded > MAX_EXPANDED {
            return Err(Denial::new("its variables hold too much to be understood"));
        }
        Ok(())
    }

    fn ascend(&mut self) {
        self.level = self.level.saturating_sub(1);
    }

    pub(crate) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}

fn too_long() -> Denial {
    Denial::new("the command is too long or too deeply nested to be understood")
}

/// One source and what has been seen of it.
pub(crate) struct Walk<'a, 'tree> {
    pub(crate) policy: &'a Policy,
    pub(crate) source: &'tree str,
    pub(crate) bounds: &'a mut Bounds,
    seen: BTreeSet<usize>,
    called: BTreeSet<usize>,
}

/// What a simple command is made of.
#[derive(Debug, Default)]
struct Simple {
    words: Vec<Word>,
    /// What it reads, if it says so.
    stdin: Option<Stdin>,
    /// Variables that are set for it alone.
    assigned: Vec<(String, Word)>,
}

/// Runs a source from a state; what it changes is in the state afterwards.
pub(crate) fn run_source(
    policy: &Policy,
    source: &str,
    state: &mut State<'_>,
    bounds: &mut Bounds,
) -> Judged {
    bounds.enter()?;
    if source.len() > MAX_SOURCE {
        return Err(Denial::new("the command is too long to be understood"));
    }
    let rewritten;
    let (source, tree) = match parse(source) {
        Some(tree) => (source, tree),
        None => {
            rewritten = heredoc::rewritten(source).ok_or_else(|| unreadable(source))?;
            (rewritten.as_str(), parse(&rewritten).ok_or_else(|| unreadable(source))?)
        }
    };
    let mut inner = state.for_other_source();
    let mut walk = Walk { policy, source, bounds, seen: BTreeSet::new(), called: BTreeSet::new() };
    walk.run(tree.root_node(), &mut inner)?;
    walk.check_uncalled(tree.root_node(), &inner)?;
    walk.check_unseen(tree.root_node())?;
    walk.bounds.leave();
    state.take_over(inner);
    Ok(())
}

fn parse(source: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    // The grammar's scanner looks characters up in tables of the C library, and crashes beyond their
    // ends. To a shell all of those are just letters of a word, so it is shown others of equal length.
    let ascii: Vec<u8> = source.bytes().map(|it| if it.is_ascii() { it } else { b'%' }).collect();
    let deadline = Instant::now() + PARSE_TIME;
    let mut progress = |_: &ParseState| {
        if Instant::now() < deadline { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let mut input = |offset: usize, _| ascii.get(offset..).unwrap_or_default();
    let tree = parser.parse_with_options(&mut input, None, Some(options))?;
    (!tree.root_node().has_error()).then_some(tree)
}

fn unreadable(source: &str) -> Denial {
    let advice = if source.contains("<<") {
        "; put redirections before <<, or write the script to a file first"
    } else {
        ""
    };
    Denial::new(format_args!("the command cannot be read as a shell command{advice}"))
}

impl<'tree> Walk<'_, 'tree> {
    pub(crate) fn text(&self, node: Node<'tree>) -> &'tree str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    /// Runs a statement.
    pub(crate) fn run(
        &mut self,
        node: Node<'tree>,
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        self.bounds.descend()?;
        let flow = self.run_kind(node, state)?;
        self.bounds.traps.meet(state);
        self.bounds.ascend();
        Ok(flow)
    }

    fn run_kind(&mut self, node: Node<'tree>, state: &mut State<'tree>) -> Judged<Flow<'tree>> {
        self.seen.insert(node.id());
        match node.kind() {
            "program" | "compound_statement" | "do_group" | "else_clause" | "then_clause" => {
                self.run_each(node, state)
            }
            "comment" | "heredoc_body" | "heredoc_end" | "heredoc_start" => Ok(Flow::PLAIN),
            "list" => self.list(node, state),
            "pipeline" => self.pipeline(node, state),
            "command" => self.command(node, state, Vec::new()),
            "redirected_statement" => self.redirected(node, state, Vec::new()),
            "subshell" => {
                self.run_each(node, &mut state.clone())?;
                Ok(Flow::PLAIN)
            }
            "negated_command" => {
                self.run_each(node, state)?;
                Ok(Flow::PLAIN)
            }
            "variable_assignment" => {
                self.assign(node, state)?;
                Ok(Flow::PLAIN)
            }
            "variable_assignments" => {
                for child in named_children(node) {
                    self.run(child, state)?;
                }
                Ok(Flow::PLAIN)
            }
            "declaration_command" | "unset_command" => self.declaration(node, state),
            "if_statement" => self.branches(node, state),
            "case_statement" => self.cases(node, state),
            "while_statement" | "for_statement" | "c_style_for_statement" => {
                self.repeated(node, state)
            }
            "function_definition" => self.definition(node, state),
            "test_command" => {
                check_test(self.text(node))?;
                self.substitutions(node, state)?;
                Ok(Flow::PLAIN)
            }
            _ => {
                self.substitutions(node, state)?;
                Ok(Flow::PLAIN)
            }
        }
    }

    fn run_each(&mut self, node: Node<'tree>, state: &mut State<'tree>) -> Judged<Flow<'tree>> {
        let mut flow = Flow::PLAIN;
        let children: Vec<_> = node.children(&mut node.walk()).collect();
        for (index, &child) in children.iter().enumerate().filter(|(_, it)| it.is_named()) {
            // What runs in the background changes nothing here.
            if children.get(index + 1).is_some_and(|it| it.kind() == "&") {
                let mut apart = state.clone();
                self.run(child, &mut apart)?;
                flow = Flow::PLAIN;
            } else {
                flow = self.run(child, state)?;
            }
        }
        Ok(flow)
    }

    /// `a && b`, `a || b`.
    fn list(&mut self, node: Node<'tree>, state: &mut State<'tree>) -> Judged<Flow<'tree>> {
        let named = named_children(node);
        let (Some(&left), Some(&right)) = (named.first(), named.last()) else {
            return Ok(Flow::PLAIN);
        };
        let before = state.cwd.clone();
        let first = self.run(left, state)?;
        let and = node.children(&mut node.walk()).any(|child| child.kind() == "&&");
        let rest = |walk: &mut Self, state: &mut State<'tree>| walk.run(right, state);
        self.join(and, before, first, state, rest)
    }

    /// Goes on after the left side of `&&` or `||`.
    fn join(
        &mut self,
        and: bool,
        before: Cwd,
        first: Flow<'tree>,
        state: &mut State<'tree>,
        rest: impl FnOnce(&mut Self, &mut State<'tree>) -> Judged<Flow<'tree>>,
    ) -> Judged<Flow<'tree>> {
        let succeeded = first.success.as_deref().unwrap_or(state).clone();
        if and {
            let mut taken = succeeded;
            let second = rest(self, &mut taken)?;
            let success = second.success.unwrap_or_else(|| Box::new(taken.clone()));
            // What comes after may follow a failure of the left side, too.
            *state = state.clone().or(taken);
            return Ok(Flow { success: Some(success), ends: first.ends });
        }
        let mut taken = state.clone();
        if first.success.is_some() {
            taken.cwd = taken.cwd.or(&before);
        }
        let second = rest(self, &mut taken)?;
        // `cd there || exit`: what comes after is there.
        *state = if second.ends { succeeded } else { state.clone().or(succeeded).or(taken) };
        Ok(Flow { success: None, ends: first.ends })
    }

    fn pipeline(&mut self, node: Node<'tree>, state: &mut State<'tree>) -> Judged<Flow<'tree>> {
        let children = named_children(node);
        let first = children.first().copied().filter(|it| it.kind() == "redirected_statement");
        match first.and_then(|it| Some((it, it.child_by_field_name("body")?))) {
            Some((first, body)) => {
                self.seen.insert(first.id());
                self.after_list(body, state, |walk, body, state| {
                    walk.elements(&children, Some(body), state)
                })
            }
            None => self.elements(&children, None, state),
        }
    }

    /// Runs the elements of a pipeline; the first may have another body than it says.
    fn elements(
        &mut self,
        children: &[Node<'tree>],
        mut first_body: Option<Node<'tree>>,
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        let mut stdin = state.stdin.clone();
        for &child in children {
            let mut own = state.clone();
            own.stdin = stdin;
            match first_body.take() {
                Some(body) => self.redirected_body(child, body, &mut own, Vec::new())?,
                None => self.run(child, &mut own)?,
            };
            stdin = self.output(child, &mut own);
        }
        Ok(Flow::PLAIN)
    }

    /// What a statement would print, where that can be told without running it.
    fn output(&mut self, node: Node<'tree>, state: &mut State<'tree>) -> Stdin {
        if node.kind() != "command" {
            return Stdin::Unknown;
        }
        match self.words_of(node, &mut state.clone()) {
            Ok(simple) if !state.calls_function(&simple.words) => {
                self.printed(&simple.words, state)
            }
            Ok(_) | Err(_) => Stdin::Unknown,
        }
    }

    /// A simple command. Words that the grammar put into a redirection come in `more`.
    fn command(
        &mut self,
        node: Node<'tree>,
        state: &mut State<'tree>,
        more: Vec<Word>,
    ) -> Judged<Flow<'tree>> {
        let stdin = state.stdin.clone();
        let simple = self.words_of(node, state)?;
        let mut words = simple.words;
        words.extend(more);
        if let Some(redirected) = simple.stdin {
            state.stdin = redirected;
        }
        let bindings = Bindings::make(simple.assigned, &words, state);
        let mut flow = self.call(words, state)?;
        bindings.undo(state);
        if let Some(succeeded) = &mut flow.success {
            bindings.undo(succeeded);
        }
        state.stdin = stdin;
        Ok(flow)
    }

    /// The words of a simple command, and what stands around them.
    fn words_of(&mut self, node: Node<'tree>, state: &mut State<'tree>) -> Judged<Simple> {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        let mut simple = Simple::default();
        let mut more = Vec::new();
        let mut bound: Option<State<'tree>> = None;
        for child in node.children(&mut node.walk()) {
            match child.kind() {
                "variable_assignment" if ranges.is_empty() => {
                    self.bounds.count()?;
                    // Each assignment sees those before it, while the words see none of them.
                    let bound = bound.get_or_insert_with(|| state.clone());
                    let (name, value) = self.assigned(child, bound)?;
                    self.forget_assigned_below(child, bound)?;
                    self.forget_assigned_below(child, state)?;
                    bound.variables.insert(name.clone(), value.clone());
                    simple.assigned.push((name, value));
                }
                "file_redirect" | "heredoc_redirect" | "herestring_redirect" => {
                    let redirected = self.redirection(child, state)?;
                    self.forget_content(&redirected, state);
                    more.extend(redirected.words);
                    simple.stdin = redirected.stdin.or(simple.stdin);
                }
                _ => match ranges.last_mut() {
                    Some((_, end)) if *end == child.start_byte() => *end = child.end_byte(),
                    _ => ranges.push((child.start_byte(), child.end_byte())),
                },
            }
        }
        for (start, end) in ranges {
            simple.words.extend(self.words(start, end, node, state)?);
        }
        simple.words.extend(more);
        Ok(simple)
    }

    /// Runs the commands inside words and expressions; what they change stays with them.
    pub(crate) fn substitutions(&mut self, node: Node<'tree>, state: &mut State<'tree>) -> Judged {
        self.bounds.descend()?;
        let inside = ["command_substitution", "process_substitution"];
        if inside.contains(&node.kind()) {
            self.seen.insert(node.id());
            let mut own = state.clone();
            for child in named_children(node) {
                if child.kind() == "file_redirect" {
                    let redirected = self.redirection(child, &mut own)?;
                    self.forget_content(&redirected, &own);
                } else {
                    self.run(child, &mut own)?;
                }
            }
        } else {
            if node.kind() == "expansion" {
                self.forget_assigned_by(node, state)?;
            }
            for child in named_children(node) {
                self.substitutions(child, state)?;
            }
        }
        self.bounds.ascend();
        Ok(())
    }
}

pub(crate) fn named_children(node: Node<'_>) -> Vec<Node<'_>> {
    node.named_children(&mut node.walk()).collect()
}

/// A node and all below it.
fn descendants(node: Node<'_>) -> Vec<Node<'_>> {
    let mut all = vec![node];
    let mut next = 0;
    while let Some(&node) = all.get(next) {
        all.extend(named_children(node));
        next += 1;
    }
    all
}
