//! The ablation ledger: what each study found out about the parts of a solution, and what came of
//! refining the part that was chosen.

use mle_star_search::event::Event;
use mle_star_search::models::{MetricDirection, Score};
use serde::Serialize;

use super::place::Place;
use super::text::{shortened, shortened_to};

/// How many components of a study are kept.
const KEPT_COMPONENTS: usize = 20;

/// Lines with these in their names are sums of a study.
const SUMS: [&str; 6] = ["differ", "delta", "impact", "change", "final validation", "effect"];

/// Lines with these words in their names say how far a study is.
const PROGRESS: [&str; 7] = ["fold", "epoch", "iteration", "seed", "time", "seconds", "elapsed"];

/// One outer step of Phase 2.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Study {
    /// The path.
    pub path: usize,
    /// The outer step.
    pub outer: usize,
    /// The script of the study, by the name of its file in `solutions/`.
    pub script: Option<String>,
    /// What the unchanged solution scored in the study.
    pub baseline: Option<f64>,
    /// What each part contributes, as the study printed it.
    pub effects: Vec<Effect>,
    /// What the study found, in words.
    pub summary: String,
    /// How the block begins that was chosen to be refined.
    pub block: Option<String>,
    /// The first plan for it.
    pub plan: Option<String>,
    /// The path's best score before this step.
    pub before: Option<Score>,
    /// The path's best score after it.
    pub after: Option<Score>,
    /// Why nothing was refined.
    pub skipped: Option<String>,
    /// Running time of the run when it began.
    pub began_seconds: f64,
    /// Running time of the run when it ended.
    pub ended_seconds: Option<f64>,
}

/// What a part of a solution contributes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// The part.
    pub component: String,
    /// The score without it.
    pub score: f64,
    /// How much worse the solution is without it; negative if it is better.
    pub effect: Option<f64>,
}

/// All studies, in the order in which they began.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Studies {
    pub(crate) all: Vec<Study>,
}

impl Studies {
    fn at(&mut self, key: &str, seconds: f64) -> Option<&mut Study> {
        let (path, outer) = Place::of(key).outer_step()?;
        let found = self.all.iter().rposition(|it| (it.path, it.outer) == (path, outer));
        let position = found.unwrap_or_else(|| {
            self.all.push(Study { path, outer, began_seconds: seconds, ..Study::default() });
            self.all.len() - 1
        });
        self.all.get_mut(position)
    }

    /// A script was run.
    pub(crate) fn ran(
        &mut self,
        key: &str,
        script: &str,
        stdout: &str,
        (direction, seconds): (MetricDirection, f64),
    ) {
        if !Place::of(key).has("study") {
            return;
        }
        if let Some(study) = self.at(key, seconds) {
            study.script = Some(script.to_owned());
            (study.baseline, study.effects) = read_study(stdout, direction);
        }
    }

    /// A study was summed up.
    pub(crate) fn summarized(&mut self, key: &str, reply: &str, seconds: f64) {
        if Place::of(key).last() == "summarize"
            && let Some(study) = self.at(key, seconds)
        {
            study.summary = shortened(reply);
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "few events matter here")]
    pub(crate) fn happened(&mut self, key: &str, event: &Event, seconds: f64) {
        match event {
            Event::OuterStepStarted { best, .. } => {
                if let Some(study) = self.at(key, seconds) {
                    study.before = Some(*best);
                }
            }
            Event::InnerLoopStarted { begins, plan, .. } => {
                if let Some(study) = self.at(key, seconds) {
                    study.block = Some(beginning(begins));
                    study.plan = Some(shortened(plan));
                }
            }
            Event::OuterStepSkipped { reason } => {
                if let Some(study) = self.at(key, seconds) {
                    study.skipped = Some(shortened(reason));
                }
            }
            Event::OuterStepEnded { best } => {
                // A step that was cut off before it began is no step.
                let known = Place::of(key).outer_step();
                let study = self.all.iter_mut().rev();
                if let Some(study) = study.into_iter().find(|it| Some((it.path, it.outer)) == known)
                {
                    study.after = Some(*best);
                    study.ended_seconds.get_or_insert(seconds);
                }
            }
            _ => {}
        }
    }
}

