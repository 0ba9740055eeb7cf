//! Processes: reading, stopping and slowing down those of the same user.

use fs_err as fs;
use mle_star_exec::Outcome;
use mle_star_exec::sandbox::Gap;

use super::attack::Attack;
use super::attack::Unheld::{Depends, Harmful, Succeeds};
use super::stage::{SECRET, Stage};

pub(super) fn attacks() -> Vec<Attack> {
    let attack = |gap, name, script, came_through, unheld| Attack {
        name,
        gap,
        script,
        came_through,
        unheld,
    };
    let read = |name, script| attack(Gap::TouchProcesses, name, script, told, Succeeds);
    let disturb = |name, script| attack(Gap::TouchProcesses, name, script, disturbed, Succeeds);
    vec![
        disturb("kill", "os.kill(VICTIM, signal.SIGKILL)"),
        disturb("stop", "os.kill(VICTIM, signal.SIGSTOP)"),
        disturb(
            "kill by a descriptor",
            "
signal.pidfd_send_signal(os.pidfd_open(VICTIM), signal.SIGKILL)",
        ),
        disturb("kill a thread", "call(234, VICTIM, VICTIM, 9)"),
        disturb(
            "queue a signal",
            "
info = struct.pack('=iii', 9, 0, -1).ljust(128, b'\\0')
call(129, VICTIM, 9, info)",
        ),
        disturb(
            "signal by a pipe",
            "
reader, writer = os.pipe()
fcntl.fcntl(reader, fcntl.F_SETOWN, VICTIM)
fcntl.fcntl(reader, 10, signal.SIGKILL)
fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
os.write(writer, b'x'); time.sleep(0.2)",
        ),
        disturb(
            "trace",
            "
if libc.ptrace(16, VICTIM, None, None) == 0:
    os.waitpid(VICTIM, 0x40000000)
    libc.ptrace(7, VICTIM, None, signal.SIGKILL)",
        ),
        disturb(
            "limit",
            "
import resource
resource.prlimit(VICTIM, resource.RLIMIT_NOFILE, (7, 7))",
        ),
        disturb("slow down", "os.setpriority(os.PRIO_PROCESS, VICTIM, 19)"),
        disturb("let wait", "os.sched_setscheduler(VICTIM, os.SCHED_IDLE, os.sched_param(0))"),
        disturb(
            "let wait by attributes",
            "
idle = struct.pack('=IIQiIQQQ', 48, 5, 0, 0, 0, 0, 0, 0)
call(314, VICTIM, idle, 0)",
        ),
        disturb("let wait for the disk", "call(251, 1, VICTIM, 3 << 13)"),
        disturb("move to another core", "os.sched_setaffinity(VICTIM, {0})"),
        // Without a sandbox these two would reach every process of whoever runs the tests.
        attack(
            Gap::TouchProcesses,
            "slow down everybody",
            "
os.setpriority(os.PRIO_USER, 0, 1) # and with them VICTIM",
            disturbed,
            Harmful,
        ),
        attack(
            Gap::TouchProcesses,
            "signal everybody",
            "
try: os.kill(-1, signal.SIGCONT)
except OSError as error: print(error)
others = [int(it) for it in os.listdir('/proc') if it.isdigit() and int(it) not in (os.getpid(), 1)]
for pid in others:
    try: os.kill(pid, signal.SIGCONT); print('came out', pid)
    except OSError as error: print(error)",
            came_out,
            Harmful,
        ),
        read("read an environment", "print(open(f'/proc/{VICTIM}/environ').read())"),
        read(
            "read memory",
            "
memory = os.open(f'/proc/{VICTIM}/mem', os.O_RDONLY)
print(os.pread(memory, 64, ADDRESS))",
        ),
        read(
            "read memory by a call",
            "
class Part(ctypes.Structure): _fields_ = [('at', ctypes.c_void_p), ('length', ctypes.c_size_t)]
mine = ctypes.create_string_buffer(64)
here, there = Part(ctypes.addressof(mine), 64), Part(ADDRESS, 64)
call(310, VICTIM, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
print(mine.raw)",
        ),
        read("read an open file", "print(open(f'/proc/{VICTIM}/fd/{DESCRIPTOR}').read())"),
        read(
            "take an open file",
            "
taken = call(438, os.pidfd_open(VICTIM), DESCRIPTOR, 0)
print(os.pread(taken, 64, 0))",
        ),
        read("go through its root", "print(open(f'/proc/{VICTIM}/root{OUT}/secret').read())"),
        read(
            "go through its folder",
            "
print(open(f'/proc/{VICTIM}/cwd' + '/..' * 20 + f'{OUT}/secret').read())",
        ),
        attack(
            Gap::SeeProcesses,
            "see arguments",
            "
print(open(f'/proc/{VICTIM}/cmdline').read())",
            told,
            Succeeds,
        ),
        attack(
            Gap::TouchProcesses,
            "read what the first process has",
            "
for path in ['environ', 'maps', 'fd/1', 'root/etc/shadow']:
    try: print('came out', len(open(f'/proc/1/{path}', 'rb').read(10)))
    except OSError as error: print(error)
for number in range(3, 20):
    try: os.open(f'/proc/1/fd/{number}', os.O_WRONLY); print('came out')
    except OSError as error: pass",
            came_out,
            Depends,
        ),
        attack(
            Gap::TouchProcesses,
            "read what the parent has",
            "
for path in ['environ', 'maps', 'fd/3', 'root/etc/passwd']:
    try: print('came out', open(f'/proc/{os.getppid()}/{path}').read(10))
    except OSError as error: print(error)",
            came_out,
            Depends,
        ),
    ]
}

fn told(_: &Stage, outcome: &Outcome) -> bool {
    outcome.stdout.text.contains(SECRET)
}

fn came_out(_: &Stage, outcome: &Outcome) -> bool {
    outcome.stdout.text.contains("came out")
}

/// Whether the victim does not live as it did.
fn disturbed(stage: &Stage, _: &Outcome) -> bool {
    let victim = stage.victim();
    let limits = fs::read_to_string(format!("/proc/{}/limits", victim.pid())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let cores = |pid: &str| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find(|line| line.starts_with("Cpus_allowed:")).unwrap().to_owned()
    };
    !victim.sleeps()
        || !victim.is_as_fast()
        || files.contains(" 7 ")
        || cores("self") != cores(&victim.pid().to_string())
        || victim.waits_for_the_disk()
}
