//! What a page is sent while it is open: all of a run first, then what has changed.
//!
//! A message is made when the client takes it, from what the run is at that moment. A client that
//! is slow gets fewer and larger messages; nothing piles up for it.

use std::rc::Rc;

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use http_body_util::{Either, StreamBody};
use hyper::body::Frame;
use hyper::{Response, StatusCode};
use jiff::Timestamp;
use mle_star_search::event::Phase;
use mle_star_search::models::Score;
use mle_star_search::summary::{Costs, Durations};
use mle_star_view::{
    Budget, Condition, Forecast, Glance, Lane, LaneState, OpenStep, Overview, PhaseSpan, Said,
    Selected, Solution, Study, Subject, Submission, Trouble,
};
use serde::Serialize;
use tokio::time::{Duration, sleep};

use crate::route::{Body, Piece, Site, answer};
use crate::runs::Followed;

/// A stream without news says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// What has changed in a run.
#[derive(Debug, Serialize)]
struct Message<'a> {
    /// Whether what was sent before counts no longer.
    whole: bool,
    name: &'a str,
    root: &'a str,
    state: Condition,
    problem: Option<&'a str>,
    records: usize,
    /// Running time as of now.
    elapsed_seconds: f64,
    glance: Glance,
    budget: Option<Budget>,
    forecast: Option<Forecast>,
    costs: &'a Costs,
    durations: Durations,
    phases: &'a [PhaseSpan],
    lanes: Vec<LaneNow<'a>>,
    open_steps: &'a [OpenStep],
    selected: Option<&'a Selected>,
    submission: Option<&'a Submission>,
    lineage: &'a [String],
    /// What the submission was made from, by place.
    ancestors: Vec<&'a str>,
    trouble_count: usize,
    events: Vec<&'a Said>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a Subject>,
    solutions: Vec<(usize, &'a Solution)>,
    ablations: Vec<(usize, &'a Study)>,
    troubles: Vec<(usize, &'a Trouble)>,
}

/// A lane without its history, which the solutions tell.
#[derive(Debug, Serialize)]
struct LaneNow<'a> {
    name: &'a str,
    state: LaneState,
    step: &'a str,
    best: Option<Score>,
    cost_usd: f64,
    began_seconds: f64,
    ended_seconds: f64,
    failure: Option<&'a str>,
}

/// What a client has.
#[derive(Debug, Default)]
struct Sent {
    version: Option<u64>,
    generation: u64,
    phase: Option<Phase>,
    troubles: usize,
}

/// The stream of one client.
struct Live {
    site: Rc<Site>,
    name: String,
    sent: Sent,
    is_over: bool,
}

/// News of a run, for as long as somebody takes them.
pub(crate) fn stream(site: &Rc<Site>, name: String) -> Response<Body> {
    let live = Live { site: Rc::clone(site), name, sent: Sent::default(), is_over: false };
    let pieces = stream::unfold(live, |mut live| async {
        let text = live.next().await?;
        Some((Piece::Ok(Frame::data(Bytes::from(text))), live))
    });
    answer(
        StatusCode::OK,
        "text/event-stream",
        Either::Right(StreamBody::new(pieces.boxed_local())),
    )
}

impl Live {
    /// The next thing to send; `None` if there is nothing more.
    async fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        let mut quiet = Duration::ZERO;
        loop {
            // Looked at before the run is: what was recorded before the end is sent before it.
            let is_ending = *self.site.ending.borrow();
            let message = match self.site.runs.get(&self.name) {
                Some(run) => self.sent.message(&run.borrow()),
                None => {
                    self.is_over = true;
                    return Some("event: gone\ndata: {}\n\n".to_owned());
                }
            };
            if let Some(message) = message {
                return Some(format!("data: {message}\n\n"));
            }
            if is_ending {
                self.is_over = true;
                return Some("event: end\ndata: {}\n\n".to_owned());
            }
            let pause = self.site.patience.between_looks;
            let mut ending = self.site.ending.clone();
            tokio::select! {
                () = sleep(pause) => {}
                _ = ending.wait_for(|it| *it) => {}
            }
            quiet += pause;
            if quiet >= HEARTBEAT {
                return Some(": still here\n\n".to_owned());
            }
        }
    }
}

impl Sent {
    /// What a client that has this does not have yet.
    fn message(&mut self, run: &Followed) -> Option<String> {
        let whole = self.version.is_none() || self.generation != run.generation;
        if !whole && self.version == Some(run.version) {
            return None;
        }
        if whole {
            *self = Self { generation: run.generation, ..Self::default() };
        }
        let seen = self.version.replace(run.version);
        let overview = &run.overview;
        let glance = overview.glance();
        // Settings and what holds the scripts change when a run is resumed, which is rare.
        let is_resumed = std::mem::replace(&mut self.phase, glance.phase) != glance.phase;
        let troubles = overview.troubles.iter().enumerate().skip(self.troubles).collect();
        self.troubles = overview.troubles.len();
        let message = Message {
            whole,
            name: &run.name,
            root: run.dir.root().as_str(),
            state: run.condition,
            problem: run.problem.as_deref(),
            records: overview.records,
            elapsed_seconds: run.elapsed(Timestamp::now()),
            budget: overview.budget(),
            forecast: forecast(run, overview),
            costs: &overview.tally.costs,
            durations: overview.durations(),
            phases: overview.phases(),
            lanes: lanes(overview),
            open_steps: overview.open_steps(),
            selected: overview.selected.as_ref(),
            submission: overview.submission.as_ref(),
            lineage: &overview.lineage,
            ancestors: overview.ancestors().iter().map(|it| it.id.as_str()).collect(),
            trouble_count: overview.trouble_count,
            events: overview.events.iter().collect(),
            subject: overview.subject.as_deref().filter(|_| whole || is_resumed),
            solutions: run.solutions.since(seen, overview.solutions()),
            ablations: run.studies.since(seen, overview.studies()),
            troubles,
            glance,
        };
        serde_json::to_string(&message).ok()
    }
}

fn forecast(run: &Followed, overview: &Overview) -> Option<Forecast> {
    let is_running = run.condition == Condition::Running;
    is_running.then(|| Forecast::of(overview, run.elapsed(Timestamp::now()))).flatten()
}

fn lanes(overview: &Overview) -> Vec<LaneNow<'_>> {
    overview.lanes().iter().map(LaneNow::of).collect()
}

impl<'a> LaneNow<'a> {
    fn of(lane: &'a Lane) -> Self {
        Self {
            name: &lane.name,
            state: lane.state,
            step: &lane.step,
            best: lane.best,
            cost_usd: lane.cost_usd,
            began_seconds: lane.began_seconds,
            ended_seconds: lane.ended_seconds,
            failure: lane.failure.as_deref(),
        }
    }
}
