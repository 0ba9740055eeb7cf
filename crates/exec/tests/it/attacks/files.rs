//! Files: changing, reading and seeing what a script was not given.

use std::os::unix::fs::MetadataExt;

use fs_err as fs;
use mle_star_exec::Outcome;
use mle_star_exec::sandbox::Gap;

use super::attack::Unheld::{Depends, Succeeds};
use super::attack::{Attack, Unheld};
use super::stage::{CONTENT, DATA, SECRET, Stage};

pub(super) fn attacks() -> Vec<Attack> {
    let attack = |gap, came_through: fn(&Stage, &Outcome) -> bool| {
        move |name, script| Attack { name, gap, script, came_through, unheld: Succeeds }
    };
    let change = attack(Gap::WriteFiles, changed);
    let change_data = attack(Gap::WriteFiles, changed_data);
    let touch = attack(Gap::ChangeModes, touched);
    let read = attack(Gap::ReadFiles, told);
    let own = |gap, name, script, came_through, unheld: Unheld| Attack {
        name,
        gap,
        script,
        came_through,
        unheld,
    };
    vec![
        change("write", "open(OUT + '/file', 'w').write('mine')"),
        change("append", "open(OUT + '/file', 'a').write('mine')"),
        change("create", "open(OUT + '/new', 'w').write('mine')"),
        change("make a folder", "os.mkdir(OUT + '/new')"),
        change("make a link", "os.symlink('/', OUT + '/new')"),
        change("make a pipe", "os.mkfifo(OUT + '/new')"),
        change("remove", "os.remove(OUT + '/file')"),
        change("remove a folder", "os.rmdir(OUT + '/private')"),
        change("rename", "os.rename(OUT + '/file', OUT + '/new')"),
        change("rename out", "open('x', 'w').close(); os.rename('x', OUT + '/file')"),
        change("rename in", "os.rename(OUT + '/file', 'x')"),
        change(
            "swap",
            "
open('x', 'w').close()
call(316, -100, b'x', -100, (OUT + '/file').encode(), 2)",
        ),
        change("link in and write", "os.link(OUT + '/file', 'x'); open('x', 'w').write('mine')"),
        change("link out", "open('x', 'w').close(); os.link('x', OUT + '/new')"),
        change("up and out", "open('../outside/file', 'w').write('mine')"),
        change("through a link", "os.symlink(OUT, 'way'); open('way/file', 'w').write('mine')"),
        change(
            "through a relative link",
            "
os.symlink('../outside', 'way')
open('way/file', 'w').write('mine')",
        ),
        change("through the data", "open('input/../outside/file', 'w').write('mine')"),
        change(
            "through /proc/self/root",
            "
open('/proc/self/root' + OUT + '/file', 'w').write('mine')",
        ),
        change(
            "through /proc/self/cwd",
            "
open('/proc/self/cwd/../outside/file', 'w').write('mine')",
        ),
        change(
            "from another folder",
            "
os.chdir('/')
os.chdir(OUT)
open('file', 'w').write('mine')",
        ),
        change(
            "by a descriptor of the folder",
            "
folder = os.open(OUT, os.O_PATH)
os.close(os.open('file', os.O_WRONLY | os.O_TRUNC, dir_fd=folder))",
        ),
        change(
            "in a child",
            "
import subprocess
subprocess.run(['/bin/sh', '-c', 'echo mine > \"$0\"', OUT + '/file'])",
        ),
        own(Gap::TruncateFiles, "truncate", "os.truncate(OUT + '/file', 0)", changed, Succeeds),
        own(
            Gap::WriteFiles,
            "write among the records",
            "open(RECORDS + '/forged', 'w').close()",
            |stage, _| stage.root.join("jobs/1/forged").exists(),
            Succeeds,
        ),
        change_data("write to the data", "open('input/train.csv', 'w').write('mine')"),
        change_data("add to the data", "open('input/new.csv', 'w').write('mine')"),
        change_data("rename the data", "os.rename('input/train.csv', 'input/new.csv')"),
        change_data(
            "link the data and write",
            "
os.link('input/train.csv', 'x')
open('x', 'w').write('mine')",
        ),
        change_data("cut the data short", "os.truncate('input/train.csv', 0)"),
        touch("change the mode", "os.chmod(OUT + '/file', 0o777)"),
        touch(
            "change the mode by a descriptor",
            "
os.fchmod(os.open(OUT + '/file', os.O_RDONLY), 0o777)",
        ),
        touch("change the times", "os.utime(OUT + '/file', (1, 1))"),
        touch(
            "change the mode of the data",
            "
os.chmod('input/train.csv', 0o777)",
        ),
        touch(
            "change the mode by another number",
            "
file = (OUT + '/file').encode()
if call(0x40000000 | 90, file, 0o777) != 0: call(90, file, 0o777)",
        ),
        own(
            Gap::ChangeModes,
            "add an attribute",
            "
try: os.setxattr(DATA + '/train.csv', 'user.mine', b'1')
except OSError as error: print('not here' if error.errno == errno.EOPNOTSUPP else error)",
            |stage, _| has_attribute(stage),
            Succeeds,
        ),
        own(
            Gap::ChangeModes,
            "set a flag of the data",
            "
try: fcntl.ioctl(os.open('input/train.csv', os.O_RDONLY), 0x40086602, struct.pack('l', 0x80040))
except OSError as error: print('not here' if error.errno == errno.ENOTTY else error)",
            |stage, _| has_flag(stage),
            Succeeds,
        ),
        own(
            Gap::ChangeModes,
            "leave a program that runs as its owner",
            "open('tool', 'w').close(); os.chmod('tool', 0o4755)",
            |stage, _| stage.mode("work/tool") & 0o6000 != 0,
            Succeeds,
        ),
        read("read", "print(open(OUT + '/secret').read())"),
        read("read through a link", "os.symlink(OUT + '/secret', 'x'); print(open('x').read())"),
        read("read through a hard link", "os.link(OUT + '/secret', 'x'); print(open('x').read())"),
        read(
            "read by a map",
            "
import mmap
print(mmap.mmap(os.open(OUT + '/secret', os.O_RDONLY), 0, prot=mmap.PROT_READ).read())",
        ),
        read(
            "execute to read",
            "
import subprocess
subprocess.run(['/bin/cat', OUT + '/secret'])",
        ),
        own(
            Gap::ReadFiles,
            "list",
            "print(os.listdir(OUT))",
            |_, outcome| outcome.stdout.text.contains("secret"),
            Succeeds,
        ),
        own(
            Gap::ReadFiles,
            "read the records",
            "print(open(RECORDS + '/spec.json').read())",
            |_, outcome| outcome.stdout.text.contains("time_limit"),
            Succeeds,
        ),
        own(
            Gap::SeeFiles,
            "see",
            "print(os.stat(OUT + '/secret').st_size)",
            |_, outcome| outcome.stdout.text == format!("{}\n", SECRET.len()),
            Succeeds,
        ),
        own(
            Gap::ReadFiles,
            "read the memory of the kernel",
            "
for path in ['/proc/kcore', '/dev/mem', '/dev/kmsg', '/proc/kmsg']:
    try: print('came out', path, os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 16))
    except OSError as error: print(error)",
            came_out,
            Depends,
        ),
        own(
            Gap::ReadFiles,
            "read a disk",
            "
import stat
try: os.mknod('disk', stat.S_IFBLK | 0o600, os.stat(ROOT).st_dev)
except OSError as error: print(error)
for path in ['disk', '/dev/vda', '/dev/sda', '/dev/nvme0n1', '/dev/loop0']:
    try: print('came out', path, os.read(os.open(path, os.O_RDONLY), 16))
    except OSError as error: print(error)",
            came_out,
            Depends,
        ),
        own(
            Gap::WriteFiles,
            "set the kernel",
            "
value = open('/proc/sys/kernel/core_pattern').read()
for path in ['/proc/sys/kernel/core_pattern', '/proc/self/root/proc/sys/kernel/core_pattern']:
    open(path, 'w').write(value)
    print('came out')",
            came_out,
            Depends,
        ),
        own(
            Gap::WriteFiles,
            "write to /sys",
            "
path = '/sys/devices/system/cpu/cpu1/online'
print('not here' if not os.path.exists(path) else 'there')
open(path, 'r+').close()
print('came out')",
            came_out,
            Depends,
        ),
        own(
            Gap::WriteFiles,
            "make namespaces",
            "
for flags in [0x10000000, 0x20000, 0x10000000 | 0x20000]:
    if libc.unshare(flags) == 0: print('came out')
pid = call(56, 0x10000000 | 17, 0, 0, 0, 0)
if pid == 0: os._exit(0)
if pid > 0: print('came out')
flags = struct.pack('8Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0)
pid = call(435, flags, len(flags))
if pid == 0: os._exit(0)
if pid > 0: print('came out')",
            came_out,
            Depends,
        ),
        own(
            Gap::WriteFiles,
            "mount",
            "
data = os.fsencode(os.path.realpath('input'))
if libc.mount(b'none', b'final', b'tmpfs', 0, None) == 0:
    print('came out')
    libc.umount2(b'final', 2)
if libc.mount(None, data, None, 32 | 4096, None) == 0: print('came out')
if call(428, -100, b'/', 1) >= 0: print('came out')
if libc.chroot(b'.') == 0: print('came out')",
            came_out,
            Depends,
        ),
    ]
}

