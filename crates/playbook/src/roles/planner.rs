//! A_planner: the next idea for a block, guided by how the others did.

use std::cmp::Ordering;

use mle_star_agent::Reply;
use mle_star_search::models::MetricDirection;
use serde::Deserialize;

use crate::Playbook;
use crate::ideas::{ideas, tag_of};

#[derive(Deserialize)]
pub(crate) struct Input {
    code_block: String,
    plans: Vec<String>,
    scores: Vec<Option<f64>>,
}

pub(crate) fn answer(playbook: &Playbook, input: &Input) -> Reply {
    let tried: Vec<(&str, Option<f64>)> = input
        .plans
        .iter()
        .zip(&input.scores)
        .filter_map(|(plan, score)| Some((tag_of(plan)?, *score)))
        .collect();
    let mut left: Vec<(String, String)> = ideas(playbook, &input.code_block)
        .into_iter()
        .filter(|(tag, _)| !tried.iter().any(|(it, _)| it == tag))
        .collect();
    // Two ideas that add something, and both ran, may be worth more together.
    if let Some((tag, plan)) = both(playbook, &tried)
        && tried.len() >= 2
        && (tried.len() % 2 == 1 || left.is_empty())
        && !tried.iter().any(|(it, _)| *it == tag)
    {
        return Reply::text(format!("{plan} [{tag}]"));
    }
    // What did not run at all is a warning about its kind: those come last.
    let failed = |tag: &str| {
        tried.iter().any(|(it, score)| score.is_none() && shelf(it) == shelf(tag))
            && !tried.iter().any(|(it, score)| score.is_some() && shelf(it) == shelf(tag))
    };
    left.sort_by_key(|(tag, _)| failed(tag));
    // Nothing is left to say: an empty reply skips the attempt.
    Reply::text(left.into_iter().next().map(|(_, plan)| plan).unwrap_or_default())
}

/// The two best ideas of the same additive kind in one.
fn both(playbook: &Playbook, tried: &[(&str, Option<f64>)]) -> Option<(String, String)> {
    let additive = |tag: &&(&str, Option<f64>)| {
        matches!(shelf(tag.0), "features" | "recipes") && tag.1.is_some()
    };
    let mut scored: Vec<&(&str, Option<f64>)> = tried.iter().filter(additive).collect();
    let order = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => Ordering::Equal,
    };
    scored.sort_by(|a, b| match playbook.direction {
        MetricDirection::Maximize => order(b.1, a.1),
        MetricDirection::Minimize => order(a.1, b.1),
    });
    let [(first, _), (second, _), ..] = scored.as_slice() else { return None };
    if shelf(first) != shelf(second) {
        return None;
    }
    let mut slugs: Vec<&str> = slugs(first).collect();
    for slug in self::slugs(second) {
        if !slugs.contains(&slug) {
            slugs.push(slug);
        }
    }
    let plan =
        "Carry out the two best ideas so far together, since each alone kept its promise best.";
    Some((format!("{}/{}", shelf(first), slugs.join("+")), plan.to_owned()))
}

fn shelf(tag: &str) -> &str {
    tag.split_once('/').map_or(tag, |(shelf, _)| shelf)
}

fn slugs(tag: &str) -> impl Iterator<Item = &str> {
    tag.split_once('/').map_or("", |(_, slugs)| slugs).split('+')
}
