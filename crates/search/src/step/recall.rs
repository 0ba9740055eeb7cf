//! What an agent was asked. Prompts are not kept, because each can be made again: the search goes
//! over the record, with effects that never end, until it comes by the call.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, pending};
use jiff::Timestamp;
use mle_star_agent::{Agent, AgentError, Call, Reply};
use mle_star_exec::{ExecError, Executor, Job, Outcome};

use super::recorder::Recorder;
use super::{Clock, Ports, Run, StepKey};
use crate::error::Error;
use crate::rundir::RunDir;

/// The call at one place, once the search has come by it.
#[derive(Debug)]
pub(super) struct Recall {
    key: String,
    call: Mutex<Option<Call>>,
}

impl Recall {
    pub(super) fn is_at(&self, key: &StepKey) -> bool {
        self.key == key.as_str()
    }

    pub(super) fn keep(&self, call: Call) {
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
    }
}

impl Run {
    /// What was, or is, asked at the step `key` of the run in `dir`, whoever works on it. `None` if
    /// the record does not lead there, as when another version of the program wrote it.
    ///
    /// It shows the limits and the machine of the record. What the call may cost is not known.
    pub fn recall(dir: RunDir, key: &str) -> Result<Option<Call>, Error> {
        let mut header = Self::read_header(&dir)?;
        let (recorder, config) = Recorder::rehearse(&dir.journal(), Timestamp::UNIX_EPOCH)?;
        header.config = config.unwrap_or(header.config);
        let ports = Ports {
            agent: Box::new(Nobody),
            executor: Box::new(Nobody),
            clock: Box::new(Nobody),
            secrets: Vec::new(),
        };
        let mut run = Self::assemble(dir, header, ports, recorder)?;
        run.recall = Some(Recall { key: key.to_owned(), call: Mutex::new(None) });
        // A record that fits only so far may still lead to the call.
        run.rehearse(crate::run(&run.ctx())).ok();
        let recall = run.recall.take();
        Ok(recall.and_then(|it| it.call.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Answers nothing, runs nothing, and knows no time.
#[derive(Debug)]
struct Nobody;

impl Agent for Nobody {
    fn name(&self) -> &str {
        "nobody"
    }

    fn ask<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, Result<Reply, AgentError>> {
        Box::pin(pending())
    }
}

impl Executor for Nobody {
    fn run<'a>(&'a self, _: &'a Job) -> BoxFuture<'a, Result<Outcome, ExecError>> {
        Box::pin(pending())
    }
}

impl Clock for Nobody {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }
}
