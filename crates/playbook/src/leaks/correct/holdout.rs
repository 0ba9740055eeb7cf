//! Rules for scripts that hold out rows by `train_test_split`.
//!
//! The same options choose the same rows every time, so that something can be learnt from the
//! training part before the script makes the split: `scaler.fit(train_test_split(x, ...)[0])`.

use tree_sitter::Node;

use super::page::{Edit, Page, Split};
use crate::leaks::rows::{Culprit, Place, Reason, Rows};
use crate::leaks::syntax::{all, called, children, keyword, names, positional, receiver, string};

/// Held-out and test rows are transformed with what was learnt before, not fitted again.
pub(super) fn transformed_only(page: &Page<'_>, culprit: &Culprit) -> Option<Vec<Edit>> {
    let call = fitting(page, culprit)?;
    let rows = culprit.places.first()?.rows;
    let object = receiver(call).filter(|it| it.kind() == "identifier")?;
    let fitted = format!("{}.fit", page.text(object));
    let before = page.source.get(..culprit.at.start)?;
    if culprit.reason != Reason::Prepared
        || !matches!(rows, Rows::Held | Rows::Test)
        || !before.contains(&fitted)
    {
        return None;
    }
    let method = call.child_by_field_name("function")?.child_by_field_name("attribute")?;
    match page.text(method) {
        "fit_transform" => Some(vec![Edit::new(method.byte_range(), "transform")]),
        "fit" => Some(vec![Edit::new(page.lines(page.statement(culprit.at.start)?), "")]),
        _ => None,
    }
}

/// Preparation is fitted on the rows that the split will choose.
pub(super) fn fitted_on_chosen_rows(page: &Page<'_>, culprit: &Culprit) -> Option<Vec<Edit>> {
    if culprit.reason != Reason::Prepared {
        return None;
    }
    let call = fitting(page, culprit)?;
    let statement = page.statement(culprit.at.start)?;
    let split = page.split().filter(|it| it.statement.start_byte() > culprit.at.start)?;
    let (options, mut edits) = options(page, &split, culprit.at.start)?;
    let [first, labels @ ..] = &positional(call)[..] else { return None };
    let learnt = labelled(page, *first, culprit.places.first()?.rows)?;
    if page.changes_rows(statement.end_byte()..split.statement.start_byte()) && learnt.is_own {
        return None;
    }
    let chosen = |it: &str| format!("{}({it}, {options})[0]", function(page, &split));
    let mut arguments = vec![chosen(&learnt.text)];
    arguments.extend(labels.iter().map(|it| chosen(page.text(*it))));
    let arguments = arguments.join(", ");
    let method = call.child_by_field_name("function")?.child_by_field_name("attribute")?;
    let then = match page.text(method) {
        "fit" => {
            let given = labels.last().unwrap_or(first).end_byte();
            edits.push(Edit::new(first.start_byte()..given, arguments));
            return Some(edits);
        }
        "fit_transform" => "transform",
        "fit_predict" => "predict",
        _ => return None,
    };
    let object = receiver(call)?;
    let indent = page.indent(statement);
    let mut before = String::new();
    let name = if object.kind() == "identifier" {
        page.text(object).to_owned()
    } else {
        let name = free_name(page, "prepared");
        before = format!("{name} = {}\n{indent}", page.text(object));
        edits.push(Edit::new(object.byte_range(), name.clone()));
        name
    };
    let start = statement.start_byte();
    let before = format!("{before}{name}.fit({arguments})\n{indent}");
    edits.push(Edit::new(start..start, before));
    edits.push(Edit::new(method.byte_range(), then));
    if let Some(last) = labels.last() {
        edits.push(Edit::new(first.end_byte()..last.end_byte(), ""));
    }
    Some(edits)
}

/// Rows are made up or thrown away after the split, among the training rows alone.
pub(super) fn resampled_after_the_split(page: &Page<'_>, culprit: &Culprit) -> Option<Vec<Edit>> {
    let call = fitting(page, culprit).filter(|it| called(page.source, *it) == "fit_resample")?;
    let statement = page.statement(culprit.at.start)?;
    let (_, left, right) = page.assignments().find(|it| it.0 == statement)?;
    let split = page.split().filter(|it| it.statement.start_byte() > culprit.at.start)?;
    let [features, labels] = &positional(call)[..] else { return None };
    let given = [page.text(*features), page.text(*labels)];
    let [part, _, classes, _] = split.targets.as_slice() else { return None };
    if right != call || names(page.source, left) != given || split.arguments != given {
        return None;
    }
    let object = page.text(receiver(call)?);
    let end = split.statement.end_byte();
    Some(vec![
        Edit::new(page.lines(statement), ""),
        Edit::new(
            end..end,
            format!("\n{part}, {classes} = {object}.fit_resample({part}, {classes})"),
        ),
    ])
}

