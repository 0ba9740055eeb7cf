//! The leakage rules against labelled scripts: `leakage/leaky/` and `leakage/clean/`.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use mle_star_playbook::leaks;

/// The names of the scripts in a folder, and whether a leak was found in each.
fn judged(folder: &str) -> Vec<(String, bool)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/leakage").join(folder);
    let mut files: Vec<_> =
        fs_err::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    let judged = files.into_iter().map(|path| {
        let source = fs_err::read_to_string(&path).unwrap();
        mle_star_python::check_syntax(&source).unwrap();
        let found = leaks(&source);
        for leak in &found {
            assert!(source.contains(&leak.block), "{}: {}", path.display(), leak.block);
        }
        (path.file_stem().unwrap().to_string_lossy().into_owned(), !found.is_empty())
    });
    judged.collect()
}

#[test]
fn recall_and_precision_are_at_least_nine_in_ten() {
    let (leaky, clean) = (judged("leaky"), judged("clean"));
    assert!(leaky.len() >= 20 && clean.len() >= 20);
    let missed: Vec<&String> = leaky.iter().filter(|it| !it.1).map(|it| &it.0).collect();
    let wrong: Vec<&String> = clean.iter().filter(|it| it.1).map(|it| &it.0).collect();
    let found = (leaky.len() - missed.len()) as f64;
    let recall = found / leaky.len() as f64;
    let precision = found / (found + wrong.len() as f64);
    assert_eq!(missed, [""; 0], "a leak that was found is found no more");
    assert!(
        recall >= 0.9 && precision >= 0.9,
        "recall {recall:.2}, precision {precision:.2}; missed {missed:?}, wrong {wrong:?}"
    );
}

#[test]
fn no_clean_example_is_called_leaky() {
    let wrong: Vec<String> = judged("clean").into_iter().filter(|it| it.1).map(|it| it.0).collect();
    assert_eq!(wrong, [""; 0]);
}
