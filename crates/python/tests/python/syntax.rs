use std::io::Write;
use std::process::{Command, Stdio};

use mle_star_python::{MAX_SOURCE_BYTES, SyntaxError, check_syntax};

/// Sources that every Python from 3.10 on accepts.
const SOUND: &[&str] = &[
    "",
    "# only a comment",
    "x = 1",
    "match command:\n    case [x, *rest] if x:\n        pass\n    case {'a': 1, **others}:\n        pass\n    case Point(x=0) | None:\n        pass\n    case _:\n        pass\n",
    "match = 1\nprint(match)\n",
    "if (n := len(a)) > 10:\n    print(n)\n",
    "f'{a[\"b\"]!r:>{width}} {{literal}} {x:=10} {y=}'\n",
    "rf'\\d{n}' f'{x}' 'plain'\n",
    "if x:\n    y = f'{a:02d}:{b:02d}'\nz = 1\n",
    "def f(a: int, /, b: list[str] | None = None, *args: int, c, **kw: 'T') -> dict[str, int]: ...\n",
    "async def f():\n    async with a as b, c:\n        await b\n    async for x in y:\n        yield x\n    return [z async for z in q]\n",
    "@decorator(1)\n@other\nclass A(B, metaclass=M):\n    x: int = 1\n",
    "first, *rest = [*a, *b]\nprint(*a, sep='', **b)\n",
    "g = lambda x, *y, z=1, **k: (x, y, z)\n",
    "größe = 1\n数据 = größe\n",
    "x = 1 + \\\n    2\n",
    "x = [\n1,\n        2,\n  # inside\n]\n",
    "if x:\n\ty = 1\n\tz = 2\n",
    "with (open(a) as f, open(b) as g):\n    pass\n",
    "try:\n    pass\nexcept (A, B) as e:\n    raise C from e\nelse:\n    pass\nfinally:\n    pass\n",
    "s = '''\n  ```python\nexit(\n'''\n",
    "x = r'\\d' + \"\\\"\" + b'\\x00'.decode()\n",
    "x = 0o17 + 0xFF + 1_000 + 00 + 1e5 + 2j + .5\n",
    "print >>f, 'x'\n",
    "x = 1; y = 2;\n",
    "for x in 1, 2, *y:\n    continue\nelse:\n    pass\n",
    "class A: pass\n",
    "x = yield_ if a else not b\n",
    "del x[0], y.z\nglobal q\nassert x, 'm'\n",
    "def f():\n    '''doc'''\n# dedented comment\n    return 1\n",
    "x = 1\r\nif x:\r\n    y = 2\r\n",
    "x[1:2, ::3, ...] = a @ b\n",
];

/// Sources that no Python from 3.10 to 3.13 accepts.
const BROKEN: &[&str] = &[
    "x = = 1",
    "print \"x\"",
    "exec \"x\"",
    "print x, y",
    "```python\nx = 1\n```\n",
    "x = 1\n```\n",
    "!pip install x\n",
    "%matplotlib inline\n",
    "df.head?\n",
    "def f():\nreturn 1\n",
    "def f():\n",
    "def f():\n    # only a comment\n",
    "if x:\n    y = 1\n  z = 2\n",
    "x = 1\n    y = 2\n",
    "  x = 1\n",
    "if x:\n        a = 1\n\tb = 2\n",
    "for x in y\n    pass\n",
    "x = (1, 2\ny = 3\n",
    "x = (1, 2]\n",
    "x = 1)\n",
    "x = 'abc\n",
    "x = '\nabc'\n",
    "'''never closed\n",
    "x =\n1\n",
    "import\nos\n",
    "x = 1 y = 2\n",
    "x = 'a' y = 'b'\n",
    "x := 1\n",
    "x as y\n",
    "class = 1\n",
    "async = 1\n",
    "def f(a=1, b): pass\n",
    "f(a=1, b)\n",
    "def f((a, b)): pass\n",
    "try:\n    pass\nx = 1\n",
    "try:\n    pass\nexcept A, e:\n    pass\n",
    "raise A, 'b'\n",
    "x <> y\n",
    "x = 0777\n",
    "x = 10L\n",
    "x = `y`\n",
    "x = ub'y'\n",
    "f'{}'\n",
    "x\u{a0}= 1\n",
    "x = “y”\n",
    "x = 1 \\ \n",
    "x = 1 + \\",
    "from a import b,\n",
    "if x: if y: pass\n",
    "I cannot help with that.\n",
    "x = \0\n",
];

#[test]
fn sound_sources_pass() {
    for source in SOUND {
        assert_eq!(check_syntax(source), Ok(()), "{source}");
    }
}

#[test]
fn broken_sources_are_refused() {
    for source in BROKEN {
        assert!(check_syntax(source).is_err(), "{source}");
    }
}

