//! The oddities, one by one.

use super::{Answers, Ids, Oddity};

/// Something that looks random, between 0 and 1, and is the same every time.
pub(super) fn noise(row: usize, salt: usize) -> f64 {
    ((row * 7919 + salt * 104_729 + 31) % 1009) as f64 / 1009.0
}

pub(super) fn size(row: usize) -> f64 {
    100.0 * noise(row, 1)
}

pub(super) fn town(row: usize) -> &'static str {
    match noise(row, 2) {
        share if share < 0.33 => "north",
        share if share < 0.67 => "south",
        _ => "west",
    }
}

/// A number that follows from size and town.
pub(super) fn worth(row: usize) -> f64 {
    size(row) + if town(row) == "west" { 60.0 } else { 0.0 } + 5.0 * noise(row, 3)
}

pub(super) fn verdict(row: usize) -> &'static str {
    if worth(row) > 70.0 { "yes" } else { "no" }
}

pub(super) const TRAIN: std::ops::Range<usize> = 0..90;
pub(super) const TEST: std::ops::Range<usize> = 90..120;

/// A table of these rows, line by line.
pub(super) fn table(
    header: &str,
    rows: std::ops::Range<usize>,
    line: impl Fn(usize) -> String,
) -> Vec<u8> {
    let lines = rows.map(|row| line(row) + "\n").collect::<String>();
    format!("{header}\n{lines}").into_bytes()
}

pub(super) fn packed(text: &[u8]) -> Vec<u8> {
    // Stored, not compressed: the format needs no library.
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let length = u16::try_from(text.len()).unwrap();
    file.extend(length.to_le_bytes());
    file.extend((!length).to_le_bytes());
    file.extend(text);
    let mut sum = !0_u32;
    for byte in text {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0xEDB8_8320 } else { sum >> 1 };
        }
    }
    file.extend((!sum).to_le_bytes());
    file.extend(u32::from(length).to_le_bytes());
    file
}

pub(super) fn usual(row: usize) -> String {
    format!("{row},{:.2},{}", size(row), town(row))
}

pub(super) fn usual_test() -> (&'static str, Vec<u8>) {
    ("test.csv", table("id,size,town", TEST, usual))
}

const YES_OR_NO: Answers = Answers::Words(&["yes", "no"]);
const A_WORTH: Answers = Answers::Between(-20.0, 200.0);

