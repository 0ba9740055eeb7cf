//! What a person sees in a terminal while a run goes on.

use rustix::process::Signal;

use crate::pty::Terminal;
use crate::shop::Shop;

const SMALL: &str = "M=2 T=1 K=1 L=1 time_limit_seconds=600";

/// Anything of the live part.
fn is_live(screen: &str) -> bool {
    screen.contains("▸ ")
}

/// The live part, with the scripts of both candidates in it: one path is one script at a time.
fn is_running_scripts(screen: &str) -> bool {
    is_live(screen)
        && screen.matches(" s / 1 min").count() == 1
        && screen.contains("waits its turn")
}

/// The lines of the live part, without times.
fn live_part(screen: &str) -> String {
    let (_, live) = screen.split_once("\n\n").unwrap();
    let times = regex_lite::Regex::new(r"\b\d+ s\b").unwrap();
    times.replace_all(live, "[TIME]").into_owned()
}

/// A shop whose scripts wait, and a terminal in which they do.
fn waiting(columns: u16, settings: &str) -> (Shop, Terminal) {
    let shop = Shop::new();
    shop.close();
    let mut command = shop.run(settings);
    command.env_remove("NO_COLOR");
    let terminal = Terminal::start(&command, columns);
    terminal.wait_for("scripts run", is_running_scripts);
    (shop, terminal)
}

#[test]
fn a_run_is_seen_live_at_every_width_and_leaves_only_its_lines() {
    for columns in [20, 40, 80, 120] {
        let (shop, mut terminal) = waiting(columns, SMALL);
        let screen = terminal.screen();
        assert_eq!(terminal.wrapped_from('▸'), [""; 0], "{columns}:\n{screen}");
        if columns == 80 {
            insta::assert_snapshot!(live_part(&screen), @r"
            ▸ phase 1  · phase 2  · phase 3  · final
              candidate-0  script [TIME] / 1 min
              candidate-1  script waits its turn
            [TIME] of 10 min · $0.03
            ");
        }
        shop.open();
        let (code, screen) = terminal.end();
        assert_eq!(code, Some(0), "{screen}");
        assert!(!is_live(&screen), "{screen}");
        let said = screen.replace('\n', "");
        assert!(said.contains("=== Finalization") && said.ends_with("report.html"), "{screen}");
        assert!(terminal.raw().contains("\u{1b}[1m"), "there are colours");
    }
}

#[test]
fn the_live_part_follows_the_size_of_the_window() {
    let (shop, mut terminal) = waiting(120, SMALL);
    for (columns, phases) in
        [(20, "▸ phase 1\n"), (100, "▸ phase 1  · phase 2"), (30, "▸ phase 1\n")]
    {
        terminal.resize(columns);
        let screen = terminal.wait_for("it is drawn anew", |screen| {
            is_running_scripts(screen) && screen.contains(phases)
        });
        assert_eq!(screen.matches('▸').count(), 1, "{screen}");
    }
    shop.open();
    let (code, screen) = terminal.end();
    assert_eq!((code, is_live(&screen)), (Some(0), false), "{screen}");
}

#[test]
fn ctrl_c_once_waits_for_what_is_in_flight() {
    let (shop, mut terminal) = waiting(80, SMALL);
    terminal.press("\u{3}");
    let screen =
        terminal.wait_for("it is ending", |screen| screen.contains("once more to end now"));
    assert!(is_live(&screen), "{screen}");
    shop.open();
    let (code, screen) = terminal.end();
    assert_eq!((code, is_live(&screen)), (Some(130), false), "{screen}");
    assert!(screen.contains("go on with: mle-star resume"), "{screen}");
}

#[test]
fn ctrl_c_twice_ends_now() {
    let (shop, mut terminal) = waiting(80, SMALL);
    terminal.press("\u{3}");
    terminal.wait_for("it is ending", |screen| screen.contains("once more to end now"));
    let began = std::time::Instant::now();
    terminal.press("\u{3}");
    let (code, screen) = terminal.end();
    assert!(began.elapsed().as_secs() < 9, "scripts would have had ten seconds");
    assert_eq!((code, is_live(&screen)), (Some(130), false), "{screen}");
    assert!(screen.contains("go on with: mle-star resume"), "{screen}");
    shop.open();
    shop.wait_for_the_end_of_scripts();
}

#[test]
fn a_run_that_is_terminated_leaves_the_terminal_as_it_was() {
    let (shop, mut terminal) = waiting(80, SMALL);
    terminal.signal(Signal::TERM);
    shop.open();
    let (code, screen) = terminal.end();
    assert_eq!((code, is_live(&screen)), (Some(143), false), "{screen}");
}

#[test]
fn a_suspended_run_leaves_the_terminal_to_others() {
    let (shop, mut terminal) = waiting(80, SMALL);
    terminal.press("\u{1a}");
    let screen = terminal.wait_for("nothing is drawn", |screen| !is_live(screen));
    while terminal.state() != "T" {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(screen.contains("=== Phase 1"), "{screen}");
    terminal.signal(Signal::CONT);
    terminal.wait_for("it is drawn again", is_running_scripts);
    shop.open();
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn a_terminal_that_is_held_does_not_hold_the_run() {
    let (shop, mut terminal) = waiting(80, SMALL);
    terminal.press("\u{13}");
    shop.open();
    let result = shop.only_run().join("result.json");
    let began = std::time::Instant::now();
    while !result.is_file() {
        assert!(began.elapsed().as_secs() < 60, "the run waits for the terminal");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let held = terminal.screen();
    assert!(!held.contains("=== Finalization"), "the terminal was not held:\n{held}");
    terminal.press("\u{11}");
    let (code, screen) = terminal.end();
    assert_eq!((code, is_live(&screen)), (Some(0), false), "{screen}");
    assert!(screen.contains("=== Finalization ==="), "nothing is lost:\n{screen}");
}

#[test]
fn colours_are_left_out_where_they_are_not_wanted() {
    let shop = Shop::new();
    shop.close();
    let mut terminal = Terminal::start(&shop.run(SMALL), 80); // it has NO_COLOR
    terminal.wait_for("scripts run", is_running_scripts);
    shop.open();
    assert_eq!(terminal.end().0, Some(0));
    let colour = regex_lite::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    assert!(!colour.is_match(&terminal.raw()));
}

#[test]
fn where_nothing_can_be_drawn_there_are_only_lines() {
    for (name, value, flags) in
        [("TERM", "dumb", ""), ("TERM", "xterm", "--quiet"), ("TERM", "xterm", "--json")]
    {
        let shop = Shop::new();
        let mut command = shop.run(SMALL);
        command.args(flags.split_whitespace()).env(name, value).env_remove("NO_COLOR");
        let mut terminal = Terminal::start(&command, 80);
        assert_eq!(terminal.end().0, Some(0));
        assert!(!terminal.raw().contains('\u{1b}'), "{value} {flags}: {}", terminal.raw());
    }
}

#[test]
fn what_goes_to_a_file_has_no_escape_sequences() {
    let shop = Shop::new();
    let mut command = shop.run(SMALL);
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    let output = command.output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(text.contains("INFO mle_star: === Finalization ==="), "{text}");
    let is_obeyed = |it: char| it.is_control() && it != '\n';
    assert!(!text.contains(is_obeyed), "{text}");
}
