//! The place of a step in the loops, and the fingerprint of what it was given.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The place of a step in the loops: `phase2/path-1/outer-2/inner-0/coder`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepKey(String);

/// A fingerprint of what a step was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl StepKey {
    pub(crate) fn root() -> Self {
        Self(String::new())
    }

    pub(crate) fn join(&self, part: impl fmt::Display) -> Self {
        if self.0.is_empty() { Self(part.to_string()) } else { Self(format!("{}/{part}", self.0)) }
    }

    /// Whether this is a place inside `outer`.
    pub(crate) fn is_within(&self, outer: &Self) -> bool {
        self.0.strip_prefix(&outer.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// The text of the key.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether redoing `self` may change what `later` was given. Only what runs side by side, the
    /// candidates and the paths, is safe from each other.
    pub(crate) fn may_affect(&self, later: &Self) -> bool {
        let lane = |key: &Self| {
            let name = key.0.split('/').nth(1).unwrap_or_default().to_owned();
            (name.starts_with("candidate-") || name.starts_with("path-")).then_some(name)
        };
        match (lane(self), lane(later)) {
            (Some(lane), Some(later_lane)) => {
                lane == later_lane || lane.split('-').next() != later_lane.split('-').next()
            }
            (None, _) | (_, None) => true,
        }
    }
}

impl Digest {
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let hash = blake3::hash(bytes).to_hex();
        Self(hash.get(..32).unwrap_or_default().to_owned())
    }
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
