//! What happens in a run, as it is recorded and shown.
//!
//! The journal is a file of [`Record`]s and nothing else. Every view is a fold over them, live or
//! from the file: there is no second source of truth.

mod record;

use serde::{Deserialize, Serialize};

pub use self::record::{Amount, Begun, Decision, FORMAT, Given, Header, Lack, Output, Record};
use crate::block::Match;
use crate::evaluate::Purpose;
use crate::models::{ContaminationVerdict, Score, SolutionPhase};
use crate::summary::Summary;

/// A part of the run that a person would name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of the paper")]
pub enum Phase {
    Phase1,
    Phase2,
    Phase3,
    Finalization,
}

/// Something worth knowing that is not a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A phase began.
    PhaseStarted {
        /// Which.
        phase: Phase,
    },
    /// A phase ended.
    PhaseEnded {
        /// Which.
        phase: Phase,
        /// The best score at that time.
        best: Option<Score>,
    },
    /// A phase was not needed.
    PhaseSkipped {
        /// Which.
        phase: Phase,
        /// The score of the solution that goes on without it.
        best: Option<Score>,
    },
    /// A phase ended without a result, and the run with it.
    PhaseFailed {
        /// Which.
        phase: Phase,
        /// Why.
        reason: String,
    },
    /// The retriever found models.
    Retrieved {
        /// Their names.
        models: Vec<String>,
    },
    /// The candidates were ranked.
    Ranked {
        /// Those with a score, by their numbers, best first.
        candidates: Vec<usize>,
    },
    /// A script was evaluated, repairs included.
    Evaluated {
        /// What it was run for.
        purpose: Purpose,
        /// What it scored; `None` if it failed, or was not run to be scored.
        score: Option<Score>,
        /// How many repairs it took.
        repairs: usize,
        /// The first line of what was wrong in the end.
        error: Option<String>,
    },
    /// A merge was judged.
    Merged {
        /// Rank of the candidate that was merged in.
        rank: usize,
        /// The score before.
        base: Score,
        /// The score of the merged script.
        score: Option<Score>,
        /// Whether it became the base.
        accepted: bool,
    },
    /// The leakage check was made.
    LeakageChecked {
        /// Whether leakage was found.
        found: bool,
        /// Whether the script was changed.
        changed: bool,
    },
    /// The data-usage check was made.
    DataUsageChecked {
        /// Whether the script was changed.
        changed: bool,
    },
    /// An outer step began.
    OuterStepStarted {
        /// The best score of the path so far.
        best: Score,
        /// How many studies were summed up before.
        summaries: usize,
    },
    /// The block that the extractor quoted was looked for in the script.
    BlockChecked {
        /// How it was recognised; `None` if it is not there.
        matched: Option<Match>,
        /// The how-manieth try this was, from 0.
        attempt: usize,
        /// How the quoted block begins.
        begins: String,
    },
    /// The inner loop began to refine a block.
    InnerLoopStarted {
        /// How long the block is, in characters.
        characters: usize,
        /// How the block begins.
        begins: String,
        /// The first plan.
        plan: String,
        /// The score to beat.
        best: Score,
    },
    /// A block was replaced by a refined one.
    BlockReplaced {
        /// How long it was, in characters.
        before: usize,
        /// How long it is.
        after: usize,
    },
    /// The inner loop ended.
    InnerLoopEnded {
        /// How many plans were tried.
        attempts: usize,
        /// How many of them came to a score.
        scored: usize,
        /// The best score, of the path if none was better.
        best: Score,
        /// Whether it is strictly better than before.
        improved: bool,
    },
    /// The outer loop of a path ended.
    OuterLoopEnded {
        /// How many steps were not skipped.
        steps: usize,
        /// The best score of the path.
        best: Score,
    },
    /// An inner step was judged.
    Refined {
        /// The plan.
        plan: String,
        /// What it scored; `None` if it failed.
        score: Option<Score>,
        /// The best score of the path so far.
        best: Score,
        /// Whether this is now the best.
        accepted: bool,
    },
    /// An outer step ended before its inner loop.
    OuterStepSkipped {
        /// Why.
        reason: String,
    },
    /// An outer step ended.
    OuterStepEnded {
        /// The best score of the path so far.
        best: Score,
    },
    /// A path ended.
    PathEnded {
        /// Which.
        path: usize,
        /// Its best score.
        best: Score,
        /// Why it failed, if it did; Phase 1's solution stands in for it then.
        failure: Option<String>,
        /// Whether it ended before all its steps were done.
        #[serde(default)]
        cut_short: bool,
    },
    /// A round of Phase 3 began.
    RoundStarted {
        /// How many rounds there were before.
        earlier: usize,
    },
    /// An ensemble was judged.
    Ensembled {
        /// The plan.
        plan: String,
        /// What it scored; `None` if it failed.
        score: Option<Score>,
    },
    /// What is finalized was chosen.
    Selected {
        /// Who wrote it.
        from: SolutionPhase,
        /// Its score.
        score: Score,
    },
    /// The script was searched for code that makes the training data smaller.
    SubsamplingChecked {
        /// How long the block is that does so, in characters; `None` if there is none.
        before: Option<usize>,
        /// How long the block is that took its place; `None` if it was left as it was.
        after: Option<usize>,
    },
    /// The solution was compared with the reference discussions.
    ContaminationChecked {
        /// A verdict for each; `None` where the reply could not be read.
        verdicts: Vec<Option<ContaminationVerdict>>,
        /// What that comes to.
        overall: Option<ContaminationVerdict>,
    },
    /// A loop ended before its time.
    CutShort {
        /// Why.
        lack: Lack,
    },
    /// The agents cannot be reached; they are asked again.
    Waiting {
        /// After how many seconds.
        seconds: u64,
        /// What is wrong.
        reason: String,
    },
    /// A conversation broke off, and is begun anew. What it cost is counted.
    BrokenOff {
        /// What it cost; `None` if nobody was told, and it is estimated.
        cost_usd: Option<f64>,
    },
    /// A verified submission took its place in `final/`.
    Published {
        /// The validation score of the solution it comes from.
        score: Score,
        /// Who wrote that.
        from: SolutionPhase,
    },
    /// What the run cost, how long it took, and where its solution comes from.
    Summarized {
        /// All of it.
        summary: Box<Summary>,
    },
    /// The submission was written.
    Submitted {
        /// Its rows, if it could be read as a table.
        rows: Option<u64>,
    },
    /// Something did not go as it should; the run goes on.
    Warned {
        /// What.
        message: String,
    },
}
