//! What the command line says about the sandbox.

use clap::{Args, ValueEnum};
use mle_star_exec::sandbox::{Tier, Wish};

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct SandboxArguments {
    /// How scripts are held; `off` is for scripts that you trust [default: as tightly as this
    /// machine can]
    #[arg(long, value_name = "TIER", conflicts_with = "require_sandbox")]
    sandbox: Option<TierName>,

    /// Refuse to run scripts that are held less tightly than this
    #[arg(long, value_name = "TIER")]
    require_sandbox: Option<RequiredTier>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum TierName {
    Strong,
    Fallback,
    Limits,
    Off,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RequiredTier {
    Strong,
    Fallback,
}

impl SandboxArguments {
    /// What is wanted, if anything is said.
    pub(crate) fn wish(self) -> Option<Wish> {
        let exactly = self.sandbox.map(|tier| {
            Wish::Exactly(match tier {
                TierName::Strong => Tier::Strong,
                TierName::Fallback => Tier::Fallback,
                TierName::Limits => Tier::Limits,
                TierName::Off => Tier::Off,
            })
        });
        let at_least = self.require_sandbox.map(|tier| {
            Wish::AtLeast(match tier {
                RequiredTier::Strong => Tier::Strong,
                RequiredTier::Fallback => Tier::Fallback,
            })
        });
        exactly.or(at_least)
    }
}
