//! What an attack is, and how its outcome is judged.

use std::fmt::Write as _;
use std::io::Write as _;

use futures::StreamExt;
use futures::stream;
use mle_star_exec::sandbox::{Containment, Gap, Tier, Wish};
use mle_star_exec::{Executor, Local, Outcome, Setup};

use super::stage::Stage;
use crate::bench::setup;

/// How many attacks go on at a time.
const AT_A_TIME: usize = 3;

/// Something that a script tries and should not be able to do.
#[derive(Debug, Clone)]
pub(super) struct Attack {
    pub(super) name: &'static str,
    /// What a tier reports that does not hold it.
    pub(super) gap: Gap,
    /// Python, which finds what is outside by the names that [`Stage::names`] gives.
    pub(super) script: &'static str,
    /// Whether it came through, as seen from outside.
    pub(super) came_through: fn(&Stage, &Outcome) -> bool,
    pub(super) unheld: Unheld,
}

/// What is expected where nothing holds a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unheld {
    /// It comes through: otherwise the attack is none.
    Succeeds,
    /// It depends on the machine and its user.
    Depends,
    /// It is not tried where it could come through, because it would do harm.
    Harmful,
}

/// What came of one attack.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Held,
    Open,
    Skipped,
}

/// What came of all attacks in one tier.
#[derive(Debug)]
pub(super) struct Tally {
    tier: Tier,
    pub(super) held: Vec<&'static str>,
    pub(super) open: Vec<&'static str>,
    pub(super) skipped: Vec<&'static str>,
}

impl Tally {
    /// Tries all of `attacks` in `tier`. Panics with a list of those that came out otherwise than
    /// the tier says.
    pub(super) async fn of(tier: Tier, attacks: &[Attack]) -> Self {
        Self::with(setup(Wish::Exactly(tier)).await, attacks).await
    }

    /// The same in a sandbox of the caller's.
    pub(super) async fn with(setup: Setup, attacks: &[Attack]) -> Self {
        let local = setup.try_out().await.unwrap();
        let containment = local.containment().unwrap();
        let tier = containment.tier;
        let one = async |attack: &Attack| (attack.name, attack.judged(&local).await);
        let judged: Vec<_> =
            stream::iter(attacks.iter().map(one)).buffered(AT_A_TIME).collect().await;

        let (mut tally, mut wrong) = (Self::nothing(tier), String::new());
        for (name, verdict) in judged {
            match verdict {
                Ok(Verdict::Held) => tally.held.push(name),
                Ok(Verdict::Open) => tally.open.push(name),
                Ok(Verdict::Skipped) => tally.skipped.push(name),
                Err(complaint) => writeln!(wrong, "{name}: {complaint}").unwrap(),
            }
        }
        assert!(wrong.is_empty(), "in the tier `{tier}`\n{wrong}");
        tally
    }

    fn nothing(tier: Tier) -> Self {
        Self { tier, held: Vec::new(), open: Vec::new(), skipped: Vec::new() }
    }

    /// Says what came of it, where a runner of tests does not swallow it.
    pub(super) fn print(&self) {
        let Self { tier, held, open, skipped } = self;
        let [held, opened, left] = [held, open, skipped].map(Vec::len);
        say(&format!("attacks in {tier}: {held} held, {opened} open and reported, {left} skipped"));
        if !open.is_empty() {
            say(&format!("open in {tier}: {}", open.join(", ")));
        }
        if !skipped.is_empty() {
            say(&format!("skipped: in {tier}: {}", skipped.join(", ")));
        }
    }
}

impl Attack {
    async fn judged(&self, local: &Local) -> Result<Verdict, String> {
        let Containment { tier, gaps, .. } = local.containment().unwrap();
        let is_reported = gaps.contains(&self.gap);
        if is_reported && self.unheld == Unheld::Harmful {
            return Ok(Verdict::Skipped);
        }
        let stage = Stage::for_script(self.script).await;
        let job = stage.job(self.script);
        let outcome = local.run(&job).await.map_err(|error| error.to_string())?;
        let said = format!("it said {:?} {:?}", outcome.stdout.text, outcome.stderr.text);
        if outcome.stdout.text.lines().any(|line| line.starts_with("not here")) {
            return Ok(Verdict::Skipped);
        }
        match ((self.came_through)(&stage, &outcome), is_reported) {
            (true, true) => Ok(Verdict::Open),
            (true, false) => Err(format!("it came through; {said}")),
            (false, _) if *tier == Tier::Off && self.unheld == Unheld::Succeeds => {
                Err(format!("it does not even work without a sandbox; {said}"))
            }
            (false, _) => Ok(Verdict::Held),
        }
    }
}

/// Writes a line that shows even where a test passes.
pub(super) fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").ok();
}

/// Says that something was not tested, and why.
pub(super) fn skip(why: &str) {
    say(&format!("skipped: {why}"));
}
