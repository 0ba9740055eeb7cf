//! Commands with heredocs, written otherwise: the grammar cannot read `a <<X 2>&1 | b` nor
//! `a <<X; b`, which to a shell are `a 2>&1 <<X | b` and `b` on a line of its own after the heredoc.
//! Nor can it read `a <<X &`, which is `( a <<X` with `) &` after the heredoc.
//!
//! What is judged must be what is run. So nothing is written otherwise unless every character up to
//! there is certain to be understood: places where `<<`, `;` or a quote may mean something else are
//! not gone into. From the first such place on, the source stays as it is.

use std::borrow::Cow;

/// The source in a form that the grammar reads better, if there is one that certainly means the same.
pub(super) fn rewritten(source: &str) -> Option<String> {
    let mut new = String::new();
    let mut at = 0;
    // Where in what is new the statement begins, if that is known.
    let mut statement = Some(0);
    while at < source.len() {
        if is_operator(source, at) {
            let Some(header) = Header::read(source, at) else { break };
            if header.is_background {
                let Some(start) = statement.filter(|it| header.ends_list(&new, *it)) else { break };
                new.insert_str(start, "( ");
            }
            new.push_str(&header.rewritten());
            at = header.end;
            // A list that goes on after the heredoc is not looked for the end of.
            if header.rest.contains('#') || header.rest.trim_end().ends_with(['|', '&']) {
                statement = None;
            } else {
                statement = statement.map(|_| new.len());
            }
        } else {
            let Some(next) = item_end(source, at) else { break };
            let item = source.get(at..next)?;
            new.push_str(item);
            at = next;
            if item == ";" || item == "\n" {
                statement = statement.map(|_| new.len());
            }
        }
    }
    new.push_str(source.get(at..)?);
    (new != source).then_some(new)
}

/// Words that begin, part or end a command made of others, or change how one is run.
const COMPOUND_WORDS: &[&str] = &[
    "!", "{", "}", "[[", "]]", "if", "then", "elif", "else", "fi", "for", "while", "until",
    "select", "do", "done", "case", "in", "esac", "function", "time", "coproc",
];

/// A heredoc: its operator and what follows up to the line that ends it.
struct Header<'a> {
    /// The operator and the delimiter.
    opening: Cow<'a, str>,
    /// Redirections of what is printed, each by itself.
    redirections: Vec<&'a str>,
    /// What follows on the line and belongs to the same statement, and then what does not.
    rest: &'a str,
    later: &'a str,
    /// Whether the statement runs in the background.
    is_background: bool,
    /// The lines up to the delimiter and with it.
    body: &'a str,
    /// Where the source goes on.
    end: usize,
}

impl<'a> Header<'a> {
    fn read(source: &'a str, start: usize) -> Option<Self> {
        // `3<<X` and `{name}<<X` are for other streams than the usual one.
        let before = source.get(..start)?.chars().next_back()?;
        if !before.is_ascii_alphabetic() && !is_blank(before) {
            return None;
        }
        let strips_tabs = source.get(start..)?.starts_with("<<-");
        let word = after_blanks(source, start + if strips_tabs { 3 } else { 2 });
        let (delimiter, is_quoted, mut at) = delimiter(source, word)?;
        let opening = if source.get(word..)?.starts_with('\\') {
            Cow::Owned(format!("<<{}'{delimiter}'", if strips_tabs { "-" } else { "" }))
        } else {
            Cow::Borrowed(source.get(start..at)?)
        };
        if !ends_word(source, at) {
            return None;
        }
        let mut redirections = Vec::new();
        while let Some(end) = output_redirection(source, after_blanks(source, at)) {
            redirections.push(source.get(after_blanks(source, at)..end)?);
            at = end;
        }
        let Line { rest, later, is_background, end: newline } = Line::read(source, at)?;
        let body_start = newline + 1;
        let mut end = body_start;
        let mut goes_on = false;
        loop {
            let text = source.get(end..).filter(|it| !it.is_empty())?;
            let text = text.split_inclusive('\n').next()?;
            end += text.len();
            let text = text.strip_suffix('\n').unwrap_or(text);
            let is_end =
                delimiter == if strips_tabs { text.trim_start_matches('\t') } else { text };
            // To a shell, what follows a backslash is no line of its own, and does not end here.
            if is_end && goes_on {
                return None;
            }
            if is_end {
                break;
            }
            goes_on = !is_quoted && text.ends_with('\\');
            // The delimiter might be in two parts.
            let part = text.trim_end_matches('\\');
            if goes_on && (strips_tabs || delimiter.starts_with(part)) {
                return None;
            }
        }
        let body = source.get(body_start..end)?;
        // What runs in the body finds the files as they are before they are written to.
        let writes = redirections.iter().any(|it| !it.contains(">&") && !it.ends_with("/dev/null"));
        if !is_quoted && writes && (body.contains("$(") || body.contains('`')) {
            return None;
        }
        Some(Self { opening, redirections, rest, later, is_background, body, end })
    }

