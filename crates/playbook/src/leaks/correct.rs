//! Corrections that need no judgement.
//!
//! A rule looks at one leak and edits the script: it learns from the rows that the split will
//! choose (`holdout`), learns anew in every fold (`folds`), or takes the target out of the
//! features (`target`). `page` has the questions to the script that they share. No rule is
//! trusted: its edits count only if the script still parses and the detector finds less in it.
//!
//! Absent on purpose: whatever depends on how a function of the script is called, splits by hand,
//! and statistics of the target across folds. There the leak is named, and the script stays.

mod folds;
mod holdout;
mod page;
mod target;

use super::culprits;
use super::rows::Culprit;
use page::{Edit, Page, edited};

type Rule = fn(&Page<'_>, &Culprit) -> Option<Vec<Edit>>;

const RULES: [Rule; 9] = [
    holdout::transformed_only,
    holdout::fitted_on_chosen_rows,
    holdout::resampled_after_the_split,
    holdout::statistic_of_chosen_rows,
    holdout::judged_by_other_rows,
    target::dropped_from_the_features,
    target::left_out,
    folds::within_a_pipeline,
    folds::fitted_in_every_fold,
];

/// The block without its leak, or the whole script where more of it has to change; `None` if no
/// rule corrects it.
pub(crate) fn correction(script: &str, block: &str) -> Option<String> {
    let tree = mle_star_python::tree(script)?;
    let found = culprits(script);
    let culprit = found.iter().find(|it| it.leak.block.trim() == block.trim())?;
    let page = Page::new(script, &tree);
    RULES.iter().filter_map(|rule| rule(&page, culprit)).find_map(|edits| {
        let corrected = edited(script, &edits)?;
        mle_star_python::check_syntax(&corrected).ok()?;
        let better = culprits(&corrected).len() < found.len();
        better.then(|| reply(script, block.trim(), &edits, corrected)).flatten()
    })
}

/// The part of the corrected script that takes the place of the block.
fn reply(script: &str, block: &str, edits: &[Edit], corrected: String) -> Option<String> {
    let start = script.find(block)?;
    let end = start + block.len();
    let ends = |text: &str| {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Some((lines.next()?.to_owned(), lines.next_back()?.to_owned()))
    };
    // Indentation is lost on the way of a block, so one that has some is sent with all around it.
    let outermost = script.get(..start).is_none_or(|it| it.is_empty() || it.ends_with('\n'));
    if outermost && edits.iter().all(|it| start <= it.range.start && it.range.end <= end) {
        let after = script.len() - end;
        let replaced = corrected.get(start..corrected.len() - after)?;
        return (!replaced.trim().is_empty()).then(|| replaced.to_owned());
    }
    // A whole script is told from a block by its first and last lines.
    (ends(script) == ends(&corrected)).then_some(corrected)
}

#[cfg(test)]
mod tests;
