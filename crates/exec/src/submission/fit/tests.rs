use fs_err as fs;

use super::table::{LIMITS, Limits, read_table};
use super::*;

const SMALL: Limits = Limits { cells: 12, bytes: 200, record_bytes: 50 };

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
    (dir, folder)
}

fn fit_within(limits: Limits, submission: &[u8], sample: &[u8]) -> Fit {
    let read = |bytes: &[u8], ids| read_table(bytes, bytes.len() as u64, ids, limits);
    match read(sample, IdColumn::First) {
        Ok(sample) => {
            let ids = IdColumn::Named(&sample.columns[0]);
            compare("submission.csv", read(submission, ids), &sample)
        }
        Err(reason) => unreadable_sample(&reason),
    }
}

fn fit(submission: impl AsRef<[u8]>, sample: impl AsRef<[u8]>) -> Fit {
    fit_within(LIMITS, submission.as_ref(), sample.as_ref())
}

fn problems(sentences: &[&str]) -> Fit {
    let problems = sentences.iter().map(|&sentence| sentence.to_owned()).collect();
    Fit { problems, warnings: Vec::new() }
}

fn warnings(sentences: &[&str]) -> Fit {
    Fit { problems: Vec::new(), warnings: problems(sentences).problems }
}

#[test]
fn rows_may_be_in_any_order_and_files_written_in_any_style() {
    let sample = "id,y\n1,0\n2,0\n3,0\n";
    assert!(fit("id,y\n3,0.1\n1,0.2\n2,0.1\n", sample).is_good());
    let styled = b"\xEF\xBB\xBF\"id\", y\r\n 3 ,\"a\r\nb\"\r\n\"1\",c\r\n2,d";
    assert_eq!(fit(styled, sample), Fit::default());
    let quoted = "id,y\n\"a\nb\",1\n\"c,d\",2\n";
    assert_eq!(fit(quoted, quoted), Fit::default());
}

#[test]
fn ids_are_the_same_by_text_or_by_value() {
    let sample = "id,y\n1,0\n20,0\n-3,0\nx1,0\n";
    assert!(fit("id,y\n1.0,1\n2e+01,2\n-3.00,3\nx1,4\n", sample).is_good());
    let expected = problems(&[
        "submission.csv lacks 1 id of the sample submission, such as `x1`",
        "submission.csv has 1 id not found in the sample submission, such as `x1.0`",
    ]);
    assert_eq!(fit("id,y\n1,1\n20,2\n-3,3\nx1.0,4\n", sample), expected);
}

#[test]
fn ids_that_differ_only_as_text_or_beyond_a_float_stay_apart() {
    let padded = "id,y\n7,0\n007,1\n";
    assert!(fit(padded, padded).is_good());
    let expected = problems(&[
        "submission.csv lacks 1 id of the sample submission, such as `007`",
        "submission.csv has 1 id not found in the sample submission, such as `7.0`",
    ]);
    assert_eq!(fit("id,y\n7,0\n7.0,1\n", padded), expected);
    let long = "id,y\n9007199254740992,0\n9007199254740993,1\n";
    assert!(fit(long, long).is_good());
}

#[test]
fn a_number_has_one_shortest_form() {
    for text in ["10", "10.0", "+10", "010", "1e1", "1.0E+1", "100e-1", "10."] {
        assert_eq!(Same::Value.key(text), "10", "{text}");
    }
    for text in ["-0.5", "-.5", "-5e-1", "-0.50", "-00.5"] {
        assert_eq!(Same::Value.key(text), "-0.5", "{text}");
    }
    for text in ["0", "-0", "0.0", "0e5", ".0"] {
        assert_eq!(Same::Value.key(text), "0", "{text}");
    }
    for text in ["", "-", ".", "e5", "1e", "1e999", "inf", "nan", "1_0", "1.2.3", "0x1", "１"] {
        assert_eq!(Same::Value.key(text), text);
    }
}

#[test]
fn other_ids_are_counted_with_examples() {
    let sample = "id,y\n1,0\n2,0\n3,0\n4,0\n5,0\n";
    let expected = problems(&[
        "submission.csv lacks 4 ids of the sample submission, such as `2`, `3`, `4`",
        "submission.csv has 2 ids not found in the sample submission, such as `8`, `9`",
        "submission.csv has 2 rows with the id of an earlier row, such as `1.0`, `9`",
    ]);
    assert_eq!(fit("id,y\n1,1\n1.0,2\n8,3\n9,4\n9,5\n", sample), expected);
}

#[test]
fn a_first_column_that_repeats_itself_or_stands_alone_holds_no_ids() {
    assert!(fit("shop,y\n1,1\n1,2\n", "shop,y\n2,0\n2,0\n").is_good());
    assert!(fit("y\n0.1\n0.2\n", "y\n1\n2\n").is_good());
}

