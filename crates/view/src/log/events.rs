//! What a log says of events.

use mle_star_search::event::{Event, Phase, Record};
use mle_star_search::models::LogLevel::{Debug, Error, Info, Warning};
use mle_star_search::models::{PipelineConfig, Score};
use serde_json::{Value, json};

use super::{Log, begins, shown};
use crate::line::title;
use crate::overview::Place;
use crate::{Solution, SolutionKind, SolutionOutcome};

impl Log {
    /// Lines that tell what was before an event.
    #[expect(clippy::wildcard_enum_match_arm, reason = "few events matter here")]
    pub(super) fn happening(&mut self, record: &Record, key: &str, event: &Event) {
        let path = Place::of(key).number("path");
        match event {
            Event::OuterStepStarted { best, .. } | Event::InnerLoopStarted { best, .. } => {
                self.best.extend(path.map(|path| (path, *best)));
            }
            Event::Refined { plan, best, accepted: true, .. } => {
                let old = path.and_then(|path| self.best.insert(path, *best));
                self.say(
                    record,
                    Info,
                    "best score updated",
                    &[
                        ("old_best_score", old.map(Score::get).into()),
                        ("new_best_score", best.get().into()),
                        ("plan", begins(plan)),
                    ],
                );
            }
            Event::Refined { plan, score: None, .. } if !self.evaluated.contains(key) => {
                let warned = self.warned.as_ref().filter(|(place, _)| place == key);
                let reason = warned.map_or("not done", |(_, message)| message.as_str()).to_owned();
                let fields = [("reason", begins(&reason)), ("plan", begins(plan))];
                self.say(record, Warning, "attempt skipped", &fields);
            }
            Event::Warned { message } => self.warned = Some((key.to_owned(), message.clone())),
            Event::Evaluated { .. } => {
                self.evaluated.insert(key.to_owned());
            }
            _ => {}
        }
    }

