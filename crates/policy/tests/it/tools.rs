//! Tools other than the shell.

use mle_star_policy::{Policy, Verdict};
use serde_json::{Value, json};

use crate::ground::{Ground, is_denied};

/// REQ-OR-033
#[test]
fn files_are_written_inside_only() {
    let ground = Ground::new();
    let at = |name: &str| ground.at(name).to_string_lossy().into_owned();
    let write = |path: &str| ground.judge("Write", &json!({"file_path": path, "content": "x"}));
    for inside in [at("work/new.py"), at("work/a/b/c.py"), at("work/way_in/x.py"), "x.py".into()] {
        assert_eq!(write(&inside), Verdict::Allow, "{inside}");
    }
    for outside in [
        at("victim/file"),
        at("work/../victim/file"),
        at("work/way_out/file"),
        at("work/links/link.txt"),
        at("work/input/train.csv"),
        "~/x".into(),
        "../x".into(),
        "/etc/passwd".into(),
        "/proc/self/cwd/x".into(),
    ] {
        assert!(is_denied(&write(&outside)), "{outside}");
    }
    let edit = json!({"file_path": at("victim/file"), "old_string": "a", "new_string": "b"});
    assert!(is_denied(&ground.judge("Edit", &edit)));
    assert!(is_denied(&ground.judge("MultiEdit", &edit)));
    let notebook = |name| json!({"notebook_path": at(name)});
    assert!(is_denied(&ground.judge("NotebookEdit", &notebook("victim/x.ipynb"))));
    assert_eq!(ground.judge("NotebookEdit", &notebook("work/x.ipynb")), Verdict::Allow);
}

#[test]
fn everything_but_secrets_may_be_read() {
    let ground = Ground::new();
    let read = |path: &str| ground.judge("Read", &json!({"file_path": path}));
    assert_eq!(read(&ground.at("victim/file").to_string_lossy()), Verdict::Allow);
    assert_eq!(read("solution.py"), Verdict::Allow);
    assert!(is_denied(&read(&ground.at("home/.ssh/id_rsa").to_string_lossy())));
    assert!(is_denied(&read("~/.ssh/config")));
    assert!(is_denied(&read("/proc/self/environ")));
    let grep = |path: &str| ground.judge("Grep", &json!({"pattern": "/etc/shadow", "path": path}));
    assert_eq!(grep("src"), Verdict::Allow);
    assert!(is_denied(&grep("~")));
}

#[test]
fn a_hidden_file_is_hidden_behind_links_too() {
    let ground = Ground::new();
    let policy = Policy::new(ground.at("work")).hiding(ground.at("victim/file"));
    let input = json!({"file_path": ground.at("work/links/link.txt")});
    assert!(is_denied(&policy.judge("Read", &input, &ground.at("work"))));
}

#[test]
fn unknown_tools_and_odd_inputs_are_denied() {
    let ground = Ground::new();
    for (tool, input) in [
        ("Bash", json!({})),
        ("Bash", json!({"command": 7})),
        ("Bash", json!("ls")),
        ("Bash", json!({"command": "ls", "run_in_background": true})),
        ("Bash", json!({"command": "ls\u{0}"})),
        ("Write", json!({})),
        ("Write", json!({"file_path": ["x"]})),
        ("Read", json!({"file_path": null})),
        ("KillShell", json!({})),
        ("Unheard", json!({})),
        ("", Value::Null),
    ] {
        assert!(is_denied(&ground.judge(tool, &input)), "{tool} {input}");
    }
    assert_eq!(ground.judge("WebSearch", &json!({"query": "x"})), Verdict::Allow);
    assert_eq!(ground.judge("StructuredOutput", &json!({"a": 1})), Verdict::Allow);
    let policy = ground.policy.clone().allowing_tool("mcp__mle__*");
    let judged = policy.judge("mcp__mle__parse_score", &json!({}), &ground.at("work"));
    assert_eq!(judged, Verdict::Allow);
}

#[test]
fn the_directory_of_the_shell_counts() {
    let ground = Ground::new();
    let touch = json!({"command": "touch x"});
    let judge = |at: &str| ground.policy.judge("Bash", &touch, &ground.at(at));
    assert_eq!(judge("work/src"), Verdict::Allow);
    assert!(is_denied(&judge("victim")));
    assert!(is_denied(&judge("work/way_out")));
    assert!(is_denied(&ground.policy.judge("Bash", &touch, std::path::Path::new("relative"))));
}

/// REQ-OR-033: the list can be changed, the fence cannot.
#[test]
fn the_list_is_configurable() {
    let ground = Ground::new();
    let policy = ground.policy.clone().without_default_list().denying("make * deploy");
    let judge =
        |command: &str| policy.judge("Bash", &json!({"command": command}), &ground.at("work"));
    assert_eq!(judge("patch -p1"), Verdict::Allow);
    assert_eq!(judge("make deploy"), Verdict::Allow);
    assert!(is_denied(&judge("make -j4 deploy")));
    assert!(is_denied(&judge("rm -rf ../victim")));
    let roomy = ground.policy.clone().also_writing(ground.at("victim"));
    let inside =
        roomy.judge("Bash", &json!({"command": "rm -rf ../victim/sub"}), &ground.at("work"));
    assert_eq!(inside, Verdict::Allow);
}
