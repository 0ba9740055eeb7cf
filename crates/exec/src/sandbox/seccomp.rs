//! Which calls to the system a script may make: all but those that have no business in one.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::Network;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Filters, ready to be applied.
#[derive(Debug, Clone)]
pub(crate) struct Filters(Vec<BpfProgram>);

/// Calls by which a process reaches into others or into the kernel.
const FORBIDDEN: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    // Memory and queues that outlive the processes which use them, and are counted nowhere.
    libc::SYS_mq_open,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_shmget,
];

/// Calls that change what Landlock does not guard: the owner, mode, times and attributes of any
/// file of ours. They do nothing and succeed, because copying a file makes them in passing.
#[cfg(target_arch = "x86_64")]
const PRETENDED: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const PRETENDED: &[i64] = &[];
const PRETENDED_EVERYWHERE: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];
/// Numbers that are the same on all architectures and newer than the library that names the rest.
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

/// Requests to `ioctl` that change the flags of a file, for which it need not be open for writing.
const FLAGS_OF_FILES: [u32; 5] = [
    0x4008_6602, // FS_IOC_SETFLAGS
    0x401c_5820, // FS_IOC_FSSETXATTR
    0x4008_7602, // FS_IOC_SETVERSION
    0x4080_6685, // FS_IOC_ENABLE_VERITY
    0x800c_6613, // FS_IOC_SET_ENCRYPTION_POLICY
];

/// Calls that change a mode, and which of their arguments is the new one.
const MODES: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
];

/// What `setpriority` and `ioprio_set` call all processes of a user.
const PRIORITY_OF_USER: u32 = libc::PRIO_USER;
const DISK_PRIORITY_OF_USER: u32 = 3;

/// The flags of `clone` that make namespaces, in which a process has all capabilities.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;

impl Filters {
    /// Filters for a script that has its own namespaces, or shares those of the machine.
    pub(crate) fn new(network: Network, own_namespaces: bool) -> io::Result<Self> {
        let mut forbidden: Rules = FORBIDDEN.iter().map(|&call| (call, Vec::new())).collect();
        let mut sockets = vec![other_than(0, families(network, own_namespaces))?];
        if matches!(network, Network::Port(_)) && !own_namespaces {
            sockets.extend(all_but_tcp()?);
            forbidden.extend(connecting_in_passing()?);
        }
        forbidden.insert(libc::SYS_socket, sockets);
        // Only for itself, which is number 0.
        forbidden.insert(libc::SYS_prlimit64, vec![other_than(0, &[0])?]);
        let of_others = vec![other_than(1, &[0])?, just(0, PRIORITY_OF_USER)?];
        forbidden.insert(libc::SYS_setpriority, of_others);
        forbidden.insert(libc::SYS_clone, clone_rules()?);

        // The arguments of `clone3` are out of reach of a filter. Where it does not exist, `clone`
        // is called instead.
        let absent: Rules = [(libc::SYS_clone3, Vec::new())].into();

        // A script that leaves its cores would slow down its neighbours.
        let mut pretended: Rules = [(libc::SYS_sched_setaffinity, Vec::new())].into();
        // One that slows its neighbours down directly, likewise. Libraries do this to threads.
        for call in
            [libc::SYS_sched_setscheduler, libc::SYS_sched_setparam, libc::SYS_sched_setattr]
        {
            pretended.insert(call, vec![other_than(0, &[0])?]);
        }
        let of_others = vec![other_than(1, &[0])?, just(0, DISK_PRIORITY_OF_USER)?];
        pretended.insert(libc::SYS_ioprio_set, of_others);
        if own_namespaces {
            // A program that runs as its owner, whoever starts it, is a way out for others.
            for &(call, mode) in MODES {
                let bits = [libc::S_ISUID, libc::S_ISGID].map(|bit| has(mode, u64::from(bit)));
                pretended.insert(call, bits.into_iter().collect::<Result<_, _>>()?);
            }
        } else {
            let calls = PRETENDED.iter().chain(PRETENDED_EVERYWHERE);
            pretended.extend(calls.map(|&call| (call, Vec::new())));
            let flags = FLAGS_OF_FILES.iter().map(|&request| just(1, request));
            pretended.insert(libc::SYS_ioctl, flags.collect::<Result<_, _>>()?);
        }
        let deny = u32::try_from(libc::EACCES).unwrap_or_default();
        let unknown = u32::try_from(libc::ENOSYS).unwrap_or_default();
        Ok(Self(vec![
            native_numbers_only(),
            program(pretended, SeccompAction::Errno(0))?,
            program(absent, SeccompAction::Errno(unknown))?,
            program(forbidden, SeccompAction::Errno(deny))?,
        ]))
    }

