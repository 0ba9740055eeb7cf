//! What a process gives up before the program that it is for takes over: Python, or that of an agent.

use std::io;

use rustix::process::{Resource, Rlimit, Signal, setrlimit, setsid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, CpuSet, clear_ambient_capability_set,
    remove_capability_from_bounding_set, sched_setaffinity, set_capabilities, set_no_new_privs,
};

use super::Tier;
use super::landlock::Reach;
use super::seccomp::Filters;
use crate::sys;

/// Everything to give up, worked out beforehand.
#[derive(Debug, Clone)]
pub(crate) struct Lockdown {
    pub(crate) tier: Tier,
    pub(crate) cores: Vec<usize>,
    pub(crate) largest_file: u64,
    pub(crate) reach: Reach,
    pub(crate) filters: Option<Filters>,
}

impl Lockdown {
    /// Gives it all up.
    pub(crate) fn enter(&self) -> io::Result<()> {
        self.try_enter()
            .map_err(|(doing, error)| io::Error::new(error.kind(), format!("{doing}: {error}")))
    }

    fn try_enter(&self) -> Result<(), (&'static str, io::Error)> {
        sys::unblock_signals();
        sys::close_on_exec();
        setsid().ok(); // it may lead a session already
        // A script that must die for want of memory dies before anything else here does.
        fs_err::write("/proc/self/oom_score_adj", "1000").ok();
        limit(Resource::Core, 0).map_err(|error| ("setting limits", error))?;
        limit(Resource::Fsize, self.largest_file).map_err(|error| ("setting limits", error))?;
        self.stay_on_cores().ok(); // a core may have been switched off since
        if self.tier == Tier::Off {
            return Ok(());
        }
        drop_capabilities().map_err(|error| ("dropping capabilities", error))?;
        set_no_new_privs(true).map_err(|error| ("giving up privileges", error.into()))?;
        if self.tier == Tier::Limits {
            return Ok(());
        }
        let landlock = sys::landlock_version() > 0;
        if landlock || self.tier == Tier::Fallback {
            self.reach.confine().map_err(|error| ("Landlock", error))?;
        }
        if let Some(filters) = &self.filters {
            filters.apply().map_err(|error| ("seccomp", error))?;
        }
        Ok(())
    }

    fn stay_on_cores(&self) -> io::Result<()> {
        if self.cores.is_empty() {
            return Ok(());
        }
        let mut set = CpuSet::new();
        for &core in self.cores.iter().filter(|&&core| core < CpuSet::MAX_CPU) {
            set.set(core);
        }
        Ok(sched_setaffinity(None, &set)?)
    }
}

/// Dies with its parent. Only for a child of a process with one thread: the signal follows the
/// thread, not the process.
pub(crate) fn die_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let most = match rustix::process::getrlimit(resource).maximum {
        Some(hard) => most.min(hard), // raising it is not for everybody
        None => most,
    };
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

fn drop_capabilities() -> io::Result<()> {
    for capability in CapabilitySet::all().iter() {
        remove_capability_from_bounding_set(capability).ok(); // needs a capability itself
    }
    clear_ambient_capability_set().ok(); // there is none on old kernels
    let none = CapabilitySet::empty();
    Ok(set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )?)
}
