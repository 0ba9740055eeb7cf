//! Rules for cross-validation: what prepares the rows is fitted anew in every fold.

use tree_sitter::Node;

use super::holdout::{fitting, free_name};
use super::page::{Edit, Page};
use crate::leaks::rows::{Culprit, Reason, Rows};
use crate::leaks::syntax::{all, called, children, names, positional, receiver};

/// `for fit, held in folds.split(x):`
pub(super) struct Fold<'a> {
    pub(super) node: Node<'a>,
    pub(super) fit: &'a str,
    pub(super) held: &'a str,
}

impl<'a> Fold<'a> {
    fn of(page: &Page<'a>, node: Node<'a>) -> Option<Self> {
        let right = node.child_by_field_name("right")?;
        let splits = |it: &Node<'a>| it.kind() == "call" && called(page.source, *it) == "split";
        all(right).iter().find(|it| splits(it))?;
        let names = names(page.source, node.child_by_field_name("left")?);
        let [.., fit, held] = names.as_slice() else { return None };
        Some(Self { node, fit, held })
    }

    /// The loop over folds around a place.
    pub(super) fn around(page: &Page<'a>, at: usize) -> Option<Self> {
        let loops = all(page.root).into_iter().filter(|it| it.kind() == "for_statement");
        loops.filter(|it| it.byte_range().contains(&at)).find_map(|it| Self::of(page, it))
    }

    /// The one loop over folds at the outermost level, after a place.
    fn after(page: &Page<'a>, at: usize) -> Option<Self> {
        let loops = children(page.root).into_iter().filter(|it| it.kind() == "for_statement");
        let mut folds = loops.filter(|it| it.start_byte() > at).filter_map(|it| Self::of(page, it));
        folds.next().filter(|_| folds.next().is_none())
    }
}

/// How a script prepares its rows before it divides them.
struct Preparation<'a> {
    /// The object that is fitted: its name, or the call that makes it.
    object: Node<'a>,
    /// What it is fitted on, and the labels that it is given.
    raw: Node<'a>,
    labels: Option<Node<'a>>,
    /// The name of what it makes.
    made: &'a str,
    /// The statements that do it.
    statements: Vec<Node<'a>>,
}

impl<'a> Preparation<'a> {
    /// `made = object.fit_transform(raw)`, or `object.fit(raw)` and `made = object.transform(raw)`.
    fn of(page: &Page<'a>, culprit: &Culprit) -> Option<Self> {
        if culprit.reason != Reason::Prepared || culprit.places.first()?.rows != Rows::All {
            return None;
        }
        let call = fitting(page, culprit)?;
        let first = page.statement(culprit.at.start)?;
        let object = receiver(call)?;
        let arguments = positional(call);
        let (raw, labels) = (*arguments.first()?, arguments.get(1).copied());
        let transforms = |right: Node<'a>| {
            right.kind() == "call"
                && called(page.source, right) == "transform"
                && receiver(right).is_some_and(|it| page.text(it) == page.text(object))
                && positional(right).first().is_some_and(|it| page.text(*it) == page.text(raw))
        };
        let chained = |right: Node<'a>| {
            called(page.source, right) == "transform"
                && receiver(right) == Some(call)
                && positional(right).first().is_some_and(|it| page.text(*it) == page.text(raw))
        };
        let (made, statements) = match called(page.source, call) {
            "fit_transform" => {
                let (statement, left, _) =
                    page.assignments().find(|it| it.0 == first && it.2 == call)?;
                (left, vec![statement])
            }
            // `made = object.fit(raw).transform(raw)`
            "fit" if page.assignments().any(|it| it.0 == first && chained(it.2)) => {
                let (_, left, _) = page.assignments().find(|it| it.0 == first)?;
                (left, vec![first])
            }
            "fit" => {
                let mut all = page.assignments().filter(|it| transforms(it.2));
                let (statement, left, _) = all.next().filter(|_| all.next().is_none())?;
                (left, vec![first, statement])
            }
            _ => return None,
        };
        let made = Some(made).filter(|it| it.kind() == "identifier").map(|it| page.text(it))?;
        Some(Self { object, raw, labels, made, statements })
    }

    /// Where the rows are ready.
    fn end(&self) -> usize {
        self.statements.iter().map(Node::end_byte).max().unwrap_or(0)
    }

    /// How often a name other than the object's definition is used after the preparation.
    fn uses(&self, page: &Page<'a>) -> Vec<Node<'a>> {
        let later = page.names_in(self.end()..page.source.len());
        later.into_iter().filter(|it| page.text(*it) == self.made).collect()
    }
}

