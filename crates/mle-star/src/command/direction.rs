//! What the command line says about which way the metric improves.

use clap::Args;
use mle_star_search::models::MetricDirection;

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct DirectionArguments {
    /// The metric is to be minimized
    #[arg(long, conflicts_with = "maximize")]
    minimize: bool,

    /// The metric is to be maximized
    #[arg(long)]
    maximize: bool,
}

impl DirectionArguments {
    /// The direction, if it is said.
    pub(crate) fn direction(self) -> Option<MetricDirection> {
        match (self.minimize, self.maximize) {
            (true, _) => Some(MetricDirection::Minimize),
            (_, true) => Some(MetricDirection::Maximize),
            (false, false) => None,
        }
    }
}
