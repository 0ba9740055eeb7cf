//! The real time.

use jiff::Timestamp;
use mle_star_search::Clock;

#[derive(Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
