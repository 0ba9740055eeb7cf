//! How many agent calls and scripts the settings of a run imply, and what those may cost.
//!
//! The least is a run in which every script works at once and the first merge does not help. The
//! most is one in which every script takes all its repairs, each check finds a leak, and the
//! extractor has to be asked as often as it can be. Limits of time and money are not looked at,
//! nor calls that are repeated because an agent could not be reached.

use std::collections::{BTreeMap, BTreeSet};
use std::num::Saturating;

use mle_star_search::event::{Output, Record};
use mle_star_search::finalize::EARLY_REPAIRS;
use mle_star_search::models::PipelineConfig;
use mle_star_search::phase2::EXTRACTOR_CALLS;

/// A number of things: settings may be absurdly large, and then so is this.
type Count = Saturating<usize>;

/// From the least to the most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Range {
    /// At least so many.
    pub least: usize,
    /// At most so many.
    pub most: usize,
}

/// What a run may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// The agent calls of each role, by the last part of their step, in the order of the search.
    pub calls: Vec<(&'static str, Range)>,
    /// The scripts that are run.
    pub scripts: Range,
}

/// What calls cost on average, in US dollars.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices {
    by_role: BTreeMap<String, Sum>,
    runs: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sum {
    dollars: f64,
    calls: usize,
}

impl Estimate {
    /// What a run with these settings and so many reference discussions may take.
    pub fn of(config: &PipelineConfig, references: usize) -> Self {
        let [models, paths, debug] =
            [config.num_retrieved_models, config.num_parallel_solutions, config.max_debug_attempts]
                .map(Saturating);
        let one = Saturating(1);
        let outer = paths * Saturating(config.outer_loop_steps);
        let inner = outer * Saturating(config.inner_loop_steps);
        let rounds = Saturating(if paths == one { 0 } else { config.ensemble_rounds });
        let early = Saturating(usize::from(config.early_submission));
        let early_repairs = early * Saturating(EARLY_REPAIRS);
        let submissions = one + early;
        let merges = (one.min(models - one), models - one);

        // Scripts that are scored; the last is the one that the checks after merging may write.
        let scored = (models + merges.0 + inner + rounds, models + merges.1 + inner + rounds + one);
        // Every script but the early submission and the studies has all repairs, and a leakage
        // check before its first run and after each repair. The check that follows the merging
        // is made even if it changes nothing and so adds no script.
        let leakage = (
            scored.0 + one + submissions,
            (scored.1 + one) * (one + debug) + early + early_repairs,
        );
        let repairs = (scored.1 + outer + one) * debug + early_repairs;
        let scripts = (scored.0 + outer + submissions, scored.1 + outer + submissions + repairs);

        let none = Saturating(0);
        let calls = [
            ("retriever", always(one)),
            ("init", always(models)),
            ("merger", range(merges)),
            ("data", always(one)),
            ("ablation", always(outer)),
            ("summarize", always(outer)),
            ("extractor", range((outer, outer * Saturating(EXTRACTOR_CALLS)))),
            ("planner", always(inner - outer)),
            ("coder", always(inner)),
            ("ens_planner", always(rounds)),
            ("ensembler", always(rounds)),
            ("leakage", range(leakage)),
            ("leakage_correction", range((none, leakage.1))),
            ("debugger", range((none, repairs))),
            ("subsampling_extract", always(submissions)),
            ("subsampling_remove", range((none, submissions))),
            ("test", always(submissions)),
            ("contamination", always(Saturating(references))),
        ];
        Self { calls: calls.to_vec(), scripts: range(scripts) }
    }

    /// The agent calls of all roles.
    pub fn all_calls(&self) -> Range {
        self.calls.iter().fold(Range::default(), |sum, (_, range)| Range {
            least: sum.least.saturating_add(range.least),
            most: sum.most.saturating_add(range.most),
        })
    }

    /// What the calls cost, from the least to the most; `None` if there are no prices.
    pub fn cost(&self, prices: &Prices) -> Option<(f64, f64)> {
        self.calls.iter().try_fold((0.0, 0.0), |(least, most), (role, range)| {
            let price = prices.of_role(role)?;
            Some((least + number(range.least) * price, most + number(range.most) * price))
        })
    }
}

impl Prices {
    /// Takes the calls of an earlier run into account.
    pub fn add_run(&mut self, records: &[Record]) {
        let mut priced = BTreeSet::new();
        for (key, output) in records.iter().rev().filter_map(Record::finished) {
            // A step that was done again counts once, as it was in the end.
            if let Output::Asked { reply, .. } = output
                && let Some(dollars) = reply.cost_usd
                && priced.insert(key)
            {
                let role = key.as_str().rsplit('/').next().unwrap_or_default();
                self.by_role.entry(role.to_owned()).or_default().add(dollars);
            }
        }
        self.runs += usize::from(!priced.is_empty());
    }

