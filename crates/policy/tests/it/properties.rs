//! What holds for any input.

use mle_star_policy::Policy;
use proptest::prelude::*;
use serde_json::json;
use std::path::Path;
use std::sync::LazyLock;

use crate::allowed::ALLOWED;
use crate::ground::{Ground, is_denied};

/// Nothing is ever run, so one is enough.
static GROUND: LazyLock<Ground> = LazyLock::new(Ground::new);

/// Pieces of which shell commands are made, put together without sense.
fn rubble() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z./~*?{},'\"$`()<>|&;\\\\ \n#!=\\[\\]-]{1,6}",
        prop::sample::select(vec![
            "rm -rf ",
            "echo ",
            "cd ",
            "$(",
            "${",
            "}",
            ")",
            "for x in ",
            "; do ",
            "; done",
            "if ",
            "; then ",
            "; fi",
            "<<EOF\n",
            "\nEOF\n",
            "python -c '",
            "sed -i ",
            "awk '",
            "find . -exec ",
            "xargs ",
            "bash -c \"",
            "f() { ",
            "case x in ",
            "esac",
            "git -C ",
            "ü",
            "$((",
            "))",
            "x=(",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Allowed commands after which a redirection is one: not a heredoc, a comment or a job.
fn simple_commands() -> Vec<&'static str> {
    let simple =
        |it: &&str| !it.contains("<<") && !it.contains('#') && !it.ends_with('&') && !it.is_empty();
    ALLOWED.iter().copied().filter(simple).collect()
}

/// What is twice as long with every line would soon fill the memory.
#[test]
fn what_doubles_is_denied() {
    let lines = |line: fn(usize) -> String| (1..40).map(line).collect::<String>();
    let shell = lines(|n| format!("x{n}=$x{0}$x{0}\n", n - 1));
    let strings = lines(|n| format!("x{n} = x{0} + x{0}\n", n - 1));
    let formats = lines(|n| format!("x{n} = f'{{x{0}}}{{x{0}}}'\n", n - 1));
    let python = |code: &str| format!("python - <<'EOF'\nx0 = 'ab'\n{code}open(x39)\nEOF");
    for command in [format!("x0=ab\n{shell}echo $x39"), python(&strings), python(&formats)] {
        assert!(is_denied(&GROUND.shell(&command)), "{command}");
    }
}

/// Neither the stack nor the patience is used up.
#[test]
fn deep_and_long_commands_are_judged() {
    let times = |piece: &str, times: usize| piece.repeat(times);
    for command in [
        times("(", 5000),
        format!("{}ls{}", times("(", 140), times(")", 140)),
        format!("{}ls{}", times("( ", 5000), times(" )", 5000)),
        format!("{}ls", times("! ", 5000)),
        format!("echo $((1{}))", times("+1", 20_000)),
        format!("[[ a{} ]]", times(" && a", 5000)),
        format!("{}true", times("true && ", 5000)),
        format!("{}true", times("true | ", 5000)),
        times("true; ", 5000),
        format!("{}ls{}", times("$(", 2000), times(")", 2000)),
        format!("echo {}x{}", times("\"${a:-", 2000), times("}\"", 2000)),
        format!("{}ls{}", times("if true; then ", 2000), times("; fi", 2000)),
        format!("{}ls{}", times("for a in b; do ", 30), times("; done", 30)),
        format!("{}ls{}", times("{ ", 2000), times("; }", 2000)),
        format!("echo {}{}", times("{a,", 3000), times("}", 3000)),
        format!("echo {}", times("{a,b}", 3000)),
        format!("echo {}", times("$A", 20_000)),
        format!("python -c '{}1{}'", times("(", 3000), times(")", 3000)),
        format!("python -c 'x = 1{}'", times(" + 1", 20_000)),
        format!("{}ls", times("bash -c ", 50)),
        format!("cat > {}", times("a/", 3000)),
        format!("python - <<'EOF'\n{}EOF", times("x = 'a'\nopen(x)\n", 10_000)),
        format!("python - <<'EOF'\n{}EOF", times("a.x = 'a'\nopen(a.x)\n", 9_000)),
        times("f() { f2; }; ", 2000),
        format!("{}ls", (0..10_000).map(|n| format!("x{n}=1 ")).collect::<String>()),
        format!("python -c 'a{}'", times(".b", 60_000)),
        format!("python -c 'f{}'", times("(x)", 40_000)),
        format!(
            "f() {{\n{}}}\n{}",
            times(&format!("echo{}\n", times(" a", 900)), 10),
            times("f\n", 1500)
        ),
    ] {
        let begun = std::time::Instant::now();
        GROUND.shell(&command);
        let (head, took) = (&command[..command.len().min(20)], begun.elapsed());
        assert!(took < std::time::Duration::from_secs(20), "{head} took {took:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_command_makes_it_panic(command in prop_oneof![rubble(), "\\PC{0,80}"]) {
        Policy::new("/nowhere/work").judge("Bash", &json!({"command": command}), Path::new("/nowhere/work"));
    }

    #[test]
    fn no_python_makes_it_panic(code in "[a-z.()'\"/,=+%{}\\[\\] \n:fr]{0,80}") {
        let command = format!("python - <<'EOF'\n{code}\nEOF");
        Policy::new("/nowhere/work").judge("Bash", &json!({"command": command}), Path::new("/nowhere/work"));
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Quoting does not change what a path is.
    #[test]
    fn a_path_outside_is_found_however_it_is_quoted(style in prop::collection::vec(0_u8..4, 9)) {
        let quoted: String = "../victim".chars().zip(style).map(|(character, style)| match style {
            0 => character.to_string(),
            1 => format!("'{character}'"),
            2 => format!("\"{character}\""),
            _ => format!("\\{character}"),
        }).collect();
        for command in ["rm -rf ", "touch ", "echo x > ", "mkdir -p ", "cp train.csv "] {
            let command = format!("{command}{quoted}");
            prop_assert!(is_denied(&GROUND.shell(&command)), "{}", command);
        }
    }

    /// However long the way, what leaves the working directory has left it.
    #[test]
    fn a_path_is_judged_by_where_it_ends(
        steps in prop::collection::vec(prop::sample::select(vec!["a", "..", ".", "way_in", "", "src"]), 1..8),
    ) {
        // All names are folders without links out, so a count of the levels tells where it ends;
        // `way_in` leads to `src` beside it.
        let mut depth = 0_i32;
        let mut left = false;
        for step in &steps {
            depth += match *step { ".." => -1, "." | "" => 0, _ => 1 };
            left |= depth < 0;
        }
        // Whoever leaves and comes back ends elsewhere, unless by the name of the directory.
        let outside = left;
        let command = format!("touch ./{}/x", steps.join("/"));
        prop_assert_eq!(is_denied(&GROUND.shell(&command)), outside, "{}", command);
    }

    /// REQ-OR-033: whatever is allowed, alone or together, a redirection to outside is not.
    #[test]
    fn no_redirection_to_outside_is_hidden_by_what_stands_before_it(
        commands in prop::collection::vec(prop::sample::select(simple_commands()), 1..4),
        connector in prop::sample::select(vec!["; ", " && ", " || ", " | ", "\n", " & "]),
        redirection in prop::sample::select(vec![">", ">>", "2>", "&>", ">|", "2>&1 >"]),
    ) {
        let command = format!("{} {redirection} ROOT/victim/file", commands.join(connector));
        prop_assert!(is_denied(&GROUND.shell(&command)), "{}", command);
    }
}