/// Whether anything outside is not as it was.
fn changed(stage: &Stage, _: &Outcome) -> bool {
    let entries = stage.root.join("outside").read_dir_utf8().unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().to_owned()).collect();
    names.sort();
    names != ["datagrams", "file", "private", "secret", "stream"]
        || stage.text("outside/file") != CONTENT
}

fn changed_data(stage: &Stage, _: &Outcome) -> bool {
    let count = fs::read_dir(stage.root.join("data")).unwrap().count();
    count != 1 || stage.text("data/train.csv") != DATA
}

fn touched(stage: &Stage, _: &Outcome) -> bool {
    let file = fs::metadata(stage.root.join("outside/file")).unwrap();
    file.mtime() == 1
        || stage.mode("outside/file") != 0o600
        || stage.mode("data/train.csv") != 0o600
}

fn has_attribute(stage: &Stage) -> bool {
    let mut names = [0_u8; 256];
    let file = stage.root.join("data/train.csv");
    let length = rustix::fs::listxattr(file.as_str(), &mut names).unwrap();
    names.get(..length).unwrap().windows(9).any(|it| it == b"user.mine")
}

fn has_flag(stage: &Stage) -> bool {
    let file = fs::File::open(stage.root.join("data/train.csv")).unwrap();
    rustix::fs::ioctl_getflags(&file).unwrap().contains(rustix::fs::IFlags::NODUMP)
}

/// Whether the secret got out.
fn told(_: &Stage, outcome: &Outcome) -> bool {
    outcome.stdout.text.contains(SECRET)
}

/// Whether the script says that it worked: where only it can know.
fn came_out(_: &Stage, outcome: &Outcome) -> bool {
    outcome.stdout.text.contains("came out")
}
