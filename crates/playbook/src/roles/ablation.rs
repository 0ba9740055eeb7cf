//! A_abl: a script that evaluates the solution with parts of it switched off.
//!
//! Every variant is a function with the sections of the solution in it. No script fits a model twice
//! on the same table, so a variant that only leaves out a model, or blends otherwise, fits nothing.

use mle_star_agent::{AgentError, Reply};
use serde::Deserialize;

use crate::roles::code;
use crate::roles::summarize::effects;
use crate::script::{Kind, Script, Section, indented};
use crate::shape::Kind as Task;
use crate::{Playbook, no_answer};

#[derive(Deserialize)]
pub(crate) struct Input {
    solution_script: String,
    previous_ablations: Vec<String>,
}

/// How many parts a study looks at.
const PARTS: usize = 3;

const PRELUDE: &str = include_str!("ablation_prelude.py");
const ENDING: &str = include_str!("ablation_ending.py");

const EQUAL_WEIGHTS: &str = "\
def weigh(oof, y):
    return {name: 1.0 / len(oof) for name in oof}


def combine(predictions, weights):
    return sum(weight * predictions[name] for name, weight in weights.items())";

const PLAIN_TARGET: &str = "\
def to_model(y):
    return y


def from_model(p):
    return p";

/// What takes the place of the only model where nothing else can be switched off.
const CONSTANT: &str = "\
def model_constant(x, y, others, seed):
    \"\"\"The same answer for every row.\"\"\"
    if KIND == \"regression\":
        return [np.full(len(other), np.mean(y)) for other in others]
    shares = np.mean(y, axis=0) if KIND == \"multilabel\" else np.bincount(y, minlength=len(CLASSES)) / len(y)
    return [np.tile(shares, (len(other), 1)) for other in others]";

pub(crate) fn answer(playbook: &Playbook, input: &Input) -> Result<Reply, AgentError> {
    let solution = Script::parse(&input.solution_script);
    let (Some(setup), Some(data)) = (solution.first(Kind::Setup), solution.first(Kind::Data))
    else {
        return Err(no_answer("the playbook studies only scripts that it wrote"));
    };
    let studied: Vec<String> = input
        .previous_ablations
        .iter()
        .flat_map(|it| effects(it))
        .map(|(title, _)| title)
        .collect();
    let variants = chosen(variants(playbook, &solution), &studied);
    if variants.is_empty() {
        return Err(no_answer("the solution has no part that could be switched off"));
    }
    let mut sections = vec![
        setup.with_line("FOLDS = ", "FOLDS = 3"),
        data.clone(),
        Section::new(Kind::Study, None, PRELUDE),
    ];
    let mut calls = Vec::new();
    let baseline = ("Baseline".to_owned(), solution.clone());
    let all: Vec<(String, Script)> = std::iter::once(baseline)
        .chain(variants.into_iter().map(|(part, script)| (format!("Without [{part}]"), script)))
        .collect();
    for (number, (title, script)) in all.iter().enumerate() {
        let body = function(script, number);
        sections.push(Section::new(Kind::Study, Some(title), &body));
        calls.push(format!("    ({}, variant_{number}),", crate::data_section::quoted(title)));
    }
    let ending = format!("VARIANTS = [\n{}\n]\n{ENDING}", calls.join("\n"));
    sections.push(Section::new(Kind::Study, Some("results"), &ending));
    Ok(code(&Script::new(sections).to_string()))
}

/// The solution with each part switched off in turn: features, then models, then the rest.
fn variants(playbook: &Playbook, solution: &Script) -> Vec<Vec<(String, Script)>> {
    let without = |kind: Kind| -> Vec<(String, Script)> {
        let sections = solution.of(kind).map(|section| {
            let mut script = solution.clone();
            script.remove(|it| it == section);
            script.relist();
            (section.title(), script)
        });
        sections.collect()
    };
    let several = solution.of(Kind::Model).count() > 1;
    let mut others = Vec::new();
    let mut other = |section: Section| {
        let mut script = solution.clone();
        let title = section.title();
        script.replace(section);
        others.push((title, script));
    };
    if several {
        other(Section::new(Kind::Blend, None, EQUAL_WEIGHTS));
    }
    if playbook.shape.kind == Task::Regression {
        other(Section::new(Kind::Target, None, PLAIN_TARGET));
    }
    let models = if several { without(Kind::Model) } else { Vec::new() };
    let features = without(Kind::Features);
    if let ([], [], Some(only)) = (&features[..], &others[..], solution.first(Kind::Model)) {
        let mut script = solution.clone();
        // Under a name of its own: what a model says is remembered by its name.
        script.replace(Section::new(Kind::Model, Some("constant"), CONSTANT));
        script.relist();
        others.push((only.title(), script));
    }
    vec![features, models, others]
}

/// A few parts of different kinds, those that no study has looked at first.
fn chosen(groups: Vec<Vec<(String, Script)>>, studied: &[String]) -> Vec<(String, Script)> {
    let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
    let mut mixed: Vec<(String, Script)> = Vec::new();
    let mut groups: Vec<_> = groups.into_iter().map(Vec::into_iter).collect();
    for _ in 0..longest {
        mixed.extend(groups.iter_mut().filter_map(Iterator::next));
    }
    let (old, mut new): (Vec<_>, Vec<_>) =
        mixed.into_iter().partition(|(title, _)| studied.contains(title));
    new.extend(old);
    new.truncate(PARTS);
    new
}

/// `def variant_1(): ...`, which gives the score.
fn function(script: &Script, number: usize) -> String {
    let mut text = format!("def variant_{number}():\n    print = silent\n");
    let elsewhere = [Kind::Setup, Kind::Data, Kind::Submission, Kind::Study];
    for section in script.sections.iter().filter(|it| !elsewhere.contains(&it.kind)) {
        let section = section.with_line("REPEATS = ", "REPEATS = 1");
        text += &indented(section.quoted());
        text.push('\n');
    }
    text + "    return score"
}
