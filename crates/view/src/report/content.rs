//! What a report says, prepared for templates that only place it.

mod rows;
mod setting;

use minijinja::Value;
use mle_star_search::models::{Score, best_of};
use serde::Serialize;

use super::Extras;
use super::chart::{NARROW, WIDE, chart, legend};
use crate::format::{dollars, duration, improvement, percent, score};
use crate::overview::shortened;
use crate::{Overview, PhaseOutcome, Solution, SolutionKind, State, plain_lines};
use rows::{
    Ancestor, PathRow, PhaseRow, SolutionRow, StudyRow, TroubleRow, lineage, paths, phases, roles,
    studies, troubles,
};
use setting::{commands, environment, settings};

/// How many of the troubles a report lists.
const SHOWN_TROUBLES: usize = 60;

/// How much of the script a report shows.
const SHOWN_SCRIPT_CHARS: usize = 200_000;

#[derive(Debug, Serialize)]
pub(super) struct Content {
    title: String,
    metric: String,
    direction: &'static str,
    agents: String,
    version: String,
    began: String,
    state: String,
    state_class: &'static str,
    headline: String,
    description: String,
    figures: Vec<Figure>,
    chart_wide: Option<Value>,
    chart_narrow: Option<Value>,
    legend: Vec<(String, String)>,
    phases: Vec<PhaseRow>,
    paths: Vec<PathRow>,
    roles: Vec<(String, String)>,
    total: Total,
    lineage: Vec<Ancestor>,
    lineage_of: &'static str,
    story: Vec<String>,
    studies: Vec<StudyRow>,
    solutions: Vec<SolutionRow>,
    troubles: Vec<TroubleRow>,
    troubles_left_out: usize,
    settings: Vec<(String, String)>,
    environment: Vec<(String, String)>,
    sandbox: Vec<String>,
    packages: String,
    commands: Vec<(String, String)>,
    script: Option<String>,
}

#[derive(Debug, Serialize)]
struct Figure {
    name: &'static str,
    value: String,
    note: String,
}

#[derive(Debug, Serialize)]
struct Total {
    duration: String,
    cost: String,
    estimated: Option<String>,
}

impl Content {
    pub(super) fn of(overview: &Overview, extras: &Extras) -> Self {
        let subject = overview.subject.as_deref();
        let text = |it: Option<&str>| plain(it.unwrap_or("unknown"));
        let (sandbox, environment) = environment(overview);
        let packages = subject.map_or(&[][..], |it| &it.machine.packages);
        let packages: Vec<String> =
            packages.iter().map(|it| plain(&format!("{}=={}", it.name, it.version))).collect();
        Self {
            title: text(subject.map(|it| it.competition_id.as_str())),
            metric: text(subject.map(|it| it.metric.as_str())),
            direction: overview.direction().in_words(),
            agents: text(subject.map(|it| it.agents.as_str())),
            version: text(subject.map(|it| it.version.as_str())),
            began: overview
                .began
                .map(|at| at.strftime("%-d %B %Y, %H:%M UTC").to_string())
                .unwrap_or_default(),
            state: plain(&extras.state),
            state_class: match (overview.state(), &overview.submission) {
                (State::Finished, Some(_)) => "good",
                (State::Finished, None) => "bad",
                (State::Unfinished | State::Empty, _) => "open",
            },
            headline: headline(overview),
            description: subject.map(|it| plain_lines(&it.description)).unwrap_or_default(),
            figures: figures(overview),
            chart_wide: chart(overview, WIDE).map(Value::from_safe_string),
            chart_narrow: chart(overview, NARROW).map(Value::from_safe_string),
            legend: legend(overview),
            phases: phases(overview),
            paths: paths(overview),
            roles: roles(overview),
            total: Total {
                duration: duration(overview.elapsed()),
                cost: cost(overview, overview.tally.costs.total_cost_usd),
                estimated: Some(overview.tally.costs.estimated_cost_usd)
                    .filter(|it| *it > 0.0)
                    .map(dollars),
            },
            lineage: lineage(overview),
            lineage_of: if overview.submission.is_some() { "submission" } else { "solution" },
            story: overview.lineage.iter().map(|it| plain(it)).collect(),
            studies: studies(overview),
            solutions: overview
                .solutions()
                .iter()
                .map(|it| SolutionRow::of(it, overview))
                .collect(),
            troubles: troubles(overview),
            troubles_left_out: overview
                .trouble_count
                .saturating_sub(overview.troubles.len().min(SHOWN_TROUBLES)),
            settings: settings(overview),
            environment,
            sandbox,
            packages: packages.join(" "),
            commands: commands(overview, extras),
            script: extras.script.as_deref().map(|it| {
                let shown: String = it.chars().take(SHOWN_SCRIPT_CHARS).collect();
                plain_lines(&shown)
            }),
        }
    }
}

