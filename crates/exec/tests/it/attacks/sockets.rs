//! Sockets: reaching whoever listens on this machine, and through them everybody else.

use mle_star_exec::Outcome;
use mle_star_exec::sandbox::Gap;

use super::attack::Attack;
use super::attack::Unheld::{Depends, Succeeds};
use super::stage::Stage;

pub(super) fn attacks() -> Vec<Attack> {
    let attack = |name, gap, script, came_through, unheld| Attack {
        name,
        gap,
        script,
        came_through,
        unheld,
    };
    let called = |name, script| attack(name, Gap::UseNetwork, script, tcp, Succeeds);
    vec![
        called("tcp", "socket.socket().connect(('127.0.0.1', PORT))"),
        called(
            "tcp under another number",
            "
names = struct.pack('=HHI8x', 2, socket.htons(PORT), socket.htonl(0x7f000001))
descriptor = call(0x40000000 | 41, 2, 1, 0)
if descriptor < 0: descriptor = call(41, 2, 1, 0)
call(42, descriptor, names, 16)",
        ),
        called(
            "tcp by several paths",
            "
for protocol in (262, 0):
    try: socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol).connect(('127.0.0.1', PORT))
    except OSError as error: print(error)",
        ),
        called(
            "tcp in a grandchild",
            "
import subprocess
script = f'import socket; socket.socket().connect((\"127.0.0.1\", {PORT}))'
subprocess.run([sys.executable, '-c', script], env={}, start_new_session=True)",
        ),
        attack(
            "udp",
            Gap::UseNetwork,
            "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP_PORT))",
            |stage, _| stage.udp.recv(&mut [0]).is_ok(),
            Succeeds,
        ),
        attack(
            "packets",
            Gap::UseNetwork,
            "
for family, kind in [(2, 3), (17, 3)]:
    try: socket.socket(family, kind, 1 if family == 2 else 0x300); print('came out')
    except OSError as error: print(error)",
            came_out,
            Depends,
        ),
        attack(
            "vsock",
            Gap::UseNetwork,
            "
try: socket.socket(40, socket.SOCK_STREAM); print('came out')
except OSError as error: print('not here' if error.errno == errno.EAFNOSUPPORT else error)",
            came_out,
            Succeeds,
        ),
        attack(
            "other families",
            Gap::UseNetwork,
            "
for family in range(46):
    if family in (1, 2, 10, 16): continue
    for kind in (1, 2, 3, 5):
        try: socket.socket(family, kind); print('came out', family)
        except OSError: pass",
            came_out,
            Depends,
        ),
        attack(
            "rings",
            Gap::UseNetwork,
            "
if call(425, 4, ctypes.create_string_buffer(120)) >= 0: print('came out')",
            came_out,
            Depends,
        ),
        attack(
            "a socket in a folder",
            Gap::FileSockets,
            "socket.socket(socket.AF_UNIX).connect(OUT + '/stream')",
            |stage, _| stage.stream.accept().is_ok(),
            Succeeds,
        ),
        attack(
            "a socket in a folder, without a connection",
            Gap::FileSockets,
            "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', OUT + '/datagrams')",
            |stage, _| stage.datagrams.recv(&mut [0]).is_ok(),
            Succeeds,
        ),
        attack(
            "a socket with a name",
            Gap::NamedSockets,
            "socket.socket(socket.AF_UNIX).connect(b'\\0' + NAME.encode())",
            |stage, _| stage.named.accept().is_ok(),
            Succeeds,
        ),
    ]
}

fn tcp(stage: &Stage, _: &Outcome) -> bool {
    stage.tcp.accept().is_ok()
}

fn came_out(_: &Stage, outcome: &Outcome) -> bool {
    outcome.stdout.text.contains("came out")
}
