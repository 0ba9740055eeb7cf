use serde::Serialize;

use crate::block::locate;
use crate::error::Error;
use crate::event::Event;
use crate::models::{
    AgentType, ContaminationVerdict, DataContaminationResult, SolutionPhase, SolutionScript,
};
use crate::prompt::Variables;
use crate::reply::{extract_code_block, parse_structured, try_extract_code};
use crate::roles::{Role, coding_variables, excerpt};
use crate::step::{Asked, RunCtx};

/// A_test: turns a validated solution into a script that writes the submission.
#[derive(Debug, Serialize)]
pub(crate) struct Test<'a> {
    pub(crate) task_description: &'a str,
    pub(crate) final_solution: &'a str,
}

impl Role for Test<'_> {
    const AGENT: AgentType = AgentType::Test;
    const STEP: &'static str = "test";

    fn variables(&self, ctx: &RunCtx<'_>) -> Variables {
        let mut variables = coding_variables(ctx);
        variables.insert("task_description", self.task_description.to_owned());
        variables.insert("final_solution", self.final_solution.to_owned());
        variables
    }
}

/// A_test, reading: which block makes the training data smaller?
#[derive(Debug, Serialize)]
pub(crate) struct SubsamplingExtract<'a> {
    pub(crate) final_solution: &'a str,
}

impl Role for SubsamplingExtract<'_> {
    const AGENT: AgentType = AgentType::Test;
    const VARIANT: Option<&'static str> = Some("subsampling_extract");
    const STEP: &'static str = "subsampling_extract";

    fn variables(&self, _: &RunCtx<'_>) -> Variables {
        Variables::from([("final_solution", self.final_solution.to_owned())])
    }
}

/// A_test, rewriting: the same block on all training data.
#[derive(Debug, Serialize)]
pub(crate) struct SubsamplingRemove<'a> {
    pub(crate) code_block_with_subsampling: &'a str,
}

impl Role for SubsamplingRemove<'_> {
    const AGENT: AgentType = AgentType::Test;
    const VARIANT: Option<&'static str> = Some("subsampling_remove");
    const STEP: &'static str = "subsampling_remove";

    fn variables(&self, _: &RunCtx<'_>) -> Variables {
        let block = self.code_block_with_subsampling.to_owned();
        Variables::from([("code_block_with_subsampling", block)])
    }
}

/// A_test, comparing: is the solution more than a copy of a discussion?
#[derive(Debug, Serialize)]
pub(crate) struct Contamination<'a> {
    pub(crate) reference_discussion: &'a str,
    pub(crate) final_solution: &'a str,
}

impl Role for Contamination<'_> {
    const AGENT: AgentType = AgentType::Test;
    const VARIANT: Option<&'static str> = Some("contamination");
    const STEP: &'static str = "contamination";

    fn variables(&self, _: &RunCtx<'_>) -> Variables {
        Variables::from([
            ("reference_discussion", self.reference_discussion.to_owned()),
            ("final_solution", self.final_solution.to_owned()),
        ])
    }
}

/// The solution on all training data; the solution itself if it did not subsample, or if nobody
/// could say where.
pub async fn remove_subsampling(
    ctx: &RunCtx<'_>,
    solution: &SolutionScript,
) -> Result<SolutionScript, Error> {
    if solution.content.trim().is_empty() {
        return Err(Error::Precondition("A_test requires a non-empty script"));
    }
    let role = SubsamplingExtract { final_solution: &solution.content };
    let text = ctx.ask(&role).await?.reply.text;
    let quoted = extract_code_block(&text);
    if quoted.trim().is_empty() || says_none(&quoted) {
        ctx.tell(Event::SubsamplingChecked { before: None, after: None })?;
        return Ok(solution.clone());
    }
    let Some(block) = locate(&solution.content, &quoted) else {
        ctx.warn(format!("the subsampling block is not in the script: {}", excerpt(&quoted)))?;
        return Ok(solution.clone());
    };
    let before = Some(block.text.chars().count());
    let role = SubsamplingRemove { code_block_with_subsampling: block.text };
    let Asked { reply, at, .. } = ctx.ask(&role).await?;
    let text = reply.text;
    // A fenced reply may be blank: then the block did nothing but subsample.
    let Some(code) = try_extract_code(&text).or_else(|| text.contains("```").then(String::new))
    else {
        ctx.tell(Event::SubsamplingChecked { before, after: None })?;
        ctx.warn(format!("A_test rewrote no code: {}", excerpt(&text)))?;
        return Ok(solution.clone());
    };
    let content = solution.content.replacen(block.text, &code, 1);
    let full = solution.with_content(content, at);
    if let Err(error) = mle_star_python::check_syntax(&full.content) {
        ctx.tell(Event::SubsamplingChecked { before, after: None })?;
        ctx.warn(format!("without its subsampling the script does not parse, {error}; kept"))?;
        return Ok(solution.clone());
    }
    ctx.tell(Event::SubsamplingChecked { before, after: Some(code.chars().count()) })?;
    let mut cuts = heads(block.text);
    cuts.extend([".sample(", ".head("].into_iter().filter(|it| block.text.contains(it)));
    if cuts.iter().any(|it| code.contains(it)) {
        ctx.warn("the script may still work on a part of the training data")?;
    }
    Ok(full)
}