    /// How many of the runs have costs on record.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// What a call of `role` costs: the mean of its calls, or of all calls if it has none.
    fn of_role(&self, role: &str) -> Option<f64> {
        match self.by_role.get(role) {
            Some(sum) => sum.mean(),
            None => {
                let mut all = Sum::default();
                for sum in self.by_role.values() {
                    all.dollars += sum.dollars;
                    all.calls += sum.calls;
                }
                all.mean()
            }
        }
    }
}

impl Sum {
    fn add(&mut self, dollars: f64) {
        self.dollars += dollars;
        self.calls += 1;
    }

    fn mean(self) -> Option<f64> {
        (self.calls > 0).then(|| self.dollars / number(self.calls))
    }
}

fn always(count: Count) -> Range {
    range((count, count))
}

fn range((least, most): (Count, Count)) -> Range {
    Range { least: least.0, most: most.0 }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use mle_star_search::models::ConfigLayer;

    use super::*;

    fn estimate(settings: &str) -> Estimate {
        let layer = ConfigLayer::from_pairs(settings.split_whitespace()).unwrap();
        Estimate::of(&layer.resolve().unwrap(), 0)
    }

    fn calls(estimate: &Estimate) -> BTreeMap<&str, (usize, usize)> {
        estimate.calls.iter().map(|(role, it)| (*role, (it.least, it.most))).collect()
    }

    #[test]
    fn a_default_run_takes_what_the_algorithms_imply() {
        let default = estimate("");
        let expected = BTreeMap::from([
            ("retriever", (1, 1)),
            ("init", (4, 4)),
            ("merger", (1, 3)),
            ("data", (1, 1)),
            ("ablation", (8, 8)),
            ("summarize", (8, 8)),
            ("extractor", (8, 32)),
            ("planner", (24, 24)),
            ("coder", (32, 32)),
            ("ens_planner", (5, 5)),
            ("ensembler", (5, 5)),
            // Candidates, merges, inner steps, ensembles; the checks; two submissions. At most
            // each four times but the early submission, which has one repair.
            ("leakage", (4 + 1 + 32 + 5 + 1 + 2, 4 * (4 + 3 + 32 + 5 + 1 + 1) + 2)),
            ("leakage_correction", (0, 186)),
            // Three for each of those scripts and for the studies; one for the early submission.
            ("debugger", (0, 3 * (4 + 3 + 32 + 5 + 1 + 8 + 1) + 1)),
            ("subsampling_extract", (2, 2)),
            ("subsampling_remove", (0, 2)),
            ("test", (2, 2)),
            ("contamination", (0, 0)),
        ]);
        assert_eq!(calls(&default), expected);
        assert_eq!(default.scripts, Range { least: 52, most: 4 * (45 + 8 + 1) + 2 });
        assert_eq!(default.all_calls(), Range { least: 146, most: 664 });
    }

    #[test]
    fn one_path_has_no_ensembles_and_one_model_no_merges() {
        let smallest = estimate("M=1 T=1 K=1 L=1 max_debug_attempts=1 early_submission=false");
        let calls = calls(&smallest);
        for role in ["merger", "planner", "ens_planner", "ensembler"] {
            assert_eq!(calls.get(role), Some(&(0, 0)), "{role}");
        }
        // A candidate, an inner step, the checks and the submission.
        assert_eq!(calls.get("leakage"), Some(&(4, 8)));
        assert_eq!(calls.get("debugger"), Some(&(0, 5)));
        assert_eq!(smallest.scripts, Range { least: 4, most: 10 });
    }

    #[test]
    fn every_reference_is_compared_once() {
        let estimate = Estimate::of(&PipelineConfig::default(), 3);
        assert_eq!(calls(&estimate).get("contamination"), Some(&(3, 3)));
    }

    #[test]
    fn absurd_settings_give_absurd_numbers_and_no_panic() {
        let huge = usize::MAX;
        let absurd = estimate(&format!("M={huge} T={huge} K={huge} L={huge} R={huge}"));
        assert_eq!(absurd.all_calls(), Range { least: huge, most: huge });
    }

    #[test]
    fn a_role_costs_what_it_did_on_average_and_an_unknown_one_what_all_did() {
        let sum = |dollars, calls| Sum { dollars, calls };
        let by_role =
            [("init", sum(1.0, 4)), ("coder", sum(5.0, 2))].map(|(role, it)| (role.to_owned(), it));
        let prices = Prices { by_role: by_role.into(), runs: 1 };
        assert_eq!(prices.of_role("init"), Some(0.25));
        assert_eq!(prices.of_role("debugger"), Some(1.0));
        let smallest = estimate("M=1 T=1 K=1 L=1 max_debug_attempts=1 early_submission=false");
        // Besides the candidate and the coder: 11 calls at least, and 8 + 5 + 8 - 4 + 3 + 1 more.
        assert_eq!(smallest.cost(&prices), Some((0.25 + 2.5 + 11.0, 0.25 + 2.5 + 32.0)));
        assert_eq!(smallest.cost(&Prices::default()), None);
    }
}