/// A statistic is taken from the rows that the split will choose.
pub(super) fn statistic_of_chosen_rows(page: &Page<'_>, culprit: &Culprit) -> Option<Vec<Edit>> {
    if culprit.reason != Reason::Statistic {
        return None;
    }
    let first = culprit.places.iter().map(|it| it.range.start).min()?;
    let split = page.split().filter(|it| it.statement.start_byte() > first)?;
    let (options, mut edits) = options(page, &split, page.statement(first)?.start_byte())?;
    for place in &culprit.places {
        let node = page.at(&place.range)?;
        let learnt = labelled(page, node, place.rows)?;
        let statement = page.statement(place.range.start)?;
        if page.changes_rows(statement.end_byte()..split.statement.start_byte()) && learnt.is_own {
            return None;
        }
        let chosen = format!("{}({}, {options})[0]", function(page, &split), learnt.text);
        edits.push(match row_by_row(page, place) {
            Some("transform") => mapped(page, place, &chosen)?,
            Some(_) => return None,
            None => Edit::new(place.range.clone(), chosen),
        });
    }
    edits.dedup();
    Some(edits)
}

/// The method by which a statistic of a place is given to every row, so that all of them have to
/// be there.
fn row_by_row<'a>(page: &Page<'a>, place: &Place) -> Option<&'a str> {
    let mut node = page.at(&place.range)?;
    loop {
        node = node.parent().filter(|it| !it.kind().ends_with("statement"))?;
        let method = if node.kind() == "call" { called(page.source, node) } else { "" };
        let within = receiver(node).is_some_and(|it| it.start_byte() == place.range.start);
        if within && matches!(method, "transform" | "rank") {
            return Some(method);
        }
    }
}

/// `df.groupby("k")["v"].transform("mean")` gives all rows what `map` of a smaller mean would.
fn mapped(page: &Page<'_>, place: &Place, chosen: &str) -> Option<Edit> {
    let mut node = page.at(&place.range)?;
    let table = page.text(node);
    while !(node.kind() == "call" && called(page.source, node) == "transform") {
        node = node.parent().filter(|it| !it.kind().ends_with("statement"))?;
    }
    let how = string(page.source, *positional(node).first()?)?;
    let column = receiver(node).filter(|it| it.kind() == "subscript")?;
    let grouped = column.child_by_field_name("value").filter(|it| it.kind() == "call")?;
    if called(page.source, grouped) != "groupby" || !how.chars().all(char::is_alphanumeric) {
        return None;
    }
    let key = positional(grouped).first().copied().filter(|it| it.kind() == "string")?;
    let value = column.child_by_field_name("subscript")?;
    let (key, value) = (page.text(key), page.text(value));
    let text = format!("{table}[{key}].map({chosen}.groupby({key})[{value}].{how}())");
    Some(Edit::new(node.byte_range(), text))
}

/// A model is fitted on the training part of what it is judged by.
pub(super) fn judged_by_other_rows(page: &Page<'_>, culprit: &Culprit) -> Option<Vec<Edit>> {
    if culprit.reason != Reason::Judged {
        return None;
    }
    let statement = page.at(&culprit.at)?;
    let call = all(statement)
        .into_iter()
        .find(|it| it.kind() == "call" && called(page.source, *it) == "fit")?;
    let [features, labels] = &positional(call)[..] else { return None };
    let split = page.split().filter(|it| it.statement.end_byte() <= culprit.at.start);
    let part = |node: Node<'_>| -> Option<String> {
        if let Some(first) = first_of_concat(page, node) {
            return Some(page.text(first).to_owned());
        }
        let split = split.as_ref()?;
        let place = split.arguments.iter().position(|it| *it == page.text(node))?;
        split.targets.get(place * 2).map(|it| (*it).to_owned())
    };
    match (part(*features), part(*labels)) {
        (Some(x), Some(y)) => {
            Some(vec![Edit::new(features.byte_range(), x), Edit::new(labels.byte_range(), y)])
        }
        _ => in_the_fold(page, culprit, *features, *labels)
            .or_else(|| with_a_split(page, culprit, *features, *labels)),
    }
}

/// `model.fit(x, y)` in a loop over folds: the rows are chosen as they are for the prediction.
fn in_the_fold(
    page: &Page<'_>,
    culprit: &Culprit,
    features: Node<'_>,
    labels: Node<'_>,
) -> Option<Vec<Edit>> {
    let fold = super::folds::Fold::around(page, culprit.at.start)?;
    let form = |name: &str| -> Option<String> {
        let held = all(fold.node).into_iter().find(|it| {
            it.kind() == "subscript"
                && page.text(*it).starts_with(name)
                && it.child_by_field_name("subscript").is_some_and(|it| page.text(it) == fold.held)
        })?;
        let index = held.child_by_field_name("subscript")?;
        let before = page.source.get(held.start_byte()..index.start_byte())?;
        let after = page.source.get(index.end_byte()..held.end_byte())?;
        Some(format!("{before}{}{after}", fold.fit))
    };
    Some(vec![
        Edit::new(features.byte_range(), form(page.text(features))?),
        Edit::new(labels.byte_range(), form(page.text(labels))?),
    ])
}