/// `cross_val_score(model, made, y)` becomes one of a pipeline on the raw rows.
pub(super) fn within_a_pipeline(page: &Page<'_>, culprit: &Culprit) -> Option<Vec<Edit>> {
    let preparation = Preparation::of(page, culprit)?;
    let [used] = preparation.uses(page)[..] else { return None };
    let call = used.parent()?.parent().filter(|it| it.kind() == "call")?;
    let judges = ["cross_val_score", "cross_validate", "cross_val_predict"];
    let [model, features, ..] = positional(call)[..] else { return None };
    if !judges.contains(&called(page.source, call)) || features != used {
        return None;
    }
    let statement = page.statement(call.start_byte())?;
    let mut edits: Vec<Edit> =
        preparation.statements.iter().map(|it| Edit::new(page.lines(*it), "")).collect();
    let (object, raw) = (page.text(preparation.object), page.text(preparation.raw));
    edits.push(Edit::new(
        model.byte_range(),
        format!("make_pipeline({object}, {})", page.text(model)),
    ));
    edits.push(Edit::new(features.byte_range(), raw));
    let start = statement.start_byte();
    edits.push(Edit::new(start..start, "from sklearn.pipeline import make_pipeline\n"));
    Some(edits)
}

/// In a loop over folds, what prepares the rows is fitted at the beginning of its body.
pub(super) fn fitted_in_every_fold(page: &Page<'_>, culprit: &Culprit) -> Option<Vec<Edit>> {
    let preparation = Preparation::of(page, culprit)?;
    let fold = Fold::after(page, preparation.end())?;
    let made = preparation.made;
    // After the loop, the rows would be those of the last fold.
    if preparation.uses(page).iter().any(|it| it.start_byte() > fold.node.end_byte()) {
        return None;
    }
    let at = culprit.at.start;
    let raw = page.text(preparation.raw);
    let container = match preparation.raw.kind() {
        "identifier" => page.container(raw, at)?,
        "call"
            if matches!(
                called(page.source, preparation.raw),
                "drop" | "select_dtypes" | "fillna"
            ) =>
        {
            super::page::Container::Frame
        }
        _ => return None,
    };
    let kept = free_name(page, &format!("raw_{made}"));
    let mut given = container.rows(&kept, fold.fit);
    if let Some(labels) = preparation.labels {
        let name = page.text(labels);
        given = format!("{given}, {}", page.container(name, at)?.rows(name, fold.fit));
    }
    let (before, name) = match preparation.object.kind() {
        "identifier" => (String::new(), page.text(preparation.object).to_owned()),
        _ => {
            let name = free_name(page, "prepared");
            (format!("{name} = {}\n", page.text(preparation.object)), name)
        }
    };
    let before = format!("{before}{kept} = {raw}\n{made} = {kept}\n");
    let [first, others @ ..] = preparation.statements.as_slice() else { return None };
    let mut edits = vec![Edit::new(page.lines(*first), before)];
    edits.extend(others.iter().map(|it| Edit::new(page.lines(*it), "")));
    let body = children(fold.node.child_by_field_name("body")?).first().copied()?;
    let (start, indent) = (body.start_byte(), page.indent(body));
    edits.push(Edit::new(
        start..start,
        format!("{name}.fit({given})\n{indent}{made} = {name}.transform({kept})\n{indent}"),
    ));
    Some(edits)
}
