use mle_star_python::{ExitCall, error_masking, exit_calls};

fn exits(source: &str) -> Vec<(String, usize)> {
    exit_calls(source).into_iter().map(|ExitCall { call, line }| (call, line)).collect()
}

fn found(calls: &[(&str, usize)]) -> Vec<(String, usize)> {
    calls.iter().map(|(call, line)| (String::from(*call), *line)).collect()
}

#[test]
fn the_four_ways_out_are_found() {
    let source = "import sys, os\nif bad:\n    exit(1)\nquit()\nsys.exit('done')\nos._exit(0)\n";
    let calls = [("exit()", 3), ("quit()", 4), ("sys.exit()", 5), ("os._exit()", 6)];
    assert_eq!(exits(source), found(&calls));
}

#[test]
fn imported_names_are_followed() {
    let sources = [
        ("from sys import exit as bye\nbye()\n", "bye()"),
        ("from sys import (argv, exit)\nexit()\n", "exit()"),
        ("from os import _exit\n_exit(1)\n", "_exit()"),
        ("from os import *\n_exit(1)\n", "_exit()"),
        ("import sys as s\ns.exit()\n", "s.exit()"),
        ("bye = sys.exit\nbye()\n", "bye()"),
        ("import builtins\nbuiltins.quit()\n", "builtins.quit()"),
    ];
    for (source, call) in sources {
        assert_eq!(exits(source), found(&[(call, 2)]), "{source}");
    }
}

#[test]
fn what_only_looks_like_an_exit_is_left_alone() {
    let sources = [
        "parser.exit()\n",
        "self.sys.exit()\n",
        "# exit()\nprint('exit()', \"\"\"sys.exit()\"\"\")\n",
        "def exit(code):\n    pass\nexit(1)\n",
        "exit = on_exit\nexit()\n",
        "from tools import quit\nquit()\n",
        "f = sys.exit\n",
        "_exit()\n",
    ];
    for source in sources {
        assert_eq!(exits(source), found(&[]), "{source}");
    }
}

#[test]
fn a_method_named_exit_is_not_the_function() {
    let source = "class A:\n    def exit(self):\n        exit()\n";
    assert_eq!(exits(source), found(&[("exit()", 3)]));
}

#[test]
fn an_exit_filled_into_a_string_is_one() {
    assert_eq!(exits("f'{exit()}'\n"), found(&[("exit()", 1)]));
}

#[test]
fn a_source_that_does_not_parse_is_still_searched() {
    let source = "x = = 1\n# exit()\ny = 'quit()'; exit (1)\nsys.exit()\nos . _exit(0)\n\
                  parser.exit()\ndef quit(): pass\nmy_exit()\n'''\nexit()\n";
    let calls = [("exit()", 3), ("sys.exit()", 4), ("os._exit()", 5)];
    assert_eq!(exits(source), found(&calls));
}

#[test]
fn excepts_that_hide_errors_are_pointed_out() {
    let source = "\
try:
    a()
except ValueError:
    pass
except Exception as e:
    # ignored
    pass
try:
    b()
except BaseException: pass
try:
    c()
except:
    log()
";
    let warnings = [
        "line 5: `except Exception: pass` hides errors",
        "line 10: `except BaseException: pass` hides errors",
        "line 13: bare `except:` hides errors",
    ];
    assert_eq!(error_masking(source), warnings);
}

#[test]
fn excepts_that_act_or_choose_are_not() {
    let source = "\
try:
    a()
except Exception as e:
    print(e)
except (Exception, KeyError):
    pass
except module.Exception:
    pass
";
    assert_eq!(error_masking(source), Vec::<String>::new());
}