/// A script that judges a model by its own training rows gets a split.
fn with_a_split(
    page: &Page<'_>,
    culprit: &Culprit,
    features: Node<'_>,
    labels: Node<'_>,
) -> Option<Vec<Edit>> {
    let (x, y) = (page.text(features), page.text(labels));
    let plain = features.kind() == "identifier" && labels.kind() == "identifier";
    let statement = page.statement(culprit.at.start)?;
    let splits = ["train_test_split(", ".split(", "cross_val"];
    let taken = ["_train", "_held"].iter().any(|it| page.source.contains(&format!("{x}{it}")));
    if !plain || taken || splits.iter().any(|it| page.source.contains(it)) {
        return None;
    }
    let (start, end) = (statement.start_byte(), statement.end_byte());
    Some(vec![
        Edit::new(
            start..start,
            format!(
                "from sklearn.model_selection import train_test_split\n\
                 {x}_train, {x}_held, {y}_train, {y}_held = train_test_split({x}, {y}, \
                 test_size=0.2, random_state=0)\n"
            ),
        ),
        Edit::new(features.byte_range(), format!("{x}_train")),
        Edit::new(labels.byte_range(), format!("{y}_train")),
        // What follows judges the model: by the rows that it does not know.
        Edit::new(end..end, format!("\n{x}, {y} = {x}_held, {y}_held")),
    ])
}

/// The call that fits, of which the culprit's place is the first argument.
pub(super) fn fitting<'a>(page: &Page<'a>, culprit: &Culprit) -> Option<Node<'a>> {
    let place = culprit.places.first()?;
    let statement = page.at(&culprit.at)?;
    all(statement).into_iter().find(|it| {
        it.kind() == "call"
            && called(page.source, *it).starts_with("fit")
            && positional(*it).first().is_some_and(|it| it.byte_range() == place.range)
    })
}

/// The labelled rows of an expression.
struct Learnt {
    text: String,
    /// Whether it is the expression itself, not a part of what it was put together from.
    is_own: bool,
}

fn labelled(page: &Page<'_>, node: Node<'_>, rows: Rows) -> Option<Learnt> {
    match rows {
        Rows::All => Some(Learnt { text: page.text(node).to_owned(), is_own: true }),
        Rows::Mixed => {
            let whole = match node.kind() {
                "identifier" => page.assigned(page.text(node), node.start_byte())?,
                _ => node,
            };
            let first = first_of_concat(page, whole)?;
            Some(Learnt { text: page.text(first).to_owned(), is_own: false })
        }
        Rows::Unknown | Rows::Test | Rows::Part | Rows::Held => None,
    }
}

/// `a` of `pd.concat([a, b])`.
fn first_of_concat<'a>(page: &Page<'a>, node: Node<'a>) -> Option<Node<'a>> {
    let joins = ["concat", "vstack", "concatenate"];
    if node.kind() != "call" || !joins.contains(&called(page.source, node)) {
        return None;
    }
    let list = positional(node).first().copied()?;
    matches!(list.kind(), "list" | "tuple").then(|| children(list).first().copied()).flatten()
}

fn function<'a>(page: &Page<'a>, split: &Split<'a>) -> &'a str {
    split.call.child_by_field_name("function").map_or("train_test_split", |it| page.text(it))
}

/// The options of the split as they can be written at an earlier place, and an edit that makes it
/// choose the same rows every time.
fn options(page: &Page<'_>, split: &Split<'_>, at: usize) -> Option<(String, Vec<Edit>)> {
    let given = children(split.call.child_by_field_name("arguments")?);
    let given: Vec<Node<'_>> =
        given.into_iter().filter(|it| it.kind() == "keyword_argument").collect();
    for option in &given {
        let value = option.child_by_field_name("value")?;
        let known = |it: &Node<'_>| page.is_bound(page.text(*it), at);
        let names: Vec<Node<'_>> =
            all(value).into_iter().filter(|it| it.kind() == "identifier").collect();
        let calls = all(value).into_iter().any(|it| it.kind() == "call");
        if calls || !names.iter().filter(|it| is_root(**it)).all(known) {
            return None;
        }
    }
    let imported = page.source.get(..at)?.contains(function(page, split));
    if !imported {
        return None;
    }
    let mut written: Vec<String> = given.iter().map(|it| page.text(*it).to_owned()).collect();
    let mut edits = Vec::new();
    let unshuffled = keyword(page.source, split.call, "shuffle");
    let unshuffled = unshuffled.is_some_and(|it| page.text(it) == "False");
    if keyword(page.source, split.call, "random_state").is_none() && !unshuffled {
        let end = split.call.end_byte() - 1;
        edits.push(Edit::new(end..end, ", random_state=0"));
        written.push("random_state=0".to_owned());
    }
    Some((written.join(", "), edits))
}

/// Whether a name is not the attribute of something else.
fn is_root(name: Node<'_>) -> bool {
    name.parent().is_none_or(|it| {
        it.kind() != "attribute" || it.child_by_field_name("attribute") != Some(name)
    })
}

/// A name that the script does not use.
pub(super) fn free_name(page: &Page<'_>, name: &str) -> String {
    let mut free = name.to_owned();
    while page.source.contains(&free) {
        free.push('_');
    }
    free
}
