//! When a run will end.

use mle_star_view::{Forecast, Overview};

use crate::fixture::rent;

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
