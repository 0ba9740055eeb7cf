use mle_star_python::{
    blocks, check_syntax, dedent, error_masking, exit_calls, is_plausible_program,
};
use proptest::prelude::*;

/// Anything at all, and text made of what Python is made of, which gets further.
fn source() -> impl Strategy<Value = String> {
    let fragments = prop::sample::select(vec![
        "\n",
        "\n    ",
        "\n\t",
        "\n\n",
        "\r",
        "\r\n",
        " ",
        "\\\n",
        "\\",
        "\x0c",
        "\0",
        "x",
        "é",
        "\u{a0}",
        "\u{feff}",
        "=",
        ":",
        ":=",
        ",",
        ";",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "'",
        "\"",
        "'''",
        "\"\"\"",
        "f'",
        "f\"{",
        "rb'",
        "!r",
        "`",
        "```",
        "# c",
        "if x:",
        "else:",
        "try:",
        "except:",
        "except Exception as e:",
        "pass",
        "def f():",
        "class A:",
        "@d",
        "import os",
        "from sys import exit",
        "exit()",
        "sys.exit(",
        "os._exit(0)",
        "lambda:",
        "match x:",
        "case _:",
        "print 'x'",
        "1_",
        "->",
        "*",
    ]);
    prop_oneof![
        any::<String>(),
        "[ -~\n\t]{0,80}",
        prop::collection::vec(fragments, 0..40).prop_map(|fragments| fragments.concat()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn nothing_panics(source in source()) {
        let lines = source.matches(['\n', '\r']).count() + 1;
        if let Err(error) = check_syntax(&source) {
            prop_assert!((1..=lines).contains(&error.line));
            prop_assert!(!error.to_string().contains('\n'));
        }
        prop_assert!(exit_calls(&source).iter().all(|call| (1..=lines).contains(&call.line)));
        prop_assert!(error_masking(&source).len() <= source.len());
        prop_assert!(!is_plausible_program(&source) || check_syntax(&dedent(&source)).is_ok());
    }

    #[test]
    fn pieces_come_in_order_from_the_source(source in source()) {
        let mut rest = source.as_str();
        let mut line = 0;
        for block in blocks(&source) {
            let found = rest.find(block.text);
            prop_assert!(found.is_some());
            rest = &rest[found.unwrap_or(0) + block.text.len()..];
            prop_assert!(line < block.first_line && block.first_line <= block.last_line);
            line = block.last_line;
        }
    }

    #[test]
    fn dedenting_twice_is_dedenting_once(source in source()) {
        let dedented = dedent(&source);
        prop_assert_eq!(dedent(&dedented), dedented);
    }
}