#[test]
fn cpython_agrees_on_every_snippet() {
    // Hexadecimal keeps line ends and null bytes as they are on the way in.
    const ASK: &str = "\
import ast, sys
for line in sys.stdin:
    try:
        ast.parse(bytes.fromhex(line).decode())
        print('sound')
    except (SyntaxError, ValueError):
        print('broken')
";
    let python = Command::new("python3")
        .args(["-W", "ignore", "-c", ASK])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut python) = python else {
        skipped("no python3 on this machine");
        return;
    };
    let snippets: Vec<&str> = SOUND.iter().chain(BROKEN).copied().collect();
    let lines: String = snippets
        .iter()
        .map(|source| source.bytes().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n")
        .collect();
    // Dropped at the end of the statement, which tells Python that there is no more.
    python.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    if answers.lines().count() != snippets.len() {
        skipped("python3 does not run here");
        return;
    }
    for (source, answer) in snippets.iter().zip(answers.lines()) {
        let ours = if check_syntax(source).is_ok() { "sound" } else { "broken" };
        assert_eq!(ours, answer, "{source}");
    }
}

fn skipped(why: &str) {
    // Not `eprintln`, which the test runner keeps to itself when a test passes.
    writeln!(std::io::stderr(), "skipped: {why}").ok();
}

#[test]
fn an_error_names_its_place_and_line() {
    let error = check_syntax("import os\n\nx = = 1\n").unwrap_err();
    let expected = SyntaxError {
        line: 3,
        column: 5,
        text: String::from("x = = 1"),
        message: String::from("invalid syntax"),
    };
    assert_eq!(error, expected);
    assert_eq!(error.to_string(), "line 3: invalid syntax: `x = = 1`");
}

#[test]
fn columns_count_characters() {
    let error = check_syntax("größe = \"ä\" $\n").unwrap_err();
    assert_eq!((error.line, error.column), (1, 13));
}

#[test]
fn the_first_error_is_the_one_reported() {
    let messages = [
        ("x = = 1\ny = (\n", "line 1: invalid syntax: `x = = 1`"),
        ("y = (\nx = 1\n", "line 1: '(' was never closed: `y = (`"),
        ("a = 1\nwhile True\n    b = 2\n", "line 2: expected ':': `while True`"),
        ("a = 1\nb =\nc = 2\n", "line 2: invalid syntax: `b =`"),
        ("def f():\nx = 1\n", "line 2: expected an indented block: `x = 1`"),
        ("x = 1\n```\n", "line 2: stray markdown fence: `````"),
        ("print 'a'\n", "line 1: missing parentheses in call to 'print': `print 'a'`"),
        (
            "class A:\n    def f(self):\n        y = g(1 2)\n        z = 2\n",
            "line 3: invalid syntax: `y = g(1 2)`",
        ),
    ];
    for (source, message) in messages {
        assert_eq!(check_syntax(source).unwrap_err().to_string(), message);
    }
}

#[test]
fn newer_syntax_passes() {
    for source in [
        "f\"{x[\"a\"]}\"\n",
        "type X = int\n",
        "def f[T](x: T): pass\n",
        "try:\n    pass\nexcept* A:\n    pass\n",
    ] {
        assert_eq!(check_syntax(source), Ok(()), "{source}");
    }
}

#[test]
fn a_long_comment_does_not_keep_the_parser_from_what_follows() {
    let comment = "# A line of a comment that goes on and on.\n".repeat(40_000);
    let error = check_syntax(&format!("x = 1\n{comment}x = = 1\n")).unwrap_err();
    assert_eq!(error.line, 40_002);
    assert_eq!(check_syntax(&format!("if x:\n{comment}    x = 1\n")), Ok(()));
}

#[test]
fn too_much_source_is_let_pass() {
    assert_eq!(check_syntax(&"(".repeat(MAX_SOURCE_BYTES + 1)), Ok(()));
}

#[test]
fn depth_does_not_overflow_the_stack() {
    let staircase: String = (0..99).map(|depth| " ".repeat(depth) + "if x:\n").collect();
    let sound = [
        "not ".repeat(50_000) + "x",
        String::from("f") + &"()".repeat(50_000),
        String::from("x") + &".a".repeat(50_000),
        "(".repeat(200) + "1" + &")".repeat(200),
        staircase.clone() + &" ".repeat(99) + "pass\n",
    ];
    for source in sound {
        assert_eq!(check_syntax(&source), Ok(()));
    }
    let nested = check_syntax(&"[".repeat(100_000)).unwrap_err();
    assert_eq!((nested.column, nested.message.as_str()), (201, "too many nested parentheses"));
    let steps = staircase + &" ".repeat(99) + "if x:\n" + &" ".repeat(100) + "pass\n";
    assert_eq!(check_syntax(&steps).unwrap_err().message, "too many levels of indentation");
}

#[test]
fn hundreds_of_widths_do_not_reach_the_parser() {
    let ragged: String = (0..1_000).map(|width| " ".repeat(width) + "1,\n").collect();
    assert_eq!(check_syntax(&format!("x = [\n{ragged}]\n")), Ok(()));
}