    /// Applies the filters to this process and all that it starts. There is no way back.
    pub(crate) fn apply(&self) -> io::Result<()> {
        self.0.iter().try_for_each(|program| apply_filter(program).map_err(io::Error::other))
    }
}

/// The families of sockets that a script may open.
fn families(network: Network, own_namespaces: bool) -> &'static [i32] {
    const LOCAL: &[i32] = &[libc::AF_UNIX];
    const INTERNET: &[i32] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    const TCP: &[i32] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
    match network {
        // In a network of its own there is nobody to talk to but itself, and whom we let in.
        Network::Deny | Network::Port(_) if own_namespaces => INTERNET,
        Network::Deny => LOCAL,
        Network::Port(_) => TCP,
        Network::Allow => INTERNET,
    }
}

/// Fits the sockets of the internet whose connections Landlock does not guard.
fn all_but_tcp() -> io::Result<Vec<SeccompRule>> {
    const KIND: [i32; 4] = [1, 2, 4, 8]; // the other bits are flags
    let condition = |argument: u8, operator: SeccompCmpOp, value: i32| {
        let value = u64::from(value.cast_unsigned());
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
            .map_err(io::Error::other)
    };
    let mut rules = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let of_family = || condition(0, SeccompCmpOp::Eq, family);
        for bit in KIND {
            // What is no stream differs from it in one bit at least.
            let other = !libc::SOCK_STREAM & bit;
            let in_this_bit = SeccompCmpOp::MaskedEq(u64::from(bit.cast_unsigned()));
            let of_kind = condition(1, in_this_bit, other)?;
            rules.push(SeccompRule::new(vec![of_family()?, of_kind]).map_err(io::Error::other)?);
        }
        // Streams of another protocol than the usual one.
        let other = [0, libc::IPPROTO_TCP].map(|it| condition(2, SeccompCmpOp::Ne, it));
        let other = other.into_iter().chain([of_family()]).collect::<io::Result<_>>()?;
        rules.push(SeccompRule::new(other).map_err(io::Error::other)?);
    }
    Ok(rules)
}

/// Calls that send and connect at once, which Landlock does not see on all kernels.
fn connecting_in_passing() -> io::Result<Rules> {
    let at_once = u64::from(libc::MSG_FASTOPEN.cast_unsigned());
    [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)]
        .into_iter()
        .map(|(call, flags)| Ok((call, vec![has(flags, at_once)?])))
        .collect()
}

/// Fits where an argument is none of `values`.
fn other_than(argument: u8, values: &[i32]) -> io::Result<SeccompRule> {
    let conditions = values.iter().map(|&value| {
        let value = u64::from(value.cast_unsigned());
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
    });
    let conditions = conditions.collect::<Result<_, _>>().map_err(io::Error::other)?;
    SeccompRule::new(conditions).map_err(io::Error::other)
}

/// Fits where an argument is `value`.
fn just(argument: u8, value: u32) -> io::Result<SeccompRule> {
    let value = u64::from(value);
    let condition =
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value);
    SeccompRule::new(vec![condition.map_err(io::Error::other)?]).map_err(io::Error::other)
}

/// Fits where an argument has this bit.
fn has(argument: u8, bit: u64) -> io::Result<SeccompRule> {
    let is_set = SeccompCmpOp::MaskedEq(bit);
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Qword, is_set, bit);
    SeccompRule::new(vec![condition.map_err(io::Error::other)?]).map_err(io::Error::other)
}

/// Fits a `clone` that makes any namespace.
fn clone_rules() -> io::Result<Vec<SeccompRule>> {
    let flags = (0..u64::BITS).map(|bit| 1 << bit).filter(|flag| NAMESPACES & flag != 0);
    flags.map(|flag| has(0, flag)).collect()
}

fn program(rules: Rules, action: SeccompAction) -> io::Result<BpfProgram> {
    let architecture: TargetArch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture);
    filter.and_then(BpfProgram::try_from).map_err(io::Error::other)
}

/// Some kernels for x86-64 have a second set of numbers for their calls, which a rule for the
/// first does not fit. To a script, all of them are numbers that do not exist.
fn native_numbers_only() -> BpfProgram {
    const SECOND_SET: u32 = 0x4000_0000;
    const NUMBER_OF_CALL: u32 = 0; // the first field of what a filter sees
    let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    let line = |code: u32, k: u32, jf: u8| sock_filter { code: code as u16, jt: 0, jf, k };
    vec![
        line(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, NUMBER_OF_CALL, 0),
        line(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, SECOND_SET, 1),
        line(libc::BPF_RET | libc::BPF_K, unknown, 0),
        line(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ]
}
