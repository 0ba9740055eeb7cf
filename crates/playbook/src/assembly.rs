//! From pieces to a script.

use mle_star_agent::AgentError;

use crate::catalogue::{Piece, Shelf};
use crate::data_section::data_section;
use crate::no_answer;
use crate::script::{Kind, Script, Section};
use crate::{Playbook, catalogue::Catalogue};

/// A complete solution around one model.
pub(crate) fn solution(playbook: &Playbook, recipe: &Piece) -> Result<Script, AgentError> {
    let catalogue = &playbook.catalogue;
    let plain = |slug: &str| plain(catalogue, slug);
    let mut sections = vec![
        seeded(plain("setup")?, playbook.options.seed),
        data_section(&playbook.shape, playbook.options.subsample_limit),
        plain("target")?,
    ];
    let first = catalogue.on(Shelf::Features).filter(|piece| piece.from_the_start);
    sections.extend(first.map(Piece::as_section));
    sections.extend([
        plain("table")?,
        recipe.as_section(),
        plain("members")?,
        plain("blend")?,
        plain("decision")?,
        validation(playbook)?,
    ]);
    let mut script = Script::new(sections);
    script.relist();
    Ok(script)
}

/// The plain section of this name.
pub(crate) fn plain(catalogue: &Catalogue, slug: &str) -> Result<Section, AgentError> {
    let piece = catalogue.section(slug);
    piece.map(Piece::as_section).ok_or_else(|| no_answer(format!("there is no section `{slug}`")))
}

/// How scripts are validated on this data.
pub(crate) fn validation(playbook: &Playbook) -> Result<Section, AgentError> {
    match playbook.catalogue.section("validation_time") {
        Some(piece) if playbook.shape.time.is_some() => Ok(piece.as_section()),
        Some(_) | None => plain(&playbook.catalogue, "validation"),
    }
}

fn seeded(setup: Section, seed: u64) -> Section {
    if seed == 0 { setup } else { setup.with_line("SEED = ", &format!("SEED = {seed}")) }
}

/// A script with the section that writes the submission, on all training rows.
pub(crate) fn submitting(playbook: &Playbook, script: &Script) -> Result<Script, AgentError> {
    let mut script = without_subsampling(script);
    if script.first(Kind::Submission).is_none() {
        script.insert(plain(&playbook.catalogue, "submission")?);
    }
    Ok(script)
}

/// A script whose data section keeps all rows.
pub(crate) fn without_subsampling(script: &Script) -> Script {
    let mut script = script.clone();
    for section in &mut script.sections {
        if section.kind == Kind::Data
            && let Some(block) = subsampling(&section.text).map(str::to_owned)
        {
            section.text = section.text.replacen(&format!("{block}\n"), "", 1);
        }
    }
    script
}

/// The lines that make the training data smaller: the comment, and the indented lines below `if`.
pub(crate) fn subsampling(text: &str) -> Option<&str> {
    let start = text.find(crate::data_section::SUBSAMPLING)?;
    let block = text.get(start..)?;
    let mut end = 0;
    for (number, line) in block.split_inclusive('\n').enumerate() {
        if number >= 2 && !line.starts_with([' ', '\t']) {
            break;
        }
        end += line.len();
    }
    block.get(..end).map(|block| block.trim_end_matches('\n'))
}
