//! A_debugger: mends what can be mended by rule, and says so when nothing can.

use mle_star_agent::{AgentError, Reply};
use serde::Deserialize;

use crate::catalogue::{Piece, Shelf};
use crate::roles::code;
use crate::script::{Kind, Script, Section};
use crate::{Playbook, assembly};

#[derive(Deserialize)]
pub(crate) struct Input {
    code: String,
    bug: String,
    may_subsample: bool,
}

const GUARD: &str = include_str!("debugger_guard.py");

pub(crate) fn answer(playbook: &Playbook, input: &Input) -> Result<Reply, AgentError> {
    let script = Script::parse(&input.code);
    if let Some(mended) = mended(playbook, input, &script)
        && mended.to_string() != input.code
    {
        return Ok(code(&mended.to_string()));
    }
    let last = input.bug.lines().find(|it| it.contains("Error")).unwrap_or("the error");
    Ok(Reply::text(format!("No rule of the playbook mends this, so the script stays: {last}")))
}

fn mended(playbook: &Playbook, input: &Input, script: &Script) -> Option<Script> {
    let bug = input.bug.as_str();
    if !script.is_ours() {
        return with_score_line(bug, &input.code);
    }
    if let Some(module) = missing_module(bug) {
        return Some(without_module(playbook, script, module));
    }
    if bug.contains("MemoryError") || (bug.contains("Killed: ") && !bug.contains("processes")) {
        return Some(smaller(playbook, script, input.may_subsample));
    }
    if bug.contains("TimeoutError: exceeded") {
        return Some(faster(playbook, script, input.may_subsample));
    }
    if bug.contains("submission.csv") || bug.contains("the submission is invalid") {
        let mut script = script.clone();
        script.replace(assembly::plain(&playbook.catalogue, "submission").ok()?);
        return Some(script);
    }
    if bug.contains("RuntimeError: the script ") {
        let mut script = script.clone();
        script.replace(assembly::validation(playbook).ok()?);
        return Some(script);
    }
    if is_about_values(bug) && !script.to_string().contains("def unguarded_table(") {
        return Some(guarded(script));
    }
    without_failing_part(playbook, script, bug)
}

/// `lightgbm` of `No module named 'lightgbm.sklearn'`.
fn missing_module(bug: &str) -> Option<&str> {
    let rest = bug.split_once("No module named '")?.1;
    rest.split(['\'', '.']).next()
}

/// The script without the models that need a module; another model if none is left.
fn without_module(playbook: &Playbook, script: &Script, module: &str) -> Script {
    let uses = |text: &str| {
        text.lines().map(str::trim).any(|line| {
            let imported = line.strip_prefix("import ").or_else(|| line.strip_prefix("from "));
            imported.is_some_and(|it| it.split([' ', '.', ',']).next() == Some(module))
        })
    };
    let needing = |section: &Section| {
        matches!(section.kind, Kind::Model | Kind::Features) && uses(&section.text)
    };
    let other = |piece: &&Piece| !uses(&piece.body) && !piece.needs.iter().any(|it| it == module);
    without(playbook, script, &needing, &other)
}

/// The script without some sections; a model takes their place if no other is left.
fn without(
    playbook: &Playbook,
    script: &Script,
    gone: &dyn Fn(&Section) -> bool,
    other: &dyn Fn(&&Piece) -> bool,
) -> Script {
    let mut script = script.clone();
    let removed: Vec<String> =
        script.sections.iter().filter(|it| gone(it)).filter_map(|it| it.name.clone()).collect();
    script.remove(gone);
    if script.of(Kind::Model).next().is_none() && !script.is_ensemble() {
        let recipe = playbook
            .catalogue
            .on(Shelf::Recipes)
            .find(|piece| other(piece) && !removed.contains(&piece.name));
        if let Some(recipe) = recipe {
            script.insert(recipe.as_section());
        }
    }
    script.relist();
    script
}

/// Fewer rows to fit on where that is allowed, else fewer models.
fn smaller(playbook: &Playbook, script: &Script, may_subsample: bool) -> Script {
    if may_subsample { fewer_rows(playbook, script) } else { lighter(script) }
}

