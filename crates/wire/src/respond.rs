//! Who decides what is said.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};

use crate::{Answer, Request, Usage};

/// Answers requests. A closure `Fn(&Request) -> Answer` does.
///
/// Requests of several connections are answered at the same time.
pub trait Respond: Send + Sync + 'static {
    /// The answer to one request.
    fn respond<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Answer>;

    /// Hears which tokens the answer to a request is said to have taken, before it is sent.
    fn answered(&self, _request: &Request, _usage: Usage) {}
}

impl<F> Respond for F
where
    F: Fn(&Request) -> Answer + Send + Sync + 'static,
{
    fn respond<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Answer> {
        ready(self(request)).boxed()
    }
}

impl<R: Respond + ?Sized> Respond for Arc<R> {
    fn respond<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Answer> {
        (**self).respond(request)
    }

    fn answered(&self, request: &Request, usage: Usage) {
        (**self).answered(request, usage);
    }
}

/// Answers that are given one after another, whatever is asked.
///
/// When none is left, requests get status 400, which clients do not try again, so that a test that
/// asks too often fails at once.
#[derive(Debug)]
pub struct Script {
    answers: Mutex<VecDeque<Answer>>,
    last: Last,
}

#[derive(Debug, Clone, Copy)]
enum Last {
    IsGivenOnce,
    Repeats,
}

impl Script {
    /// These answers, each once.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), last: Last::IsGivenOnce }
    }

    /// The last answer is given to all further requests.
    pub fn repeating_last(self) -> Self {
        Self { last: Last::Repeats, ..self }
    }

    /// How many answers have not been given yet.
    pub fn left(&self) -> usize {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn next(&self) -> Answer {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let next = match (self.last, answers.len()) {
            (Last::Repeats, 1) => answers.front().cloned(),
            (Last::Repeats | Last::IsGivenOnce, _) => answers.pop_front(),
        };
        next.unwrap_or_else(|| {
            Answer::error(400, "invalid_request_error", "the script has no answer left")
        })
    }
}

impl Respond for Script {
    fn respond<'a>(&'a self, _request: &'a Request) -> BoxFuture<'a, Answer> {
        ready(self.next()).boxed()
    }
}
