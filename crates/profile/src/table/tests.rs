use proptest::prelude::*;

use super::{Format, read_from};
use crate::{Bounds, ColumnKind, ColumnProfile, DataProfile, Distinct, FileProfile, TableProfile};

fn table_of(bytes: &[u8], format: Format, bounds: &Bounds) -> Option<TableProfile> {
    read_from(bytes, bytes.len() as u64, format, bounds).unwrap()
}

fn csv(bytes: impl AsRef<[u8]>) -> TableProfile {
    table_of(bytes.as_ref(), Format::Csv, &Bounds::default()).unwrap()
}

fn names(table: &TableProfile) -> Vec<&str> {
    table.columns.iter().map(|column| column.name.as_str()).collect()
}

fn kinds(table: &TableProfile) -> Vec<ColumnKind> {
    table.columns.iter().map(|column| column.kind).collect()
}

#[test]
fn a_table_is_counted_and_its_columns_are_told_apart() {
    let column = |name: &str, kind, missing_share, distinct, examples: &[&str]| ColumnProfile {
        name: name.to_owned(),
        kind,
        missing_share,
        distinct: Distinct::Exactly(distinct),
        examples: examples.iter().map(|&example| example.to_owned()).collect(),
    };
    let expected = TableProfile {
        rows: 4,
        rows_exact: true,
        delimiter: ',',
        columns: vec![
            column("id", ColumnKind::Integer, 0.0, 4, &["1", "-2", "+3"]),
            column("fare", ColumnKind::Float, 0.25, 3, &["1", "2.5", "1e3"]),
            column("alive", ColumnKind::Boolean, 0.0, 3, &["yes", "no", "TRUE"]),
            column("born", ColumnKind::Date, 0.5, 2, &["2024-01-31", "2024/1/2 03:04:05.6Z"]),
            column("name", ColumnKind::Text, 0.0, 4, &["Ann, the \"1st\"", "Bo\nB", "3"]),
            column("none", ColumnKind::Empty, 1.0, 0, &[]),
        ],
        omitted_columns: 0,
    };
    let found = csv("id,fare,alive,born,name,none\n\
         1,1,yes,2024-01-31,\"Ann, the \"\"1st\"\"\",\n\
         -2,2.5,no,NA,\"Bo\nB\",?\n\
         +3,NaN,TRUE,null,3,None\n\
         4,1e3,no,2024/1/2 03:04:05.6Z,true,N/A\n");
    assert_eq!(found, expected);
}