    /// Whether the statement is certain to be a whole list of simple commands, which alone can be
    /// put in parentheses.
    fn ends_list(&self, before: &str, start: usize) -> bool {
        let (Some(earlier), Some(command)) = (before.get(..start), before.get(start..)) else {
            return false;
        };
        let list = format!("{command} {}", self.rest).replace("\\\n", "");
        let without_pairs =
            ["&&", ">&", "&>", "|&"].iter().fold(list, |it, pair| it.replace(pair, " "));
        let is_word = |it: &str| !COMPOUND_WORDS.contains(&it);
        // A list may go on from the line before, and so may the head of a function.
        let mut lines = earlier.lines().rev().map(str::trim);
        let line = lines.find(|it| !it.is_empty() && !it.starts_with('#')).unwrap_or_default();
        !["&&", "|", "|&", ")", "\\"].iter().any(|it| line.ends_with(it))
            && !line.contains('#')
            && !command.trim().is_empty()
            && !without_pairs.contains(['&', '(', ')', '`'])
            && without_pairs.split([' ', '\t', '\n', '|']).all(is_word)
    }

    fn rewritten(&self) -> String {
        let mut new = String::new();
        for redirection in &self.redirections {
            new.push(' ');
            new.push_str(redirection);
        }
        new.push(' ');
        new.push_str(&self.opening);
        new.push_str(self.rest);
        new.push('\n');
        new.push_str(self.body);
        let has_later = !self.later.trim().is_empty();
        if (self.is_background || has_later) && !new.ends_with('\n') {
            new.push('\n');
        }
        if self.is_background {
            new.push_str(") &\n");
        }
        if has_later {
            new.push_str(self.later);
            new.push('\n');
        }
        new
    }
}

/// The word that ends a heredoc, whether it is quoted, and where it ends.
fn delimiter(source: &str, start: usize) -> Option<(&str, bool, usize)> {
    let text = source.get(start..)?;
    let quote = text.chars().next().filter(|it| matches!(it, '\'' | '"' | '\\'));
    let from = start + quote.map_or(0, char::len_utf8);
    let is_quoted = matches!(quote, Some('\'' | '"'));
    let plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || (is_quoted && it == '-');
    let length = source.get(from..)?.find(|it| !plain(it))?;
    let word = source.get(from..from + length).filter(|it| !it.is_empty())?;
    match quote {
        None => Some((word, false, from + length)),
        Some('\\') => Some((word, true, from + length)),
        Some(quote) if source.get(from + length..)?.starts_with(quote) => {
            Some((word, true, from + length + 1))
        }
        Some(_) => None,
    }
}

/// The rest of a line in two parts, cut at the end of its first statement.
struct Line<'a> {
    rest: &'a str,
    later: &'a str,
    /// Whether it is cut at an ampersand.
    is_background: bool,
    /// Where the line ends.
    end: usize,
}

