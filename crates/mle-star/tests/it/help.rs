//! Every page of help, as it is printed.

use insta::assert_snapshot;

use crate::shop::Shop;

fn help(arguments: &[&str]) -> String {
    let shop = Shop::new();
    let help = shop.command().args(arguments).env("COLUMNS", "100").output().unwrap();
    assert!(help.status.success() && help.stderr.is_empty(), "{arguments:?}");
    String::from_utf8(help.stdout).unwrap()
}

/// The names below `Commands:`; what goes on in a further line is indented by more.
fn commands(page: &str) -> Vec<&str> {
    let (_, list) = page.split_once("Commands:\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    let named = list.lines().filter_map(|line| line.strip_prefix("  "));
    named.filter(|line| !line.starts_with(' ')).filter_map(|it| it.split(' ').next()).collect()
}

#[test]
fn every_command_has_a_page_of_help_with_an_example() {
    let page = help(&["--help"]);
    assert_snapshot!("help", page);
    let commands = commands(&page);
    assert!(commands.len() > 10 && commands.contains(&"init"), "{commands:?}");
    for command in commands.into_iter().filter(|it| *it != "help") {
        let page = help(&[command, "--help"]);
        assert_snapshot!(format!("help_of_{command}"), page);
        let examples = page.split_once("\nExample").map(|(_, it)| it).unwrap_or_default();
        assert!(examples.contains(&format!("mle-star {command}")), "{command}:\n{page}");
        assert!(page.lines().all(|line| line.chars().count() <= 100), "{command}:\n{page}");
        assert_eq!(page, help(&[command, "-h"]));
        assert_eq!(page, help(&["help", command]));
    }
}
