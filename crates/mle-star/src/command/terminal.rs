//! The terminal: lines that stay, and below them a few that are drawn again and again.
//!
//! The cursor rests at the beginning of the live part, on its empty first line, and is never hidden.
//! So the live part is taken away by clearing from there to the end of the screen, whatever became
//! of the size of the window, and a terminal needs no mending even after `kill -9`.
//!
//! A terminal may be held (ctrl-S). Nothing waits for it while a run goes on: lines are kept until
//! it takes them, and the live part is left out.
//!
//! There is one terminal for a process, and anything may want to say something, so its state is the
//! process's: this is the only place with such state.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anstream::ColorChoice;
use mle_star_view::{Colour, Window};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal as Number, getpid, kill_process};
use rustix::termios::tcgetwinsize;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// How soon a change is drawn after the last drawing, and how often time is seen to pass.
const SOON: Duration = Duration::from_millis(100);
const A_WHILE: Duration = Duration::from_secs(1);

static SCREEN: Mutex<Screen> =
    Mutex::new(Screen { live: None, waiting: String::new(), written: None });

/// Says a line on standard error, above the live part if there is one.
pub(crate) fn say(line: &str) {
    let mut screen = screen();
    if screen.live.is_none() {
        writeln!(anstream::stderr(), "{line}").ok(); // standard error may be closed
        return;
    }
    screen.waiting.push_str(line);
    screen.waiting.push('\n');
    // Of many lines at once each would bring the live part with it.
    if screen.written.is_none_or(|it| it.elapsed() >= SOON) {
        screen.put_lines();
    }
}

fn screen() -> MutexGuard<'static, Screen> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is on the terminal, and what is to come.
struct Screen {
    /// The lines of the live part, where there is one.
    live: Option<Vec<String>>,
    /// Lines that the terminal has not taken yet.
    waiting: String,
    /// When something was last written.
    written: Option<Instant>,
}

impl Screen {
    /// Puts the waiting lines where they stay, with the live part as it was below them.
    fn put_lines(&mut self) {
        if let Some(live) = &self.live
            && takes_text()
        {
            write(&format!("\r\u{1b}[J{}{}", self.waiting, drawn(live)));
            self.waiting.clear();
            self.written = Some(Instant::now());
        }
    }

    /// Makes `lines` the live part.
    fn draw(&mut self, lines: Vec<String>) {
        let Some(live) = &mut self.live else { return };
        if !takes_text() {
            return;
        }
        if self.waiting.is_empty() && lines == *live {
            return;
        }
        *live = lines;
        if self.waiting.is_empty() {
            // Over the old lines, which flickers less than clearing them first.
            let lines: Vec<String> = live.iter().map(|line| format!("{line}\u{1b}[K")).collect();
            write(&format!("\r{}\u{1b}[J{}", lines.join("\n"), back(&lines)));
            self.written = Some(Instant::now());
        } else {
            self.put_lines();
        }
    }

    /// Takes the live part away, and says what is still to be said.
    fn clear(&mut self) {
        if let Some(live) = &mut self.live
            && !(live.is_empty() && self.waiting.is_empty())
        {
            live.clear();
            write(&format!("\r\u{1b}[J{}", self.waiting));
            self.waiting.clear();
        }
    }
}

/// Lines, and the way back to the first.
fn drawn(lines: &[String]) -> String {
    format!("{}{}", lines.join("\n"), back(lines))
}

/// From the end of `lines` to their beginning.
fn back(lines: &[String]) -> String {
    match lines.len() {
        0 | 1 => "\r".to_owned(),
        count => format!("\r\u{1b}[{}A", count - 1),
    }
}

/// Not through `anstream`, which would take the movements of the cursor for colours.
fn write(text: &str) {
    std::io::stderr().lock().write_all(text.as_bytes()).ok(); // the terminal may be gone
}

/// Whether the terminal would take something now.
fn takes_text() -> bool {
    let stderr = std::io::stderr();
    let mut asked = [PollFd::new(&stderr, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// The live part, for as long as it is there.
#[derive(Debug)]
pub(crate) struct Live {
    colour: Colour,
    drawn: Instant,
    /// How long after the last drawing there is something to draw.
    pace: Duration,
    resized: Signal,
    suspended: Signal,
}

impl Live {
    /// A live part, if somebody watches at a terminal that can show one.
    pub(crate) fn begin() -> std::io::Result<Option<Self>> {
        let stderr = std::io::stderr();
        let is_capable = std::env::var_os("TERM").is_some_and(|it| !it.is_empty() && it != "dumb");
        if !is_capable || !stderr.is_terminal() {
            return Ok(None);
        }
        let colour = match anstream::AutoStream::choice(&stderr) {
            ColorChoice::Never => Colour::Never,
            ColorChoice::Auto | ColorChoice::AlwaysAnsi | ColorChoice::Always => Colour::Always,
        };
        let live = Self {
            colour,
            drawn: Instant::now(),
            pace: A_WHILE,
            resized: signal(SignalKind::window_change())?,
            suspended: signal(SignalKind::from_raw(Number::TSTP.as_raw()))?,
        };
        screen().live = Some(Vec::new());
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // Not waiting for it: we may be what panicked while drawing.
            if let Ok(mut screen) = SCREEN.try_lock() {
                screen.clear();
            }
            tell(panic);
        }));
        Ok(Some(live))
    }

    /// What there is to draw on.
    pub(crate) fn window(&self) -> Window {
        let size = tcgetwinsize(std::io::stderr()).ok();
        let size = size.filter(|it| it.ws_col > 0 && it.ws_row > 0);
        let (columns, rows) = size.map_or((80, 24), |it| (it.ws_col, it.ws_row));
        Window { columns: columns.into(), rows: rows.into(), colour: self.colour }
    }

    /// Something changed that is worth drawing.
    pub(crate) fn changed(&mut self) {
        self.pace = SOON;
    }

    /// Ends when it is time to draw.
    pub(crate) async fn due(&mut self) {
        let pace = if screen().waiting.is_empty() { self.pace } else { SOON };
        tokio::select! {
            () = tokio::time::sleep_until(self.drawn + pace) => {}
            // The terminal may have moved what was there.
            _ = self.resized.recv() => screen().clear(),
            _ = self.suspended.recv() => {
                screen().clear();
                // What the system would have done, had we not asked to be told before.
                kill_process(getpid(), Number::STOP).ok();
            }
        }
    }

    /// Draws the live part.
    pub(crate) fn draw(&mut self, lines: Vec<String>) {
        screen().draw(lines);
        self.drawn = Instant::now();
        self.pace = A_WHILE;
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let mut screen = screen();
        screen.clear();
        screen.live = None;
    }
}
