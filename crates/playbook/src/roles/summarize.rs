//! A_summarize: what the numbers of a study say, in words and in one line for the extractor.

use mle_star_agent::Reply;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Playbook;
use mle_star_search::models::MetricDirection;

#[derive(Deserialize)]
pub(crate) struct Input {
    raw_result: String,
}

/// How the last line of a summary begins.
const EFFECTS: &str = "Effects: ";

pub(crate) fn answer(playbook: &Playbook, input: &Input) -> Reply {
    let baseline =
        input.raw_result.lines().find_map(|line| number(line.strip_prefix("Baseline: ")?));
    let variants: Vec<(&str, f64)> = input
        .raw_result
        .lines()
        .filter_map(|line| {
            let (title, rest) = line.strip_prefix("Without [")?.split_once("]: ")?;
            Some((title, number(rest)?))
        })
        .collect();
    let Some(baseline) = baseline.filter(|_| !variants.is_empty()) else {
        return Reply::text("The study printed no results that could be compared.");
    };
    let sign = match playbook.direction {
        MetricDirection::Maximize => 1.0,
        MetricDirection::Minimize => -1.0,
    };
    let metric = playbook.shape.metric;
    let mut text = format!("The unchanged solution has a {metric} of {baseline}.");
    // Positive: the solution is worse without the part.
    let mut effects: Vec<(&str, f64)> =
        variants.iter().map(|(title, score)| (*title, sign * (baseline - score))).collect();
    for ((title, score), (_, effect)) in variants.iter().zip(&effects) {
        let verdict = match effect.total_cmp(&0.0) {
            std::cmp::Ordering::Greater => "the part helps",
            std::cmp::Ordering::Less => "the solution is better without it",
            std::cmp::Ordering::Equal => "the part makes no difference",
        };
        let change = score - baseline;
        text.extend([format!(
            "\nWithout the section `{title}` it is {score} ({change:+.6}): {verdict}."
        )]);
    }
    effects.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    if let (Some(most), Some(least)) = (effects.first(), effects.last()) {
        text.extend([format!("\nThe section `{}` matters most, `{}` least.", most.0, least.0)]);
    }
    let line: Map<String, Value> =
        effects.iter().map(|(title, effect)| ((*title).to_owned(), Value::from(*effect))).collect();
    Reply::text(format!("{text}\n{EFFECTS}{}", Value::Object(line)))
}

/// The effects that a summary ends with; nothing if it has none.
pub(crate) fn effects(summary: &str) -> Vec<(String, f64)> {
    let lines = summary.lines().filter_map(|line| line.strip_prefix(EFFECTS));
    let maps = lines.filter_map(|line| serde_json::from_str::<Map<String, Value>>(line).ok());
    maps.flatten().filter_map(|(title, effect)| Some((title, effect.as_f64()?))).collect()
}

fn number(text: &str) -> Option<f64> {
    text.split_whitespace()
        .next()?
        .trim_end_matches(',')
        .parse()
        .ok()
        .filter(|it: &f64| it.is_finite())
}
