//! A pseudo-terminal: a program runs in it as in a window, and the screen can be looked at.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Makes its standard error its controlling terminal, so that keys and resizes reach it as signals.
const TAKE_TERMINAL: &str = "import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])";

/// A program in a window.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    seen: Arc<Mutex<Seen>>,
}

/// What came to the terminal: as it came, and as it looks.
struct Seen {
    bytes: Vec<u8>,
    parser: vt100::Parser,
}

const ROWS: u16 = 40;

impl Terminal {
    /// Runs `command` in a window with so many columns.
    pub(crate) fn start(command: &assert_cmd::Command, columns: u16) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let window = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let keyboard = File::from(master);
        tcsetwinsize(&keyboard, size(columns)).unwrap();

        let mut started = Command::new("python3");
        started.arg("-c").arg(TAKE_TERMINAL).arg(command.get_program()).args(command.get_args());
        started.current_dir(command.get_current_dir().unwrap());
        started.env("TERM", "xterm").env_remove("NO_COLOR");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => started.env(name, value),
                None => started.env_remove(name),
            };
        }
        let copy = || Stdio::from(window.try_clone().unwrap());
        let child = started.stdin(copy()).stdout(copy()).stderr(copy()).spawn().unwrap();

        let parser = vt100::Parser::new(rows(), number(columns), 1000);
        let seen = Arc::new(Mutex::new(Seen { bytes: Vec::new(), parser }));
        let (mut screen, writer) = (keyboard.try_clone().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // It fails when nobody has the window open any more.
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                let new = buffer.get(..count).unwrap();
                let mut seen = writer.lock().unwrap();
                seen.bytes.extend_from_slice(new);
                seen.parser.process(new);
            }
        });
        Self { child, keyboard, seen }
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.seen.lock().unwrap().parser.screen().contents()
    }

    /// The lines of the screen that the terminal had to wrap, from the first with `mark` in it on.
    pub(crate) fn wrapped_from(&self, mark: char) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let screen = seen.parser.screen();
        let lines = screen.rows(0, screen.size().1.get()).enumerate();
        let lines = lines.skip_while(|(_, line)| !line.contains(mark));
        let wrapped = lines.filter(|(row, _)| screen.row_wrapped(u16::try_from(*row).unwrap()));
        wrapped.map(|(_, line)| line).collect()
    }

    /// Everything that came, as it came.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().bytes).into_owned()
    }

    /// Waits until the screen is as wanted, and gives it.
    pub(crate) fn wait_for(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "not seen: {what}\n{screen}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&self, columns: u16) {
        self.seen.lock().unwrap().parser.set_size(rows(), number(columns));
        tcsetwinsize(&self.keyboard, size(columns)).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The program's process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How the program is doing, as the system names it: `S` for asleep, `T` for suspended.
    pub(crate) fn state(&self) -> String {
        let path = format!("/proc/{}/stat", self.id());
        let stat = fs_err::read_to_string(path).unwrap();
        stat.rsplit(") ").next().unwrap().chars().take(1).collect()
    }

    /// Waits for the program's end, and gives its exit code and the last screen.
    pub(crate) fn end(&mut self) -> (Option<i32>, String) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < Duration::from_secs(90), "no end:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(10));
        };
        // What it wrote last may still be on its way.
        std::thread::sleep(Duration::from_millis(200));
        assert!(!self.seen.lock().unwrap().parser.screen().hide_cursor(), "the cursor is hidden");
        (status.code(), self.screen())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn size(columns: u16) -> Winsize {
    Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

fn rows() -> NonZeroU16 {
    number(ROWS)
}

fn number(columns: u16) -> NonZeroU16 {
    NonZeroU16::new(columns).unwrap()
}
