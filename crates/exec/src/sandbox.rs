//! What holds a script: how tightly this machine can hold it, and what it does not hold.
//!
//! Four tiers, best first. All of them run a script in an emptied folder with a home, temporary
//! files and an environment of its own, watch its time, memory, processes, output and files, and
//! kill every process it started when it ends.
//!
//! **[`Tier::Strong`]**: namespaces for users, processes, mounts, network and shared memory; a root
//! folder that holds nothing but what the script was given; Landlock on top; no capabilities; a
//! filter on calls to the system. *Covered:* writing, reading and even seeing files elsewhere;
//! other processes, their memory, environment and signals; the network, every kind of socket,
//! io_uring; shared memory; processes that outlive the script, the supervisor or us.
//! *Not covered:* faults of the kernel itself; how fast the machine is for others; and a way around
//! two limits: what the kernel holds for a script without showing whose it is, such as a nameless
//! file on its way through a socket, is not counted as its memory or disk. Before either runs out
//! the script is the first to die.
//!
//! **[`Tier::Fallback`]**, where namespaces are refused (as in most containers): Landlock, no
//! capabilities, the filter, and the supervisor as the parent of all orphans. *Not covered:* see
//! [`Gap`]; it depends on the kernel, mostly that sockets in the file system can be reached, that
//! names and sizes of files can be seen, and that `/dev/shm` is the machine's.
//!
//! **[`Tier::Limits`]**, where the kernel has no Landlock: no capabilities and the limits. *Not
//! covered:* files, network and processes of the user who started us.
//!
//! **[`Tier::Off`]**: the limits alone, when someone asks for it.

pub(crate) mod cell;
pub(crate) mod landlock;
pub(crate) mod lockdown;
pub(crate) mod root;
pub(crate) mod seccomp;

use std::fmt;
use std::str::FromStr;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use crate::limits::Limits;
use crate::sys;

/// How tightly a script is held; a later one is tighter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the module says what they are")]
pub enum Tier {
    Off,
    Limits,
    Fallback,
    Strong,
}

/// What someone wants of the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wish {
    /// The best that this machine has.
    #[default]
    Best,
    /// This tier and no other, even where there is a better one.
    Exactly(Tier),
    /// The best there is, and rather nothing than less than this.
    AtLeast(Tier),
}

/// Whether a script may use the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// There is none.
    #[default]
    Deny,
    /// One port on this machine's loopback, and nothing else.
    Port(u16),
    /// It may.
    Allow,
}

/// How a script is to be held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// How tightly.
    pub tier: Tier,
    /// Whether it may use the network.
    pub network: Network,
    /// What it may read beside its data and the system's own programs, such as a Python.
    pub readable: Vec<Utf8PathBuf>,
    /// Devices it may use.
    pub devices: Vec<Utf8PathBuf>,
    /// A folder that it may write to, as other scripts may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Utf8PathBuf>,
}

/// What was found to hold scripts here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Containment {
    /// The tier in force.
    pub tier: Tier,
    /// What it does not hold.
    pub gaps: Vec<Gap>,
    /// Why the better tiers are not in force.
    pub refused: Vec<String>,
    /// How much each script may use.
    pub limits: Limits,
    /// How many cores each script has.
    pub cores: usize,
    /// What it does not hold of the programs that agents work with, if they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<Gap>>,
}

/// Something that a script can do although it should not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// Change, rename or remove files elsewhere.
    WriteFiles,
    /// Cut files elsewhere short.
    TruncateFiles,
    /// Read files elsewhere.
    ReadFiles,
    /// Change owner, mode and times of files elsewhere.
    ChangeModes,
    /// See names, sizes and times of files elsewhere.
    SeeFiles,
    /// Use the network.
    UseNetwork,
    /// Talk to programs through sockets in the file system, such as a container engine's.
    FileSockets,
    /// Talk to programs through sockets that only have a name.
    NamedSockets,
    /// Stop, trace or read processes of the same user.
    TouchProcesses,
    /// See which processes there are, with their arguments.
    SeeProcesses,
    /// Read and change what others keep in `/dev/shm`, and leave memory behind there, which is not
    /// counted.
    SharedMemory,
    /// Leave processes behind if the supervisor itself is killed.
    OutliveSupervisor,
    /// Reach other machines by the one port that is open.
    PortElsewhere,
    /// Read the credentials by which a model's service knows us.
    ReadCredentials,
}

impl Gap {
    /// All that scripts can have, the worst first. The others are of programs that talk to a model.
    pub const ALL: [Self; 12] = [
        Self::WriteFiles,
        Self::TruncateFiles,
        Self::ReadFiles,
        Self::ChangeModes,
        Self::UseNetwork,
        Self::TouchProcesses,
        Self::FileSockets,
        Self::NamedSockets,
        Self::SeeFiles,
        Self::SeeProcesses,
        Self::SharedMemory,
        Self::OutliveSupervisor,
    ];
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WriteFiles => "change your files",
            Self::TruncateFiles => "cut your files short",
            Self::ReadFiles => "read your files",
            Self::ChangeModes => "change the permissions of your files",
            Self::SeeFiles => "see names and sizes of your files",
            Self::UseNetwork => "use the network",
            Self::FileSockets => "use sockets in the file system, such as docker.sock",
            Self::NamedSockets => "use abstract sockets",
            Self::TouchProcesses => "signal, trace and read your processes",
            Self::SeeProcesses => "see your processes and their arguments",
            Self::SharedMemory => "use the machine's /dev/shm with all that is in it",
            Self::OutliveSupervisor => "leave processes behind if the supervisor is killed",
            Self::PortElsewhere => "reach other machines by the port that leads to the model",
            Self::ReadCredentials => "read the credentials for the model",
        })
    }
}

