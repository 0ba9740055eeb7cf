//! What it costs to be looked at: `cargo bench -p mle-star --bench seeing`.
//!
//! First a run of 5,000 records and more, made by the search with agents and scripts that cost
//! nothing but write as much as real ones: how long its page takes to load from a server that has
//! just been started, and what a server takes while nothing happens and while records come. Then a
//! real run, the demo with small settings, in a real terminal with a page attached: which part of
//! the time the orchestrator computes. That takes a few minutes, and makes the Python environment
//! if there is none. After `--`, the words `loading` and `running` choose one of the two.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints or fails")]

#[path = "../tests/it/browser.rs"]
#[expect(dead_code, reason = "tests need more of it")]
mod browser;
#[path = "../tests/it/pty.rs"]
#[expect(dead_code, reason = "tests need more of it")]
mod pty;
#[expect(dead_code, reason = "the other benchmark needs more of it")]
mod world;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use mle_star_search::event::Record;

use browser::Browser;
use pty::Terminal;
use world::{World, cpu_seconds, millis, row};

const BINARY: &str = env!("CARGO_BIN_EXE_mle-star");
/// How often a load is measured, each time with another server.
const LOADS: usize = 5;
/// For how long a server is watched that has nothing to tell.
const IDLE: Duration = Duration::from_secs(20);

/// How many records come one by one.
const NEWS: usize = 40;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    // `cargo test --benches` only wants to know that it starts.
    if words.iter().any(|it| it == "--test") {
        return;
    }
    let is_wanted = |word: &str| words.is_empty() || words.iter().any(|it| it == word);
    println!("| what | figure |\n| --- | --- |");
    if is_wanted("loading") {
        loading();
    }
    if is_wanted("running") {
        running();
    }
}

/// The page of a long run.
fn loading() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = World::new("T=11 K=9 L=4 R=9").with_padding(150);
    world.run(&runtime);
    let dir = world.dir();
    let records = mle_star_journal::read::<Record>(&dir.journal()).unwrap().len();
    let size = fs_err::metadata(dir.journal()).unwrap().len();
    let about = format!("{records} records, {:.1} MB of journal", size as f64 / 1e6);

    let mut times = Vec::new();
    let (mut bytes, mut cpu) = (0, 0.0);
    for _ in 0..LOADS {
        let page = Page::of(dir.root());
        // The list of runs comes first, as in a browser; it reads the whole journal.
        let began = Instant::now();
        bytes = page.live().message();
        times.push(began.elapsed());
        cpu = cpu_seconds(page.child.id()).unwrap();
    }
    times.sort();
    let (median, most) = (times.get(LOADS / 2).unwrap(), times.last().unwrap());
    row(
        &format!("data of the page, server just started ({about})"),
        &format!(
            "{:.0} ms, {:.0} ms at most of {LOADS}, of which the server computes {:.0} ms; {} kB",
            millis(*median),
            millis(*most),
            1000.0 * cpu,
            bytes / 1000
        ),
    );
    if let Some(mut browser) = Browser::start() {
        let page = Page::of(dir.root());
        let began = Instant::now();
        browser.open(&page.address);
        browser.wait_for("document.querySelector('.chart .mark')");
        row(
            "the same until Chromium shows the chart",
            &format!("{:.0} ms", millis(began.elapsed())),
        );
    }

    let page = Page::of(dir.root());
    let mut live = page.live();
    live.message();
    let before = cpu_seconds(page.child.id()).unwrap();
    std::thread::sleep(IDLE);
    let spent = cpu_seconds(page.child.id()).unwrap() - before;
    row(
        "`ui` with a page attached while nothing happens",
        &format!("{:.2} % of a core", 100.0 * spent / IDLE.as_secs_f64()),
    );
    drop(page);
    growing(&dir.journal());
}

