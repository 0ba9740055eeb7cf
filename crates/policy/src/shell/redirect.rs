//! Redirections: what is written to, and what is read.

use tree_sitter::Node;

use super::{Flow, State, Stdin, Walk, named_children};
use crate::place::Last;
use crate::text::{Text, Word};
use crate::{Denial, Judged};

/// What a redirection means for its command.
#[derive(Debug, Default)]
pub(crate) struct Redirection {
    /// Words that belong to the command, though they stand after the redirection.
    pub(crate) words: Vec<Word>,
    pub(crate) stdin: Option<Stdin>,
    /// A file that is written.
    target: Option<Text>,
    /// Whether what was in the file stays.
    appends: bool,
}

impl<'tree> Walk<'_, 'tree> {
    /// A statement with redirections around it.
    pub(super) fn redirected(
        &mut self,
        node: Node<'tree>,
        state: &mut State<'tree>,
        more: Vec<Word>,
    ) -> Judged<Flow<'tree>> {
        let Some(body) = node.child_by_field_name("body") else {
            // `> file` alone empties the file.
            for child in named_children(node) {
                let redirection = self.redirection(child, state)?;
                self.forget_content(&redirection, state);
            }
            return Ok(Flow::PLAIN);
        };
        self.after_list(body, state, |walk, body, state| {
            walk.redirected_body(node, body, state, more)
        })
    }

    /// The grammar takes `a && b > file` for `{ a && b; } > file`, and `a && b 2>&1 | c` alike. The
    /// left side of such a list is run by itself, before the rest.
    pub(super) fn after_list(
        &mut self,
        body: Node<'tree>,
        state: &mut State<'tree>,
        rest: impl FnOnce(&mut Self, Node<'tree>, &mut State<'tree>) -> Judged<Flow<'tree>>,
    ) -> Judged<Flow<'tree>> {
        let named = named_children(body);
        let (true, Some(&left), Some(&right)) =
            (body.kind() == "list", named.first(), named.last())
        else {
            return rest(self, body, state);
        };
        self.seen.insert(body.id());
        let before = state.cwd.clone();
        let first = self.run(left, state)?;
        let and = body.children(&mut body.walk()).any(|child| child.kind() == "&&");
        self.join(and, before, first, state, |walk, state| rest(walk, right, state))
    }

    /// A statement with the redirections of a node.
    pub(super) fn redirected_body(
        &mut self,
        node: Node<'tree>,
        body: Node<'tree>,
        state: &mut State<'tree>,
        mut more: Vec<Word>,
    ) -> Judged<Flow<'tree>> {
        let named = node.child_by_field_name("body").map(|it| it.id());
        let before = state.clone();
        let mut own_stdin = None;
        let mut target = None;
        let mut appends = false;
        let mut trailing = Vec::new();
        for child in named_children(node) {
            if Some(child.id()) == named {
                continue;
            }
            let redirection = self.redirection(child, state)?;
            more.extend(redirection.words);
            own_stdin = redirection.stdin.or(own_stdin);
            appends |= redirection.appends;
            target = redirection.target.or(target);
            if child.kind() == "heredoc_redirect" {
                trailing.push(child);
            }
        }
        if let Some(stdin) = own_stdin.clone() {
            state.stdin = stdin;
        }
        let mut flow = match body.kind() {
            "command" => {
                self.seen.insert(body.id());
                self.command(body, state, more)?
            }
            "redirected_statement" => {
                self.seen.insert(body.id());
                self.redirected(body, state, more)?
            }
            _ if more.is_empty() => self.run(body, state)?,
            _ => return Err(Denial::new("words after a redirection could not be understood")),
        };
        if body.kind() == "list" {
            // `cd x && echo > file`: to the grammar the redirection belongs to the whole list, to
            // the shell to its last command, which may be somewhere else by then.
            for child in named_children(node).into_iter().filter(|it| it.id() != body.id()) {
                self.redirection(child, state)?;
            }
        }
        let printed = match (&own_stdin, self.text(body).trim()) {
            (Some(stdin), "cat") if !state.functions.contains_key("cat") => stdin.clone(),
            _ => Stdin::Unknown,
        };
        let said = target.as_ref().map(|_| self.output(body, state));
        state.stdin = before.stdin.clone();
        if let Some(target) = target {
            let content = match &own_stdin {
                Some(Stdin::Text(text))
                    if self.text(body).trim() == "cat" && !state.functions.contains_key("cat") =>
                {
                    text.as_literal()
                }
                Some(_) | None => None,
            };
            if appends {
                self.bounds.disk.append(&target, &state.cwd, content);
            } else {
                self.bounds.disk.write(&target, &state.cwd, content);
            }
            // What others print is known well enough to be looked at, if not to be relied on.
            if let (None, Some(Stdin::Text(text))) = (content, said) {
                self.bounds.disk.say(&target, &state.cwd, &text.to_string());
            }
        }
        for heredoc in trailing {
            flow = self.after_heredoc(heredoc, &before, flow, &printed, state)?;
        }
        Ok(flow)
    }

    /// `cat <<EOF && next` and `cat <<EOF | next`: the grammar keeps the rest with the heredoc.
    fn after_heredoc(
        &mut self,
        node: Node<'tree>,
        before: &State<'tree>,
        mut flow: Flow<'tree>,
        printed: &Stdin,
        state: &mut State<'tree>,
    ) -> Judged<Flow<'tree>> {
        let goes_on = |it: Node<'tree>| matches!(it.kind(), "&&" | "||" | "pipeline");
        let mut parents = std::iter::successors(node.parent(), Node::parent);
        let parent = parents.find(|it| it.kind() != "redirected_statement");
        if parent.is_some_and(|it| it.kind() == "pipeline")
            && node.children(&mut node.walk()).any(goes_on)
        {
            return Err(Denial::new(
                "what follows a heredoc in a pipeline could not be understood",
            ));
        }
        let mut and = true;
        for child in node.children(&mut node.walk()) {
            let own = [
                "heredoc_start",
                "heredoc_body",
                "heredoc_end",
                "file_redirect",
                "herestring_redirect",
                "heredoc_redirect",
            ];
            match child.kind() {
                "&&" => and = true,
                "||" => and = false,
                "pipeline" => {
                    // What is piped changes nothing here, on either side.
                    *state = before.clone();
                    self.seen.insert(child.id());
                    for part in named_children(child) {
                        flow = self.first_apart(part, state, |walk, first, state| {
                            let mut piped = state.clone();
                            piped.stdin = printed.clone();
                            walk.run(first, &mut piped)?;
                            Ok(Flow::PLAIN)
                        })?;
                    }
                }
                kind if !child.is_named() || own.contains(&kind) => {}
                _ if node.child_by_field_name("right").is_some_and(|it| it.id() == child.id()) => {
                    let left = std::mem::replace(&mut flow, Flow::PLAIN);
                    flow = self.first_apart(child, state, |walk, first, state| {
                        walk.join(and, before.cwd.clone(), left, state, |walk, state| {
                            walk.run(first, state)
                        })
                    })?;
                }
                _ => {}
            }
        }
        Ok(flow)
    }

    /// `cat <<EOF | next && rest`: the grammar keeps the rest together, while to the shell only its
    /// first part has to do with the heredoc.
    fn first_apart<F>(
        &mut self,
        node: Node<'tree>,
        state: &mut State<'tree>,
        first: F,
    ) -> Judged<Flow<'tree>>
    where
        F: FnOnce(&mut Self, Node<'tree>, &mut State<'tree>) -> Judged<Flow<'tree>>,
    {
        let named = named_children(node);
        let redirected = match node.kind() {
            "redirected_statement" => Some(node),
            "pipeline" => named.first().copied().filter(|it| it.kind() == "redirected_statement"),
            _ => None,
        };
        let body = redirected.and_then(|it| it.child_by_field_name("body"));
        let list = body.unwrap_or(node);
        let ends = named_children(list);
        let (true, Some(&left), Some(&right)) = (list.kind() == "list", ends.first(), ends.last())
        else {
            return first(self, node, state);
        };
        self.seen.extend([node.id(), list.id()]);
        self.seen.extend(redirected.map(|it| it.id()));
        let before = state.cwd.clone();
        let flow = self.first_apart(left, state, first)?;
        let and = list.children(&mut list.walk()).any(|child| child.kind() == "&&");
        self.join(and, before, flow, state, |walk, state| match node.kind() {
            "redirected_statement" => walk.redirected_body(node, right, state, Vec::new()),
            "pipeline" => walk.elements(&named, Some(right), state),
            _ => walk.run(right, state),
        })
    }

    /// What is written there is not known.
    pub(super) fn forget_content(&mut self, redirection: &Redirection, state: &State<'tree>) {
        if let Some(target) = &redirection.target {
            self.bounds.disk.write(target, &state.cwd, None);
        }
    }

    /// Judges one redirection.
    pub(super) fn redirection(
        &mut self,
        node: Node<'tree>,
        state: &mut State<'tree>,
    ) -> Judged<Redirection> {
        self.seen.insert(node.id());
        match node.kind() {
            "file_redirect" => self.file_redirect(node, state),
            "herestring_redirect" => {
                let text = named_children(node).last().copied();
                let value = match text {
                    Some(text) => self.value(text.start_byte(), node.end_byte(), node, state)?,
                    None => Word::any(),
                };
                let stdin = match value.texts.as_slice() {
                    [text] => Stdin::Text(text.clone()),
                    _ => Stdin::Unknown,
                };
                Ok(Redirection { stdin: Some(stdin), ..Redirection::default() })
            }
            "heredoc_redirect" => self.heredoc(node, state),
            _ => Err(Denial::new(format_args!("`{}` could not be understood", self.text(node)))),
        }
    }

    fn file_redirect(
        &mut self,
        node: Node<'tree>,
        state: &mut State<'tree>,
    ) -> Judged<Redirection> {
        let mut operator = "";
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for child in node.children(&mut node.walk()) {
            match (child.kind(), ranges.last_mut()) {
                ("file_descriptor", None) => {}
                (kind, None) if !child.is_named() && kind.contains(['<', '>']) => operator = kind,
                (_, Some((_, end))) if *end == child.start_byte() => *end = child.end_byte(),
                _ => ranges.push((child.start_byte(), child.end_byte())),
            }
        }
        let mut words = Vec::new();
        for (start, end) in ranges {
            words.extend(self.words(start, end, node, state)?);
        }
        let closes = operator.ends_with('-');
        if closes || words.is_empty() {
            return Ok(Redirection { words, ..Redirection::default() });
        }
        let destination = words.remove(0);
        let mut redirection = Redirection { words, ..Redirection::default() };
        let copies = |text: &Text| {
            text.as_literal()
                .is_some_and(|it| it.trim_end_matches('-').chars().all(|c| c.is_ascii_digit()))
        };
        match operator {
            "<" => {
                for text in &destination.texts {
                    self.policy.may_read(text, &state.cwd)?;
                }
                redirection.stdin = Some(self.file_as_stdin(&destination, state));
            }
            "<&" | ">&" if destination.texts.iter().all(copies) => {}
            // Every other operator writes, and so may one that is not known.
            _ => {
                self.check_ups(std::slice::from_ref(&destination))?;
                for text in &destination.texts {
                    self.policy.may_write(text, &state.cwd, Last::Followed)?;
                }
                redirection.appends = operator.contains(">>");
                if let [text] = destination.texts.as_slice() {
                    redirection.target = Some(text.clone());
                }
            }
        }
        Ok(redirection)
    }

    fn file_as_stdin(&self, word: &Word, state: &State<'_>) -> Stdin {
        let content = match word.texts.as_slice() {
            [text] => self.bounds.disk.content_of(text, &state.cwd),
            _ => None,
        };
        content.map_or(Stdin::Unknown, |content| Stdin::Text(Text::literal(content)))
    }

    fn heredoc(&mut self, node: Node<'tree>, state: &mut State<'tree>) -> Judged<Redirection> {
        let mut redirection = Redirection::default();
        let mut quoted = false;
        let mut strips_tabs = false;
        let mut body = None;
        let mut argument_ranges: Vec<(usize, usize)> = Vec::new();
        let arguments: Vec<usize> = {
            let mut cursor = node.walk();
            node.children_by_field_name("argument", &mut cursor).map(|it| it.id()).collect()
        };
        for child in node.children(&mut node.walk()) {
            match child.kind() {
                "<<-" => strips_tabs = true,
                "heredoc_start" => quoted = self.text(child).contains(['\'', '"', '\\']),
                "heredoc_body" => body = Some(child),
                "file_redirect" | "herestring_redirect" => {
                    let inner = self.redirection(child, state)?;
                    redirection.words.extend(inner.words);
                    redirection.target = inner.target.or(redirection.target);
                    redirection.appends |= inner.appends;
                }
                _ if arguments.contains(&child.id()) => match argument_ranges.last_mut() {
                    Some((_, end)) if *end == child.start_byte() => *end = child.end_byte(),
                    _ => argument_ranges.push((child.start_byte(), child.end_byte())),
                },
                _ => {}
            }
        }
        for (start, end) in argument_ranges {
            redirection.words.extend(self.words(start, end, node, state)?);
        }
        let text = match body {
            None => Text::default(),
            Some(body) if quoted => Text::literal(self.text(body)),
            Some(body) => self.heredoc_text(body, state)?,
        };
        let text = match (strips_tabs, text.as_literal()) {
            (true, Some(literal)) => {
                let lines = literal.split_inclusive('\n').map(|line| line.trim_start_matches('\t'));
                Text::literal(lines.collect::<String>())
            }
            (true, None) | (false, _) => text,
        };
        redirection.stdin = Some(Stdin::Text(text));
        Ok(redirection)
    }
}
