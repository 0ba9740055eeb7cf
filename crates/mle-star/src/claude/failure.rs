//! What a conversation without an answer means for the search, and what it has cost.

use std::sync::atomic::{AtomicU32, Ordering};

use mle_star_agent::{AgentError, Reply};
use mle_star_claude::error::Retry;
use mle_star_claude::{Error, Reason};
use mle_star_exec::in_full;

/// How many requests in a row may be turned down before the service, and not what was asked, is
/// taken to be the reason.
const REFUSALS: u32 = 3;

/// Counts requests that were turned down, one after the other, before a model saw them.
#[derive(Debug, Default)]
pub(super) struct Refusals(AtomicU32);

impl Refusals {
    pub(super) fn note<T>(&self, answer: &Result<T, Error>) {
        let Err(error) = answer else { return self.0.store(0, Ordering::Relaxed) };
        let is_turned_down = matches!(error, Error::Flooded { .. })
            || matches!(error.reason(), Some(Reason::BadRequest(_) | Reason::Other(_)));
        self.0.fetch_add(is_turned_down.into(), Ordering::Relaxed);
    }

    pub(super) fn are_too_many(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= REFUSALS
    }
}

/// What the search can do about it.
pub(super) fn failure(error: &Error) -> AgentError {
    let remedy = error.remedy().map(|remedy| format!(" ({remedy})")).unwrap_or_default();
    let reason = format!("{}{remedy}", in_full(error));
    match (error.retry(), error.reason()) {
        (Retry::Later, _) | (_, Some(Reason::Interrupted)) => match bill(error) {
            Bill::Nothing => AgentError::Unavailable { reason },
            Bill::Known(cost) => AgentError::BrokenOff { reason, cost_usd: Some(cost) },
            Bill::Unknown => AgentError::BrokenOff { reason, cost_usd: None },
        },
        (Retry::Pointless, Some(Reason::Unauthenticated | Reason::Forbidden)) => {
            AgentError::Unauthorized { reason }
        }
        // What was asked has led to it.
        (Retry::Pointless, None) if matches!(error, Error::Flooded { .. }) => {
            AgentError::NoAnswer { reason, cost_usd: None }
        }
        (Retry::Pointless, None | Some(Reason::NoSuchModel | Reason::Unpaid)) => {
            AgentError::Unusable { reason }
        }
        (Retry::Pointless, Some(_)) => AgentError::NoAnswer { reason, cost_usd: error.cost_usd() },
    }
}

/// What a conversation without an answer has cost.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bill {
    Nothing,
    Known(f64),
    Unknown,
}

fn bill(error: &Error) -> Bill {
    match (error, error.cost_usd()) {
        (_, Some(cost)) if cost > 0.0 => Bill::Known(cost),
        (_, Some(_)) => Bill::Nothing,
        // It had begun, and the model may have written pages.
        (Error::Closed { .. } | Error::Hung { .. } | Error::Garbage { .. }, None) => Bill::Unknown,
        (_, None) => Bill::Nothing,
    }
}

/// The same with what was spent before on the same call.
pub(super) fn costing_more(
    answered: Result<Reply, AgentError>,
    before: Option<f64>,
) -> Result<Reply, AgentError> {
    let Some(before) = before.filter(|cost| *cost > 0.0) else { return answered };
    let more = |cost: Option<f64>| Some(cost.unwrap_or_default() + before);
    match answered {
        Ok(reply) => Ok(Reply { cost_usd: more(reply.cost_usd), ..reply }),
        Err(AgentError::NoAnswer { reason, cost_usd }) => {
            Err(AgentError::NoAnswer { reason, cost_usd: more(cost_usd) })
        }
        Err(AgentError::Unavailable { reason }) => {
            Err(AgentError::BrokenOff { reason, cost_usd: Some(before) })
        }
        // What is not known stays so: the estimate that is made of it is for a whole call.
        Err(AgentError::BrokenOff { reason, cost_usd }) => {
            Err(AgentError::BrokenOff { reason, cost_usd: cost_usd.and_then(|it| more(Some(it))) })
        }
        Err(
            error @ (AgentError::Unauthorized { .. }
            | AgentError::Unusable { .. }
            | AgentError::NotScripted { .. }),
        ) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unanswered(reason: Reason, cost_usd: Option<f64>) -> Error {
        Error::Unanswered(Box::new(mle_star_claude::Unanswered {
            reason,
            message: String::new(),
            cost_usd,
            usage: mle_star_claude::Usage::default(),
            session_id: None,
        }))
    }

    #[test]
    fn a_conversation_that_broke_off_has_cost_something() {
        let closed = Error::Closed { code: Some(137), said: String::new() };
        assert_eq!(bill(&closed), Bill::Unknown);
        let at_its_start = Error::Exited { code: Some(137), said: String::new() };
        assert_eq!(bill(&at_its_start), Bill::Nothing);
        assert_eq!(bill(&unanswered(Reason::Overloaded, Some(0.0))), Bill::Nothing);
        assert_eq!(bill(&unanswered(Reason::Overloaded, Some(0.2))), Bill::Known(0.2));
    }

    #[test]
    fn an_account_that_cannot_pay_stops_the_run_and_a_prompt_that_is_turned_down_does_not() {
        let unpaid = failure(&unanswered(Reason::Unpaid, Some(0.0)));
        assert!(matches!(unpaid, AgentError::Unusable { .. }), "{unpaid}");
        let odd = failure(&unanswered(Reason::BadRequest(400), Some(0.0)));
        assert!(matches!(odd, AgentError::NoAnswer { .. }), "{odd}");
    }

    #[test]
    fn requests_turned_down_in_a_row_are_about_the_service() {
        let refusals = Refusals::default();
        let turned_down = Err::<(), _>(unanswered(Reason::BadRequest(400), None));
        for answer in [&turned_down, &turned_down, &Ok(()), &turned_down, &turned_down] {
            refusals.note(answer);
            assert!(!refusals.are_too_many());
        }
        refusals.note(&Err::<(), _>(unanswered(Reason::Overloaded, None)));
        assert!(!refusals.are_too_many());
        refusals.note(&turned_down);
        assert!(refusals.are_too_many());
    }
}
