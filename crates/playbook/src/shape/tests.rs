use std::io::Write as _;

use super::*;
use crate::testing::{playbook, rows, test_rows};

fn shape(metric: &str, files: &[(&str, &str)]) -> Result<Shape, ShapeError> {
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    playbook(metric, &files).map(|playbook| playbook.shape)
}

fn both(metric: &str, target: impl Fn(usize) -> String) -> Result<Shape, ShapeError> {
    shape(metric, &[("train.csv", &rows(120, target)), ("test.csv", &test_rows(40))])
}

#[test]
fn the_shape_of_an_ordinary_task() {
    let shape = both("accuracy", |row| (row % 2).to_string()).unwrap();
    assert_eq!((shape.kind, shape.metric), (Kind::Binary, "accuracy"));
    assert_eq!(
        (shape.id.as_deref(), shape.targets.as_slice()),
        (Some("id"), &["y".to_owned()][..])
    );
    assert_eq!(shape.numeric, ["size"]);
    assert_eq!(shape.categorical, ["colour"]);
    assert_eq!(shape.codes, ["cabin"]);
    assert_eq!(shape.dates, ["seen"]);
    assert_eq!(shape.text, ["note"]);
    assert_eq!((shape.group, shape.time, shape.rows), (None, None, 120));
}

#[test]
fn the_kind_follows_from_metric_and_target() {
    let kind = |metric: &str, target: fn(usize) -> String| both(metric, target).unwrap().kind;
    let classes = |row: usize| (row % 4).to_string();
    assert_eq!(kind("log_loss", |row| ["no", "yes"][row % 2].to_owned()), Kind::Binary);
    assert_eq!(kind("log_loss", classes), Kind::Multiclass);
    assert_eq!(kind("rmse", classes), Kind::Regression);
    assert_eq!(kind("qwk", classes), Kind::Regression);
    assert_eq!(kind("f1_macro", classes), Kind::Multiclass);
    assert_eq!(both("log_loss", classes).unwrap().metric, "multiclass_log_loss");
}

#[test]
fn several_targets_are_told_by_the_sample() {
    let mut train = "id,x,a,b\n".to_owned();
    let mut test = "id,x\n".to_owned();
    let mut sample = "id,a,b\n".to_owned();
    for row in 0..40 {
        train.extend([format!("{row},{}.5,{},{}\n", row % 7, row % 2, (row / 2) % 2)]);
        test.extend([format!("{},{}.5\n", row + 40, row % 7)]);
        sample.extend([format!("{},0.5,0.5\n", row + 40)]);
    }
    let files =
        [("train.csv", train.as_str()), ("test.csv", &test), ("sample_submission.csv", &sample)];
    let found = shape("mean_columnwise_roc_auc", &files).unwrap();
    assert_eq!((found.kind, found.targets.len()), (Kind::Multilabel, 2));
    let train = train.replace(",1,", ",3,");
    let files = [("train.csv", train.as_str()), files[1], files[2]];
    let error = shape("roc_auc", &files).unwrap_err();
    assert_eq!(error.to_string(), "several targets must each be 0 or 1: `a` is not");
}

#[test]
fn classes_as_columns_of_the_sample_are_one_target() {
    let train = rows(60, |row| ["cat", "dog", "owl"][row % 3].to_owned());
    let sample = "id,cat,dog,owl\n0,0.3,0.3,0.4\n";
    let files =
        [("train.csv", train.as_str()), ("test.csv", &test_rows(20)), ("sample.csv", sample)];
    let found = shape("multiclass_log_loss", &files).unwrap();
    assert_eq!((found.kind, found.targets), (Kind::Multiclass, vec!["y".to_owned()]));
}

#[test]
fn what_makes_no_sense_is_an_error_that_says_why() {
    let message = |result: Result<Shape, ShapeError>| result.unwrap_err().to_string();
    let one = both("accuracy", |_| "1".to_owned());
    assert_eq!(message(one), "the target `y` has one value only: there is nothing to learn");
    let few = shape("rmse", &[("train.csv", "a,y\n1,2\n2,3\n3,5\n"), ("test.csv", "a\n4\n")]);
    assert_eq!(message(few), "3 training rows with a target are too few: at least 10 are needed");
    let words = both("rmse", |row| format!("about {row}"));
    assert!(message(words).starts_with("the target `y` is to be a number, but has values such as"));
    assert!(message(both("bleu", |row| row.to_string())).contains("`bleu`; it knows accuracy"));
    let alone = shape("rmse", &[("train.csv", &rows(20, |row| row.to_string()))]);
    assert_eq!(message(alone), "there is no test table beside `train.csv`");
    let none = shape("rmse", &[("notes.md", "hello")]);
    assert!(message(none).starts_with("there is no training table"));
    let train = rows(20, |row| row.to_string());
    let empty = shape("rmse", &[("train.csv", &train), ("test.csv", "id,size\n")]);
    assert_eq!(message(empty), "the test table `test.csv` has no rows");
    let broken = shape("rmse", &[("train.csv.gz", &train), ("test.csv", &test_rows(9))]);
    assert!(message(broken).starts_with("`train.csv.gz` cannot be read as a table: "));
    let same = rows(20, |row| row.to_string()).replace(",y\n", ",price\n");
    let same = shape("rmse", &[("train.csv", &same), ("test.csv", &same)]);
    assert!(message(same).starts_with("the target cannot be told"));
}

