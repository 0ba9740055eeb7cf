use serde::Serialize;

use crate::block::locate;
use crate::error::Error;
use crate::event::Event;
use crate::models::{AgentType, LeakageDetectionOutput, LeakageStatus, SolutionScript};
use crate::prompt::Variables;
use crate::reply::{parse_structured, try_extract_code};
use crate::roles::{Role, excerpt};
use crate::step::{Asked, RunCtx};

/// A_leakage, looking: does the preprocessing leak validation data into training?
#[derive(Debug, Serialize)]
pub(crate) struct LeakageDetection<'a> {
    pub(crate) code: &'a str,
}

impl Role for LeakageDetection<'_> {
    const AGENT: AgentType = AgentType::Leakage;
    const VARIANT: Option<&'static str> = Some("detection");
    const STEP: &'static str = "leakage";

    fn variables(&self, _: &RunCtx<'_>) -> Variables {
        Variables::from([("code", self.code.to_owned())])
    }
}

/// A_leakage, mending: rewrites the block that leaks.
#[derive(Debug, Serialize)]
pub(crate) struct LeakageCorrection<'a> {
    pub(crate) code: &'a str,
    pub(crate) code_block: &'a str,
}

impl Role for LeakageCorrection<'_> {
    const AGENT: AgentType = AgentType::Leakage;
    const VARIANT: Option<&'static str> = Some("correction");
    const STEP: &'static str = "leakage_correction";

    fn variables(&self, _: &RunCtx<'_>) -> Variables {
        Variables::from([
            ("code", self.code.to_owned()),
            ("code_block", self.code_block.to_owned()),
        ])
    }
}

/// The script without the leaks that were found in it; the script itself if none could be mended.
pub async fn check_and_fix_leakage(
    ctx: &RunCtx<'_>,
    script: &SolutionScript,
) -> Result<SolutionScript, Error> {
    if script.content.trim().is_empty() {
        return Err(Error::Precondition("A_leakage requires a non-empty script"));
    }
    let reply = ctx.ask(&LeakageDetection { code: &script.content }).await?.reply;
    let Some(output) = parse_structured::<LeakageDetectionOutput>(&reply, Some("answers")) else {
        ctx.warn(format!("the reply of A_leakage could not be read: {}", excerpt(&reply.text)))?;
        return Ok(script.clone());
    };
    let mut leaks: Vec<String> = Vec::new();
    for answer in output.answers {
        if answer.leakage_status == LeakageStatus::Yes && !leaks.contains(&answer.code_block) {
            leaks.push(answer.code_block);
        }
    }
    let mut mended = script.clone();
    for (index, leak) in leaks.iter().enumerate() {
        mended = correct(&ctx.scope(format_args!("leak-{index}")), mended, leak).await?;
    }
    let changed = mended.content != script.content;
    ctx.tell(Event::LeakageChecked { found: !leaks.is_empty(), changed })?;
    Ok(mended)
}

/// Mends one leak, if the block is really there and the correction is usable.
async fn correct(
    ctx: &RunCtx<'_>,
    script: SolutionScript,
    leak: &str,
) -> Result<SolutionScript, Error> {
    // Looked for before the call, so that nothing is paid for a block that is not there.
    let Some(block) = locate(&script.content, leak) else {
        ctx.warn(format!("the leaking block is not in the script: {}", excerpt(leak)))?;
        return Ok(script);
    };
    let role = LeakageCorrection { code: &script.content, code_block: block.text };
    let Asked { reply, at, .. } = ctx.ask(&role).await?;
    let Some(code) = try_extract_code(&reply.text).filter(|code| code.trim() != block.text.trim())
    else {
        ctx.warn(format!("A_leakage corrected nothing: {}", excerpt(&reply.text)))?;
        return Ok(script);
    };
    let content = if is_whole_script(&code, &script.content, block.text) {
        code
    } else {
        script.content.replacen(block.text, &code, 1)
    };
    if content.trim_end() == script.content.trim_end() {
        ctx.warn(format!("A_leakage corrected nothing: {}", excerpt(&reply.text)))?;
        return Ok(script);
    }
    if let Err(error) = mle_star_python::check_syntax(&content)
        && mle_star_python::check_syntax(&script.content).is_ok()
    {
        ctx.warn(format!("the correction of A_leakage does not parse, {error}; it was dropped"))?;
        return Ok(script);
    }
    Ok(script.with_content(content, at))
}

/// Whether the agent sent back the whole script instead of the block it was asked for.
fn is_whole_script(code: &str, script: &str, block: &str) -> bool {
    let lines = || script.lines().map(str::trim).filter(|line| !line.is_empty());
    let has = |line: &str| code.lines().any(|it| it.trim() == line);
    let outside = |line: &str| !block.lines().any(|it| it.trim() == line);
    match (lines().next(), lines().next_back()) {
        // Lines of the block itself prove nothing: a correction may well keep them.
        (Some(first), Some(last)) if outside(first) || outside(last) => has(first) && has(last),
        _ => false,
    }
}
