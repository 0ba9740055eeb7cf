//! What hostile scripts try, and what comes of it in each tier of the sandbox.
//!
//! An [`Attack`](attack::Attack) is judged by what happened outside: whether the file changed,
//! whether the listener was called, whether the victim lives, whether the secret came out. A tier
//! that reports a [`Gap`](mle_star_exec::sandbox::Gap) may be breached there. Everything else must
//! hold. Without a sandbox the same attacks must succeed, or else they would prove nothing.
//!
//! `files`, `sockets` and `processes` list attacks, which run in every tier; `greed` goes beyond
//! limits, `survivors` tries to outlive its end, `lies` deceives the supervisor, and `places` does
//! it all again where there are fewer privileges.

mod attack;
mod files;
mod greed;
mod lies;
mod places;
mod processes;
mod sockets;
mod stage;
mod survivors;

use mle_star_exec::Setup;
use mle_star_exec::sandbox::{Network, Tier, Wish};

use self::attack::{Attack, Tally};
use crate::bench::setup;

fn all() -> Vec<Attack> {
    [files::attacks(), sockets::attacks(), processes::attacks(), greed::attacks()].concat()
}

#[tokio::test]
async fn the_strong_tier_holds_every_attack() {
    let tally = Tally::of(Tier::Strong, &all()).await;
    assert_eq!(tally.open, [""; 0]);
    tally.print();
}

#[tokio::test]
async fn the_fallback_tier_holds_what_it_does_not_report() {
    Tally::of(Tier::Fallback, &all()).await.print();
}

#[tokio::test]
async fn the_limits_report_what_they_do_not_hold() {
    Tally::of(Tier::Limits, &all()).await.print();
}

#[tokio::test]
async fn without_a_sandbox_attacks_succeed() {
    let tally = Tally::of(Tier::Off, &all()).await;
    assert!(tally.open.len() > 40, "{:?}", tally.open);
    tally.print();
}

#[tokio::test]
async fn a_network_that_is_allowed_opens_nothing_else() {
    for tier in [Tier::Strong, Tier::Fallback] {
        let online = Setup { network: Network::Allow, ..setup(Wish::Exactly(tier)).await };
        let tally = Tally::with(online, &sockets::attacks()).await;
        for name in ["tcp", "udp"] {
            assert!(tally.open.contains(&name), "{name} in {tier}");
        }
        for name in ["vsock", "rings", "packets"] {
            assert!(!tally.open.contains(&name), "{name} in {tier}");
        }
    }
}