/// The same once more, since nothing is fitted twice; then fewer fits; then smaller ones. The folds
/// stay, or the score could not be compared with any other.
fn faster(playbook: &Playbook, script: &Script, may_subsample: bool) -> Script {
    let setup = script.first(Kind::Setup);
    if setup.is_some_and(|setup| setup.line(STARTED_AGAIN).is_none()) {
        return with_setup(script, "SEED = ", |line| format!("{STARTED_AGAIN}\n{line}"));
    }
    let submission = script.first(Kind::Submission);
    if submission.is_some_and(|it| it.line("SEEDS = ").is_some_and(|line| line != "SEEDS = 1")) {
        let mut script = script.clone();
        for section in &mut script.sections {
            *section = section.with_line("SEEDS = ", "SEEDS = 1");
        }
        return script;
    }
    smaller(playbook, script, may_subsample)
}

const STARTED_AGAIN: &str =
    "# Started again: what was fitted before the time was over is not fitted again.";

/// Models are fitted on a quarter of the rows that they were fitted on, and on 10,000 at most: there
/// are few repairs, and a script that never ends has no score at all.
fn fewer_rows(playbook: &Playbook, script: &Script) -> Script {
    let first = (playbook.shape.rows / 4).clamp(500, 10_000);
    with_setup(script, "FIT_ROWS = ", |line| {
        let now: Option<u64> = line.split([' ', '#']).nth(2).and_then(|it| it.parse().ok());
        let rows = now.map_or(first, |now| (now / 4).max(300));
        let comment = line.split_once('#').map_or("", |(_, comment)| comment);
        format!("FIT_ROWS = {rows}  #{comment}")
    })
}

/// The script with another line in its setup for the one that begins with `start`.
fn with_setup(script: &Script, start: &str, line: impl Fn(&str) -> String) -> Script {
    let mut script = script.clone();
    for section in script.sections.iter_mut().filter(|it| it.kind == Kind::Setup) {
        if let Some(old) = section.line(start) {
            *section = section.with_line(start, &line(old));
        }
    }
    script
}

/// Without the last model, which was added last, as long as there are others.
fn lighter(script: &Script) -> Script {
    let mut script = script.clone();
    let models = script.names(Kind::Model);
    if models.len() > 1
        && let Some(last) = models.last()
    {
        script.remove(|it| it.kind == Kind::Model && it.name.as_ref() == Some(last));
        script.relist();
    }
    script
}

/// Whether an error is about what the values are: gaps, infinities, words, unseen categories.
fn is_about_values(bug: &str) -> bool {
    [
        "contains NaN",
        "contains infinity",
        "could not convert string to float",
        "unknown categories",
        "unseen labels",
        "pandas dtypes must be int, float or bool",
        "must be of type int, float, bool or category",
        "Cannot setitem on a Categorical",
        "value too large for dtype",
        "isnan' not supported",
    ]
    .iter()
    .any(|it| bug.contains(it))
}

/// The script with a table that holds finite numbers and texts only.
fn guarded(script: &Script) -> Script {
    let mut script = script.clone();
    for section in script.sections.iter_mut().filter(|it| it.kind == Kind::Table) {
        let renamed = section.text.replacen("def table(", "def unguarded_table(", 1);
        section.text = format!("{}\n\n\n{}\n\n\n", renamed.trim_end(), GUARD.trim());
    }
    script
}

/// The script without the model or features that the traceback names.
fn without_failing_part(playbook: &Playbook, script: &Script, bug: &str) -> Option<Script> {
    let named = |section: &Section| {
        let (prefix, name) = match (section.kind, &section.name) {
            (Kind::Model, Some(name)) => ("model", name),
            (Kind::Features, Some(name)) => ("features", name),
            _ => return false,
        };
        bug.contains(&format!(", in {prefix}_{name}\n"))
    };
    script.sections.iter().any(&named).then(|| without(playbook, script, &named, &|_| true))
}