/// What a study printed: the score of the unchanged solution, and of each variant.
///
/// A study is asked for lines such as `Baseline: 0.81` and `Without target encoding: 0.79`. What
/// comes after, such as differences, is left alone.
fn read_study(stdout: &str, direction: MetricDirection) -> (Option<f64>, Vec<Effect>) {
    let mut baseline = None;
    let mut effects: Vec<Effect> = Vec::new();
    for line in stdout.lines() {
        let Some((label, value)) = labelled_number(line) else { continue };
        let lower = label.to_lowercase();
        let is_other = SUMS.iter().any(|it| lower.contains(it))
            || lower.split(|it: char| !it.is_alphabetic()).any(|word| PROGRESS.contains(&word));
        if is_other || effects.len() >= KEPT_COMPONENTS {
            continue;
        }
        if baseline.is_none() {
            // What is printed before it is progress of some kind.
            let is_baseline = lower.contains("baseline") || lower.contains("original");
            baseline = is_baseline.then_some(value);
            continue;
        }
        let component = component(label);
        if component.is_empty() || effects.iter().any(|it| it.component == component) {
            continue;
        }
        effects.push(Effect { component, score: value, effect: None });
    }
    let Some(base) = baseline else {
        // Without a baseline these are numbers that anything could have printed.
        return (None, Vec::new());
    };
    for effect in &mut effects {
        effect.effect = Some(match direction {
            MetricDirection::Maximize => base - effect.score,
            MetricDirection::Minimize => effect.score - base,
        });
    }
    let size = |it: &Effect| it.effect.unwrap_or(0.0).abs();
    effects.sort_by(|a, b| size(b).total_cmp(&size(a)));
    (baseline, effects)
}

/// The name and the number of a line such as `Without scaling: 0.79 (3 folds)`.
fn labelled_number(line: &str) -> Option<(&str, f64)> {
    let (label, rest) = line.rsplit_once(": ").or_else(|| line.rsplit_once('='))?;
    let value: f64 = rest.split_whitespace().next()?.trim_end_matches([',', ';']).parse().ok()?;
    (value.is_finite() && label.chars().any(char::is_alphabetic)).then_some((label.trim(), value))
}

/// The part that a variant leaves out, or else what the variant is.
fn component(label: &str) -> String {
    let rest = ["Without ", "without ", "No ", "Ablation: "]
        .iter()
        .find_map(|prefix| label.strip_prefix(prefix));
    let part = rest.unwrap_or(label).trim();
    let inner = part.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(part);
    shortened_to(inner, 80)
}

/// A block of code of which the record has the first characters, with a mark where it was cut.
fn beginning(block: &str) -> String {
    /// How many that are at most.
    const RECORDED_CHARS: usize = 200;
    if block.chars().count() < RECORDED_CHARS { block.to_owned() } else { format!("{block}…") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_study_printed_becomes_effects_the_largest_first() {
        let stdout = "Loading data: done\nfold 1: 0.7, fold 2: 0.8\nBaseline: 0.81\nfold 1: 0.8\n\
             Without target encoding: 0.79 (3 folds)\nWithout [model: linear]: 0.85,\n\
             Difference of target encoding: -0.02\nLargest impact: target encoding\n";
        let (baseline, effects) = read_study(stdout, MetricDirection::Maximize);
        let found: Vec<(&str, String)> = effects
            .iter()
            .map(|it| (it.component.as_str(), format!("{:+.2}", it.effect.unwrap())))
            .collect();
        assert_eq!(baseline, Some(0.81));
        assert_eq!(
            found,
            [("model: linear", "-0.04".to_owned()), ("target encoding", "+0.02".to_owned()),]
        );
        assert_eq!(read_study("a: 1\nb: 2", MetricDirection::Minimize), (None, Vec::new()));
    }

    proptest::proptest! {
        #[test]
        fn no_output_is_too_strange_for_the_ledger(stdout: String) {
            let (_, effects) = read_study(&stdout, MetricDirection::Minimize);
            proptest::prop_assert!(effects.len() <= KEPT_COMPONENTS);
        }
    }
}
