//! The two effects, *ask an agent* and *execute a script*, and what becomes of a submission.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{Either, select};
use mle_star_agent::{AgentError, Call, Reply, Wait, Waits};
use mle_star_exec::submission::{Fit, compare_with_sample, find_sample};
use mle_star_exec::{Ended, Job, in_full};
use serde_json::Value;

use super::{Asked, Digest, Ran, Run, RunCtx};
use crate::budget;
use crate::error::Error;
use crate::event::{Begun, Event, Given, Lack, Output};
use crate::models::{
    AgentConfig, OutputSchema, Score, SolutionPhase, SolutionScript, WEB_TOOLS, WebSearch,
};
use crate::roles::Role;
use crate::rundir::RunDir;

/// Under which name the log of a run tells of it.
const LOG: &str = "mle_star";

/// The longest wait between two tries to reach an agent.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

impl RunCtx<'_> {
    /// Asks the agent that plays `role`, once.
    pub async fn ask<R: Role>(&self, role: &R) -> Result<Asked, Error> {
        let ctx = self.scope(R::STEP);
        let template = self.run.prompts.variant(R::AGENT, R::VARIANT)?;
        let input = serde_json::to_value(role).unwrap_or_default();
        // The prompt also shows limits and the machine, which may change under a resumed run.
        let digest = Digest::of(&(R::AGENT, R::VARIANT, &template.template, &input));
        if let Some(recall) = self.run.recall.as_ref().filter(|it| it.is_at(&ctx.key)) {
            recall.keep(ctx.call::<R>(template.render(&role.variables(&ctx))?, input.clone()));
        }
        let begun =
            Begun::Ask { role: R::AGENT, lane: self.lane.clone(), given: Given::all_of(&input) };
        let work = async {
            let call = ctx.call::<R>(template.render(&role.variables(&ctx))?, input);
            if tracing::enabled!(target: LOG, tracing::Level::DEBUG) {
                let mut prompt = call.prompt.clone();
                self.run.redact(&mut prompt);
                let (step, role) = (ctx.key.as_str(), call.role.as_str());
                tracing::debug!(target: LOG, step, role, prompt, "prompt");
            }
            let _turn = ctx.idle(self.run.agent_turns.acquire()).await;
            let mut output = ctx.converse(call).await?;
            if let Output::Asked { reply, .. } = &mut output {
                self.run.redact(&mut reply.text);
                reply.structured.iter_mut().for_each(|value| self.run.redact_value(value));
                reply.warnings.iter_mut().for_each(|warning| self.run.redact(warning));
            }
            Ok(output)
        };
        match ctx.once(digest, Some(begun), work).await? {
            (Output::Asked { reply, no_answer }, at) => {
                self.run.threads.note(&self.lane, &reply, &self.run.recorder);
                for warning in &reply.warnings {
                    ctx.warn(warning)?;
                }
                if let Some(reason) = &no_answer {
                    ctx.warn(format!("A_{} gave no answer: {reason}", R::AGENT))?;
                }
                Ok(Asked { reply, no_answer, at })
            }
            (output, _) => Err(ctx.not_done(output)),
        }
    }

    /// Asks until there is an answer. An agent that cannot be reached is asked again, after 1, 2
    /// and 4 seconds and then ever later, for as long as there is time to wait.
    async fn converse(&self, mut call: Call) -> Result<Output, Error> {
        let run = self.run;
        let mut pause = Duration::from_secs(1);
        loop {
            let lost = run.agents_lost().map(|reason| Lack::Agents { reason });
            if let Some(lack) = self.gate().or(lost) {
                return Ok(Output::NotDone { lack, cut_off: false });
            }
            let others = run.agent_turns.available_permits() + 1;
            let budget = self.config().max_budget_usd;
            let Some(reserved) = run.purse.reserve(budget, run.recorder.spent(), others) else {
                return Ok(Output::NotDone { lack: Lack::Money, cut_off: false });
            };
            call.max_budget_usd = reserved.amount;
            let answer = pin!(self.ask_watched(&mut call));
            let over = run.ports.clock.sleep(self.time_left());
            let answer = match select(answer, over).await {
                Either::Left((answer, _)) => answer?.map_err(|error| run.redacted(error)),
                Either::Right(((), _)) => {
                    return Ok(Output::NotDone { lack: Lack::Time, cut_off: true });
                }
            };
            let reason = match answer {
                Ok(reply) => {
                    return Ok(Output::Asked { reply, no_answer: None });
                }
                Err(AgentError::NoAnswer { reason, cost_usd }) => {
                    let reply = Reply { cost_usd, ..Reply::default() };
                    return Ok(Output::Asked { reply, no_answer: Some(reason) });
                }
                Err(AgentError::Unavailable { reason }) => reason,
                Err(AgentError::BrokenOff { reason, cost_usd }) => {
                    self.scope("broken_off").tell(Event::BrokenOff { cost_usd })?;
                    reason
                }
                Err(source) => return Err(Error::Agent { key: self.key.clone(), source }),
            };
            drop(reserved);
            let left = self.time_left();
            // Agents that are not back when a path ends may be back for what comes after it.
            if pause >= left && self.until >= budget::search_ends(self.config()) {
                run.lose_agents(&reason);
                return Ok(Output::NotDone { lack: Lack::Agents { reason }, cut_off: false });
            }
            let time = pause.min(left);
            self.tell_of(Wait { time, reason })?;
            self.idle(run.ports.clock.sleep(time)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Asks once, and tells when the agent says that it waits.
    async fn ask_watched(&self, call: &mut Call) -> Result<Result<Reply, AgentError>, Error> {
        let (waits, mut told) = Waits::new();
        call.waits = waits;
        let mut asking = self.run.ports.agent.ask(call);
        let answer = loop {
            match select(told.next(), asking).await {
                Either::Left((Some(wait), unanswered)) => {
                    self.tell_of(wait)?;
                    asking = unanswered;
                }
                Either::Left((None, unanswered)) => break unanswered.await,
                Either::Right((answer, _)) => break answer,
            }
        };
        told.close();
        while let Some(wait) = told.next().await {
            self.tell_of(wait)?;
        }
        Ok(answer)
    }

    fn tell_of(&self, wait: Wait) -> Result<(), Error> {
        let Wait { time, mut reason } = wait;
        self.run.redact(&mut reason);
        self.scope("wait").tell(Event::Waiting { seconds: time.as_secs(), reason })
    }

    fn call<R: Role>(&self, prompt: String, input: serde_json::Value) -> Call {
        let header = &self.run.header;
        let config = AgentConfig::for_variant(R::AGENT, R::VARIANT, header.config.tool_profile);
        let mut tools = config.tools.unwrap_or_default();
        if header.config.web_search == WebSearch::Off {
            tools.retain(|tool| !WEB_TOOLS.contains(&tool.as_str()));
        }
        Call {
            step: self.key.to_string(),
            role: R::AGENT.to_string(),
            variant: R::VARIANT.map(str::to_owned),
            lane: self.lane.clone(),
            system_prompt: crate::environment::system_prompt(header),
            prompt,
            input,
            tools,
            schema: config.output_schema.map(OutputSchema::json_schema),
            model: header.config.model_of(R::AGENT).to_owned(),
            max_turns: config.max_turns,
            max_budget_usd: None,
            thread: self.run.threads.of(&self.lane, &header.config, &self.run.dir),
            waits: Waits::default(),
        }
    }

    /// Runs a script in this lane's workspace, once.
    pub async fn execute(
        &self,
        script: &SolutionScript,
        time_limit: Duration,
    ) -> Result<Ran, Error> {
        let ctx = self.scope("run");
        let digest = Digest::of(&script.content);
        let begun = Begun::Run {
            lane: self.lane.clone(),
            script: RunDir::script_name(&script.content),
            characters: script.content.chars().count(),
            time_limit_seconds: time_limit.as_secs_f64(),
        };
        let work = async {
            let _slot = self.run.script_slots.acquire().await;
            if let Some(lack) = self.gate() {
                return Ok(Output::NotDone { lack, cut_off: false });
            }
            let name = self.run.dir.keep_script(&script.content)?;
            let time_left = self.time_left();
            let job = Job {
                script: script.content.clone(),
                filename: "solution.py".to_owned(),
                workspace: self.run.dir.workspace(&self.lane),
                data_dir: self.task().data_dir.clone(),
                time_limit: time_limit.min(time_left),
                records: self.run.dir.job(ctx.key.as_str(), &name),
            };
            let outcome = self.run.ports.executor.run(&job).await;
            let mut outcome = outcome.map_err(|source| Error::Exec {
                key: ctx.key.clone(),
                input: Box::new(digest.clone()),
                source,
            })?;
            if matches!(outcome.ended, Ended::TimedOut { .. })
                && time_left < time_limit
                && let Some(lack) = self.gate()
            {
                // The run was over, not the script too slow: with a larger limit it gets its turn.
                return Ok(Output::NotDone { lack, cut_off: false });
            }
            for stream in [&mut outcome.stdout, &mut outcome.stderr] {
                self.run.redact(&mut stream.text);
                stream.file = stream.file.as_deref().map(|file| self.run.dir.relative(file));
            }
            let (mut submission, mut fit) = (None, Fit::default());
            if outcome.submission.is_present() {
                let kept =
                    self.run.dir.keep_submission(&name, outcome.submission.path.as_str().into())?;
                if let Some(sample) = find_sample(&job.data_dir) {
                    fit = compare_with_sample(&self.run.dir.solution(&kept), &sample);
                }
                submission = Some(kept);
            }
            Ok(Output::Ran { outcome, script: name, submission, fit })
        };
        match ctx.once(digest.clone(), Some(begun), work).await? {
            (Output::Ran { outcome, submission, fit, .. }, _) => {
                Ok(Ran { outcome, submission, fit })
            }
            (output, _) => Err(ctx.not_done(output)),
        }
    }

    /// Makes a verified submission the one of the run.
    pub(crate) fn publish(
        &self,
        submission: &str,
        script: &SolutionScript,
        score: Score,
        from: SolutionPhase,
    ) -> Result<(), Error> {
        if self.run.recorder.is_writing() {
            self.run.dir.publish(submission, &script.content)?;
        }
        self.tell(Event::Published { score, from })
    }

    /// Records that the run goes on without the script that could not be run. What follows is
    /// built on that, so a resumed run must not find the script working after all.
    pub fn give_up(&self, error: &Error) -> Result<(), Error> {
        let Error::Exec { key, input, source } = error else { return Ok(()) };
        let lack = Lack::Executor { reason: in_full(source) };
        let output = Output::NotDone { lack, cut_off: false };
        self.run.recorder.finished(key, (**input).clone(), &output, self.run.ports.clock.now())
    }
}

impl Run {
    fn redact(&self, text: &mut String) {
        for secret in &self.ports.secrets {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), "[redacted]");
            }
        }
    }

    /// The same error without secrets: it is recorded, shown and logged.
    fn redacted(&self, mut error: AgentError) -> AgentError {
        match &mut error {
            AgentError::NoAnswer { reason, .. }
            | AgentError::Unavailable { reason }
            | AgentError::BrokenOff { reason, .. }
            | AgentError::Unauthorized { reason }
            | AgentError::Unusable { reason } => self.redact(reason),
            AgentError::NotScripted { .. } => {}
        }
        error
    }

    fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(map) => map.values_mut().for_each(|value| self.redact_value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
