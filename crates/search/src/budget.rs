//! Time and money.
//!
//! One deadline holds for the whole run, counted in running time: downtime between two lives of a
//! run is free. The last part of the time is a reserve for finalization, which no other phase may
//! touch. Money is reserved before a call and counted after it; the sum of what concurrent calls
//! may cost is never more than what is left.
//!
//! What is decided by looking at the clock or the purse is recorded by [`crate::step`], so that a
//! resumed run takes the same branch.

use std::sync::{Mutex, PoisonError};

use crate::models::{PhaseTimeBudget, PipelineConfig};

/// At this share of the budget a person is told.
pub(crate) const WARN_AT: f64 = 0.80;

/// At this share of the budget no new iteration begins.
const FINALIZE_AT: f64 = 0.95;

/// The seconds that only finalization may use.
pub fn finalization_reserve(config: &PipelineConfig) -> f64 {
    let limit = seconds(config.time_limit_seconds);
    (0.10 * limit).max(300.0).min(0.20 * limit)
}

/// The running time at which Phases 1 to 3 end.
pub fn search_ends(config: &PipelineConfig) -> f64 {
    seconds(config.time_limit_seconds) - finalization_reserve(config)
}

/// How long Phase 2 may take, if it begins when `elapsed` seconds are over: its share of what is
/// left, among the phases that are left. In a short run the reserve is more than finalization's
/// share; what it is more does not count as left, or Phase 3 would pay for it alone.
pub fn phase2_budget(config: &PipelineConfig, elapsed: f64) -> f64 {
    let PhaseTimeBudget { phase2, phase3, finalization, .. } = config.phase_time_budget;
    let phase3 = if config.num_parallel_solutions == 1 { 0.0 } else { phase3 };
    let limit = seconds(config.time_limit_seconds);
    let withheld = (finalization_reserve(config) - finalization * limit).max(0.0);
    let left = (limit - elapsed - withheld).max(0.0);
    left * phase2 / (phase2 + phase3 + finalization)
}

/// How long one path may take: all of the phase if the paths run side by side, its share of it if
/// they have to wait for each other.
pub fn path_budget(config: &PipelineConfig, phase2_budget: f64) -> f64 {
    let paths = config.num_parallel_solutions;
    let at_once = paths.min(config.max_concurrent_sessions);
    phase2_budget * count(at_once) / count(paths)
}

/// Whether so much is spent that no new iteration may begin.
pub(crate) fn is_nearly_spent(config: &PipelineConfig, spent: f64) -> bool {
    config.max_budget_usd.is_some_and(|budget| spent >= FINALIZE_AT * budget)
}

/// What calls in flight may still spend.
#[derive(Debug, Default)]
pub(crate) struct Purse {
    reserved: Mutex<f64>,
}

/// A part of the budget that one call may spend. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    purse: &'a Purse,
    /// How much, if there is a budget at all.
    pub(crate) amount: Option<f64>,
}

impl Purse {
    /// Reserves a share of what is left, for one of at most `calls` calls that could be made at
    /// this moment. `None` if nothing is left.
    pub(crate) fn reserve(
        &self,
        budget: Option<f64>,
        spent: f64,
        calls: usize,
    ) -> Option<Reservation<'_>> {
        let Some(budget) = budget else {
            return Some(Reservation { purse: self, amount: None });
        };
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let left = budget - spent - *reserved;
        if left <= 0.0 {
            return None;
        }
        let amount = left / count(calls.max(1));
        *reserved += amount;
        Some(Reservation { purse: self, amount: Some(amount) })
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut reserved = self.purse.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        *reserved -= self.amount.unwrap_or(0.0);
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds and dollars of a run are far below 2^52")]
pub(crate) fn seconds(whole: u64) -> f64 {
    whole as f64
}

#[expect(clippy::cast_precision_loss, reason = "a handful")]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::ConfigLayer;

    fn config(settings: &str) -> PipelineConfig {
        ConfigLayer::from_pairs(settings.split_whitespace()).unwrap().resolve().unwrap()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    /// REQ-OR-034
    #[test]
    fn the_reserve_is_a_tenth_or_five_minutes_but_never_more_than_a_fifth() {
        let reserve =
            |limit: u64| finalization_reserve(&config(&format!("time_limit_seconds={limit}")));
        assert!(close(reserve(86_400), 8_640.0));
        assert!(close(reserve(2_000), 300.0));
        assert!(close(reserve(600), 120.0));
        assert!(close(reserve(60), 12.0));
    }

    /// REQ-OR-025, REQ-OR-026
    #[test]
    fn phase_2_gets_its_share_of_what_is_left_and_a_path_all_of_it_unless_paths_wait() {
        let default = config("time_limit_seconds=10000");
        assert!(close(phase2_budget(&default, 1000.0), 9000.0 * 0.65 / 0.90));
        assert!(close(phase2_budget(&default, 5000.0), 5000.0 * 0.65 / 0.90));
        assert!(close(phase2_budget(&default, 50_000.0), 0.0));
        let single = config("time_limit_seconds=10000 L=1");
        assert!(close(phase2_budget(&single, 1000.0), 9000.0 * 0.65 / 0.75));
        let short = config("time_limit_seconds=600");
        assert!(close(phase2_budget(&short, 100.0), (500.0 - 60.0) * 0.65 / 0.90));
        assert!(close(path_budget(&default, 600.0), 600.0));
        assert!(close(path_budget(&config("L=4 max_concurrent_sessions=1"), 600.0), 150.0));
    }

    #[test]
    fn concurrent_calls_never_reserve_more_than_is_left() {
        let purse = Purse::default();
        let first = purse.reserve(Some(1.0), 0.2, 4).unwrap();
        assert!(close(first.amount.unwrap(), 0.2));
        let second = purse.reserve(Some(1.0), 0.2, 1).unwrap();
        assert!(close(second.amount.unwrap(), 0.6));
        assert!(purse.reserve(Some(1.0), 0.2, 1).is_none());
        drop(second);
        assert!(purse.reserve(Some(1.0), 0.2, 1).is_some());
        assert!(purse.reserve(Some(1.0), 1.0, 1).is_none());
        assert_eq!(purse.reserve(None, 99.0, 1).unwrap().amount, None);
    }
}
