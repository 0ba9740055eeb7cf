//! Programs that work for long and are talked to, held as scripts are.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use mle_star_exec::sandbox::{Gap, Network, Tier, Wish};
use mle_star_exec::{Hold, Local, Setup};

use crate::bench::{eventually, python, setup};

const TIERS: [Tier; 4] = [Tier::Strong, Tier::Fallback, Tier::Limits, Tier::Off];

/// A place to work in, and what holds a program in it.
struct Place {
    folder: tempfile::TempDir,
    hold: Hold,
}

/// A shell at work.
struct Shell {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

async fn local(tier: Tier) -> Local {
    setup(Wish::Exactly(tier)).await.try_out().await.unwrap()
}

impl Place {
    fn new(local: &Local) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for name in ["work", "tmp", "elsewhere"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        fs::write(root.join("elsewhere/secret"), "precious\n").unwrap();
        let hold =
            local.hold().keeping_temporary_files_in(root.join("tmp")).writing(root.join("work"));
        Self { folder, hold }
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().join(name)
    }

    fn shell(&self) -> Shell {
        self.hold.write(&self.path("hold.json")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_mle-star-shim"))
            .args(["--hold", self.path("hold.json").as_str(), "/bin/sh"])
            .current_dir(self.path("work"))
            .env("GIVEN", "as it is")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Shell { child, input, output }
    }
}

impl Shell {
    /// Says a line, and gives the line that comes back.
    fn ask(&mut self, line: &str) -> String {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    /// Lets it see the end of its input, and waits for its own.
    fn end(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().unwrap().code()
    }
}

/// How many processes sleep for so long.
fn sleepers(time: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let sleeps = |entry: &std::fs::DirEntry| {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        words == format!("sleep\0{time}\0").into_bytes()
    };
    all.filter(sleeps).count()
}

#[tokio::test]
async fn a_program_is_talked_to_and_its_end_is_told() {
    for tier in TIERS {
        let place = Place::new(&local(tier).await);
        let mut shell = place.shell();
        assert_eq!(shell.ask("echo \"given $GIVEN\""), "given as it is");
        assert_eq!(shell.ask("echo kept > file; cat file"), "kept");
        writeln!(shell.input.as_mut().unwrap(), "exit 7").unwrap();
        assert_eq!(shell.end(), Some(7), "{tier}");
        assert_eq!(fs::read_to_string(place.path("work/file")).unwrap(), "kept\n");
        assert_eq!(place.shell().end(), Some(0), "{tier}");
    }
}

#[tokio::test]
async fn what_was_not_given_is_neither_read_nor_written() {
    for tier in TIERS {
        let local = local(tier).await;
        let place = Place::new(&local);
        let (secret, new) = (place.path("elsewhere/secret"), place.path("elsewhere/new"));
        let mut shell = place.shell();
        let read = shell.ask(&format!("cat {secret} 2>/dev/null || echo none"));
        let is_open = |gap| place.hold.gaps().contains(&gap);
        assert_eq!(read.contains("precious"), is_open(Gap::ReadFiles), "{tier}");
        shell.ask(&format!("(echo > {new}) 2>/dev/null; echo tried"));
        assert_eq!(new.exists(), is_open(Gap::WriteFiles), "{tier}");
        drop(shell);
    }
}

#[tokio::test]
async fn one_port_can_be_reached_and_no_other() {
    for tier in [Tier::Strong, Tier::Fallback, Tier::Off] {
        let [open, closed] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [port, other] = [&open, &closed].map(|it| it.local_addr().unwrap().port());
        let local = local(tier).await;
        let mut place = Place::new(&local);
        place.hold = place.hold.clone().reaching(Network::Port(port));
        let greet = move || {
            let (mut stream, _) = open.accept().unwrap();
            let mut name = [0; 4];
            stream.read_exact(&mut name).unwrap();
            stream.write_all(&[b"hello ".as_slice(), &name].concat()).unwrap();
        };
        let greeter = std::thread::spawn(greet);
        let program = python().await;
        let python = |port: u16| {
            format!(
                "{program} -c \"import socket; s = socket.create_connection(('127.0.0.1', {port}), 5); \
                 s.sendall(b'Anna'); print(s.makefile().read())\" 2>/dev/null \
                 || echo nobody"
            )
        };
        let mut shell = place.shell();
        assert_eq!(shell.ask(&python(port)), "hello Anna", "{tier}");
        greeter.join().unwrap();
        let is_open = place.hold.gaps().contains(&Gap::UseNetwork);
        closed.set_nonblocking(true).unwrap();
        shell.ask(&format!(
            "{program} -c \"import socket; socket.create_connection(('127.0.0.1', {other}), 5)\" \
             2>/dev/null; echo tried"
        ));
        assert_eq!(closed.accept().is_ok(), is_open, "{tier}");
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let to = datagrams.local_addr().unwrap().port();
        shell.ask(&format!(
            "{program} -c \"import socket; socket.socket(2, 2).sendto(b'x', ('127.0.0.1', {to}))\" \
             2>/dev/null; echo tried"
        ));
        assert_eq!(datagrams.recv(&mut [0; 8]).is_ok(), is_open, "{tier}");
    }
}

/// Fast open connects without a call to connect.
#[tokio::test]
async fn nothing_connects_in_passing() {
    for tier in [Tier::Strong, Tier::Fallback, Tier::Off] {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap();
        closed.set_nonblocking(true).unwrap();
        let port = closed.local_addr().unwrap().port();
        let mut place = Place::new(&local(tier).await);
        place.hold = place.hold.clone().reaching(Network::Port(1));
        let mut shell = place.shell();
        let said = shell.ask(&format!(
            "{} -c \"import socket; s = socket.socket(); \
             s.sendto(b'x', 0x20000000, ('127.0.0.1', {port}))\" 2>/dev/null \
             && echo sent || echo denied",
            python().await
        ));
        let expected = if tier == Tier::Off { ("sent", true) } else { ("denied", false) };
        assert_eq!((said.as_str(), closed.accept().is_ok()), expected, "{tier}");
    }
}

#[tokio::test]
async fn nothing_is_left_when_it_is_told_to_end_or_nobody_can_talk_to_it() {
    for (number, tier) in TIERS.into_iter().enumerate() {
        let place = Place::new(&local(tier).await);
        for (way, wait) in [("told", true), ("left", false)] {
            let time = format!("{}.{number}{}", 200_000 + std::process::id(), u8::from(wait));
            let mut shell = place.shell();
            // One in the background, one that the shell waits for.
            shell.ask(&format!("(setsid sleep {time} &); echo ready"));
            writeln!(shell.input.as_mut().unwrap(), "sleep {time}").unwrap();
            eventually("they sleep", || sleepers(&time) == 2).await;
            match wait {
                true => {
                    let pid = rustix::process::Pid::from_raw(shell.child.id().cast_signed());
                    rustix::process::kill_process(pid.unwrap(), rustix::process::Signal::TERM)
                        .unwrap();
                }
                false => shell.input = None,
            }
            shell.child.wait().unwrap();
            assert_eq!(sleepers(&time), 0, "{tier}: {way}");
        }
    }
}

#[tokio::test]
async fn what_takes_too_much_is_killed_and_the_program_goes_on() {
    let mut setup: Setup = setup(Wish::Best).await;
    setup.limits.memory_bytes = 300_000_000;
    let place = Place::new(&setup.try_out().await.unwrap());
    let mut shell = place.shell();
    let greedy = "-c \"import time; x = b'x' * 600_000_000; time.sleep(60)\"";
    let said = shell.ask(&format!("{} {greedy}; echo \"ended with $?\"", python().await));
    assert_eq!(said, "ended with 137");
    assert_eq!(shell.ask("echo still here"), "still here");
}

/// One file after the other, none of them large, by something that the shell waits for.
#[tokio::test]
async fn files_are_limited_together_and_the_program_goes_on() {
    for tier in TIERS {
        let mut setup: Setup = setup(Wish::Exactly(tier)).await;
        setup.limits.workspace_bytes = 20_000_000;
        let place = Place::new(&setup.try_out().await.unwrap());
        let mut shell = place.shell();
        let writer = "n=0; while [ $n -lt 2000 ]; do n=$((n+1)); \
                      head -c 1000000 /dev/zero > $DIR/$n; sleep 0.02; done";
        for folder in ["work", "tmp"] {
            let writer = writer.replace("$DIR", place.path(folder).as_str());
            let said = shell.ask(&format!("sh -c '{writer}'; echo \"ended with $?\""));
            assert_eq!(said, "ended with 137", "{tier}");
            // What is left can be seen, by the program itself, and taken away.
            let left = format!("set -- {0}/*; echo $#; rm {0}/*", place.path(folder));
            let count: usize = shell.ask(&left).parse().unwrap();
            assert!((10..1000).contains(&count), "{tier}: {count}");
        }
        assert_eq!(shell.ask("echo still here"), "still here");
    }
}

/// Landlock guards the connections of TCP and no others.
#[tokio::test]
async fn of_the_sockets_of_the_internet_only_streams_can_be_opened() {
    let mut place = Place::new(&local(Tier::Fallback).await);
    place.hold = place.hold.clone().reaching(Network::Port(1));
    let script = "import errno, socket\n\
         for family in (socket.AF_INET, socket.AF_INET6):\n    \
             for kind in range(16):\n        \
                 for protocol in (0, 6, 17, 132):\n            \
                     try: socket.socket(family, kind | socket.SOCK_CLOEXEC, protocol)\n            \
                     except PermissionError: continue\n            \
                     except OSError as e: said = errno.errorcode[e.errno]\n            \
                     else: said = 'opened'\n            \
                     print(kind, protocol, said, end='; ')\n\
         print()";
    fs::write(place.path("work/sockets.py"), script).unwrap();
    let said = place.shell().ask(&format!("{} sockets.py", python().await));
    assert_eq!(said, "1 0 opened; 1 6 opened; 1 0 opened; 1 6 opened;");
}

#[test]
fn what_cannot_be_started_is_said() {
    let output = Command::new(env!("CARGO_BIN_EXE_mle-star-shim"))
        .args(["--hold", "/no/such/file", "/bin/true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(127));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("/no/such/file"), "{said}");
}
