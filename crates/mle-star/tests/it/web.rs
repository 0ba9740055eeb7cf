//! The web page, in a browser.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use camino::Utf8Path;
use mle_star_search::event::Record;

use crate::browser::Browser;
use crate::shop::{REPLIES, Shop, records, skipped, steps};

/// A browser, or a word on why there is none.
fn browser() -> Option<Browser> {
    let browser = Browser::start();
    if browser.is_none() {
        skipped("the page was not looked at: there is no Chromium");
    }
    browser
}

/// `mle-star ui` for as long as this lives.
struct Page {
    child: Child,
    address: String,
}

impl Page {
    fn of(shop: &Shop, path: &Utf8Path) -> Self {
        let mut command = shop.command();
        command.args(["ui", path.as_str(), "--no-open"]);
        let mut child = shop.start(&command, Stdio::piped());
        let mut address = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut address).unwrap();
        Self { child, address: address.trim_end().to_owned() }
    }

    fn origin(&self) -> &str {
        self.address.split_once("/?").unwrap().0
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The address that a run with `--ui` prints on standard error.
fn address(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> String {
    let page = lines.find_map(|line| line.unwrap().strip_prefix("page: ").map(str::to_owned));
    page.unwrap()
}

#[test]
fn the_chart_grows_while_a_run_goes_on() {
    let Some(mut browser) = browser() else { return };
    let shop = Shop::new();
    shop.close();
    let mut command = shop.run("T=1 K=2 L=2 R=2 M=3");
    command.arg("--ui");
    let mut run = shop.start(&command, Stdio::null());
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    browser.open(&address(&mut lines));
    browser.wait_for("document.querySelector('.state.running')");
    browser.wait_for("document.querySelector('.lanes .bar')");
    assert_eq!(browser.eval("document.querySelectorAll('.chart .mark').length"), 0);
    let rest = std::thread::spawn(move || lines.map(Result::unwrap).collect::<Vec<_>>());

    shop.open();
    // Each look that finds the chart grown counts as one.
    let seen = browser.eval(
        "new Promise((done) => { const seen = new Set(); const look = () => {
            const points = Number(document.querySelector('.chart svg')?.dataset.points ?? 0);
            if (points) seen.add(points);
            if (document.querySelector('.state.finished')) done([...seen]);
            else setTimeout(look, 20); }; look(); })",
    );
    let seen: Vec<u64> = serde_json::from_value(seen).unwrap();
    assert!(run.wait().unwrap().success(), "{:?}", rest.join());
    let last = *seen.last().unwrap();

    // 3 candidates, 2 merges, 2 paths with 2 attempts and 2 rounds.
    assert!(seen.len() >= 3 && seen.is_sorted(), "{seen:?}");
    assert_eq!(last, 11, "{seen:?}");
    browser.wait_for("document.querySelector('#best-score').textContent === '0.90000'");
    let told =
        "document.querySelector('.log').innerText.includes('finalization: wrote the submission')";
    browser.wait_for(told);
    browser.wait_for("document.querySelector('.connection.ended')");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_solution_opens_by_keyboard_and_shows_what_changed() {
    let Some(mut browser) = browser() else { return };
    let shop = Shop::new();
    shop.run("T=1 K=2 L=1 M=2").assert().success();
    let page = Page::of(&shop, &shop.path().join("runs"));
    browser.open(&page.address);
    browser.wait_for("document.querySelectorAll('.run').length === 1");
    assert_eq!(browser.eval("location.search"), "", "the token stays out of the history");

    browser.eval("document.querySelector('.run').focus()");
    browser.press("Enter");
    browser.wait_for("document.querySelector('.chart .mark')");
    browser.eval("document.querySelector('[role=tab][aria-selected=true]').focus()");
    browser.press("ArrowRight");
    browser.wait_for("document.querySelectorAll('[role=treeitem]').length > 5");
    browser.eval("document.querySelector('[role=treeitem][tabindex=\"0\"]').focus()");
    let current = "document.activeElement.dataset.id";
    // To the left lies what a solution was made from, down to a retrieved model.
    let mut way = vec![browser.eval(current)];
    while !way.last().unwrap().as_str().unwrap().starts_with("model") && way.len() < 20 {
        browser.press("ArrowLeft");
        way.push(browser.eval(current));
    }
    browser.press("ArrowRight");
    let candidate = browser.eval(current);
    assert!(candidate.as_str().unwrap().starts_with("phase1/candidate-"), "{way:?}");

    browser.eval("document.querySelector('[data-id=\"phase2/path-0/outer-0/inner-0\"]').focus()");
    browser.press("Enter");
    browser.wait_for("document.querySelector('#panel .tabs')");
    browser.eval("document.querySelector('#panel [data-key=tab-diff]').click()");
    browser.wait_for("document.querySelector('#panel .diff')");
    let lines = "[...document.querySelectorAll('.diff tr:not(.same)')].map((it) =>
        it.querySelector('.sign').textContent + it.querySelector('.code').textContent)";
    assert_eq!(browser.eval(lines), serde_json::json!(["−gain = 0.0", "+gain = 0.010"]));
    browser.eval("document.querySelector('#panel [data-key=tab-output]').click()");
    browser.wait_for(
        "document.querySelector('#panel').innerText.includes('Final Validation Performance: 0.61')",
    );
    browser.press("Escape");
    browser.wait_for("document.querySelector('#panel').hidden");
    assert_eq!(browser.eval(current), "phase2/path-0/outer-0/inner-0", "the focus is given back");
    assert_eq!(browser.complaints(), [""; 0]);
    let requests = browser.requests();
    assert!(requests.iter().all(|it| it.starts_with(page.origin())), "{requests:?}");
}

