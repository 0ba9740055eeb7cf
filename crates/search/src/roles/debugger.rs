use mle_star_agent::Reply;
use serde::Serialize;

use crate::error::Error;
use crate::evaluate::{BugReport, Purpose};
use crate::models::{AgentType, SolutionPhase, SolutionScript};
use crate::prompt::Variables;
use crate::reply::try_extract_code;
use crate::roles::{Role, coding_variables, excerpt};
use crate::step::{Asked, RunCtx};

/// The words that every script must print before its score.
const SCORE_WORDS: &str = "Final Validation Performance";

const PRINT_SCORE: &str = r#"print(f"Final Validation Performance: {final_validation_score}")"#;

/// A_debugger: mends a script that failed.
#[derive(Debug, Serialize)]
pub(crate) struct Debugger<'a> {
    pub(crate) code: &'a str,
    pub(crate) bug: &'a str,
    pub(crate) purpose: Purpose,
    /// Whether the script may work on a part of the training data.
    pub(crate) may_subsample: bool,
}

impl Role for Debugger<'_> {
    const AGENT: AgentType = AgentType::Debugger;
    const STEP: &'static str = "debugger";

    fn variables(&self, ctx: &RunCtx<'_>) -> Variables {
        let mut variables = coding_variables(ctx);
        variables.insert("code", self.code.to_owned());
        variables.insert("bug", self.bug.to_owned());
        let note = match self.purpose {
            Purpose::Validation => "",
            Purpose::Ablation => {
                "Note: this script is an ablation study. It need not print a final score; it must \
                 print the result of every variant."
            }
            Purpose::Submission => {
                "Note: this script makes the submission. It need not print a score; it must write \
                 `./final/submission.csv`."
            }
        };
        variables.insert("submission_note", note.to_owned());
        if !self.may_subsample {
            variables.insert("subsample_instruction", String::new());
        }
        variables
    }
}

/// Mends `script` with one call; the script unchanged if the reply holds no code.
pub async fn invoke_debugger(
    ctx: &RunCtx<'_>,
    script: &SolutionScript,
    bug: &BugReport,
    purpose: Purpose,
) -> Result<SolutionScript, Error> {
    if bug.headline().trim().is_empty() {
        return Err(Error::Precondition("No traceback provided for debugging"));
    }
    let may_subsample = match script.phase {
        SolutionPhase::Init | SolutionPhase::Merged | SolutionPhase::Refined => true,
        SolutionPhase::Ensemble | SolutionPhase::Final => false,
    };
    let role = Debugger { code: &script.content, bug: bug.text(), purpose, may_subsample };
    let Asked { reply: Reply { text, .. }, at, .. } = ctx.ask(&role).await?;
    let Some(mut code) = try_extract_code(&text) else {
        ctx.warn(format!("A_debugger wrote no code: {}", excerpt(&text)))?;
        return Ok(script.clone());
    };
    if purpose == Purpose::Validation && !code.contains(SCORE_WORDS) {
        ctx.warn("A_debugger dropped the line that prints the score; it was put back")?;
        code = with_score_line(&code);
    }
    // Models do not repeat the line break at the end: that is no change.
    if code.trim_end() == script.content.trim_end() {
        return Ok(script.clone());
    }
    Ok(script.with_content(code, at))
}

/// Puts the line that prints the score before the main block, else at the end.
fn with_score_line(code: &str) -> String {
    let main = code.match_indices("if __name__").map(|(start, _)| start);
    // Only a line of its own at the outermost level is the main block.
    let mut main = main
        .filter(|start| code.get(..*start).is_some_and(|it| it.is_empty() || it.ends_with('\n')));
    match main.next().and_then(|start| code.split_at_checked(start)) {
        Some((before, after)) => format!("{before}{PRINT_SCORE}\n{after}"),
        None => format!("{}\n{PRINT_SCORE}\n", code.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REQ-SF-010
    #[test]
    fn a_dropped_score_line_is_put_back() {
        assert_eq!(with_score_line("x = 1\n"), format!("x = 1\n{PRINT_SCORE}\n"));
        assert_eq!(
            with_score_line("x = 1\nif __name__ == '__main__':\n    main()\n"),
            format!("x = 1\n{PRINT_SCORE}\nif __name__ == '__main__':\n    main()\n")
        );
        assert_eq!(
            with_score_line("s = 'if __name__'"),
            format!("s = 'if __name__'\n{PRINT_SCORE}\n")
        );
    }
}