pub(super) fn oddities() -> Vec<Oddity> {
    let with_verdict = |row: usize| format!("{},{}", usual(row), verdict(row));
    let plain = Oddity {
        name: "",
        metric: "accuracy",
        files: Vec::new(),
        header: "id,answer",
        ids: Ids::From(90),
        answers: YES_OR_NO,
        at_worst: 0.8,
    };
    let number = |name, files| Oddity {
        name,
        metric: "rmse",
        files,
        answers: A_WORTH,
        at_worst: 20.0,
        header: "id,answer",
        ids: Ids::From(90),
    };
    vec![
        Oddity {
            name: "semicolons, a mark at the beginning, and gaps in the target",
            files: vec![
                ("train.csv", {
                    let text = table("id;size;town;answer", TRAIN, |row| {
                        let answer = if row % 9 == 0 { "" } else { verdict(row) };
                        format!("{};{answer}", usual(row).replace(',', ";"))
                    });
                    [b"\xef\xbb\xbf", text.as_slice()].concat()
                }),
                ("test.csv", table("id;size;town", TEST, |row| usual(row).replace(',', ";"))),
            ],
            ..plain_like(&plain)
        },
        Oddity {
            name: "quoted line breaks, commas and quotes in cells",
            files: vec![
                (
                    "train.csv",
                    table("id,size,town,note,answer", TRAIN, |row| {
                        format!("{},\"one, two\n\"\"three\"\" {row}\",{}", usual(row), verdict(row))
                    }),
                ),
                (
                    "test.csv",
                    table("id,size,town,note", TEST, |row| {
                        format!("{},\"one\n{row}\"", usual(row))
                    }),
                ),
            ],
            ..plain_like(&plain)
        },
        Oddity {
            name: "two bytes for each character, and line ends of another system",
            files: vec![
                ("train.csv", {
                    let text = table("id,size,town,answer", TRAIN, with_verdict);
                    let text = format!("\u{feff}{}", String::from_utf8(text).unwrap());
                    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
                }),
                ("test.csv", table("id,size,town\r", TEST, |row| usual(row) + "\r")),
            ],
            ..plain_like(&plain)
        },
        Oddity {
            name: "a class whose name reads as a gap",
            files: vec![
                (
                    "train.csv",
                    table("id,size,town,answer", TRAIN, |row| {
                        let class = if verdict(row) == "yes" { "Some" } else { "None" };
                        format!("{},{class}", usual(row))
                    }),
                ),
                usual_test(),
            ],
            answers: Answers::Words(&["Some", "None"]),
            ..plain_like(&plain)
        },
        Oddity {
            name: "packed tables",
            files: vec![
                ("train.csv.gz", packed(&table("id,size,town,answer", TRAIN, with_verdict))),
                ("test.csv.gz", packed(&table("id,size,town", TEST, usual))),
            ],
            ..plain_like(&plain)
        },
        Oddity {
            name: "targets in a table of their own, in another order",
            files: vec![
                ("train_features.csv", table("id,size,town", TRAIN, usual)),
                (
                    "train_labels.csv",
                    table("id,answer", TRAIN, |row| {
                        let row = TRAIN.end - 1 - row;
                        format!("{row},{}", verdict(row))
                    }),
                ),
                ("test_features.csv", table("id,size,town", TEST, usual)),
            ],
            ..plain_like(&plain)
        },
        Oddity {
            name: "a column without values and one that is constant",
            files: vec![
                (
                    "train.csv",
                    table("id,size,town,empty,same,answer", TRAIN, |row| {
                        format!("{},,7,{}", usual(row), verdict(row))
                    }),
                ),
                ("test.csv", table("id,size,town,empty,same", TEST, |row| usual(row) + ",,7")),
            ],
            ..plain_like(&plain)
        },
        Oddity {
            name: "300 columns",
            files: vec![
                ("train.csv", {
                    let names: Vec<String> = (0..300).map(|it| format!("c{it}")).collect();
                    table(&format!("id,size,town,{},answer", names.join(",")), TRAIN, |row| {
                        let cells: Vec<String> =
                            (0..300).map(|it| format!("{:.3}", noise(row, it + 9))).collect();
                        format!("{},{},{:.2}", usual(row), cells.join(","), worth(row))
                    })
                }),
                ("test.csv", {
                    let names: Vec<String> = (0..300).map(|it| format!("c{it}")).collect();
                    table(&format!("id,size,town,{}", names.join(",")), TEST, |row| {
                        let cells: Vec<String> =
                            (0..300).map(|it| format!("{:.3}", noise(row, it + 9))).collect();
                        format!("{},{}", usual(row), cells.join(","))
                    })
                }),
            ],
            at_worst: 45.0,
            ..number("", Vec::new())
        },
        Oddity {
            name: "test columns in another order, with extra ones and one missing",
            files: vec![
                (
                    "train.csv",
                    table("id,size,town,gone,answer", TRAIN, |row| {
                        format!("{},{:.3},{}", usual(row), noise(row, 8), verdict(row))
                    }),
                ),
                (
                    "test.csv",
                    table("extra,town,size,id", TEST, |row| {
                        format!("1,{},{:.2},{row}", town(row), size(row))
                    }),
                ),
            ],
            ..plain_like(&plain)
        },
        Oddity {
            name: "foreign names and names that repeat",
            files: vec![
                (
                    "train.csv",
                    table("id,größe,größe,町,\"a \"\"b\"\"\",ответ", TRAIN, |row| {
                        format!(
                            "{row},{:.2},{:.2},{},{row},{}",
                            size(row),
                            noise(row, 7),
                            town(row),
                            verdict(row)
                        )
                    }),
                ),
                (
                    "test.csv",
                    table("id,größe,größe,町,\"a \"\"b\"\"\"", TEST, |row| {
                        format!("{row},{:.2},{:.2},{},{row}", size(row), noise(row, 7), town(row))
                    }),
                ),
            ],
            header: "id,ответ",
            ..plain_like(&plain)
        },
        Oddity {
            name: "identifiers only in the test rows, with leading zeros",
            files: vec![
                (
                    "train.csv",
                    table("size,town,answer", TRAIN, |row| {
                        format!("{:.2},{},{}", size(row), town(row), verdict(row))
                    }),
                ),
                (
                    "test.csv",
                    table("ID,size,town", TEST, |row| {
                        format!("{row:05},{:.2},{}", size(row), town(row))
                    }),
                ),
            ],
            header: "ID,answer",
            ids: Ids::Named(|row| format!("{row:05}")),
            ..plain_like(&plain)
        },
        Oddity {
            name: "identifiers only in the sample submission",
            files: vec![
                (
                    "train.csv",
                    table("size,town,answer", TRAIN, |row| {
                        format!("{:.2},{},{:.2}", size(row), town(row), worth(row))
                    }),
                ),
                (
                    "test.csv",
                    table("size,town", TEST, |row| format!("{:.2},{}", size(row), town(row))),
                ),
                ("sample_submission.csv", table("Row,answer", TEST, |row| format!("r{row},0"))),
            ],
            header: "Row,answer",
            ids: Ids::Named(|row| format!("r{row}")),
            ..number("", Vec::new())
        },
        Oddity {
            name: "no identifiers at all",
            files: vec![
                (
                    "train.csv",
                    table("size,town,answer", TRAIN, |row| {
                        format!("{:.2},{},{:.2}", size(row), town(row), worth(row))
                    }),
                ),
                (
                    "test.csv",
                    table("size,town", TEST, |row| format!("{:.2},{}", size(row), town(row))),
                ),
            ],
            header: "answer",
            ids: Ids::None,
            ..number("", Vec::new())
        },
        number(
            "decimal commas in one table and points in the other",
            vec![
                (
                    "train.csv",
                    table("id;size;town;answer", TRAIN, |row| {
                        format!("{row};{:.2};{};{:.2}", size(row), town(row), worth(row))
                            .replace('.', ",")
                    }),
                ),
                usual_test(),
            ],
        ),
        number(
            "thousands marks and currencies, in the target too",
            vec![
                (
                    "train.csv",
                    table("id,size,town,answer", TRAIN, |row| {
                        let written = |value: f64| {
                            let whole = (value * 1000.0) as u64;
                            format!("\"${},{:03}.50\"", 1 + whole / 1000, whole % 1000)
                        };
                        format!(
                            "{row},{},{},{}",
                            written(size(row)),
                            town(row),
                            written(worth(row))
                        )
                    }),
                ),
                (
                    "test.csv",
                    table("id,size,town", TEST, |row| {
                        let whole = (size(row) * 1000.0) as u64;
                        format!(
                            "{row},\"${},{:03}.50\",{}",
                            1 + whole / 1000,
                            whole % 1000,
                            town(row)
                        )
                    }),
                ),
            ],
        )
        .in_thousands(),
        Oddity {
            name: "groups of two rows that no test row shares",
            files: vec![
                (
                    "train.csv",
                    table("id,size,town,person,answer", TRAIN, |row| {
                        format!("{},p{},{}", usual(row), row / 2, verdict(row))
                    }),
                ),
                (
                    "test.csv",
                    table("id,size,town,person", TEST, |row| {
                        format!("{},p{}", usual(row), row / 2)
                    }),
                ),
            ],
            ..plain_like(&plain)
        },
        number(
            "places on the map under names of their own",
            vec![
                (
                    "train.csv",
                    table("id,hoch,quer,answer", TRAIN, |row| {
                        let (up, across) = (47.0 + noise(row, 1), 11.0 + noise(row, 4));
                        format!("{row},{up:.4},{across:.4},{:.2}", 100.0 * (up - 47.0))
                    }),
                ),
                (
                    "test.csv",
                    table("id,hoch,quer", TEST, |row| {
                        format!("{row},{:.4},{:.4}", 47.0 + noise(row, 1), 11.0 + noise(row, 4))
                    }),
                ),
            ],
        ),
        number(
            "nothing but dates",
            vec![
                (
                    "train.csv",
                    table("id,seen,answer", TRAIN, |row| {
                        format!(
                            "{row},20{:02}-0{}-15,{}",
                            10 + row % 9,
                            1 + row % 7,
                            10 * (row % 9)
                        )
                    }),
                ),
                (
                    "test.csv",
                    table("id,seen", TEST, |row| {
                        format!("{row},20{:02}-0{}-15", 10 + row % 9, 1 + row % 7)
                    }),
                ),
            ],
        ),
        Oddity {
            name: "a rare class, and classes with leading zeros",
            files: vec![
                (
                    "train.csv",
                    table("id,size,town,answer", TRAIN, |row| {
                        let class = if row == 5 {
                            "09"
                        } else if verdict(row) == "yes" {
                            "01"
                        } else {
                            "02"
                        };
                        format!("{},{class}", usual(row))
                    }),
                ),
                usual_test(),
            ],
            answers: Answers::Words(&["01", "02", "09"]),
            ..plain_like(&plain)
        },
        number(
            "a word far down in a column of numbers, and rows with names",
            vec![
                ("train.csv", {
                    table("id,size,town,answer", TRAIN, |row| {
                        format!("row{row},{},{:.2}", usual(row), worth(row))
                    })
                }),
                (
                    "test.csv",
                    table("id,size,town", TEST, |row| {
                        if row == 100 { format!("{row},unknown,{}", town(row)) } else { usual(row) }
                    }),
                ),
            ],
        )
        .at_worst(20.0),
    ]
}

fn plain_like(it: &Oddity) -> Oddity {
    let Oddity { name, metric, header, at_worst, .. } = *it;
    Oddity {
        name,
        metric,
        files: Vec::new(),
        header,
        ids: Ids::From(90),
        answers: YES_OR_NO,
        at_worst,
    }
}