/// The slices in `code` that keep a first part only, such as `[:30000]` and `[:limit]`.
fn heads(code: &str) -> Vec<&str> {
    let slices = code.match_indices("[:").filter_map(|(start, _)| {
        let slice = code.get(start..)?;
        slice.get(..=slice.find(']')?)
    });
    // `[:, 1:]` keeps all rows, `[:]` keeps everything, and `[:-1]` and `[::2]` set no limit.
    let limits = |slice: &&str| {
        let limit = slice.trim_start_matches("[:").trim_end_matches(']').trim();
        let named = |it: char| it.is_alphanumeric() || matches!(it, '_' | '.');
        !limit.is_empty() && limit.chars().all(named)
    };
    slices.filter(limits).collect()
}

fn says_none(text: &str) -> bool {
    let plain = text.trim().trim_matches(|it: char| !it.is_alphanumeric()).to_lowercase();
    matches!(plain.as_str(), "none" | "no subsampling" | "no subsampling found" | "n/a")
}

/// Writes the submission script; `None` if the reply holds no code.
pub async fn generate_test_submission(
    ctx: &RunCtx<'_>,
    solution: &SolutionScript,
) -> Result<Option<SolutionScript>, Error> {
    if solution.content.trim().is_empty() {
        return Err(Error::Precondition("A_test requires a non-empty script"));
    }
    let role =
        Test { task_description: &ctx.task().description, final_solution: &solution.content };
    let Asked { reply, at, .. } = ctx.ask(&role).await?;
    let Some(code) = try_extract_code(&reply.text) else {
        ctx.warn(format!("A_test wrote no code: {}", excerpt(&reply.text)))?;
        return Ok(None);
    };
    Ok(Some(SolutionScript::new(code, SolutionPhase::Final, at)))
}

/// Compares the script with each discussion: any copy is a copy; `None` if there is nothing to
/// compare with, or no copy was found and a reply could not be read.
pub async fn check_contamination(
    ctx: &RunCtx<'_>,
    solution: &SolutionScript,
    references: &[String],
) -> Result<Option<DataContaminationResult>, Error> {
    if solution.content.trim().is_empty() {
        return Err(Error::Precondition("A_test requires a non-empty script"));
    }
    if references.iter().any(|reference| reference.trim().is_empty()) {
        return Err(Error::Precondition("A_test requires a non-empty reference discussion"));
    }
    let mut verdicts = Vec::new();
    for (index, reference) in references.iter().enumerate() {
        let ctx = ctx.scope(format_args!("reference-{index}"));
        let role =
            Contamination { reference_discussion: reference, final_solution: &solution.content };
        let reply = ctx.ask(&role).await?.reply;
        let verdict = parse_structured(&reply, None)
            .map(|result: DataContaminationResult| result.verdict)
            .or_else(|| match reply.text.trim() {
                "Novel" => Some(ContaminationVerdict::Novel),
                "Same" => Some(ContaminationVerdict::Same),
                _ => None,
            });
        if verdict.is_none() {
            ctx.warn(format!("the verdict could not be read: {}", excerpt(&reply.text)))?;
        }
        verdicts.push(verdict);
    }
    let verdict = if verdicts.contains(&Some(ContaminationVerdict::Same)) {
        Some(ContaminationVerdict::Same)
    } else if verdicts.is_empty() || verdicts.contains(&None) {
        None
    } else {
        Some(ContaminationVerdict::Novel)
    };
    ctx.tell(Event::ContaminationChecked { verdicts, overall: verdict })?;
    Ok(verdict.map(|verdict| DataContaminationResult { verdict }))
}
