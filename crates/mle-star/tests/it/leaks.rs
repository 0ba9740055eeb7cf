//! Leaks that the playbook corrects: the corrected scripts still run, and their score is honest.

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_playbook::leaks;
use mle_star_search::reply::try_extract_code;
use serde_json::json;

use crate::odd::{answer, open, run_all};
use crate::playbook::python;
use crate::shop::Shop;

/// Columns of words, in the examples that have some.
const WORDS: [&str; 6] = ["team", "shop", "brand", "city", "sex", "text"];

/// Data for a script: the columns that it names and a few more, with the target that it predicts.
fn data(script: &str) -> String {
    let named = regex_lite::Regex::new(r#"["']([A-Za-z_][A-Za-z_0-9]*)["']"#).unwrap();
    let mut columns: Vec<String> = named.captures_iter(script).map(|it| it[1].to_owned()).collect();
    let made = regex_lite::Regex::new(r#"df\["([a-z_]+)"\] = |scoring="|select_dtypes"#).unwrap();
    let made: Vec<String> = made
        .captures_iter(script)
        .filter_map(|it| it.get(1))
        .map(|it| it.as_str().to_owned())
        .collect();
    let words = ["number", "male", "median", "use_encoded_value", "mean", "cluster"];
    columns.retain(|it| !made.contains(it) && !words.contains(&it.as_str()));
    if !WORDS.iter().any(|it| columns.contains(&(*it).to_owned())) || script.contains("\"sex\"") {
        columns.extend((0..24).map(|it| format!("extra{it}")));
    }
    columns.sort();
    columns.dedup();
    let target = regex_lite::Regex::new(
        r#"(?m)^(?:y|target|labels|clicked) = \w+(?:\["|\.pop\(")([a-z_]+)|data\["(fraud)"\]|df\["(target)"\]"#,
    )
    .unwrap();
    let target = target.captures(script).unwrap();
    let target = target.iter().skip(1).flatten().next().unwrap().as_str().to_owned();
    let classes = ["Classifier", "LogisticRegression", "SVC"].iter().any(|it| script.contains(it));
    columns.retain(|it| *it != target);
    let mut text = format!("{},{target}\n", columns.join(","));
    for row in 0..120_usize {
        let noise = |salt: usize| ((row * 7919 + salt * 104_729 + 31) % 1009) as f64 / 1009.0;
        let cells = columns.iter().enumerate().map(|(salt, column)| match column.as_str() {
            "text" => format!("word{} word{} word{}", row % 7, row % 5, row % 3),
            "sex" => ["male", "female"].get(row % 2).copied().unwrap_or_default().to_owned(),
            "age" | "income" if row % 11 == 0 && script.contains("fillna") => String::new(),
            it if WORDS.contains(&it) => format!("w{}", (noise(salt) * 6.0) as usize),
            _ => format!("{:.3}", 1.0 + noise(salt)),
        });
        let cells: Vec<String> = cells.collect();
        let answer = noise(0) + noise(1);
        let answer = if classes {
            usize::from(answer > 1.0).to_string()
        } else {
            format!("{:.3}", 1.0 + answer)
        };
        text = format!("{text}{},{answer}\n", cells.join(","));
    }
    text
}

/// The script as the search would have it corrected.
async fn corrected(playbook: &mle_star_playbook::Playbook, script: &str) -> String {
    let lines = |text: &str| -> (String, String) {
        let mut lines = text.lines().filter(|it| !it.trim().is_empty());
        (lines.next().unwrap().to_owned(), lines.next_back().unwrap_or_default().to_owned())
    };
    let mut script = script.to_owned();
    for leak in leaks(&script) {
        let input = json!({ "code": script, "code_block": leak.block });
        let reply = answer(playbook, "leakage", Some("correction"), input).await;
        let Some(code) = try_extract_code(&reply) else { continue };
        let whole = lines(&code) == lines(&script);
        script = if whole { code } else { script.replacen(leak.block.trim(), code.trim(), 1) };
    }
    script
}

#[tokio::test]
async fn corrected_scripts_still_run() {
    let Some(python) = python().await else { return };
    let shop = Shop::new();
    let usual = shop.path().join("usual/input");
    fs_err::create_dir_all(&usual).unwrap();
    let rows = (0..40).map(|it| format!("{it},{}.5,{}\n", it * 7 % 13, it % 2)).collect::<String>();
    fs_err::write(usual.join("train.csv"), format!("id,x,y\n{rows}")).unwrap();
    fs_err::write(usual.join("test.csv"), "id,x\n50,1.5\n51,2.5\n").unwrap();
    let playbook = open(&usual, "accuracy").unwrap();
    let examples =
        Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../playbook/tests/leakage/leaky");
    let mut folders: Vec<(String, Utf8PathBuf)> = Vec::new();
    for entry in examples.read_dir_utf8().unwrap() {
        let path = entry.unwrap().into_path();
        let source = fs_err::read_to_string(&path).unwrap();
        let script = corrected(&playbook, &source).await;
        // This package is no part of the standard environment.
        if !leaks(&script).is_empty() || source.contains("imblearn") {
            continue;
        }
        let name = path.file_stem().unwrap().to_owned();
        let folder = shop.path().join(&name);
        fs_err::create_dir_all(folder.join("input")).unwrap();
        let train = data(&source);
        let test = train.lines().map(|line| line.rsplit_once(',').unwrap().0.to_owned() + "\n");
        fs_err::write(folder.join("input/test.csv"), test.collect::<String>()).unwrap();
        fs_err::write(folder.join("input/train.csv"), train).unwrap();
        fs_err::write(folder.join("script.py"), script).unwrap();
        folders.push((name, folder));
    }
    assert!(folders.len() >= 20, "{} examples are corrected", folders.len());
    run_all(&python, &folders.iter().map(|it| it.1.clone()).collect::<Vec<_>>());
    let problems: Vec<String> = folders
        .iter()
        .filter_map(|(name, folder)| {
            let printed = fs_err::read_to_string(folder.join("printed.txt")).unwrap();
            let score = printed.lines().last().and_then(|it| it.rsplit(' ').next());
            let scored = score.and_then(|it| it.parse::<f64>().ok()).is_some_and(f64::is_finite);
            let script = fs_err::read_to_string(folder.join("script.py")).unwrap();
            (!scored).then(|| format!("{name}:\n{script}\n{printed}"))
        })
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}
