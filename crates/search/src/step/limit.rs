//! What time and money allow, here and now.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Request, Run, RunCtx};
use crate::budget;
use crate::error::Error;
use crate::event::{Decision, Event, Lack};

impl RunCtx<'_> {
    /// Running time of the run so far.
    pub(crate) fn elapsed(&self) -> f64 {
        self.run.recorder.elapsed(self.run.ports.clock.now())
    }

    /// How much time this part of the run has left.
    pub(super) fn time_left(&self) -> Duration {
        Duration::try_from_secs_f64(self.until - self.elapsed()).unwrap_or_default()
    }

    /// The same place with all the time there is: the reserve is for finalization.
    #[must_use]
    pub(crate) fn finalizing(&self) -> Self {
        Self { until: budget::seconds(self.config().time_limit_seconds), ..self.clone() }
    }

    /// The same place, which ends so many seconds after the run first came here.
    pub(crate) fn limited_to(&self, seconds: f64) -> Result<Self, Error> {
        let key = self.key.join("limit");
        let until = match self.run.recorder.decision(&key) {
            Some(Decision::Until(until)) => until,
            Some(Decision::CutShort(_)) | None => {
                let until = (self.elapsed() + seconds).min(self.until);
                if self.run.recorder.is_writing() {
                    let now = self.run.ports.clock.now();
                    self.run.recorder.decide(&key, Decision::Until(until), now)?;
                }
                until
            }
        };
        Ok(Self { until, ..self.clone() })
    }

    /// Whether the loop that we are in ends before this iteration. What has begun is finished, and
    /// what was decided once stays decided.
    pub fn is_cut_short(&self) -> Result<bool, Error> {
        let recorder = &self.run.recorder;
        let key = self.key.join("cut");
        if let Some(Decision::CutShort(_)) = recorder.decision(&key) {
            return Ok(true);
        }
        if !recorder.is_writing() || recorder.has_begun(&self.key) {
            return Ok(false);
        }
        let Some(lack) = self.shortage() else { return Ok(false) };
        recorder.decide(&key, Decision::CutShort(lack.clone()), self.run.ports.clock.now())?;
        self.tell(Event::CutShort { lack })?;
        Ok(true)
    }

    /// Why no new iteration may begin here.
    pub(crate) fn shortage(&self) -> Option<Lack> {
        if let Some(lack) = self.gate() {
            return Some(lack);
        }
        if let Some(reason) = self.run.agents_lost() {
            return Some(Lack::Agents { reason });
        }
        if budget::is_nearly_spent(self.config(), self.run.recorder.spent()) {
            return Some(Lack::Money);
        }
        (self.dir().request() == Some(Request::Finalize)).then_some(Lack::Patience)
    }

    /// Why no step at all may begin here.
    pub(super) fn gate(&self) -> Option<Lack> {
        (self.elapsed() >= self.until).then_some(Lack::Time)
    }

    /// What was lacking first in this part of the run, if anything was.
    pub(crate) fn lacked(&self) -> Option<Lack> {
        self.run.recorder.lacked(&self.key)
    }
}

impl Run {
    pub(super) fn agents_lost(&self) -> Option<String> {
        self.agents_lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn lose_agents(&self, reason: &str) {
        let mut lost = self.agents_lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.get_or_insert_with(|| reason.to_owned());
    }

    /// Says once that most of the budget is spent.
    pub(super) fn warn_of_cost(&self) -> Result<(), Error> {
        let Some(budget) = self.header.config.max_budget_usd else { return Ok(()) };
        let spent = self.recorder.spent();
        let due = spent >= budget::WARN_AT * budget;
        if !due || self.warned_of_cost.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let ctx = self.ctx().scope("budget");
        ctx.warn(format!("${spent:.2} of the budget of ${budget:.2} is spent"))
    }
}
