//! Rules for features that give the target away.

use super::page::{Container, Edit, Page};
use crate::leaks::rows::{Culprit, Reason};
use crate::leaks::syntax::{all, string};
use crate::leaks::walked;

/// The target is dropped from the features, before they are divided or learnt from.
pub(super) fn dropped_from_the_features(page: &Page<'_>, culprit: &Culprit) -> Option<Vec<Edit>> {
    if culprit.reason != Reason::TargetLeft {
        return None;
    }
    let place = page.at(&culprit.places.first()?.range)?;
    let mut root = place;
    while root.kind() != "identifier" {
        root = root.named_child(0)?;
    }
    let split = page.split().filter(|it| it.statement.end_byte() <= culprit.at.start);
    let divided = split.as_ref().and_then(|split| {
        let part = split.targets.iter().position(|it| *it == page.text(root))?;
        Some((*split.arguments.get(part / 2)?, split.statement))
    });
    let (table, before) = match divided {
        Some(found) => found,
        None => (page.text(root), page.statement(culprit.at.start)?),
    };
    if page.container(table, before.start_byte())? != Container::Frame {
        return None;
    }
    let tree = mle_star_python::tree(page.source)?;
    let flow = walked(page.source, &tree);
    let targets: Vec<String> = flow.targets().iter().map(|it| format!("{it:?}")).collect();
    let columns = match targets.as_slice() {
        [] => return None,
        [target] => format!("[{target}]"),
        several => format!("[it for it in [{}] if it in {table}.columns]", several.join(", ")),
    };
    let start = before.start_byte();
    Some(vec![Edit::new(start..start, format!("{table} = {table}.drop(columns={columns})\n"))])
}

/// A feature that was computed from the target is not made, if nothing else names it.
pub(super) fn left_out(page: &Page<'_>, culprit: &Culprit) -> Option<Vec<Edit>> {
    if culprit.reason != Reason::FromTarget {
        return None;
    }
    let statement = page.statement(culprit.at.start)?;
    let (_, left, _) = page.assignments().find(|it| it.0 == statement)?;
    let column = left.child_by_field_name("subscript").and_then(|it| string(page.source, it))?;
    let named = all(page.root).into_iter().filter(|it| string(page.source, *it) == Some(column));
    let outside = named.filter(|it| !statement.byte_range().contains(&it.start_byte())).count();
    if outside > 0 {
        return None;
    }
    let comment = format!("# {column:?} would be computed from the target, and is left out.");
    Some(vec![Edit::new(statement.byte_range(), comment)])
}