    pub(super) fn happened(&mut self, record: &Record, key: &str, event: &Event) {
        match event {
            Event::PhaseStarted { phase } => {
                let fields = self.about(*phase);
                self.say(record, Info, format!("=== {} ===", title(*phase)), &fields);
            }
            Event::PhaseEnded { phase, best } => self.phase_ended(record, *phase, *best),
            Event::PhaseSkipped { phase, best } => {
                let fields = [("score", best.map(Score::get).into()), self.competition()];
                self.say(record, Info, format!("{} skipped", title(*phase)), &fields);
            }
            Event::PhaseFailed { phase, reason } => {
                let fields = [
                    ("reason", begins(reason)),
                    ("models", self.names(|it| it.kind == SolutionKind::Candidate).into()),
                ];
                self.say(record, Error, format!("{} failed", title(*phase)), &fields);
            }
            Event::Retrieved { models } => {
                let names: Vec<Value> = models.iter().map(|it| begins(it)).collect();
                let fields = [("count", models.len().into()), ("models", names.into())];
                self.say(record, Info, "retrieval complete", &fields);
            }
            Event::Ranked { candidates } => {
                let ranked = candidates.iter().filter_map(|number| {
                    let found = self.overview.solution(&format!("phase1/candidate-{number}"))?;
                    Some(json!({"model": found.name, "score": found.score}))
                });
                let fields = [("candidates", ranked.collect::<Vec<_>>().into())];
                self.say(record, Info, "candidates sorted", &fields);
            }
            Event::Evaluated { purpose, score, repairs, error } => {
                let ran = self.ran.get(Place::of(key).solution().unwrap_or(key)).copied();
                let name = Place::of(key).solution().and_then(|id| self.overview.solution(id));
                let mut fields = vec![
                    ("purpose", serde_json::to_value(purpose).unwrap_or_default()),
                    ("name", name.map(|it| it.name.clone()).into()),
                    ("score", if error.is_some() { "failed".into() } else { score_of(*score) }),
                    ("is_error", ran.map(|it| it.is_error).into()),
                    ("duration_seconds", ran.map(|it| it.duration_seconds).into()),
                    ("repairs", (*repairs).into()),
                ];
                fields.extend(error.as_ref().map(|it| ("error", begins(it))));
                self.say(record, Info, "evaluation complete", &fields);
                if *repairs > 0 {
                    let fields =
                        [("attempts", (*repairs).into()), ("fixed", error.is_none().into())];
                    match error {
                        None => self.say(record, Info, "debug result", &fields),
                        Some(_) => self.say(record, Warning, "debug fallback", &fields),
                    }
                }
            }
            Event::Merged { rank, base, score, accepted } => {
                self.say(
                    record,
                    Info,
                    "merge result",
                    &[
                        ("index", (*rank).into()),
                        ("base_score", base.get().into()),
                        ("score", shown(*score)),
                        ("accepted", (*accepted).into()),
                    ],
                );
                if !accepted {
                    let reason =
                        if score.is_some() { "no improvement" } else { "the merge failed" };
                    let fields = [("index", (*rank).into()), ("reason", reason.into())];
                    self.say(record, Info, "merge break", &fields);
                }
            }
            Event::LeakageChecked { found, changed } => {
                let fields =
                    [("leakage_found", (*found).into()), ("content_changed", (*changed).into())];
                self.say(record, Info, "leakage check complete", &fields);
            }
            Event::DataUsageChecked { changed } => {
                self.say(record, Info, "data check complete", &[("modified", (*changed).into())]);
            }
            Event::OuterStepStarted { best, summaries } => {
                self.say(
                    record,
                    Info,
                    "outer step start",
                    &[("best_score", best.get().into()), ("summaries", (*summaries).into())],
                );
            }
            Event::BlockChecked { matched, attempt, begins: block } => {
                let method = serde_json::to_value(matched).unwrap_or_default();
                self.say(
                    record,
                    Info,
                    "code block validation result",
                    &[("passed", matched.is_some().into()), ("match_method", method)],
                );
                if matched.is_none() {
                    let fields = [("code_block", begins(block)), ("attempt", (*attempt).into())];
                    self.say(record, Warning, "code block validation failure", &fields);
                }
            }
            Event::InnerLoopStarted { characters, plan, best, .. } => {
                let fields = [
                    ("code_block_length", (*characters).into()),
                    ("plan", begins(plan)),
                    ("best_score", best.get().into()),
                    ("K", self.settings().map(|it| it.inner_loop_steps).into()),
                ];
                self.say(record, Info, "inner loop handoff", &fields);
                self.say(record, Info, "inner loop start", &fields);
            }
            Event::BlockReplaced { before, after } => {
                self.say(
                    record,
                    Debug,
                    "code block replacement success",
                    &[("original_length", (*before).into()), ("new_length", (*after).into())],
                );
            }
            Event::Refined { plan, score, best, accepted } => {
                self.say(
                    record,
                    Info,
                    "attempt complete",
                    &[
                        ("plan", begins(plan)),
                        ("score", shown(*score)),
                        ("best_score", best.get().into()),
                        ("was_improvement", (*accepted).into()),
                    ],
                );
            }
            Event::InnerLoopEnded { attempts, scored, best, improved } => {
                let fields = [
                    ("attempts", (*attempts).into()),
                    ("successful_evaluations", (*scored).into()),
                    ("best_score", best.get().into()),
                    ("improved", (*improved).into()),
                ];
                self.say(record, Info, "inner loop complete", &fields);
                self.say(record, Info, "inner loop return", &fields);
            }
            Event::OuterStepSkipped { reason } => {
                self.say(record, Warning, "outer step skipped", &[("reason", begins(reason))]);
            }
            Event::OuterStepEnded { best } => {
                let step = Place::of(key).outer_step();
                let study = self.overview.studies().iter();
                let mut study = study.filter(|it| Some((it.path, it.outer)) == step);
                let duration =
                    study.next().and_then(|it| Some(it.ended_seconds? - it.began_seconds));
                let fields =
                    [("best_score", best.get().into()), ("duration_seconds", duration.into())];
                self.say(record, Info, "outer step complete", &fields);
            }
            Event::OuterLoopEnded { steps, best } => {
                let name = Place::of(key).lane();
                let lane = self.overview.lanes().iter().find(|it| it.name == name);
                let now = self.overview.tally.elapsed(record.at());
                let duration = lane.map(|it| now - it.began_seconds);
                self.say(
                    record,
                    Info,
                    "outer loop complete",
                    &[
                        ("steps", (*steps).into()),
                        ("best_score", best.get().into()),
                        ("duration_seconds", duration.into()),
                    ],
                );
            }
            Event::PathEnded { path, best, failure, cut_short } => {
                let fields = [
                    ("path", (*path).into()),
                    ("best_score", best.get().into()),
                    ("cut_short", (*cut_short).into()),
                    ("failure", failure.as_deref().map(begins).into()),
                ];
                let level = if failure.is_some() { Warning } else { Info };
                self.say(record, level, "path complete", &fields);
            }
            Event::RoundStarted { earlier } => {
                let fields = [("history_size", (*earlier).into())];
                self.say(record, Info, "ensemble round start", &fields);
            }
            Event::Ensembled { plan, score } => {
                let fields = [("plan", begins(plan)), ("score", shown(*score))];
                self.say(record, Info, "ensemble round complete", &fields);
            }
            Event::Selected { from, score } => {
                let from = serde_json::to_value(from).unwrap_or_default();
                let fields = [("phase", from), ("score", score.get().into())];
                self.say(record, Info, "solution selected", &fields);
            }
            Event::SubsamplingChecked { before, after } => {
                self.say(
                    record,
                    Info,
                    "subsampling extraction result",
                    &[("found", before.is_some().into()), ("code_block_length", (*before).into())],
                );
                if let Some(before) = before {
                    self.say(
                        record,
                        Info,
                        "subsampling removal result",
                        &[
                            ("original_length", (*before).into()),
                            ("new_length", (*after).into()),
                            ("replaced", after.is_some().into()),
                        ],
                    );
                }
            }
            Event::ContaminationChecked { verdicts, overall } if verdicts.is_empty() => {
                let fields = [("references", 0.into()), ("overall", json!(overall))];
                self.say(record, Info, "contamination check skipped: no references", &fields);
            }
            Event::ContaminationChecked { verdicts, overall } => {
                self.say(
                    record,
                    Info,
                    "contamination check complete",
                    &[
                        ("references", verdicts.len().into()),
                        ("verdicts", json!(verdicts)),
                        ("overall", json!(overall)),
                    ],
                );
            }
            Event::CutShort { lack } => {
                let fields = [("reason", lack.to_string().into())];
                self.say(record, Warning, "cut short", &fields);
            }
            Event::Waiting { seconds, reason } => {
                let fields = [("seconds", (*seconds).into()), ("reason", begins(reason))];
                self.say(record, Warning, "waiting for the agents", &fields);
            }
            Event::Published { score, from } => {
                self.say(
                    record,
                    Info,
                    "submission published",
                    &[
                        ("path", "final/submission.csv".into()),
                        ("score", score.get().into()),
                        ("phase", json!(from)),
                    ],
                );
            }
            Event::Submitted { rows } => {
                let fields = [("exists", true.into()), ("rows", (*rows).into())];
                self.say(record, Info, "submission verified", &fields);
            }
            Event::Summarized { summary } => {
                for (message, value) in [
                    ("cost summary", json!(summary.costs)),
                    ("duration summary", json!(summary.durations)),
                ] {
                    let fields = value.as_object().into_iter().flatten();
                    let fields: Vec<(&str, Value)> =
                        fields.map(|(name, value)| (name.as_str(), value.clone())).collect();
                    self.say(record, Info, message, &fields);
                }
                let lineage: Vec<Value> = summary.lineage.iter().map(|it| begins(it)).collect();
                self.say(record, Info, "solution lineage", &[("lineage", lineage.into())]);
                let submission = self.overview.submission.as_ref();
                let fields = [
                    ("submission", submission.map(|_| "final/submission.csv").into()),
                    ("phase", json!(self.overview.selected.as_ref().map(|it| it.from))),
                    ("duration_seconds", summary.durations.total_duration_seconds.into()),
                ];
                self.say(record, Info, "final result built", &fields);
            }
            Event::Warned { message } => self.say(record, Warning, message.clone(), &[]),
        }
    }