/// The score printed at the end, if some script has it and does not print it.
fn with_score_line(bug: &str, source: &str) -> Option<Script> {
    if !bug.contains("RuntimeError: the script ") || source.contains("Final Validation Performance")
    {
        return None;
    }
    let assigned = |name: &&str| source.lines().any(|it| it.starts_with(&format!("{name} = ")));
    let names = ["final_validation_score", "final_score", "validation_score", "val_score", "score"];
    let name = names.iter().find(|name| assigned(name))?;
    let line = format!("print(f\"Final Validation Performance: {{{name}}}\")");
    Some(Script::parse(&format!("{}\n{line}\n", source.trim_end())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn mend(playbook: &Playbook, code: &str, bug: &str) -> Script {
        let input = Input { code: code.to_owned(), bug: bug.to_owned(), may_subsample: true };
        let text = answer(playbook, &input).unwrap().text;
        let code = text.trim_start_matches("```python\n").trim_end_matches("\n```\n").to_owned();
        mle_star_python::check_syntax(&code).unwrap();
        Script::parse(&code)
    }

    #[test]
    fn a_missing_package_costs_only_the_models_that_need_it() {
        let playbook = testing::binary();
        let script = testing::two_models(&playbook);
        let models = script.names(Kind::Model);
        let needed = models.iter().find_map(|name| {
            let piece = playbook.catalogue.on(Shelf::Recipes).find(|it| it.name == *name)?;
            piece.needs.iter().find(|it| piece.body.contains(&format!("import {it}"))).cloned()
        });
        let Some(module) = needed else { return };
        let bug = format!("ModuleNotFoundError: No module named '{module}'");
        let mended = mend(&playbook, &script.to_string(), &bug);
        assert!(mended.names(Kind::Model).len() < models.len());
        assert!(!mended.to_string().contains(&format!("import {module}\n")));
    }

    #[test]
    fn what_takes_too_much_is_made_smaller_step_by_step() {
        let playbook = testing::binary();
        let code = testing::two_models(&playbook).to_string();
        let late = "TimeoutError: exceeded 600 s";
        let first = mend(&playbook, &code, late).to_string();
        assert!(first.contains("# Started again: "));
        let second = mend(&playbook, &first, late).to_string();
        assert!(second.contains("\nFIT_ROWS = 500  # models"), "{second}");
        let third = mend(&playbook, &second, "Killed: the script used too much").to_string();
        assert!(third.contains("\nFIT_ROWS = 300  # models"), "{third}");
        assert!(third.contains("\nFOLDS = 5\n"), "other folds would give another score");
    }

    #[test]
    fn a_submission_that_takes_too_long_is_averaged_over_fewer_seeds() {
        let playbook = testing::binary();
        let script = assembly::submitting(&playbook, &testing::two_models(&playbook)).unwrap();
        let late = "TimeoutError: exceeded 600 s";
        let first = mend(&playbook, &script.to_string(), late).to_string();
        let second = mend(&playbook, &first, late).to_string();
        assert!(second.contains("\nSEEDS = 1\n"), "{second}");
    }

    #[test]
    fn gaps_are_guarded_against_once_and_then_the_failing_model_goes() {
        let playbook = testing::binary();
        let script = testing::two_models(&playbook);
        let model = script.names(Kind::Model).pop().unwrap();
        let bug = format!(
            "  File \"solution.py\", line 3, in model_{model}\n    x\nValueError: Input contains NaN"
        );
        let guarded = mend(&playbook, &script.to_string(), &bug);
        assert!(guarded.to_string().contains("def unguarded_table("));
        let without = mend(&playbook, &guarded.to_string(), &bug);
        assert!(!without.has(Kind::Model, &model));
    }

    #[test]
    fn what_no_rule_mends_is_said() {
        let playbook = testing::binary();
        let code = testing::two_models(&playbook).to_string();
        let bug = "ZeroDivisionError: division by zero".to_owned();
        let reply = answer(&playbook, &Input { code, bug, may_subsample: true }).unwrap();
        assert!(reply.text.starts_with("No rule of the playbook"), "{}", reply.text);
    }
}
