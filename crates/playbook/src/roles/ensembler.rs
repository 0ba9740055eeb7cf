//! A_ensembler: one script in which every solution is a function: its models, its blend, its decision.

use mle_star_agent::{AgentError, Reply};
use serde::Deserialize;

use crate::assembly::{plain, validation, without_subsampling};
use crate::roles::code;
use crate::roles::ens_planner::Way;
use crate::script::{Kind, Script, Section, indented};
use crate::{Playbook, no_answer};

#[derive(Deserialize)]
pub(crate) struct Input {
    plan: String,
    solutions: Vec<String>,
}

/// Several solutions even out by themselves what further seeds would, and large data takes long.
const SEEDS: &str = "SEEDS = 3 if len(train) < 12000 else 1";

pub(crate) fn answer(playbook: &Playbook, input: &Input) -> Result<Reply, AgentError> {
    let catalogue = &playbook.catalogue;
    let way = Way::of(&input.plan, catalogue)
        .ok_or_else(|| no_answer("the plan is none of the playbook's"))?;
    let solutions: Vec<Script> = input.solutions.iter().map(|it| Script::parse(it)).collect();
    if !solutions.iter().all(Script::is_ours) {
        return Err(no_answer("the playbook combines only scripts that it wrote"));
    }
    let Some(first) = solutions.first().map(without_subsampling) else {
        return Err(no_answer("there is no solution to combine"));
    };
    let mut sections: Vec<Section> =
        first.of(Kind::Setup).chain(first.of(Kind::Data)).cloned().collect();
    let mut names = Vec::new();
    for (number, body) in (1..).zip(bodies(&solutions)) {
        let function = format!("def solution_{number}():\n{body}");
        sections.push(Section::new(Kind::Solution, Some(&number.to_string()), &function));
        names.push(format!("solution_{number}()"));
    }
    let union = plain(catalogue, "union")?;
    sections.push(union.with_line("SOLUTIONS = ", &format!("SOLUTIONS = [{}]", names.join(", "))));
    let shares: Vec<String> = way.shares.iter().map(u32::to_string).collect();
    let shares = format!("SHARES = [{}]", shares.join(", "));
    sections.push(way.piece.as_section().with_line("SHARES = ", &shares));
    let mut decisions: Vec<&Section> =
        solutions.iter().filter_map(|it| it.first(Kind::Decision)).collect();
    decisions.dedup_by_key(|it| it.quoted());
    sections.push(match decisions.as_slice() {
        [one] => (*one).clone(),
        _ => plain(catalogue, "decision_chosen")?,
    });
    sections.push(validation(playbook)?);
    sections.push(plain(catalogue, "submission")?.with_line("SEEDS = ", SEEDS));
    Ok(code(&Script::new(sections).to_string()))
}

/// What each solution is within an ensemble; two that are the same are one.
pub(crate) fn bodies(solutions: &[Script]) -> Vec<String> {
    let mut bodies: Vec<String> = Vec::new();
    for body in solutions.iter().map(body) {
        if !bodies.contains(&body) {
            bodies.push(body);
        }
    }
    bodies
}

/// All that a solution can do, as the body of a function.
fn body(solution: &Script) -> String {
    let inside = [
        Kind::Target,
        Kind::Features,
        Kind::Table,
        Kind::Model,
        Kind::Members,
        Kind::Blend,
        Kind::Decision,
    ];
    let sections = solution.sections.iter().filter(|section| inside.contains(&section.kind));
    let text: String = sections.map(|section| indented(section.quoted()) + "\n").collect();
    text + "    return SimpleNamespace(\n        members=members, weigh=weigh, combine=combine, learn_decision=learn_decision, decide=decide\n    )"
}