    fn settings(&self) -> Option<&PipelineConfig> {
        self.overview.subject.as_ref().map(|it| &it.settings)
    }

    fn competition(&self) -> (&'static str, Value) {
        let subject = self.overview.subject.as_ref();
        ("competition_id", subject.map(|it| it.competition_id.clone()).into())
    }

    fn names(&self, wanted: impl Fn(&Solution) -> bool) -> Vec<Value> {
        let found = self.overview.solutions().iter().filter(|it| wanted(it));
        found.map(|it| it.name.clone().into()).collect()
    }

    /// What a phase begins with.
    fn about(&self, phase: Phase) -> Vec<(&'static str, Value)> {
        let mut fields = vec![self.competition()];
        let Some(settings) = self.settings() else { return fields };
        match phase {
            Phase::Phase1 => fields.push(("M", settings.num_retrieved_models.into())),
            Phase::Phase2 => fields.extend([
                ("L", settings.num_parallel_solutions.into()),
                ("T", settings.outer_loop_steps.into()),
                ("K", settings.inner_loop_steps.into()),
            ]),
            Phase::Phase3 => fields.extend([
                ("L", settings.num_parallel_solutions.into()),
                ("R", settings.ensemble_rounds.into()),
            ]),
            Phase::Finalization => {}
        }
        fields
    }