#[test]
fn another_number_of_rows_is_a_problem() {
    let sample = "shop,y\n1,0\n1,0\n1,0\n1,0\n1,0\n";
    let expected = problems(&["submission.csv has 3 rows, the sample submission has 5"]);
    assert_eq!(fit("shop,y\n1,1\n1,2\n1,3\n", sample), expected);
    let expected = problems(&["submission.csv has 1 row, the sample submission has 5"]);
    assert_eq!(fit("shop,y\n1,1\n", sample), expected);
}

#[test]
fn other_columns_are_a_problem_and_another_order_is_not() {
    let sample = "id,a,b,c,d,e\n1,0,0,0,0,0\n";
    let expected = problems(&[
        "submission.csv lacks 4 columns of the sample submission: `b`, `c`, `d`, …",
        "submission.csv has 1 column that the sample submission does not have: `Unnamed: 0`",
    ]);
    assert_eq!(fit("Unnamed: 0,id,a\n0,1,2\n", sample), expected);
    let expected = warnings(&["submission.csv has its columns in another order than the \
         sample submission: `id`, `y`"]);
    assert_eq!(fit("y,id\n5,1\n6,2\n", "id,y\n1,0\n2,0\n"), expected);
}

#[test]
fn missing_values_are_a_problem_where_the_sample_has_none() {
    let sample = "id,y,z\n1,0,\n2,0,0\n3,0,0\n4,0,0\n5,0,0\n";
    let expected = problems(&[
        "the column `y` of submission.csv has 4 missing values, the sample submission has none \
         there",
    ]);
    assert_eq!(fit("id,y,z\n1,,1\n2, NaN,2\n3,None,\n4,null,\n5,1,na\n", sample), expected);
}

#[test]
fn many_bad_columns_make_few_sentences() {
    let line = |cell: &str| vec![cell; 100].join(",");
    let names: Vec<String> = (0..100).map(|n| format!("c{n}")).collect();
    let table = |cell: &str| format!("id,{}\n1,{}\n", names.join(","), line(cell));
    let fit = fit(table("nan"), table("0"));
    assert_eq!(fit.problems.len(), SENTENCES + 1);
    assert_eq!(fit.problems[SENTENCES], "there are 90 more columns with missing values");
}

#[test]
fn a_constant_prediction_is_a_warning() {
    let sample = "id,y\n1,0\n2,0\n";
    let expected =
        warnings(&["the column `y` of submission.csv has the same value `0.5` in every row"]);
    assert_eq!(fit("id,y\n1,0.5\n2,0.5\n", sample), expected);
    assert!(fit("id,y\n1,0.5\n", "id,y\n1,0\n").is_good());
}

#[test]
fn a_submission_that_is_no_table_is_a_problem() {
    let sample = "id,y\n1,0\n2,0\n";
    let ragged = "submission.csv has rows of different lengths: the record at line 3 has 1 \
                  field, the header has 2";
    assert_eq!(fit("id,y\n1,1\n2\n", sample), problems(&[ragged]));
    let text = "submission.csv cannot be read: the record at line 2 is not UTF-8";
    assert_eq!(fit(b"id,y\n1,\xFF\n", sample), problems(&[text]));
    let empty = "submission.csv cannot be read: the file has no header";
    assert_eq!(fit("", sample), problems(&[empty]));
}

#[test]
fn a_sample_that_is_no_table_is_one_warning() {
    for (sample, reason) in [
        (&b""[..], "the file has no header"),
        (b"id\n\xFF\n", "the record at line 2 is not UTF-8"),
        (b"id,y\n1,2,3\n", "the record at line 2 has 3 fields, the header has 2"),
    ] {
        let expected = "the sample submission cannot be read, so nothing was compared: ";
        assert_eq!(fit("", sample), warnings(&[&format!("{expected}{reason}")]));
    }
    let expected = "the sample submission has no rows, so rows and ids were not compared";
    assert_eq!(fit("id,y\n1,2\n3,4\n", "id,y\n"), warnings(&[expected]));
}

#[test]
fn many_cells_leave_columns_and_rows_to_compare() {
    let sample = b"id,y\n1,0\n2,0\n3,0\n";
    let expected = Fit {
        problems: vec!["submission.csv has 6 rows, the sample submission has 3".to_owned()],
        warnings: vec![
            "submission.csv is very large, so only its columns and row count were compared"
                .to_owned(),
        ],
    };
    assert_eq!(fit_within(SMALL, b"id,y\n1,\n1,\n1,\n1,\n1,\n1,\n", sample), expected);
}

#[test]
fn many_bytes_leave_columns_to_compare() {
    let large = format!("id,y\n{}", "1,0\n".repeat(60));
    let expected = Fit {
        problems: problems(&["submission.csv lacks 1 column of the sample submission: `y`"])
            .problems,
        warnings: vec![
            "the sample submission is very large, so only its columns were compared".to_owned(),
        ],
    };
    assert_eq!(fit_within(SMALL, b"id\n1\n", large.as_bytes()), expected);
}

