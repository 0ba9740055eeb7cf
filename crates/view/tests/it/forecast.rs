//! When a run will end.

use jiff::Timestamp;
use mle_star_search::event::{Event, Phase, Record};
use mle_star_view::{Forecast, Overview};
use serde_json::Value;

use crate::fixture::{rent, until};

#[test]
fn a_forecast_comes_with_the_first_script_and_nears_the_end() {
    let mut overview = Overview::default();
    assert_eq!(Forecast::of(&overview, 10.0), None, "there is nothing to go by");
    let mut forecasts = Vec::new();
    for record in &rent() {
        overview.apply(record);
        forecasts.extend(Forecast::of(&overview, overview.elapsed()));
    }
    let limit = overview.budget().unwrap().time_limit_seconds;
    for forecast in &forecasts {
        assert!((0.0..=1.0).contains(&forecast.done), "{forecast:?}");
        assert!((0.0..=limit).contains(&forecast.seconds_left), "{forecast:?}");
    }
    let (first, last) = (forecasts.first().unwrap(), forecasts.last().unwrap());
    assert!(first.done < 0.5 && first.seconds_left > 0.0, "{first:?}");
    let spent = overview.tally.costs.total_cost_usd;
    assert_eq!(*last, Forecast { seconds_left: 0.0, cost_usd: Some(spent), done: 1.0 });
}

/// The recorded run, as if Phase 2 had taken a hundred times as long.
fn slow_in_phase_2() -> Vec<Record> {
    let begin = |phase: Phase| {
        let begun = Event::PhaseStarted { phase };
        let records = until(|it| matches!(it, Record::Happened { event, .. } if *event == begun));
        records.last().unwrap().at()
    };
    let (from, to) = (begin(Phase::Phase2), begin(Phase::Phase3));
    let slow = |record: &Record| {
        let mut json = serde_json::to_value(record).unwrap();
        let at: &mut Value = json.get_mut("at").unwrap();
        let then: Timestamp = serde_json::from_value(at.clone()).unwrap();
        let longer = then.clamp(from, to).duration_since(from) * 99;
        *at = serde_json::to_value(then + longer).unwrap();
        serde_json::from_value(json).unwrap()
    };
    rent().iter().map(slow).collect()
}

#[test]
fn a_phase_is_forecast_by_its_own_pace() {
    let records = slow_in_phase_2();
    let end = Overview::of(&records).elapsed();
    let mut overview = Overview::default();
    let mut ratios = Vec::new();
    for record in &records {
        overview.apply(record);
        let elapsed = overview.elapsed();
        let is_half_way =
            overview.phases().len() == 2 && elapsed > 0.3 * end && elapsed < 0.6 * end;
        if let Some(forecast) = Forecast::of(&overview, elapsed).filter(|_| is_half_way) {
            ratios.push(forecast.seconds_left / (end - elapsed));
        }
    }
    assert!(ratios.len() > 10, "{ratios:?}");
    assert!(ratios.iter().all(|it| (0.7..1.4).contains(it)), "{ratios:?}");
}