#[test]
fn prompts_replies_ablations_setup_and_problems_can_be_read() {
    let Some(mut browser) = browser() else { return };
    let shop = Shop::new();
    // The script of the first candidate does not work and cannot be mended.
    let wrong =
        "      score = 0.5$candidate\n      if score == 0.5: raise ValueError('no such column')\n";
    shop.write("replies.yaml", &REPLIES.replace("      score = 0.5$candidate\n", wrong));
    shop.run("T=1 K=1 L=1 M=3").assert().success();
    let page = Page::of(&shop, &shop.only_run());
    browser.open(&page.address);
    browser.wait_for("document.querySelector('.chart .mark')");
    let name = shop.only_run().file_name().unwrap().to_owned();
    let shows = |browser: &mut Browser, part: &str, text: &str| {
        browser.eval(&format!("location.hash = '#/run/{name}/{part}'"));
        browser.wait_for(&format!("document.body.innerText.includes('{text}')"));
    };
    shows(&mut browser, "ablations", "The part that matters is then refined");
    shows(&mut browser, "ablations", "gain = 0.0");
    shows(&mut browser, "setup", "Cores per script");
    shows(&mut browser, "problems", "no such column");
    shows(&mut browser, "agents", "steps, the newest first");
    let step = "phase2/path-0/outer-0/inner-0/coder";
    shows(&mut browser, &format!("agents?step={step}"), "gain = 0.010");
    browser.eval("document.querySelector('#panel [data-key=tab-prompt]').click()");
    browser
        .wait_for("document.querySelector('#panel pre')?.textContent.includes('raise the gain')");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// How far the page is wider than its window.
const OVERFLOW: &str =
    "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.documentElement)";

const LOOKS: [(u32, &str); 4] = [(1200, "light"), (1200, "dark"), (390, "light"), (390, "dark")];

#[test]
fn a_report_opens_alone_without_a_request_and_without_complaints() {
    let Some(mut browser) = browser() else { return };
    let shop = Shop::new();
    let evil = "<img src=//evil.example/x><script src=//evil.example/y></script>";
    shop.write("replies.yaml", &REPLIES.replace("raise the gain", &format!("raise {evil} it")));
    shop.run("T=1 K=2 L=2 R=2 M=3").assert().success();
    // Nothing of the run lies beside it.
    let alone = shop.path().join("alone.html");
    fs_err::rename(shop.only_run().join("report.html"), &alone).unwrap();
    let address = format!("file://{alone}");
    let mut backgrounds = Vec::new();
    for (width, scheme) in LOOKS {
        browser.look(width, scheme);
        browser.open(&address);
        browser.wait_for("document.readyState === 'complete'");
        browser.eval("document.querySelectorAll('details').forEach((it) => { it.open = true; })");
        assert_eq!(browser.eval(OVERFLOW), 0, "{width} {scheme}");
        let charts = "[...document.querySelectorAll('svg')]
            .filter((it) => it.getBoundingClientRect().width > 300).length";
        assert_eq!(browser.eval(charts), 1, "{width} {scheme}");
        assert_eq!(browser.eval("document.body.innerText.includes('<img src=//evil')"), true);
        backgrounds.push(browser.eval("getComputedStyle(document.body).backgroundColor"));
    }
    assert_eq!(browser.complaints(), [""; 0]);
    assert_eq!(browser.requests(), LOOKS.map(|_| address.clone()), "only the file itself");
    assert_ne!(backgrounds.first(), backgrounds.get(1), "light and dark are not the same");
}

#[test]
fn the_page_fits_every_window() {
    let Some(mut browser) = browser() else { return };
    let shop = Shop::new();
    shop.run("T=2 K=2 L=2 R=2 M=4").assert().success();
    let name = shop.only_run().file_name().unwrap().to_owned();
    let page = Page::of(&shop, &shop.path().join("runs"));
    browser.open(&page.address);
    browser.wait_for("document.querySelector('.run')");
    let parts = ["overview", "solutions", "ablations", "agents", "problems", "setup"];
    let opened = "solutions?solution=phase2/path-0/outer-0/inner-0";
    for (width, scheme) in LOOKS {
        browser.look(width, scheme);
        browser.eval("location.hash = '#/'");
        browser.wait_for("document.querySelector('.run')");
        assert_eq!(browser.eval(OVERFLOW), 0, "the list, {width} {scheme}");
        for part in parts.iter().chain(&[opened]) {
            browser.eval(&format!("location.hash = '#/run/{name}/{part}'"));
            let tab = part.split('?').next().unwrap();
            browser.wait_for(&format!(
                "document.querySelector('#top [data-key=tab-{tab}][aria-selected=true]')"
            ));
            assert_eq!(browser.eval(OVERFLOW), 0, "{part}, {width} {scheme}");
        }
        browser.wait_for("document.querySelector('#panel .tabs')");
        assert_eq!(browser.eval(OVERFLOW), 0, "the panel, {width} {scheme}");
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn what_agents_and_scripts_write_stays_text() {
    let Some(mut browser) = browser() else { return };
    let shop = Shop::new();
    let evil = "<img src=x onerror=hacked=1><script>hacked=1</script>\\u202e";
    let replies = REPLIES
        .replace(
            "gain = 0.01$inner",
            &format!("gain = 0.01$inner  # {evil}\n      print('{evil}')"),
        )
        .replace("raise the gain", "raise <script>hacked=1</script> the gain");
    shop.write("replies.yaml", &replies);
    shop.run("T=1 K=1 L=1 M=2").assert().success();
    let page = Page::of(&shop, &shop.only_run());
    let name = shop.only_run().file_name().unwrap().to_owned();
    let id = "phase2/path-0/outer-0/inner-0";
    browser.open(&page.address);
    browser.wait_for("document.querySelector('.chart .mark')");
    browser.eval(&format!("location.hash = '#/run/{name}/solutions?solution={id}'"));
    for (tab, text) in [
        ("about", "raise <script>"),
        ("diff", "<img src=x"),
        ("script", "<img src=x"),
        ("output", "<img src=x"),
    ] {
        browser.wait_for(&format!("document.querySelector('#panel [data-key=tab-{tab}]')"));
        browser.eval(&format!("document.querySelector('#panel [data-key=tab-{tab}]').click()"));
        browser.wait_for(&format!(
            "document.querySelector('#panel .panel-body')?.innerText.includes('{text}')"
        ));
    }
    assert_eq!(browser.eval("typeof hacked"), "undefined");
    let foreign =
        "document.querySelectorAll('main script, aside script, aside img, main img').length";
    assert_eq!(browser.eval(foreign), 0);
    assert_eq!(browser.complaints(), [""; 0]);
}

/// A page that is left open by a client that reads nothing does not keep the run from its end.
#[test]
fn a_stalled_client_does_not_delay_a_run() {
    let shop = Shop::new();
    shop.close();
    let mut command = shop.run("T=1 K=2 L=2 R=1 M=2");
    command.arg("--ui");
    let mut run = shop.start(&command, Stdio::null());
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let address = address(&mut lines);
    let (host, token) = address.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    let name = shop.only_run().file_name().unwrap().to_owned();
    let paths =
        [format!("/api/live?run={name}&token={token}"), format!("/assets/style.css?token={token}")];
    let stalled: Vec<TcpStream> = paths
        .iter()
        .map(|path| {
            let mut stream = TcpStream::connect(host).unwrap();
            stream.set_write_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            stream.write_all(request.repeat(1000).as_bytes()).ok(); // as much as it takes
            stream
        })
        .collect();
    let rest = std::thread::spawn(move || lines.map(Result::unwrap).collect::<Vec<_>>());
    let opened = jiff::Timestamp::now();
    shop.open();

    assert!(run.wait().unwrap().success(), "{:?}", rest.join());
    for mut stream in stalled {
        stream.read_to_end(&mut Vec::new()).ok();
    }
    assert_eq!(steps(&shop.only_run()).last().unwrap(), "totals");
    // The page waits 20 seconds for such a client. Had a step waited for the page, it would show.
    let times: Vec<jiff::Timestamp> = records(&shop.only_run()).iter().map(Record::at).collect();
    let opened = times.iter().rposition(|it| *it < opened).unwrap();
    let pauses = times.iter().skip(opened).zip(times.iter().skip(opened + 1));
    let longest = pauses.map(|(one, next)| next.duration_since(*one)).max().unwrap();
    assert!(longest < jiff::SignedDuration::from_secs(15), "{longest:?}");
}
