//! What a log says of steps: what an agent was asked and answered, how a script went.

use mle_star_agent::Reply;
use mle_star_exec::{Ended, Outcome};
use mle_star_search::evaluate::build_evaluation_result;
use mle_star_search::event::{Amount, Begun, Given, Output, Record};
use mle_star_search::models::{
    AgentType, DataContaminationResult, ExtractorOutput, LeakageDetectionOutput, LeakageStatus,
    LogLevel, RetrieverOutput,
};
use mle_star_search::reply::{parse_structured, try_extract_code};
use serde_json::{Value, json};

use super::{Log, Ran, begins};
use crate::overview::{Place, shortened_to};

/// How much of a reply a line at the level of debugging shows.
const REPLY_CHARS: usize = 100_000;

impl Log {
    pub(super) fn started(&mut self, record: &Record, key: &str, begun: Option<&Begun>) {
        match begun {
            Some(Begun::Ask { role, given, .. }) => {
                let mut fields = vec![("role", role.name().into())];
                let names: Vec<(String, Value)> = given.iter().flat_map(measures).collect();
                fields.extend(names.iter().map(|(name, value)| (name.as_str(), value.clone())));
                if *role == AgentType::Merger {
                    let merge = Place::of(key).solution().and_then(|it| self.overview.solution(it));
                    let mut parents = merge.into_iter().flat_map(|it| &it.parents);
                    let mut parent = || self.overview.solution(parents.next()?);
                    let (base, reference) = (parent(), parent());
                    fields.push(("base_score", json!(base.and_then(|it| it.score))));
                    fields.push(("reference_model", reference.map(|it| it.name.clone()).into()));
                }
                let message = match (role, Place::of(key).last()) {
                    (AgentType::Leakage, "leakage") => "leakage check start".to_owned(),
                    (AgentType::Debugger, _) => "debug start".to_owned(),
                    (AgentType::Test, "contamination") => "contamination check start".to_owned(),
                    (role, _) => format!("{} invocation start", called(*role, key)),
                };
                self.say(record, LogLevel::Info, message, &fields);
            }
            Some(Begun::Run { script, characters, time_limit_seconds, .. }) => {
                let message = match Place::of(key).has("study") {
                    true => "ablation execution start",
                    false => "evaluation start",
                };
                self.say(
                    record,
                    LogLevel::Info,
                    message,
                    &[
                        ("script", format!("solutions/{script}").into()),
                        ("content_length", (*characters).into()),
                        ("timeout_seconds", (*time_limit_seconds).into()),
                    ],
                );
            }
            None => {}
        }
    }

    pub(super) fn finished(&mut self, record: &Record, key: &str, output: &Output) {
        match output {
            Output::Asked { reply, no_answer } => {
                self.answered(record, key, reply, no_answer.as_deref());
            }
            Output::Ran { outcome, script, submission, .. } => {
                self.ran(record, key, (outcome, script, submission.is_some()));
            }
            Output::NotDone { lack, cut_off } => {
                self.say(
                    record,
                    LogLevel::Warning,
                    "step not done",
                    &[("reason", lack.to_string().into()), ("cut_off", (*cut_off).into())],
                );
            }
            Output::Totals { duration_seconds, cost_usd } => {
                self.say(
                    record,
                    LogLevel::Info,
                    "totals",
                    &[
                        ("duration_seconds", (*duration_seconds).into()),
                        ("cost_usd", (*cost_usd).into()),
                    ],
                );
            }
        }
    }

    fn answered(&mut self, record: &Record, key: &str, reply: &Reply, no_answer: Option<&str>) {
        let open = self.overview.open_steps().iter().find(|step| step.key == key);
        let began = open.map(|step| step.began_seconds);
        let now = self.overview.tally.elapsed(record.at());
        let duration = began.map(|began| (now - began).max(0.0));
        let role = role(key);
        let mut fields: Vec<(&str, Value)> = match role {
            Some(AgentType::Retriever) => {
                let found = parse_structured::<RetrieverOutput>(reply, Some("models"));
                vec![("models", found.map(|it| it.models.len()).into())]
            }
            Some(AgentType::Extractor) => {
                let found = parse_structured::<ExtractorOutput>(reply, Some("plans"));
                let block = found.as_ref().and_then(|it| it.plans.first());
                vec![
                    ("plans", found.as_ref().map(|it| it.plans.len()).into()),
                    ("code_block_length", block.map(|it| length(&it.code_block)).into()),
                ]
            }
            Some(AgentType::Leakage) if key.ends_with("/leakage") => {
                let found = parse_structured::<LeakageDetectionOutput>(reply, Some("answers"));
                let leaks = |it: &LeakageDetectionOutput| {
                    it.answers.iter().any(|it| it.leakage_status == LeakageStatus::Yes)
                };
                vec![
                    ("answers", found.as_ref().map(|it| it.answers.len()).into()),
                    ("leakage_found", found.as_ref().map(leaks).into()),
                ]
            }
            Some(AgentType::Test) if key.ends_with("/contamination") => {
                let found = parse_structured::<DataContaminationResult>(reply, None);
                vec![("verdict", found.map(|it| format!("{:?}", it.verdict)).into())]
            }
            // What it found is told once it was looked for in the script.
            Some(AgentType::Test) if key.ends_with("/subsampling_extract") => Vec::new(),
            Some(AgentType::Planner | AgentType::EnsPlanner) => vec![("plan", begins(&reply.text))],
            Some(AgentType::Summarize) => vec![("summary_length", length(&reply.text).into())],
            Some(
                AgentType::Init
                | AgentType::Merger
                | AgentType::Ablation
                | AgentType::Coder
                | AgentType::Ensembler
                | AgentType::Debugger
                | AgentType::Leakage
                | AgentType::Data
                | AgentType::Test,
            )
            | None => {
                let code = try_extract_code(&reply.text);
                vec![match code {
                    Some(code) => ("code_length", length(&code).into()),
                    None => ("code_length", "failed to parse".into()),
                }]
            }
        };
        fields.push(("duration_seconds", duration.into()));
        fields.push(("cost_usd", reply.cost_usd.into()));
        let name = role.map_or_else(|| "agent".to_owned(), |role| called(role, key));
        let message = format!("{name} invocation complete");
        match no_answer {
            Some(reason) => {
                fields.push(("no_answer", begins(reason)));
                self.say(record, LogLevel::Warning, message, &fields);
            }
            None => self.say(record, LogLevel::Info, message, &fields),
        }
        let reply = shortened_to(&reply.text, REPLY_CHARS);
        self.say(record, LogLevel::Debug, "response", &[("response", reply.into())]);
    }