#[test]
fn odd_files_are_read() {
    let train = rows(60, |row| (row % 2).to_string());
    let semicolons = format!("\u{feff}{}", train.replace(',', ";"));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(test_rows(20).as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let files: [(&str, &[u8]); 2] =
        [("Train.csv", semicolons.as_bytes()), ("test.csv.gz", &packed)];
    let found = playbook("accuracy", &files).unwrap();
    assert_eq!(found.shape.train.delimiter, ';');
    assert_eq!(found.shape.test.path, "test.csv.gz");
    let data = crate::data_section::data_section(&found.shape, 30_000);
    assert!(data.text.contains("\"./input/Train.csv\", sep=\";\", encoding=\"utf-8-sig\""));
    mle_star_python::check_syntax(&data.text).unwrap();
}

#[test]
fn rows_without_a_target_and_columns_without_values_are_left_out() {
    let train = rows(60, |row| if row % 5 == 0 { String::new() } else { (row % 2).to_string() });
    let train = train.replace("id,size", "empty,id,size").replace('\n', "\n,");
    let train = train.trim_end_matches(',');
    let test = test_rows(20).replace("id,size", "extra,id,size").replace('\n', "\n5,");
    let test = test.trim_end_matches("5,");
    let found = shape("accuracy", &[("train.csv", train), ("test.csv", test)]).unwrap();
    assert_eq!((found.targets.as_slice(), found.kind), (&["y".to_owned()][..], Kind::Binary));
    assert!(found.columns().all(|name| name != "empty" && name != "extra"));
    // Labels are written as they were read, not as 0.0 and 1.0.
    let data = crate::data_section::data_section(&found, 30_000);
    assert!(data.text.contains("train[TARGETS] = train[TARGETS].astype(int)"));
}

#[test]
fn many_columns_and_foreign_names_are_kept_in_order() {
    let names: Vec<String> = (0..300).map(|it| format!("größe {it} \"日本\"")).collect();
    let quoted: Vec<String> =
        names.iter().map(|it| format!("\"{}\"", it.replace('"', "\"\""))).collect();
    let mut train = format!("{},ziel\n", quoted.join(","));
    let mut test = format!("{}\n", quoted.iter().rev().cloned().collect::<Vec<_>>().join(","));
    for row in 0..30 {
        let values: Vec<String> = (0..300).map(|it| format!("{}.5", (row * it) % 13)).collect();
        train.extend([format!("{},{}\n", values.join(","), row * 2)]);
        test.extend([format!("{}\n", values.join(","))]);
    }
    let found = shape("rmse", &[("train.csv", &train), ("test.csv", &test)]).unwrap();
    assert_eq!(found.targets, ["ziel"]);
    assert_eq!(found.numeric.len(), 276, "every thirteenth is constant");
    let data = crate::data_section::data_section(&found, 30_000);
    mle_star_python::check_syntax(&data.text).unwrap();
}

#[test]
fn groups_and_time_are_seen_by_comparing_with_the_test_rows() {
    let mut train = "id,person,day,x,y\n".to_owned();
    let mut test = "id,person,day,x\n".to_owned();
    for row in 0..100 {
        train.extend([format!(
            "{row},p{},2020-01-{:02},{}.5,{}\n",
            row / 4,
            1 + row % 28,
            row % 9,
            row % 2
        )]);
        test.extend([format!(
            "{},p{},2021-01-{:02},{}.5\n",
            row + 100,
            25 + row / 4,
            1 + row % 28,
            row % 9
        )]);
    }
    let found = shape("accuracy", &[("train.csv", &train), ("test.csv", &test)]).unwrap();
    assert_eq!(found.group, Some(Group::Column("person".to_owned())));
    assert_eq!(found.time.as_deref(), Some("day"));
}

#[test]
fn identifiers_are_found_by_name_by_value_and_in_the_sample() {
    let line = |row: usize| format!("{}.5,{}", (row * 7) % 31, ["a", "b"][row % 2]);
    let train = |name: &str| {
        let rows = (0..60).map(|row| format!("{row},{},{}\n", line(row), row % 2));
        format!("{name},x,c,y\n{}", rows.collect::<String>())
    };
    let test = |name: &str| {
        let rows = (60..90).map(|row| format!("{row},{}\n", line(row))).collect::<String>();
        format!("{name},x,c\n{rows}")
    };
    let sample = |name: &str, first: usize| {
        let rows = (first..first + 30).map(|row| format!("{row},0\n")).collect::<String>();
        format!("{name},y\n{rows}")
    };
    let found = |train: String, test: String, sample: Option<String>| {
        let mut files = vec![("train.csv", train), ("test.csv", test)];
        files.extend(sample.map(|it| ("sample_submission.csv", it)));
        let files: Vec<(&str, &str)> = files.iter().map(|it| (it.0, it.1.as_str())).collect();
        let shape = shape("accuracy", &files).unwrap();
        (shape.id, shape.id_source)
    };
    let id = |name: &str| Some(name.to_owned());
    assert_eq!(found(train("id"), test("id"), None), (id("id"), IdSource::Test));
    assert_eq!(found(train("zeile"), test("zeile"), None), (id("zeile"), IdSource::Test));
    assert_eq!(found(train("other"), test("zeile"), None), (id("zeile"), IdSource::Test));
    let renamed = found(train("zeile"), test("zeile"), Some(sample("Row", 60)));
    assert_eq!(renamed, (id("Row"), IdSource::Column("zeile".to_owned())));
    let counted = found(train("zeile"), test("zeile"), Some(sample("Row", 0)));
    assert_eq!(counted, (id("Row"), IdSource::Sample));
}