    fn phase_ended(&mut self, record: &Record, phase: Phase, best: Option<Score>) {
        let span = self.overview.phases().iter().find(|it| it.phase == phase);
        let duration = span.and_then(|it| Some(it.ended_seconds? - it.began_seconds));
        let mut fields =
            vec![("score", best.map(Score::get).into()), ("duration_seconds", duration.into())];
        let of =
            |kind: SolutionKind| self.overview.solutions().iter().filter(move |it| it.kind == kind);
        match phase {
            Phase::Phase1 => {
                let merges = of(SolutionKind::Merged);
                let accepted = merges.filter(|it| it.outcome == SolutionOutcome::Accepted).count();
                fields.push(("merges", accepted.into()));
            }
            Phase::Phase3 => {
                let scored = of(SolutionKind::Ensemble).filter(|it| it.score.is_some()).count();
                let attempted = of(SolutionKind::Ensemble).count();
                let chosen = of(SolutionKind::Ensemble)
                    .rfind(|it| it.outcome == SolutionOutcome::Accepted)
                    .and_then(|it| Place::of(&it.id).number("round"));
                fields.push(("best_round", chosen.into()));
                fields.push(("rounds_attempted", attempted.into()));
                let selection = [
                    ("best_round", chosen.into()),
                    ("best_score", best.map(Score::get).into()),
                    ("successful_rounds", scored.into()),
                ];
                if scored > 0 {
                    self.say(record, Info, "best selection", &selection);
                } else if attempted > 0 {
                    let fields = [
                        ("R", self.settings().map(|it| it.ensemble_rounds).into()),
                        ("fallback_score", best.map(Score::get).into()),
                    ];
                    self.say(record, Warning, "all rounds failed", &fields);
                }
            }
            Phase::Phase2 | Phase::Finalization => {}
        }
        self.say(record, Info, format!("{} complete", title(phase)), &fields);
    }
}

/// A score, where scripts may run without one.
fn score_of(score: Option<Score>) -> Value {
    score.map(Score::get).into()
}