/// The page of a run that has nearly all of these records, and gets the rest one by one.
fn growing(journal: &Utf8Path) {
    let text = fs_err::read_to_string(journal).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (before, after) = lines.split_at(lines.len() - NEWS);
    let folder = tempfile::tempdir().unwrap();
    let run = Utf8Path::from_path(folder.path()).unwrap();
    fs_err::write(run.join("journal.jsonl"), before.concat()).unwrap();
    let page = Page::of(run);
    let mut live = page.live();
    live.message();
    let watching = std::thread::spawn(move || live.messages());

    let (began, cpu) = (Instant::now(), cpu_seconds(page.child.id()).unwrap());
    let mut file = fs_err::OpenOptions::new().append(true).open(run.join("journal.jsonl")).unwrap();
    for line in after {
        file.write_all(line.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(500));
    }
    let spent = cpu_seconds(page.child.id()).unwrap() - cpu;
    let share = 100.0 * spent / began.elapsed().as_secs_f64();
    drop(page);
    let messages = watching.join().unwrap();
    row(
        "`ui` with a page attached while two records come every second",
        &format!("{share:.2} % of a core; {messages} messages"),
    );
}

/// A real run that is watched in both ways.
fn running() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = assert_cmd::Command::new(BINARY);
    command.current_dir(folder.path()).args(["demo", "--ui"]);
    for setting in
        ["M=3", "T=1", "K=2", "L=2", "R=1", "time_limit_seconds=3600", "script_timeout_seconds=600"]
    {
        command.args(["-s", setting]);
    }
    let began = Instant::now();
    let mut terminal = Terminal::start(&command, 100);
    let mut watching = None;
    let (mut cpu, mut elapsed) = (0.0, began.elapsed());
    // Its last figures are those of a moment before its end.
    while let Some(seconds) = cpu_seconds(terminal.id()).filter(|_| terminal.state() != "Z") {
        (cpu, elapsed) = (seconds, began.elapsed());
        if watching.is_none() {
            watching = address(&terminal.raw()).map(|it| {
                let live = Live::of(&it);
                std::thread::spawn(move || live.messages())
            });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let (code, screen) = terminal.end();
    // On a busy machine its time may end first; what it took until then is as good.
    assert!(matches!(code, Some(0 | 3)), "{code:?}: {screen}");
    let messages = watching.unwrap().join().unwrap();
    row(
        "demo in a terminal of 100 columns with a page attached",
        &format!(
            "{cpu:.2} CPU-s of the orchestrator in {:.0} s: {:.2} % of the time; {messages} messages \
             to the page",
            elapsed.as_secs_f64(),
            100.0 * cpu / elapsed.as_secs_f64()
        ),
    );
}

/// The address of the page, once it is on the screen.
fn address(screen: &str) -> Option<String> {
    let (_, rest) = screen.split_once("page: ")?;
    let (address, _) = rest.split_once(['\r', '\n'])?;
    Some(address.to_owned())
}

/// `mle-star ui` for as long as this lives.
struct Page {
    child: Child,
    address: String,
}

impl Page {
    fn of(run: &Utf8Path) -> Self {
        let mut command = Command::new(BINARY);
        command
            .args(["ui", run.as_str(), "--no-open"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim_end().to_owned() }
    }

    fn live(&self) -> Live {
        Live::of(&self.address)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A client that takes what the page is sent.
struct Live {
    lines: BufReader<TcpStream>,
}

impl Live {
    /// Follows the only run of the page at `address`.
    fn of(address: &str) -> Self {
        let mut list = String::new();
        get(address, "/api/runs?").read_to_string(&mut list).unwrap();
        let list: serde_json::Value =
            serde_json::from_str(list.split_once("\r\n\r\n").unwrap().1).unwrap();
        let name = list.pointer("/runs/0/name").unwrap().as_str().unwrap();
        Self { lines: BufReader::new(get(address, &format!("/api/live?run={name}&"))) }
    }

    /// The length of the next message; 0 when there is none any more.
    fn message(&mut self) -> usize {
        loop {
            let mut line = String::new();
            match self.lines.read_line(&mut line) {
                Ok(1..) if line.starts_with("data: ") => return line.len(),
                Ok(1..) => {}
                Ok(0) | Err(_) => return 0,
            }
        }
    }

    /// How many messages there are until the end.
    fn messages(mut self) -> usize {
        std::iter::repeat_with(|| self.message()).take_while(|it| *it > 0).count()
    }
}

/// Asks the server at `address` for `path`, which ends where the token may follow.
fn get(address: &str, path: &str) -> TcpStream {
    let (host, token) = address.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let request =
        format!("GET {path}token={token} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}
