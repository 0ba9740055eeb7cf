//! Runs as they are told.

use std::io::Write as _;

use serde_json::Value;

use crate::client::{Folder, News, RENT, get};

fn names(list: &Value) -> Vec<(&str, &str)> {
    let runs = list["runs"].as_array().unwrap().iter();
    runs.map(|it| (it["name"].as_str().unwrap(), it["condition"].as_str().unwrap())).collect()
}

#[test]
fn a_run_is_told_as_it_is_recorded() {
    let folder = Folder::new();
    let lines: Vec<&str> = RENT.split_inclusive('\n').collect();
    let (half, rest) = lines.split_at(lines.len() / 2);
    let (torn, late) = rest.split_at(1);
    let torn = torn.concat();
    let (begun, ended) = torn.split_at(10);
    let journal = folder.run("rent", &format!("{}{begun}", half.concat()));
    let server = folder.serve();
    let mut news = News::of(&server, "rent");

    let (_, first) = news.next();
    let mut file = fs_err::OpenOptions::new().append(true).open(&journal).unwrap();
    file.write_all(format!("{ended}{}", late.concat()).as_bytes()).unwrap();
    let mut last = news.next().1;
    while last["records"] != lines.len() {
        last = news.next().1;
    }

    let told = |it: &Value| (it["whole"].clone(), it["state"].clone(), it["records"].clone());
    assert_eq!(told(&first), (true.into(), "stopped".into(), half.len().into()));
    assert_eq!(told(&last), (false.into(), "finished".into(), lines.len().into()));
    assert!(last["solutions"].as_array().unwrap().len() < 60, "only what has changed is sent");
}

#[test]
fn a_page_hears_of_the_end_of_the_server() {
    let folder = Folder::new();
    folder.run("rent", RENT);
    let server = folder.serve();
    let mut news = News::of(&server, "rent");
    assert_eq!(news.next().0, "message");
    let ended = std::thread::spawn(move || drop(server));
    assert_eq!(news.next().0, "end");
    ended.join().unwrap();
}

#[test]
fn damaged_empty_and_absent_runs_are_told_as_such() {
    let folder = Folder::new();
    let opened = RENT.split_inclusive('\n').next().unwrap();
    folder.run("empty", "");
    folder.run("damaged", &format!("{opened}nonsense\n{opened}"));
    folder.run("finished", RENT);
    fs_err::create_dir(folder.path().join("no-run")).unwrap();
    let server = folder.serve();

    let list = get(&server, "/api/runs").json();
    let mut listed = names(&list);
    listed.sort_unstable();
    assert_eq!(listed, [("damaged", "stopped"), ("empty", "empty"), ("finished", "finished")]);
    let mut damaged = News::of(&server, "damaged");
    let mut problem = damaged.next().1["problem"].clone();
    if problem.is_null() {
        problem = damaged.next().1["problem"].clone();
    }
    assert!(problem.as_str().unwrap().contains("journal.jsonl:2"), "{problem}");
    assert_eq!(News::of(&server, "no-run").next().0, "gone");
}

#[test]
fn a_step_shows_what_was_asked_and_what_came_back() {
    let folder = Folder::new();
    folder.run("rent", RENT);
    let server = folder.serve();
    let steps = get(&server, "/api/steps?run=rent").json();
    let keys = steps.as_array().unwrap().iter().map(|it| it["key"].as_str().unwrap());
    let first = keys.clone().next().unwrap();
    let step = get(&server, &format!("/api/step?run=rent&key={first}")).json();
    assert_eq!(step["what"], "ask");
    assert!(step["reply"].as_str().is_some_and(|it| !it.is_empty()));
    // Replies of this record were shortened, so that it leads to its first call only.
    let asked = get(&server, &format!("/api/prompt?run=rent&key={first}")).json();
    let prompt = asked["prompt"].as_str().unwrap();
    assert!(prompt.contains("models"), "{prompt}");
    assert_eq!(get(&server, "/api/step?run=rent&key=nowhere").status, 404);
    assert_eq!(get(&server, "/api/prompt?run=nowhere&key=x").status, 404);
}