impl<'a> Line<'a> {
    fn read(source: &'a str, start: usize) -> Option<Self> {
        let mut at = start;
        let mut cut = None;
        loop {
            let text = source.get(at..)?;
            if text.starts_with('\n') {
                break;
            }
            if text.starts_with(";;") || text.starts_with(";&") || is_operator(source, at) {
                return None;
            }
            if cut.is_none() && (text.starts_with(';') || is_ampersand(source, at)) {
                cut = Some(at);
            }
            let next = item_end(source, at)?;
            if source.get(at..next)?.contains('\n') {
                return None;
            }
            at = next;
        }
        let later_start = cut.map_or(at, |cut| cut + 1);
        Some(Self {
            rest: source.get(start..cut.unwrap_or(at))?,
            later: source.get(later_start..at)?,
            is_background: cut.is_some_and(|cut| is_ampersand(source, cut)),
            end: at,
        })
    }
}

/// Whether there is an ampersand by itself, which is not part of another operator.
fn is_ampersand(source: &str, at: usize) -> bool {
    let (Some(before), Some(text)) = (source.get(..at), source.get(at..)) else { return false };
    text.strip_prefix('&').is_some_and(|it| !it.starts_with(['&', '>']))
        && !before.ends_with(['&', '>', '<', '|'])
}

/// Where a redirection ends that begins here, if it is one of what is printed or of errors. Such a
/// one may stand before or after the one of what is read.
fn output_redirection(source: &str, start: usize) -> Option<usize> {
    let text = source.get(start..)?;
    let after = |prefix: &str| Some(start + text.len() - text.strip_prefix(prefix)?.len());
    let copies = ["2>&1", "1>&2", ">&2", ">&1"];
    if let Some(end) = copies.iter().find_map(|it| after(it)) {
        return ends_word(source, end).then_some(end);
    }
    let operators = ["&>>", "&>", "2>>", "2>", "1>>", "1>", ">>", ">"];
    let from = after_blanks(source, operators.iter().find_map(|it| after(it))?);
    let plain = |it: char| it.is_ascii_alphanumeric() || "_-./".contains(it);
    let length = source.get(from..)?.find(|it| !plain(it))?;
    let target = source.get(from..from + length).filter(|it| !it.is_empty())?;
    // Some devices stand for what is read at that moment.
    let is_stream = target != "/dev/null" && ["dev/", "proc/"].iter().any(|it| target.contains(it));
    (!is_stream && ends_word(source, from + length)).then_some(from + length)
}

/// Where one item of source ends: a character, or what is quoted. None if it is not certain.
fn item_end(source: &str, start: usize) -> Option<usize> {
    let text = source.get(start..)?;
    let first = text.chars().next()?;
    let next = start + first.len_utf8();
    let before = source.get(..start)?.chars().next_back();
    match first {
        // Operators may go on in the next line.
        '<' | '>' | '$' | '(' if source.get(next..)?.starts_with("\\\n") => None,
        '#' if source.get(..start)?.ends_with("\\\n") => None,
        '\\' => Some(next + source.get(next..)?.chars().next()?.len_utf8()),
        '\'' => Some(next + source.get(next..)?.find('\'')? + 1),
        '"' => double_quoted_end(source, next),
        '`' => None,
        '$' if text.starts_with("$'") => escaped_end(source, start + 2),
        '$' if text.starts_with("$\"") => None,
        '$' => dollar_end(source, start),
        '(' if text.starts_with("((") || matches!(before, Some('<' | '>')) => None,
        // In the subscript of a name, `<<` is a sum.
        '[' if before.is_some_and(|it| it.is_ascii_alphanumeric() || it == '_') => None,
        '<' if text.starts_with("<<<") => Some(start + 3),
        '<' | '>' if text.starts_with("<(") || text.starts_with(">(") => {
            commands_end(source, start + 2)
        }
        '#' if before.is_none_or(|it| it.is_whitespace() || ";&|()".contains(it)) => {
            Some(start + text.find('\n').unwrap_or(text.len()))
        }
        _ => Some(next),
    }
}

fn double_quoted_end(source: &str, start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let first = source.get(at..)?.chars().next()?;
        let next = at + first.len_utf8();
        at = match first {
            '"' => return Some(next),
            '`' => return None,
            '\\' => next + source.get(next..)?.chars().next()?.len_utf8(),
            '$' => dollar_end(source, at)?,
            _ => next,
        };
    }
}

/// Where `$'…'` ends. In other shells a quote ends it that comes after a backslash.
fn escaped_end(source: &str, start: usize) -> Option<usize> {
    let text = source.get(start..)?;
    let length = text.find('\'')?;
    (!text.get(..length)?.ends_with('\\')).then_some(start + length + 1)
}