#[test]
fn a_quote_left_open_does_not_fill_the_memory() {
    let open = format!("id,y\n1,\"{}", "2,0\n".repeat(40));
    let expected = "submission.csv cannot be read: a record is too long, perhaps a quote is \
                    not closed";
    let fit = fit_within(SMALL, open.as_bytes(), b"id,y\n1,0\n");
    assert_eq!(fit, problems(&[expected]));
}

#[test]
fn a_sentence_stays_one_short_line() {
    let sample = format!("id,y\n\"a\n{}\",0\n", "b".repeat(1000));
    let fit = fit("id,y\n1,0\n", sample);
    let shown = format!("`a {}…`", "b".repeat(58));
    assert!(fit.problems[0].ends_with(&shown), "{}", fit.problems[0]);
}

/// Pieces that mean something to a parser, in an order that means nothing.
fn nonsense(state: &mut u64) -> Vec<u8> {
    const PIECES: [&[u8]; 24] = [
        b"id",
        b"y",
        b",",
        b",",
        b",",
        b"\n",
        b"\n",
        b"\r\n",
        b"\r",
        b"\"",
        b"\"\"",
        b" ",
        b"1",
        b"1.0",
        b"0",
        b"-",
        b"e9",
        b".",
        b"nan",
        b"\xFF",
        b"\xEF\xBB\xBF",
        b"\0",
        "é".as_bytes(),
        b"\xC3",
    ];
    let mut draw = |below: u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (*state >> 33) % below
    };
    let header: &[u8] = if draw(4) == 0 { b"" } else { b"id,y\n" };
    let readable = draw(4) > 0; // mostly, so that not every file ends at its first bad byte
    let kinds = if readable { 19 } else { PIECES.len() as u64 };
    let length = draw(40);
    let pieces = (0..length).flat_map(|_| PIECES[draw(kinds) as usize].to_vec());
    header.iter().copied().chain(pieces).collect()
}

#[test]
fn any_bytes_compare_without_panic_and_equal_files_without_problems() {
    let mut state = 1;
    for _ in 0..2_000 {
        let (submission, sample) = (nonsense(&mut state), nonsense(&mut state));
        for limits in [LIMITS, SMALL] {
            fit_within(limits, &submission, &sample);
            let same = fit_within(limits, &sample, &sample);
            assert_eq!(same.problems, [""; 0], "{:?}", sample.escape_ascii().to_string());
        }
    }
}

#[test]
fn only_plain_files_are_opened() {
    let (_dir, folder) = folder();
    let (file, link) = (folder.join("sample.csv"), folder.join("submission.csv"));
    fs::write(&file, "id,y\n1,0\n").unwrap();
    assert!(compare_with_sample(&file, &file).is_good());

    let absent = problems(&["submission.csv cannot be read: there is no such file"]);
    assert_eq!(compare_with_sample(&link, &file), absent);
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let refused = problems(&["submission.csv cannot be read: it is not a plain file"]);
    assert_eq!(compare_with_sample(&link, &file), refused);
    assert_eq!(compare_with_sample(&file, &folder).problems, [""; 0]);
    assert_eq!(compare_with_sample(&file, &folder).warnings.len(), 1);
}

#[test]
fn a_pipe_is_never_waited_for() {
    let (_dir, folder) = folder();
    let (file, pipe) = (folder.join("sample.csv"), folder.join("submission.csv"));
    fs::write(&file, "id,y\n1,0\n").unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let refused = problems(&["submission.csv cannot be read: it is not a plain file"]);
    assert_eq!(compare_with_sample(&pipe, &file), refused);
    assert_eq!(compare_with_sample(&file, &pipe).warnings.len(), 1);
}

#[test]
fn the_sample_is_the_shallowest_then_the_first_by_name() {
    let (_dir, folder) = folder();
    let put = |name: &str| {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "id\n").unwrap();
    };
    let found = || Some(find_sample(&folder)?.strip_prefix(&folder).unwrap().to_string());

    for name in
        ["train.csv", "submission.csv", "sample_submission.txt", "a/b/c/sample_submission.csv"]
    {
        put(name);
    }
    put("._sample_submission.csv");
    fs::create_dir(folder.join("sample_submission.csv")).unwrap();
    std::os::unix::fs::symlink("train.csv", folder.join("a_sample_submission.csv")).unwrap();
    assert_eq!(found(), None);
    for name in [
        "gender_submission.csv",
        "x/y/SampleSubmission.csv",
        "a/b/sample-submission-v2.CSV",
        "x/sampleSubmission.csv",
        "stage2_sample_submission.csv",
        "sample_submission_1.csv",
    ] {
        put(name);
        assert_eq!(found().as_deref(), Some(name));
    }
    assert_eq!(find_sample(&folder.join("absent")), None);
}