#[test]
fn every_usual_delimiter_is_noticed() {
    for (delimiter, text) in [
        (',', "a,b\n1,2\n"),
        (';', "a;b\n1,5;2,5\n3,5;4,5\n"),
        ('\t', "a\tb\n1, 2\t3, 4\n"),
        ('|', "a|b\n1|2\n"),
    ] {
        let table = csv(text);
        assert_eq!((table.delimiter, names(&table)), (delimiter, vec!["a", "b"]), "{text:?}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_name() {
    assert_eq!(names(&csv("\u{feff}id,x\n1,2\n")), ["id", "x"]);
}

#[test]
fn any_line_ending_ends_a_row() {
    for text in ["a,b\n1,2\n3,4\n", "a,b\r\n1,2\r\n3,4\r\n", "a,b\r1,2\r3,4", "a,b\n\n1,2\n3,4\n\n"]
    {
        let table = csv(text);
        assert_eq!((table.rows, names(&table)), (2, vec!["a", "b"]), "{text:?}");
    }
}

#[test]
fn a_row_too_short_misses_values_and_one_too_long_is_cut() {
    let table = csv("a,b\n1\n2,x,surplus\n");
    assert_eq!(table.rows, 2);
    assert_eq!(
        table.columns.iter().map(|column| column.missing_share).collect::<Vec<_>>(),
        [0.0, 0.5]
    );
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    let table = csv(b"name,x\nJos\xe9,1\n");
    assert_eq!(table.columns[0].examples, ["Jos\u{fffd}"]);
}

#[test]
fn an_empty_file_is_no_table_but_a_header_alone_is() {
    assert_eq!(table_of(b"", Format::Csv, &Bounds::default()), None);
    assert_eq!(table_of(b"\xef\xbb\xbf\r\n\n", Format::Csv, &Bounds::default()), None);
    let table = csv("a,b");
    assert_eq!(
        (table.rows, table.rows_exact, kinds(&table)),
        (0, true, vec![ColumnKind::Empty; 2])
    );
}

#[test]
fn a_single_column_is_a_table_in_a_csv_file_and_prose_in_a_text_file() {
    assert_eq!(names(&csv("word\nyes\nno\n")), ["word"]);
    assert_eq!(table_of(b"word\nyes\nno\n", Format::Unsure, &Bounds::default()), None);
}

#[test]
fn a_text_file_is_a_table_only_when_it_looks_like_one() {
    let is_table =
        |text: &str| table_of(text.as_bytes(), Format::Unsure, &Bounds::default()).is_some();
    assert!(is_table("id\tlabel\n1\tcat\n2\tdog\n"));
    assert!(!is_table("Dear all,\nthe data, as you know, is old.\nYours, B\n"));
    assert!(!is_table("1,2\n3,4\n"), "there is no header");
    assert!(!is_table("Hello, world\n"), "there is one line");
}

#[test]
fn dates_need_a_year_a_month_and_a_day() {
    let is_date = |value: &str| kinds(&csv(format!("a,b\n{value},1\n")))[0] == ColumnKind::Date;
    for value in ["2024-01-31", "2024/1/2", "2024-01-31T10:00", "2024-01-31 10:00:00.123+02:00"] {
        assert!(is_date(value), "{value}");
    }
    for value in ["2024-13-01", "24-01-01", "2024-01", "2024-01-31 noon", "2024-01-31T", "1-2-3-4"]
    {
        assert!(!is_date(value), "{value}");
    }
}

#[test]
fn rows_beyond_the_bound_are_estimated_and_values_are_a_lower_limit() {
    let text = format!("id,x\n{}", "1234,5\n".repeat(1000));
    let rows = Bounds { max_rows_read: 100, ..Bounds::default() };
    let bytes = Bounds { max_bytes_read_per_file: 1003, ..Bounds::default() };
    for bounds in [rows, bytes] {
        let table = table_of(text.as_bytes(), Format::Csv, &bounds).unwrap();
        assert_eq!((table.rows, table.rows_exact), (1000, false));
        assert_eq!(table.columns[0].distinct, Distinct::AtLeast(1));
    }
}

#[test]
fn a_row_cut_by_the_byte_limit_is_not_taken_for_a_value() {
    let bounds = Bounds { max_bytes_read_per_file: 10, ..Bounds::default() };
    let table = table_of(b"a,b\n12,34\n56,78\n", Format::Csv, &bounds).unwrap();
    assert_eq!((table.columns[0].distinct, table.rows_exact), (Distinct::AtLeast(0), false));
}

#[test]
fn exactly_as_many_rows_as_the_bound_are_an_exact_count() {
    let bounds = Bounds { max_rows_read: 2, ..Bounds::default() };
    let table = table_of(b"a,b\n1,2\n3,4\n", Format::Csv, &bounds).unwrap();
    assert_eq!((table.rows, table.rows_exact), (2, true));
}

#[test]
fn distinct_values_are_counted_up_to_a_bound() {
    let rows = |count: usize| (0..count).map(|row| format!("{row},x\n")).collect::<String>();
    let distinct = |count| csv(format!("a,b\n{}", rows(count))).columns[0].distinct;
    assert_eq!(distinct(1000), Distinct::Exactly(1000));
    assert_eq!(distinct(1001), Distinct::AtLeast(1000));
}

#[test]
fn of_many_columns_the_first_and_the_last_are_kept() {
    let header: Vec<String> = (0..100).map(|column| format!("c{column}")).collect();
    let bounds = Bounds { max_columns: 6, ..Bounds::default() };
    let table = table_of(header.join(",").as_bytes(), Format::Csv, &bounds).unwrap();
    assert_eq!(names(&table), ["c0", "c1", "c2", "c3", "c4", "c99"]);
    assert_eq!(table.omitted_columns, 94);
}

#[test]
fn a_file_of_nothing_but_commas_is_no_table() {
    let commas = vec![b','; 2_000_000];
    assert!(read_from(commas.as_slice(), 2_000_000, Format::Csv, &Bounds::default()).is_err());
}

#[test]
fn long_values_and_names_are_cut() {
    let table = csv(format!("{},b\n{},1\n", "é".repeat(500), "ü".repeat(500)));
    let column = &table.columns[0];
    assert_eq!((column.name.chars().count(), column.examples[0].chars().count()), (200, 40));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic_and_stay_bounded(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..2000),
            // Mostly the bytes that mean something to a parser.
            proptest::collection::vec(proptest::sample::select(b",;\t|\"\r\n\0`1a-.?\xff\xef\xbb\xbf".to_vec()), 0..2000),
        ],
        max_bytes_read_per_file in 0_u64..2500,
        max_rows_read in 0_u64..20,
        max_columns in 0_usize..10,
        max_distinct in 0_usize..5,
        format in proptest::sample::select(vec![Format::Csv, Format::Tsv, Format::Unsure]),
    ) {
        let bounds = Bounds { max_bytes_read_per_file, max_rows_read, max_columns, max_distinct, ..Bounds::default() };
        let table = table_of(&bytes, format, &bounds);
        if let Some(table) = &table {
            prop_assert!(table.columns.len() <= max_columns);
            prop_assert!(table.rows <= bytes.len() as u64);
            for column in &table.columns {
                prop_assert!((0.0..=1.0).contains(&column.missing_share));
                prop_assert!(column.examples.len() <= 3);
                prop_assert!(column.examples.iter().all(|example| example.chars().count() <= 40));
                let (Distinct::Exactly(distinct) | Distinct::AtLeast(distinct)) = column.distinct;
                prop_assert!(distinct <= max_distinct);
            }
        }
        let files = vec![FileProfile { path: "x.csv".to_owned(), bytes: 0, table }];
        let profile = DataProfile {
            files, omitted_files: 0, groups: vec![], total_files: 1, total_bytes: 0,
            totals_exact: true, unreadable_folders: 0,
        };
        let text = profile.describe();
        prop_assert!(text.len() <= 12_000);
        for line in text.lines() {
            prop_assert!(line.matches('`').count().is_multiple_of(2));
            prop_assert!(!line.chars().any(char::is_control));
        }
    }
}