/// Where something after a dollar sign ends; only commands, plain sums and values are gone into.
fn dollar_end(source: &str, start: usize) -> Option<usize> {
    let text = source.get(start..)?;
    let (open, allowed, close) = if text.starts_with("$((") {
        ("$((", " _+-*/%$", "))")
    } else if text.starts_with("$(") {
        return commands_end(source, start + 2);
    } else if text.starts_with("${") {
        ("${", "_:-./[]@*#", "}")
    } else {
        let is_plain = !text.starts_with("$[") && !text.starts_with("$\\\n");
        return is_plain.then_some(start + 1);
    };
    let inner = text.strip_prefix(open)?;
    let length = inner.find(|it: char| !it.is_ascii_alphanumeric() && !allowed.contains(it))?;
    let is_closed = inner.get(length..)?.starts_with(close);
    is_closed.then_some(start + open.len() + length + close.len())
}

/// Where commands end that stand in parentheses: at the first `)`, as they have no others.
fn commands_end(source: &str, start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let text = source.get(at..)?;
        if text.starts_with(')') {
            break;
        }
        if text.starts_with('(') || is_operator(source, at) {
            return None;
        }
        at = item_end(source, at)?;
    }
    // The patterns of a `case` have a `)` each.
    let inner = source.get(start..at)?.replace("\\\n", "");
    let mut words = inner.split(|it: char| !it.is_ascii_alphanumeric());
    (!words.any(|it| it == "case")).then_some(at + 1)
}

