//! Which files a script may touch, and which port it may connect to: what it was given, and nothing
//! else.

use std::io;

use camino::Utf8PathBuf;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};

use super::Network;

/// The newest rules that we know; a kernel that knows fewer applies those.
const NEWEST: ABI = ABI::V9;

/// What may be touched, and how.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reach {
    /// Read, list and execute.
    pub(crate) readable: Vec<Utf8PathBuf>,
    /// Anything.
    pub(crate) writable: Vec<Utf8PathBuf>,
    /// Connections. Other rules see to it that there are none at all.
    pub(crate) network: Network,
}

impl Reach {
    /// Confines this process and all that it starts. There is no way back.
    pub(crate) fn confine(&self) -> io::Result<()> {
        let all = AccessFs::from_all(NEWEST);
        let reading = AccessFs::from_read(NEWEST);
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)
            .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
            .and_then(|ruleset| match self.network {
                // Nothing is to wait for connections either.
                Network::Port(_) => ruleset.handle_access(AccessNet::from_all(NEWEST)),
                Network::Deny | Network::Allow => Ok(ruleset),
            })
            .and_then(Ruleset::create)
            .map_err(io::Error::other)?;
        let port = match self.network {
            Network::Port(port) => Some(Ok(NetPort::new(port, AccessNet::ConnectTcp))),
            Network::Deny | Network::Allow => None,
        };
        let ruleset = ruleset
            .add_rules(port.into_iter().collect::<Vec<Result<_, landlock::RulesetError>>>())
            .map_err(io::Error::other)?;
        let ruleset = ruleset
            .add_rules(rules(&self.readable, reading))
            .and_then(|ruleset| ruleset.add_rules(rules(&self.writable, all)))
            .map_err(io::Error::other)?;
        let status = ruleset.restrict_self().map_err(io::Error::other)?;
        match status.ruleset {
            RulesetStatus::NotEnforced => Err(io::Error::other("the kernel has no Landlock")),
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        }
    }
}

/// One rule for each of `paths` that exists.
fn rules(
    paths: &[Utf8PathBuf],
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<PathBeneath<PathFd>, landlock::RulesetError>> {
    paths.iter().filter_map(move |path| {
        let access = match path.is_dir() {
            true => access,
            false => access & AccessFs::from_file(NEWEST),
        };
        PathFd::new(path).ok().map(|opened| Ok(PathBeneath::new(opened, access)))
    })
}