/// A text on one line, without what a terminal would obey, and no longer than anyone reads.
fn plain(text: &str) -> String {
    crate::plain(&shortened(text))
}

/// The score that counts: of what was finalized, else the best so far.
fn current(overview: &Overview) -> Option<Score> {
    overview.selected.as_ref().map(|it| it.score).or(overview.tally.best)
}

/// The best first candidate: where the run came from.
fn first(overview: &Overview) -> Option<Score> {
    let direction = overview.direction();
    let candidates = overview.solutions().iter().filter(|it| it.kind == SolutionKind::Candidate);
    candidates.filter_map(|it| it.score).reduce(|best, next| best_of(Some(best), next, direction))
}

fn headline(overview: &Overview) -> String {
    let metric = overview.subject.as_ref().map(|it| plain(&it.metric)).unwrap_or_default();
    let failed = overview
        .troubles
        .iter()
        .rev()
        .find(|_| overview.phases().iter().any(|it| it.outcome == PhaseOutcome::Failed));
    if let Some(trouble) = failed {
        return format!("The run ended without a solution: {}.", plain(&trouble.message));
    }
    let Some(now) = current(overview) else {
        return "No script has been scored yet.".to_owned();
    };
    let gain = first(overview)
        .and_then(|first| improvement(first, now, overview.direction()))
        .filter(|gain| *gain > 0.05)
        .map(|gain| {
            format!(", {} better than the best first candidate", percent(gain).replace('+', ""))
        })
        .unwrap_or_default();
    let what = match (&overview.selected, overview.state()) {
        (Some(selected), State::Finished) => {
            let name = selected.solution.as_deref().and_then(|id| overview.solution(id));
            let name = name.map_or_else(|| "best solution".to_owned(), |it| called(it, overview));
            match &overview.submission {
                Some(submission) if submission.solution == "finalization" => {
                    format!("Submitted: {name}")
                }
                Some(_) => {
                    "Submitted: the initial solution, because no later submission was verified"
                        .to_owned()
                }
                None => format!("Nothing was submitted. Best: {name}"),
            }
        }
        (_, _) => "Best so far".to_owned(),
    };
    format!("{what} · {metric} {}{gain}.", score(now))
}

/// What a person would call a solution.
fn called(solution: &Solution, overview: &Overview) -> String {
    match solution.kind {
        SolutionKind::Candidate => format!("candidate “{}”", plain(&solution.name)),
        SolutionKind::Merged => "the merged solution".to_owned(),
        SolutionKind::Checked => "the initial solution".to_owned(),
        SolutionKind::Ensemble => {
            format!("the ensemble of {}", plain(solution.name.trim_start_matches("ensemble ")))
        }
        SolutionKind::Refined => format!("the refined solution ({})", plain(&solution.name)),
        SolutionKind::Final if overview.submission.is_some() => "the final solution".to_owned(),
        SolutionKind::Model | SolutionKind::EarlySubmission | SolutionKind::Final => {
            plain(&solution.name)
        }
    }
}

fn cost(overview: &Overview, dollars_spent: f64) -> String {
    match overview.tally.cost_usd() {
        Some(_) => dollars(dollars_spent),
        None => "–".to_owned(),
    }
}

fn figures(overview: &Overview) -> Vec<Figure> {
    let tally = &overview.tally;
    let budget = overview.budget();
    let limit = budget.map(|it| format!("of {}", duration(it.time_limit_seconds)));
    let purse = budget.and_then(|it| it.max_budget_usd).map(|it| format!("of {}", dollars(it)));
    let submission = overview.submission.as_ref();
    vec![
        Figure {
            name: "Validation score",
            value: current(overview).map_or_else(|| "–".to_owned(), score),
            note: overview.direction().in_words().to_owned(),
        },
        Figure {
            name: "Submission",
            value: match submission.and_then(|it| it.rows) {
                Some(rows) => format!("{rows} rows"),
                None if submission.is_some() => "written".to_owned(),
                None => "none".to_owned(),
            },
            note: match submission {
                Some(_) => "final/submission.csv".to_owned(),
                None => String::new(),
            },
        },
        Figure {
            name: "Running time",
            value: duration(overview.elapsed()),
            note: limit.unwrap_or_default(),
        },
        Figure {
            name: "Cost",
            value: cost(overview, tally.costs.total_cost_usd),
            note: purse.unwrap_or_else(|| "no limit".to_owned()),
        },
        Figure {
            name: "Work",
            value: format!("{} scripts", tally.runs),
            note: format!("{} agent calls", tally.agent_calls),
        },
    ]
}