fn is_operator(source: &str, at: usize) -> bool {
    source.get(at..).is_some_and(|it| it.starts_with("<<") && !it.starts_with("<<<"))
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

fn after_blanks(source: &str, at: usize) -> usize {
    let text = source.get(at..).unwrap_or_default();
    at + text.find(|it| !is_blank(it)).unwrap_or(text.len())
}

fn ends_word(source: &str, at: usize) -> bool {
    source.get(at..).is_some_and(|it| it.starts_with([' ', '\t', '\n', ';', '|', '&', ')']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_come_before_a_heredoc_and_later_statements_after_it() {
        assert_eq!(
            rewritten("a <<'X' 2>&1 >> b.txt | c \"d;e\"; f\nbody; <<\nX\ng").unwrap(),
            "a  2>&1 >> b.txt <<'X' | c \"d;e\"\nbody; <<\nX\n f\ng"
        );
    }

    #[test]
    fn a_delimiter_may_be_escaped_or_hyphenated_and_lines_may_go_on() {
        for (source, new) in [
            ("a <<\\X 2>&1 | b\n\\\nX\n", "a  2>&1 <<'X' | b\n\\\nX\n"),
            ("a <<-\\X 2>&1 | b\n\tX\n", "a  2>&1 <<-'X' | b\n\tX\n"),
            ("a <<'X-Y' 2>&1 | b\nX\nX-Y\n", "a  2>&1 <<'X-Y' | b\nX\nX-Y\n"),
            ("a <<X 2>&1 | b\nc \\\nd\nX\n", "a  2>&1 <<X | b\nc \\\nd\nX\n"),
        ] {
            assert_eq!(rewritten(source).unwrap(), new);
        }
    }

    #[test]
    fn what_runs_in_the_background_is_put_in_parentheses_as_a_whole() {
        for (source, new) in [
            ("a <<X &\nX", "( a  <<X \nX\n) &\n"),
            ("(a; b <<X & c)\nX\n", "(a;(  b  <<X \nX\n) &\n c)\n"),
            ("a &\n# b\nc <<X &\nX\n", "a &\n# b\n( c  <<X \nX\n) &\n"),
            ("a <<X &\nX\nb \\\nc <<Y &\nY\n", "( a  <<X \nX\n) &\n( b \\\nc  <<Y \nY\n) &\n"),
            ("a; b && c <<X > d 2>&1 & e\nX\n", "a;(  b && c  > d 2>&1 <<X \nX\n) &\n e\n"),
            ("a\nb 2>&1 <<X | c && d &\nX\n", "a\n( b 2>&1  <<X | c && d \nX\n) &\n"),
        ] {
            assert_eq!(rewritten(source).unwrap(), new);
        }
        for source in [
            "a <<X |\nX\n\nb <<Y && c &\nY\n",
            "a <<X | # b\nX\nb <<Y && c &\nY\n",
            "a | # b\n# c\nb <<Y && c &\nY\n",
            "wh\\\nile b <<X &\nX\n",
            "(b <<X & c)\nX\n",
            "{ b <<X & }\nX\n",
            "b <<X | (c & d)\nX\n",
            "b <<X | while c & do d; done\nX\n",
            "while b <<X & do d; done\nX\n",
            "a & b <<X &\nX\n",
            "a |\nb <<X && c &\nX\n",
            "f()\nb <<X &\nX\n",
            "time b <<X &\nX\n",
        ] {
            assert_eq!(rewritten(source).filter(|it| it.contains(") &\n")), None, "{source}");
        }
    }

    #[test]
    fn what_stands_before_is_gone_into_and_what_comes_after_may_be_anything() {
        for before in [
            "b=$(c | d > e 2>&1)",
            "b=$(c \")\" ')' \"$(d)\")",
            "b=\"$(c \"$(d | e)\")\"",
            "b=$((5 + $c * 5))",
            "b $'\\t;'",
            "b <(c | d) > >(e)",
        ] {
            for after in ["b `c` ((d)) $\"e\"", "b 3<<Y <c\nd\nY", "'"] {
                assert_eq!(
                    rewritten(&format!("{before}\na <<'X' 2>&1 | c\nX\n{after}")).unwrap(),
                    format!("{before}\na  2>&1 <<'X' | c\nX\n{after}")
                );
            }
        }
    }

    #[test]
    fn what_is_not_certain_to_mean_the_same_is_left_alone() {
        for source in [
            "a <<X <b | c\nX\n",
            "a <<X > /dev/stdin | c\nX\n",
            "a <<X > $(b) | c\nX\n",
            "a <<X > b 2>&1 | c\n$(d b)\nX\n",
            "a <<X 2>&1 <<Y | c\nX\nY\n",
            "a 3<<X 2>&1 | c\nX\n",
            "(( a <<X )); b\nX\n",
            "a[1 <<X ]=3; b\nX\n",
            "echo `a <<X 2>&1`; b\nX\n",
            "case a in a) b <<X ;; esac\nX\n",
            "a <<X 2>&1 | c\nb\\\nX\n",
            "a <<X 2>&1 | c\nb\\\\\nX\n",
            "a <<XY 2>&1 | c\nX\\\nY\nXY\n",
            "a <<X 2>&1 | c\n\\\nX\nX\n",
            "a <<-X 2>&1 | c\nb\\\nc\nX\n",
            "a <<\\'X' 2>&1 | c\nX\n",
            "a <<X\\Y 2>&1 | c\nXY\n",
            "a <<'X'Y 2>&1 | c\nXY\n",
            "a <<'X$Y' 2>&1 | c\nX$Y\n",
            "a <<X 2>&1 | c '\n'\nX\n",
            "a <<X 2>&1 | c",
            "a '<<X 2>&1 ; b\nX\n'",
            "# a <<X 2>&1 ; b\nX\n",
            "b=$(case x in x) c;; esac; a <<X 2>&1 | d\nX\n)",
            "b=$(ca\\\nse x in x) c;; esac; a <<X 2>&1 | d\nX\n)",
            "b <\\\n<Y\na <<X 2>&1 | d\nX\nY\n",
            "b\\\n#'\na <<X 2>&1 | d\nX\n'",
            "b=$(c # ) a <<X 2>&1 | d\nX\n)",
            "b=$( (c) ; a <<X 2>&1 | d\nX\n)",
            "b=$(c <<Y)\na <<X 2>&1 | d\nX\n",
            "b=$((1 <<2))\na <<X 2>&1 | d\nX\n",
            "b=$'\\' a <<X 2>&1 | d\nX\n'",
        ] {
            assert_eq!(rewritten(source).filter(|it| it.contains("2>&1 <<")), None, "{source}");
        }
    }
}
