use mle_star_python::{dedent, is_plausible_program};

#[test]
fn prose_is_not_a_program() {
    let replies = [
        "",
        "  \n\n",
        "Sorry",
        "I cannot help",
        "No changes needed.",
        "None",
        "42",
        "'a string'",
        "x == 1",
        "x",
        "a, b",
        "Note: done",
        "continue",
        "pass",
        "return results",
        "done (mostly)",
        "# just a comment",
        "f'{call()}'",
        "Here is the code:\n\nx = 1\n",
        "```python\nx = 1\n```",
    ];
    for reply in replies {
        assert!(!is_plausible_program(reply), "{reply}");
    }
}

#[test]
fn a_statement_that_does_something_makes_a_program() {
    let replies = [
        "x = 1",
        "x: int = 1",
        "x += 1",
        "print('hello')",
        "print ('hello')",
        "model.fit(x, y).score",
        "import os",
        "from os import path",
        "def f(): pass",
        "class A: pass",
        "if x:\n    y",
        "for x in y: pass",
        "while True: pass",
        "with a: pass",
        "try:\n    x\nfinally:\n    y",
        "del x",
        "    x = 1\n    y = 2\n",
        "await main()",
        "@a\ndef f(): pass",
    ];
    for reply in replies {
        assert!(is_plausible_program(reply), "{reply}");
    }
}

#[test]
fn dedent_takes_what_all_lines_share() {
    let texts = [
        ("    a\n      b\n\n    c\n", "a\n  b\n\nc\n"),
        ("  a\n \n  b", "a\n\nb"),
        ("a\n  b\n", "a\n  b\n"),
        ("\ta\n    b\n", "\ta\n    b\n"),
        ("  a\r\n  b\r\n", "a\r\nb\r\n"),
        ("", ""),
    ];
    for (text, dedented) in texts {
        assert_eq!(dedent(text), dedented);
    }
}
