//! The real time, as long as nobody sets the machine's clock.

use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use mle_star_search::Clock;

/// The time of day at which it was made, and what has passed since then: a machine whose clock is
/// set in the middle of a run neither ends the run nor gives it more time.
#[derive(Debug)]
pub(crate) struct SystemClock {
    made_at: Timestamp,
    since: Instant,
}

impl SystemClock {
    pub(crate) fn new() -> Self {
        Self::set_to(Timestamp::now())
    }

    fn set_to(made_at: Timestamp) -> Self {
        Self { made_at, since: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.made_at.checked_add(self.since.elapsed()).unwrap_or(Timestamp::MAX)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        tokio::time::sleep(duration).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Days off, as after a jump of the machine's clock.
    #[test]
    fn a_clock_goes_on_from_where_it_was_made_whatever_the_machine_says() {
        let made_at = Timestamp::now() - Duration::from_secs(3 * 86_400);
        let clock = SystemClock::set_to(made_at);
        let (first, second) = (clock.now(), clock.now());
        assert!(made_at <= first && first <= second);
        assert!(second.duration_since(made_at).as_secs() < 60);
    }
}