    fn ran(&mut self, record: &Record, key: &str, script: (&Outcome, &str, bool)) {
        let (outcome, script, has_submission) = script;
        let is_study = Place::of(key).has("study");
        let result = build_evaluation_result(outcome);
        let scope = Place::of(key).solution().unwrap_or(key).to_owned();
        let duration_seconds = outcome.duration_seconds;
        self.ran.insert(scope, Ran { duration_seconds, is_error: result.is_error });
        let kind = if is_study { "ablation execution" } else { "execution" };
        let mut fields: Vec<(&str, Value)> = vec![
            ("script", format!("solutions/{script}").into()),
            ("exit_code", result.exit_code.into()),
            ("duration_seconds", duration_seconds.into()),
            ("output_length", outcome.stdout.total_bytes.into()),
            ("memory_bytes", outcome.usage.memory_bytes.into()),
            ("submission", has_submission.into()),
        ];
        if has_submission {
            fields.push(("submission_bytes", outcome.submission.size_bytes.into()));
            fields.push(("submission_rows", outcome.submission.row_count.into()));
        }
        self.say(record, LogLevel::Info, format!("{kind} complete"), &fields);
        if result.is_error {
            // The first line of a traceback is always the same; the last names the error.
            let traceback = result.error_traceback.as_deref();
            self.say(
                record,
                LogLevel::Warning,
                format!("{kind} error"),
                &[
                    ("exit_code", result.exit_code.into()),
                    ("timed_out", matches!(outcome.ended, Ended::TimedOut { .. }).into()),
                    ("traceback", traceback.and_then(|it| it.lines().next()).map(begins).into()),
                    ("error", traceback.and_then(|it| it.lines().next_back()).map(begins).into()),
                ],
            );
        }
    }
}

/// What an agent is called in a log, with what it does where it does several things.
fn called(role: AgentType, key: &str) -> String {
    let name = match role {
        AgentType::Ablation => "A_abl",
        AgentType::Retriever => "A_retriever",
        AgentType::Init => "A_init",
        AgentType::Merger => "A_merger",
        AgentType::Summarize => "A_summarize",
        AgentType::Extractor => "A_extractor",
        AgentType::Coder => "A_coder",
        AgentType::Planner => "A_planner",
        AgentType::EnsPlanner => "A_ens_planner",
        AgentType::Ensembler => "A_ensembler",
        AgentType::Debugger => "A_debugger",
        AgentType::Leakage => "A_leakage",
        AgentType::Data => "A_data",
        AgentType::Test => "A_test",
    };
    match Place::of(key).last() {
        last @ ("leakage_correction"
        | "subsampling_extract"
        | "subsampling_remove"
        | "contamination") => format!("{name} ({})", last.replace('_', " ")),
        _ => name.to_owned(),
    }
}

/// Who was asked in a step, by the last part of its key.
fn role(key: &str) -> Option<AgentType> {
    match Place::of(key).last() {
        "leakage_correction" => Some(AgentType::Leakage),
        "subsampling_extract" | "subsampling_remove" | "contamination" => Some(AgentType::Test),
        last => AgentType::ALL.into_iter().find(|role| role.name() == last),
    }
}

/// How much of something an agent is given, as fields.
fn measures(given: &Given) -> Vec<(String, Value)> {
    let Given { name, amount } = given;
    match amount {
        Amount::Text { characters, begins: text } => {
            let mut fields = vec![(format!("{name}_length"), (*characters).into())];
            // Scripts and blocks begin alike; plans, names and errors say something.
            if ["plan", "model_name", "purpose", "bug"].contains(&name.as_str()) {
                fields.push((name.clone(), begins(text)));
            }
            fields
        }
        Amount::Items(count) => vec![(format!("{name}_count"), (*count).into())],
        Amount::Plain(value) => vec![(name.clone(), value.clone().into())],
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}
