//! What is around a script that is none of its business: files, listeners, and a process.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::process::{Child, Command, Stdio};

use camino::Utf8PathBuf;
use fs_err as fs;
use mle_star_exec::Job;

use crate::bench::{MINUTE, python};

/// What must not come out.
pub(super) const SECRET: &str = "the-secret-of-the-stage";
/// What the file that must not change holds.
pub(super) const CONTENT: &str = "as it was\n";
/// What the data holds.
pub(super) const DATA: &str = "id\n1\n";

/// What every attack can use.
const NAMES: &str = "
import ctypes, errno, fcntl, os, signal, struct, sys, time
import _socket as socket
OUT, DATA, RECORDS = ROOT + '/outside', ROOT + '/data', ROOT + '/jobs/1'
SHARED = '/dev/shm/' + os.path.basename(ROOT)
OF_OTHERS = '/dev/shm/mle-star-of-others-' + os.path.basename(ROOT)
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(*arguments):
    if os.uname().machine != 'x86_64': raise SystemExit(print('not here: other numbers'))
    whole = (ctypes.c_long(it) if isinstance(it, int) else it for it in arguments)
    return libc.syscall(*whole)
";

/// A process with a secret in its memory, its environment and its arguments. It lets anybody of
/// the same user trace it, as kernels without such a rule do.
const VICTIM: &str = "
import ctypes, sys, time
ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)
secret = ctypes.create_string_buffer(('-'.join(['the', 'secret', 'of', 'the', 'stage'])).encode())
held = open(sys.argv[1])
print(ctypes.addressof(secret), held.fileno(), flush=True)
time.sleep(600)
";

pub(super) struct Stage {
    _dir: tempfile::TempDir,
    pub(super) root: Utf8PathBuf,
    victim: Option<Victim>,
    pub(super) tcp: TcpListener,
    pub(super) udp: UdpSocket,
    pub(super) stream: UnixListener,
    pub(super) datagrams: UnixDatagram,
    pub(super) named: UnixListener,
    name: String,
}

/// A process outside.
pub(super) struct Victim {
    child: Child,
    /// Where its secret is in its memory, and by which number it holds the secret file.
    places: String,
    priority: String,
}

impl Stage {
    /// What `attack` needs: the process only if it speaks of it, because starting one takes time.
    pub(super) async fn for_script(attack: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        for folder in ["data", "outside", "outside/private", "jobs"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        fs::write(root.join("data/train.csv"), DATA).unwrap();
        fs::write(root.join("outside/file"), CONTENT).unwrap();
        fs::write(root.join("outside/secret"), SECRET).unwrap();
        for file in ["data/train.csv", "outside/file", "outside/secret"] {
            let private = PermissionsExt::from_mode(0o600);
            fs::set_permissions(root.join(file), private).unwrap();
        }
        let victim = match attack.contains("VICTIM") {
            true => Some(Victim::new(&root.join("outside/secret"), python().await)),
            false => None,
        };
        let name = format!("mle-star-stage-{}-{root}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
        let stage = Self {
            victim,
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            stream: UnixListener::bind(root.join("outside/stream")).unwrap(),
            datagrams: UnixDatagram::bind(root.join("outside/datagrams")).unwrap(),
            named: UnixListener::bind_addr(&abstract_name).unwrap(),
            name,
            root,
            _dir: dir,
        };
        fs::write(stage.others(), CONTENT).unwrap();
        stage.tcp.set_nonblocking(true).unwrap();
        stage.udp.set_nonblocking(true).unwrap();
        stage.stream.set_nonblocking(true).unwrap();
        stage.datagrams.set_nonblocking(true).unwrap();
        stage.named.set_nonblocking(true).unwrap();
        stage
    }

    /// A job that knows what there is outside.
    pub(super) fn job(&self, script: &str) -> Job {
        Job {
            script: format!("{}\n{script}", self.names()),
            filename: "solution.py".to_owned(),
            workspace: self.root.join("work"),
            data_dir: self.root.join("data"),
            time_limit: MINUTE,
            records: self.root.join("jobs/1"),
        }
    }

    /// What a script would have to find out: it is made easy.
    fn names(&self) -> String {
        let port = self.tcp.local_addr().unwrap().port();
        let udp_port = self.udp.local_addr().unwrap().port();
        let (root, name, key) = (self.root.as_str(), &self.name, self.key());
        let victim = self.victim.as_ref().map(Victim::names).unwrap_or_default();
        format!(
            "ROOT, NAME, KEY, PORT, UDP_PORT = {root:?}, {name:?}, {key}, {port}, {udp_port}\n\
             {victim}\n{NAMES}"
        )
    }

    pub(super) fn victim(&self) -> &Victim {
        self.victim.as_ref().unwrap()
    }

    /// The file in the machine's shared memory that belongs to this stage.
    pub(super) fn shared(&self) -> Utf8PathBuf {
        format!("/dev/shm/{}", self.root.file_name().unwrap()).into()
    }

    /// What somebody else keeps in shared memory.
    pub(super) fn of_others(&self) -> String {
        fs::read_to_string(self.others()).unwrap()
    }

    fn others(&self) -> Utf8PathBuf {
        format!("/dev/shm/mle-star-of-others-{}", self.root.file_name().unwrap()).into()
    }

    /// The number of a piece of shared memory without a file.
    pub(super) fn key(&self) -> u32 {
        0x4d00_0000 | u32::from(self.tcp.local_addr().unwrap().port())
    }

    /// The text of a file outside, nothing if it is gone.
    pub(super) fn text(&self, file: &str) -> String {
        fs::read_to_string(self.root.join(file)).unwrap_or_default()
    }

    pub(super) fn mode(&self, file: &str) -> u32 {
        fs::symlink_metadata(self.root.join(file)).unwrap().permissions().mode() & 0o7777
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        fs::remove_file(self.shared()).ok();
        fs::remove_file(self.others()).ok();
    }
}

impl Victim {
    fn new(secret: &Utf8PathBuf, python: Utf8PathBuf) -> Self {
        let mut child = Command::new(python)
            .args(["-I", "-S", "-c", VICTIM, secret.as_str(), "--token=the-secret-of-the-stage"])
            .env_clear()
            .env("TOKEN", SECRET)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut places = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut places).unwrap();
        let places = places.trim().to_owned();
        let mut victim = Self { child, places, priority: String::new() };
        victim.priority = victim.field(16);
        victim
    }

    fn names(&self) -> String {
        let pid = self.pid();
        let (address, descriptor) = self.places.split_once(' ').unwrap();
        format!("VICTIM, ADDRESS, DESCRIPTOR = {pid}, {address}, {descriptor}")
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the kernel says of it, counted from its state on.
    fn field(&self, number: usize) -> String {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let (_, rest) = stat.rsplit_once(") ").unwrap();
        rest.split_ascii_whitespace().nth(number).unwrap().to_owned()
    }

    /// Whether it gets as much of a core as in the beginning.
    pub(super) fn is_as_fast(&self) -> bool {
        self.field(16) == self.priority && self.field(38) == "0"
    }

    /// Whether it is served by the disk only when nobody else wants to be.
    pub(super) fn waits_for_the_disk(&self) -> bool {
        let asked = Command::new("ionice").args(["-p", &self.pid().to_string()]).output();
        asked.is_ok_and(|answer| answer.stdout.starts_with(b"idle"))
    }

    /// Whether it does what it did from the beginning: sleep.
    pub(super) fn sleeps(&self) -> bool {
        self.field(0) == "S"
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