impl Containment {
    /// What `tier` holds on this kernel.
    pub(crate) fn of(tier: Tier, network: Network, limits: Limits, cores: usize) -> Self {
        let gaps = gaps(tier, network);
        Self { tier, gaps, refused: Vec::new(), limits, cores, agents: None }
    }

    /// The tier and what it does not hold, in one line.
    pub fn summary(&self) -> String {
        let Self { tier, gaps, agents, .. } = self;
        let nobody = Vec::new();
        let of_agents = agents.as_ref().unwrap_or(&nobody);
        let (both, scripts): (Vec<Gap>, Vec<Gap>) =
            gaps.iter().partition(|gap| of_agents.contains(gap));
        let agents_alone = of_agents.iter().copied().filter(|gap| !gaps.contains(gap)).collect();
        let mut text = match agents {
            None => format!("sandbox: {tier}"),
            Some(_) => format!("sandbox: {tier}, for scripts and agents"),
        };
        for (who, gaps) in
            [("scripts and agents", both), ("scripts", scripts), ("agents", agents_alone)]
        {
            let gaps: Vec<String> = gaps.iter().map(Gap::to_string).collect();
            if !gaps.is_empty() {
                text = format!("{text}; {who} can {}", gaps.join(", "));
            }
        }
        text
    }
}

/// What `tier` does not hold on this kernel.
pub(crate) fn gaps(tier: Tier, network: Network) -> Vec<Gap> {
    let landlock = sys::landlock_version();
    let holds = |gap: &Gap| match tier {
        // Names without a file belong to a network.
        Tier::Strong => *gap != Gap::NamedSockets || network != Network::Allow || landlock >= 6,
        Tier::Fallback => match gap {
            Gap::WriteFiles | Gap::ReadFiles | Gap::ChangeModes => true,
            Gap::UseNetwork => network == Network::Deny || landlock >= 4,
            Gap::TouchProcesses | Gap::NamedSockets => landlock >= 6,
            Gap::TruncateFiles => landlock >= 3,
            Gap::FileSockets => landlock >= 9,
            Gap::SeeFiles | Gap::SeeProcesses => false,
            Gap::SharedMemory | Gap::OutliveSupervisor => false,
            Gap::PortElsewhere | Gap::ReadCredentials => false,
        },
        Tier::Limits | Tier::Off => false,
    };
    let open = |gap: &&Gap| !holds(gap) || (**gap == Gap::UseNetwork && network == Network::Allow);
    let mut gaps: Vec<Gap> = Gap::ALL.iter().filter(open).copied().collect();
    // Where addresses cannot be told apart, ports can.
    let by_port = matches!((tier, network), (Tier::Fallback, Network::Port(_)));
    if by_port && !gaps.contains(&Gap::UseNetwork) {
        gaps.push(Gap::PortElsewhere);
    }
    gaps
}

impl Tier {
    /// The tiers that are tried where nobody asks for another, best first.
    pub(crate) const TRIED: [Self; 3] = [Self::Strong, Self::Fallback, Self::Limits];
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Limits => "limits",
            Self::Fallback => "fallback",
            Self::Strong => "strong",
        })
    }
}

impl FromStr for Tier {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let tiers = [Self::Off, Self::Limits, Self::Fallback, Self::Strong];
        let found = tiers.into_iter().find(|tier| tier.to_string() == name);
        found.ok_or_else(|| format!("`{name}` is none of strong, fallback, limits, off"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strong_tier_holds_all_and_no_tier_at_all_holds_nothing() {
        let of = |tier, network| Containment::of(tier, network, Limits::fitting(0, 0, 1, 1), 1);
        let strong = of(Tier::Strong, Network::Deny);
        assert_eq!(strong.summary(), "sandbox: strong");
        let off = of(Tier::Off, Network::Deny);
        assert_eq!(off.gaps, Gap::ALL);
        let online = of(Tier::Strong, Network::Allow);
        assert_eq!(online.summary(), "sandbox: strong; scripts can use the network");
    }

    #[test]
    fn what_agents_can_do_is_told_apart_from_what_scripts_can() {
        let mut held =
            Containment::of(Tier::Strong, Network::Allow, Limits::fitting(0, 0, 1, 1), 1);
        held.agents = Some(Vec::new());
        let expected = "sandbox: strong, for scripts and agents; scripts can use the network";
        assert_eq!(held.summary(), expected);
        held.agents = Some(vec![Gap::UseNetwork, Gap::ReadCredentials]);
        let expected = "sandbox: strong, for scripts and agents; scripts and agents can use the \
                        network; agents can read the credentials for the model";
        assert_eq!(held.summary(), expected);
        let port = gaps(Tier::Fallback, Network::Port(1));
        assert!(port.contains(&Gap::PortElsewhere) || port.contains(&Gap::UseNetwork));
        assert!(!gaps(Tier::Strong, Network::Port(1)).contains(&Gap::PortElsewhere));
    }

    #[test]
    fn tiers_are_ordered_and_have_names() {
        assert!(Tier::Strong > Tier::Fallback && Tier::Limits > Tier::Off);
        for tier in [Tier::Off, Tier::Limits, Tier::Fallback, Tier::Strong] {
            assert_eq!(tier.to_string().parse(), Ok(tier));
        }
        assert!("best".parse::<Tier>().is_err());
    }
}
