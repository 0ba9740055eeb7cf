//! Clocks that are set while a run is down.

use mle_star_chaos::simulation::Simulation;
use mle_star_search::Completed;

const SETTINGS: &str = "M=2 T=1 K=2 L=2 R=1 time_limit_seconds=3600";
const DECADE: i64 = 10 * 365 * 86_400;

/// A run that is taken up three times, with the clock set to another time before each.
async fn with_jumps(jumps: [i64; 3]) -> Completed {
    let simulation = Simulation::new(SETTINGS, u64::MAX).unwrap();
    for (index, jump) in jumps.into_iter().enumerate() {
        simulation.run_until(8 * (index as u64 + 1)).await.unwrap();
        simulation.clock.turn(jump);
    }
    simulation.run().await.unwrap()
}

/// Nothing of a result but when it was made.
fn timeless(completed: &Completed) -> String {
    let mut value = serde_json::to_value(&completed.result).unwrap();
    fn strip(value: &mut serde_json::Value) {
        if let Some(map) = value.as_object_mut() {
            let volatile = [
                "created_at",
                "total_duration_seconds",
                "total_cost_usd",
                "submission_path",
                "data_dir",
            ];
            map.retain(|key, _| !volatile.contains(&key.as_str()));
            map.values_mut().for_each(strip);
        }
        value.as_array_mut().into_iter().flatten().for_each(strip);
    }
    strip(&mut value);
    value.to_string()
}

/// Downtime is free, however long it was and in whichever direction.
#[tokio::test]
async fn a_clock_that_is_set_between_two_lives_changes_neither_the_result_nor_the_time_taken() {
    let straight = with_jumps([0, 0, 0]).await;
    for jumps in [[DECADE, 0, 0], [-DECADE, 0, 0], [3600, -86_400, DECADE], [-1, 1, -DECADE]] {
        let jumped = with_jumps(jumps).await;
        assert_eq!(timeless(&jumped), timeless(&straight), "{jumps:?}");
        let took = jumped.result.total_duration_seconds;
        assert!((0.0..60.0).contains(&took), "{jumps:?}: {took} s");
        assert!(jumped.result.total_cost_usd >= straight.result.total_cost_usd, "{jumps:?}");
    }
}
