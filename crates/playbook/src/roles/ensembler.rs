//! A_ensembler: one script with the members of all solutions.

use mle_star_agent::{AgentError, Reply};
use serde::Deserialize;

use crate::assembly::{plain, validation, without_subsampling};
use crate::catalogue::{Piece, Shelf};
use crate::ideas::tag_of;
use crate::roles::code;
use crate::script::{Kind, Script, Section, indented};
use crate::{Playbook, no_answer};

#[derive(Deserialize)]
pub(crate) struct Input {
    plan: String,
    solutions: Vec<String>,
}

pub(crate) fn answer(playbook: &Playbook, input: &Input) -> Result<Reply, AgentError> {
    let catalogue = &playbook.catalogue;
    let way: &Piece = tag_of(&input.plan)
        .and_then(|tag| catalogue.tagged(tag))
        .filter(|piece| piece.shelf == Shelf::Ensembles)
        .ok_or_else(|| no_answer("the plan is none of the playbook's"))?;
    let solutions: Vec<Script> = input.solutions.iter().map(|it| Script::parse(it)).collect();
    if !solutions.iter().all(Script::is_ours) {
        return Err(no_answer("the playbook combines only scripts that it wrote"));
    }
    let solutions = without_repetition(solutions);
    let Some(first) = solutions.first().map(without_subsampling) else {
        return Err(no_answer("there is no solution to combine"));
    };
    let take = |kind: Kind, slug: &str| match first.first(kind) {
        Some(section) => Ok(section.clone()),
        None => plain(catalogue, slug),
    };
    let mut sections = vec![take(Kind::Setup, "setup")?];
    sections.extend(first.first(Kind::Data).cloned());
    let mut names = Vec::new();
    for (number, solution) in (1..).zip(&solutions) {
        sections.push(Section::new(
            Kind::Solution,
            Some(&number.to_string()),
            &function(solution, number),
        ));
        names.push(format!("solution_{number}()"));
    }
    let union = plain(catalogue, "union")?;
    sections.push(union.with_line("SOLUTIONS = ", &format!("SOLUTIONS = [{}]", names.join(", "))));
    sections.push(way.as_section());
    sections.push(take(Kind::Decision, "decision")?);
    sections.push(validation(playbook)?);
    sections.push(plain(catalogue, "submission")?);
    Ok(code(&Script::new(sections).to_string()))
}

/// The solutions without the models that an earlier one has in just the same way, and without
/// those that have nothing left.
fn without_repetition(solutions: Vec<Script>) -> Vec<Script> {
    let mut kept: Vec<Script> = Vec::new();
    for mut solution in solutions {
        let repeated: Vec<Section> = solution
            .of(Kind::Model)
            .filter(|model| {
                kept.iter().any(|earlier| {
                    tables(earlier) == tables(&solution)
                        && earlier.of(Kind::Model).any(|it| it.text.trim() == model.text.trim())
                })
            })
            .cloned()
            .collect();
        solution.remove(|section| repeated.contains(section));
        solution.relist();
        if solution.of(Kind::Model).next().is_some() {
            kept.push(solution);
        }
    }
    kept
}

fn tables(script: &Script) -> String {
    let kinds = [Kind::Target, Kind::Features, Kind::Table];
    let sections = script.sections.iter().filter(|it| kinds.contains(&it.kind));
    sections.map(|it| it.text.as_str()).collect()
}

/// `def solution_1(): ...`, which gives the solution's `members`.
fn function(solution: &Script, number: usize) -> String {
    let mut text = format!("def solution_{number}():\n");
    for section in &solution.sections {
        let inside = [Kind::Target, Kind::Features, Kind::Table, Kind::Model, Kind::Members];
        if inside.contains(&section.kind) {
            text += &indented(section.quoted());
            text.push('\n');
        }
    }
    text + "    return members"
}
