//! Small questions to the syntax tree.

use tree_sitter::Node;

pub(super) fn text<'a>(source: &'a str, node: Node<'_>) -> &'a str {
    source.get(node.byte_range()).unwrap_or_default()
}

/// The named children, comments aside.
pub(super) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    node.named_children(&mut node.walk()).filter(|it| it.kind() != "comment").collect()
}

/// The node and everything below it.
pub(super) fn all(node: Node<'_>) -> Vec<Node<'_>> {
    let mut found = vec![node];
    let mut next = 0;
    while let Some(node) = found.get(next).copied() {
        found.extend(children(node));
        next += 1;
    }
    found
}

/// The last name of what a call calls: `fit` of `a.b.fit(x)`, `concat` of `pd.concat(x)`.
pub(super) fn called<'a>(source: &'a str, call: Node<'_>) -> &'a str {
    let Some(function) = call.child_by_field_name("function") else { return "" };
    match function.kind() {
        "attribute" => function.child_by_field_name("attribute").map_or("", |it| text(source, it)),
        "identifier" => text(source, function),
        _ => "",
    }
}

/// What a method is called on.
pub(super) fn receiver(call: Node<'_>) -> Option<Node<'_>> {
    call.child_by_field_name("function")
        .filter(|it| it.kind() == "attribute")?
        .child_by_field_name("object")
}

pub(super) fn positional(call: Node<'_>) -> Vec<Node<'_>> {
    let Some(arguments) = call.child_by_field_name("arguments") else { return Vec::new() };
    children(arguments).into_iter().filter(|it| it.kind() != "keyword_argument").collect()
}

pub(super) fn keyword<'t>(source: &str, call: Node<'t>, name: &str) -> Option<Node<'t>> {
    let arguments = call.child_by_field_name("arguments")?;
    let keywords = children(arguments).into_iter().filter(|it| it.kind() == "keyword_argument");
    let mut named = keywords
        .filter(|it| it.child_by_field_name("name").is_some_and(|it| text(source, it) == name));
    named.next()?.child_by_field_name("value")
}

/// The value of a plain string.
pub(super) fn string<'a>(source: &'a str, node: Node<'_>) -> Option<&'a str> {
    if node.kind() != "string" {
        return None;
    }
    let content = children(node).into_iter().find(|it| it.kind() == "string_content");
    Some(content.map_or("", |it| text(source, it)))
}

/// All plain strings in and below a node.
pub(super) fn strings<'a>(source: &'a str, node: Node<'_>) -> Vec<&'a str> {
    all(node).into_iter().filter_map(|it| string(source, it)).collect()
}

/// The names on the left of an assignment or a loop, in order.
pub(super) fn names<'a>(source: &'a str, left: Node<'_>) -> Vec<&'a str> {
    match left.kind() {
        "identifier" => vec![text(source, left)],
        "pattern_list" | "tuple_pattern" | "list_pattern" | "tuple" => {
            children(left).into_iter().flat_map(|it| names(source, it)).collect()
        }
        _ => Vec::new(),
    }
}

/// The whole lines from one node to another.
pub(super) fn lines<'a>(source: &'a str, from: Node<'_>, to: Node<'_>) -> &'a str {
    let start =
        source.get(..from.start_byte()).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1);
    let end = source.get(to.end_byte()..).and_then(|it| it.find('\n'));
    let end = end.map_or(source.len(), |it| to.end_byte() + it);
    source.get(start..end).unwrap_or_default().trim_end()
}
