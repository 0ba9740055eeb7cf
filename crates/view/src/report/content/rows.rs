//! The tables of a report.

use mle_star_search::event::Phase;
use mle_star_search::models::best_of;
use serde::Serialize;

use super::{cost, first, plain};
use crate::format::{dollars, duration, improvement, number, percent, score, signed};
use crate::overview::Place;
use crate::{
    Overview, PhaseOutcome, Solution, SolutionKind, SolutionOutcome, TroubleKind, plain_lines,
};

#[derive(Debug, Serialize)]
pub(super) struct PhaseRow {
    name: &'static str,
    before: String,
    after: String,
    gain: String,
    tries: String,
    duration: String,
    cost: String,
    outcome: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct PathRow {
    name: String,
    best: String,
    duration: String,
    cost: String,
    outcome: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Ancestor {
    kind: &'static str,
    name: String,
    score: String,
    gain: String,
    plan: String,
    script: String,
    from: String,
}

#[derive(Debug, Serialize)]
pub(super) struct StudyRow {
    name: String,
    effects: Vec<EffectRow>,
    summary: String,
    block: String,
    before: String,
    after: String,
    gain: String,
    skipped: String,
}

#[derive(Debug, Serialize)]
pub(super) struct EffectRow {
    component: String,
    effect: String,
    score: String,
    /// From 0 to 100.
    width: u32,
    helps: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct SolutionRow {
    id: String,
    name: String,
    kind: &'static str,
    outcome: &'static str,
    score: String,
    cost: String,
    duration: String,
    script: String,
    parents: String,
    plan: String,
    error: String,
    repairs: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct TroubleRow {
    when: String,
    kind: &'static str,
    place: String,
    message: String,
}

pub(super) fn phases(overview: &Overview) -> Vec<PhaseRow> {
    let direction = overview.direction();
    let costs = &overview.tally.costs;
    let mut before = first(overview);
    let rows = overview.phases().iter().map(|span| {
        let (name, paid, kinds): (_, _, &[SolutionKind]) = match span.phase {
            Phase::Phase1 => (
                "Phase 1 · Initial solution",
                costs.phase1_cost_usd,
                &[SolutionKind::Candidate, SolutionKind::Merged],
            ),
            Phase::Phase2 => {
                ("Phase 2 · Refinement", costs.phase2_cost_usd, &[SolutionKind::Refined])
            }
            Phase::Phase3 => {
                ("Phase 3 · Ensemble", costs.phase3_cost_usd, &[SolutionKind::Ensemble])
            }
            Phase::Finalization => ("Finalization", costs.finalization_cost_usd, &[]),
        };
        let tries: Vec<&Solution> =
            overview.solutions().iter().filter(|it| kinds.contains(&it.kind)).collect();
        let failed = tries.iter().filter(|it| it.outcome == SolutionOutcome::Failed).count();
        let after = span.best.filter(|_| span.phase != Phase::Finalization);
        let gain = before.zip(after).and_then(|(old, new)| improvement(old, new, direction));
        let row = PhaseRow {
            name,
            before: after.and(before).map_or_else(|| "–".to_owned(), score),
            after: after.map_or_else(|| "–".to_owned(), score),
            gain: gain.map_or_else(|| "–".to_owned(), percent),
            tries: match (tries.len(), failed) {
                (0, _) => "–".to_owned(),
                (all, 0) => all.to_string(),
                (all, failed) => format!("{all} ({failed} failed)"),
            },
            duration: duration(
                span.ended_seconds.unwrap_or_else(|| overview.elapsed()) - span.began_seconds,
            ),
            cost: cost(overview, paid),
            outcome: match span.outcome {
                PhaseOutcome::Open => "unfinished",
                PhaseOutcome::Ended => "",
                PhaseOutcome::Skipped => "not needed",
                PhaseOutcome::Failed => "failed",
            },
        };
        before = after.map(|after| best_of(before, after, direction)).or(before);
        row
    });
    rows.collect()
}

pub(super) fn paths(overview: &Overview) -> Vec<PathRow> {
    let lanes = overview.lanes().iter().filter_map(|lane| {
        let number: usize = lane.name.strip_prefix("path-")?.parse().ok()?;
        Some((number, lane))
    });
    let mut rows: Vec<(usize, PathRow)> = lanes
        .map(|(number, lane)| {
            let paid = overview.tally.costs.phase2_per_path_cost_usd.get(number);
            let row = PathRow {
                name: format!("Path {number}"),
                best: lane.best.map_or_else(|| "–".to_owned(), score),
                duration: duration(lane.ended_seconds - lane.began_seconds),
                cost: cost(overview, paid.copied().unwrap_or(0.0)),
                outcome: lane.failure.as_deref().map(plain).unwrap_or_default(),
            };
            (number, row)
        })
        .collect();
    rows.sort_by_key(|(number, _)| *number);
    rows.into_iter().map(|(_, row)| row).collect()
}

pub(super) fn roles(overview: &Overview) -> Vec<(String, String)> {
    let mut roles: Vec<(&String, f64)> =
        overview.tally.costs.per_role_cost_usd.iter().map(|(role, cost)| (role, *cost)).collect();
    roles.retain(|(_, cost)| *cost > 0.0);
    roles.sort_by(|a, b| b.1.total_cmp(&a.1));
    roles.into_iter().map(|(role, cost)| (plain(role), dollars(cost))).collect()
}

/// Where the submission comes from, the models first.
pub(super) fn lineage(overview: &Overview) -> Vec<Ancestor> {
    let mut ancestors = overview.ancestors();
    // Paths went side by side, and are told one after the other.
    let rank = |it: &Solution| match it.kind {
        SolutionKind::Model => (0, 0),
        SolutionKind::Candidate => (1, 0),
        SolutionKind::Merged | SolutionKind::Checked => (2, 0),
        SolutionKind::Refined => (3, Place::of(&it.id).number("path").unwrap_or(0)),
        SolutionKind::Ensemble => (4, 0),
        SolutionKind::EarlySubmission | SolutionKind::Final => (5, 0),
    };
    ancestors.sort_by(|a, b| {
        let by_time = a.began_seconds.total_cmp(&b.began_seconds);
        rank(a).cmp(&rank(b)).then(by_time).then(a.id.cmp(&b.id))
    });
    let (models, scripts): (Vec<&Solution>, Vec<&Solution>) =
        ancestors.into_iter().partition(|it| it.kind == SolutionKind::Model);
    let models: Vec<String> = models.iter().map(|it| plain(&it.name)).collect();
    let retrieved = Ancestor {
        kind: if models.len() == 1 { "retrieved model" } else { "retrieved models" },
        name: models.join(", "),
        score: String::new(),
        gain: String::new(),
        plan: String::new(),
        script: String::new(),
        from: String::new(),
    };
    let rows = scripts.into_iter().map(|solution| {
        let parents = solution.parents.iter().filter_map(|id| overview.solution(id));
        let direction = overview.direction();
        let best = parents
            .clone()
            .filter_map(|it| it.score)
            .reduce(|best, next| best_of(Some(best), next, direction));
        let gain = best.zip(solution.score).and_then(|(a, b)| improvement(a, b, direction));
        let from: Vec<String> =
            parents.filter(|it| it.kind != SolutionKind::Model).map(|it| plain(&it.name)).collect();
        Ancestor {
            kind: solution.kind.in_words(),
            name: plain(&solution.name),
            score: solution.score.map(score).unwrap_or_default(),
            gain: gain.map(percent).unwrap_or_default(),
            plan: solution.plan.as_deref().map(plain).unwrap_or_default(),
            script: solution.script.as_deref().map(plain).unwrap_or_default(),
            from: from.join(" + "),
        }
    });
    let rows: Vec<Ancestor> = rows.collect();
    if rows.is_empty() {
        return rows;
    }
    std::iter::once(retrieved).filter(|it| !it.name.is_empty()).chain(rows).collect()
}

pub(super) fn studies(overview: &Overview) -> Vec<StudyRow> {
    let direction = overview.direction();
    let effects = overview.studies().iter().flat_map(|it| &it.effects);
    let largest = effects.filter_map(|it| it.effect).map(f64::abs).fold(0.0, f64::max);
    let rows = overview.studies().iter().map(|study| {
        let effects = study.effects.iter().map(|it| {
            let effect = it.effect.unwrap_or(0.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
            let width =
                if largest > 0.0 { (100.0 * effect.abs() / largest).round() as u32 } else { 0 };
            EffectRow {
                component: plain(&it.component),
                effect: signed(effect),
                score: number(it.score),
                width: if effect == 0.0 { 0 } else { width.max(1) },
                helps: effect >= 0.0,
            }
        });
        let gain = study.before.zip(study.after);
        let gain = gain.and_then(|(before, after)| improvement(before, after, direction));
        StudyRow {
            name: format!("Path {}, outer {}", study.path, study.outer),
            effects: effects.collect(),
            summary: plain_lines(&study.summary).trim().to_owned(),
            block: study
                .block
                .as_deref()
                .and_then(|it| it.lines().find(|line| !line.trim().is_empty()))
                .map(plain)
                .unwrap_or_default(),
            before: study.before.map(score).unwrap_or_default(),
            after: study.after.map(score).unwrap_or_default(),
            gain: gain.map(percent).unwrap_or_default(),
            skipped: study.skipped.as_deref().map(plain).unwrap_or_default(),
        }
    });
    rows.collect()
}

impl SolutionRow {
    pub(super) fn of(solution: &Solution, overview: &Overview) -> Self {
        let parents = solution.parents.iter().filter_map(|id| overview.solution(id));
        // A candidate is called like the model that it was written for.
        let parents = parents.filter(|it| it.kind != SolutionKind::Model);
        let parents: Vec<String> = parents.map(|it| plain(&it.name)).collect();
        Self {
            id: plain(&solution.id),
            name: plain(&solution.name),
            kind: solution.kind.in_words(),
            outcome: solution.outcome.in_words(),
            score: solution.score.map_or_else(|| "–".to_owned(), score),
            cost: if solution.kind == SolutionKind::Model {
                "–".to_owned()
            } else {
                cost(overview, solution.cost_usd)
            },
            duration: duration(solution.script_seconds),
            script: solution.script.as_deref().map(plain).unwrap_or_default(),
            parents: parents.join(" + "),
            plan: solution.plan.as_deref().map(plain).unwrap_or_default(),
            error: solution.error.as_deref().map(plain).unwrap_or_default(),
            repairs: solution.repairs,
        }
    }
}

pub(super) fn troubles(overview: &Overview) -> Vec<TroubleRow> {
    let shown = overview.troubles.iter().take(super::SHOWN_TROUBLES).map(|it| TroubleRow {
        when: duration(it.seconds),
        kind: match it.kind {
            TroubleKind::Warning => "warning",
            TroubleKind::Failure => "failure",
            TroubleKind::Fallback => "fallback",
        },
        place: plain(&it.place),
        message: plain(&it.message),
    });
    shown.collect()
}
