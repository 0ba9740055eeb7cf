//! Reads the beginning of a table: the same leniency as pandas, within bounds.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufReader, Read};

use camino::Utf8Path;
use csv::ByteRecord;

use super::notation::{Decimal, make_plain};

/// Rows that are looked at.
const MAX_ROWS: usize = 20_000;
/// Cells that are looked at, so that wide tables take no more memory than long ones.
const MAX_CELLS: usize = 1_500_000;
const MAX_BYTES: u64 = 128 * 1024 * 1024;
const SAMPLE_BYTES: u64 = 64 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The beginning of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    /// Where it is, relative to the data folder.
    pub(crate) path: String,
    pub(crate) delimiter: char,
    pub(crate) encoding: Encoding,
    pub(crate) columns: Vec<Column>,
    pub(crate) margin: Margin,
    /// How many rows were read.
    pub(crate) rows: usize,
    /// Whether those are all.
    pub(crate) complete: bool,
    /// Whether all rows have as many cells as the first. Prose that happens to hold a delimiter has
    /// not.
    pub(crate) is_even: bool,
}

/// How a table's bytes are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    /// With a byte order mark.
    Utf8Marked,
    /// Not UTF-8; every byte is a character.
    Latin1,
    /// Two bytes for most characters, with a mark that tells their order.
    Utf16,
}

/// What rows have beyond the columns that the header names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Margin {
    None,
    /// A name of the row before its cells.
    RowNames,
    /// A delimiter after the last cell.
    Trailing,
}

/// One column, as far as it was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// One for each row; `None` where there is no value.
    pub(crate) values: Vec<Option<String>>,
    /// How its numbers were written, if not plainly.
    pub(crate) decimal: Option<Decimal>,
    /// Rows with the word `None`, which pandas takes for a gap.
    pub(crate) nones: Vec<usize>,
}

impl Table {
    /// Reads `path` below `folder`; `None` if it is no table, an error if it cannot be read as one.
    pub(crate) fn read(folder: &Utf8Path, path: &str) -> io::Result<Option<Self>> {
        let lower = path.to_lowercase();
        let plain = lower.strip_suffix(".gz");
        let name = plain.unwrap_or(&lower);
        if !["csv", "tsv", "txt", "tab"].iter().any(|it| name.ends_with(&format!(".{it}"))) {
            return Ok(None);
        }
        let file = fs_err::File::open(folder.join(path))?;
        if plain.is_some() {
            let unpacked = flate2::read::MultiGzDecoder::new(BufReader::new(file));
            return Self::read_from(unpacked, path);
        }
        Self::read_from(file, path)
    }

    pub(crate) fn read_from(source: impl Read, path: &str) -> io::Result<Option<Self>> {
        let mut source = source.take(MAX_BYTES);
        let mut sample = Vec::new();
        source.by_ref().take(SAMPLE_BYTES).read_to_end(&mut sample)?;
        if let [0xff, 0xfe, ..] | [0xfe, 0xff, ..] = sample.as_slice() {
            source.read_to_end(&mut sample)?;
            let table = Self::read_from(decoded(&sample).as_bytes(), path)?;
            return Ok(table.map(|table| Self { encoding: Encoding::Utf16, ..table }));
        }
        let marked = sample.starts_with(BYTE_ORDER_MARK);
        if marked {
            sample.drain(..BYTE_ORDER_MARK.len());
        }
        if sample.is_empty() {
            return Ok(None);
        }
        if sample.contains(&0) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not text"));
        }
        let delimiter = sniff(&sample, path);
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(sample.as_slice().chain(source));
        let mut record = ByteRecord::new();
        if !reader.read_byte_record(&mut record)? {
            return Ok(None);
        }
        let mut utf8 = true;
        let names = unique(record.iter().map(|cell| text(cell, &mut utf8)).collect());
        let mut columns: Vec<Column> = names
            .into_iter()
            .map(|name| Column { name, values: Vec::new(), decimal: None, nones: Vec::new() })
            .collect();
        let most = MAX_ROWS.min(MAX_CELLS / columns.len().max(1)).max(100);
        let margin = margin(&sample, delimiter);
        let skipped = usize::from(margin == Margin::RowNames);
        let width = columns.len() + usize::from(margin != Margin::None);
        let mut is_even = true;
        let mut rows = 0;
        let complete = loop {
            if !reader.read_byte_record(&mut record)? {
                break true;
            }
            if rows == most {
                break false;
            }
            rows += 1;
            is_even &= record.len() == width;
            for (position, column) in columns.iter_mut().enumerate() {
                let value = record.get(position + skipped).map(|cell| text(cell, &mut utf8));
                if value.as_deref() == Some("None") {
                    column.nones.push(column.values.len());
                }
                column.values.push(value.filter(|value| !is_missing(value)));
            }
        };
        let encoding = match (utf8, marked) {
            (false, _) => Encoding::Latin1,
            (true, true) => Encoding::Utf8Marked,
            (true, false) => Encoding::Utf8,
        };
        let delimiter = char::from(delimiter);
        let path = path.to_owned();
        let mut table =
            Self { path, delimiter, encoding, columns, margin, rows, complete, is_even };
        make_plain(&mut table);
        Ok(Some(table))
    }

    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.column(name).is_some()
    }
}

impl Column {
    /// The values that are there.
    pub(crate) fn present(&self) -> impl Iterator<Item = &str> {
        self.values.iter().flatten().map(String::as_str)
    }

    pub(crate) fn distinct(&self) -> HashSet<&str> {
        self.present().collect()
    }

    pub(crate) fn is_unique(&self) -> bool {
        let mut seen = HashSet::new();
        self.present().all(|value| seen.insert(value)) && self.values.iter().all(Option::is_some)
    }

    pub(crate) fn is_number(&self) -> bool {
        self.present().next().is_some() && self.present().all(|value| number(value).is_some())
    }
}

/// A number as pandas would read one.
pub(crate) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    // Rust also knows `infinity` and `nan`, which as values of a column are words.
    let plain = text.bytes().any(|it| it.is_ascii_digit());
    text.parse().ok().filter(|number: &f64| plain && number.is_finite())
}

/// What pandas takes for a missing value.
fn is_missing(text: &str) -> bool {
    matches!(
        text.trim(),
        "" | "NA"
            | "N/A"
            | "n/a"
            | "NaN"
            | "nan"
            | "-nan"
            | "-NaN"
            | "null"
            | "NULL"
            | "None"
            | "<NA>"
            | "#N/A"
            | "#NA"
            | "1.#IND"
            | "1.#QNAN"
    )
}

/// UTF-16 with a mark as text.
fn decoded(bytes: &[u8]) -> String {
    let (pairs, _) = bytes.as_chunks::<2>();
    let swapped = pairs.first() == Some(&[0xfe, 0xff]);
    let units = pairs.iter().skip(1).map(|pair| match swapped {
        true => u16::from_be_bytes(*pair),
        false => u16::from_le_bytes(*pair),
    });
    char::decode_utf16(units).map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn text(cell: &[u8], utf8: &mut bool) -> String {
    match std::str::from_utf8(cell) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            *utf8 = false;
            cell.iter().copied().map(char::from).collect()
        }
    }
}

/// Names as pandas gives them: a second `x` is `x.1`, or the next that is free; a blank one is
/// `Unnamed: 3`.
fn unique(names: Vec<String>) -> Vec<String> {
    let blank = |(position, name): (usize, String)| {
        if name.is_empty() { format!("Unnamed: {position}") } else { name }
    };
    let mut names: Vec<String> = names.into_iter().enumerate().map(blank).collect();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for position in 0..names.len() {
        let Some(name) = names.get(position).cloned() else { continue };
        let mut free = name.clone();
        let mut count = counts.get(&name).copied().unwrap_or(0);
        while count > 0 {
            counts.insert(name.clone(), count + 1);
            free = format!("{name}.{count}");
            count = match names.contains(&free) {
                true => count + 1,
                false => counts.get(&free).copied().unwrap_or(0),
            };
        }
        counts.insert(free.clone(), count + 1);
        if let Some(place) = names.get_mut(position) {
            *place = free;
        }
    }
    names
}

/// What the first rows have beyond the header.
fn margin(sample: &[u8], delimiter: u8) -> Margin {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(sample);
    let records: Vec<ByteRecord> = reader.byte_records().take(50).filter_map(Result::ok).collect();
    // The last record may be cut off.
    let Some((header, rows)) = records.split_first() else { return Margin::None };
    let rows = if rows.len() > 40 { rows.get(..40).unwrap_or(rows) } else { rows };
    if rows.is_empty() || rows.iter().any(|row| row.len() != header.len() + 1) {
        return Margin::None;
    }
    let blank = |row: &ByteRecord| row.iter().next_back().is_some_and(<[u8]>::is_empty);
    if rows.iter().all(blank) { Margin::Trailing } else { Margin::RowNames }
}

/// The delimiter that makes the most of the first rows.
fn sniff(sample: &[u8], path: &str) -> u8 {
    let mut candidates = [b',', b';', b'\t', b'|'];
    if path.to_lowercase().contains(".tsv") || path.to_lowercase().contains(".tab") {
        candidates = [b'\t', b',', b';', b'|'];
    }
    let cells = |delimiter: u8| {
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(sample);
        let widths: Vec<usize> =
            reader.byte_records().take(50).filter_map(|row| Some(row.ok()?.len())).collect();
        let width = widths.first().copied().unwrap_or(0);
        let even = widths.iter().filter(|it| **it == width).count();
        if width < 2 { 0 } else { width * even }
    };
    let [mut best, others @ ..] = candidates;
    for other in others {
        if cells(other) > cells(best) {
            best = other;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Table {
        Table::read_from(text, "a.csv").unwrap().unwrap()
    }

    #[test]
    fn marks_delimiters_quotes_and_foreign_bytes_are_understood() {
        let table = read("\u{feff}größe;b\n1;\"x\ny\"\n;2\n".as_bytes());
        assert_eq!((table.delimiter, table.encoding), (';', Encoding::Utf8Marked));
        let names: Vec<&str> = table.columns.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["größe", "b"]);
        assert_eq!(table.columns[1].values, [Some("x\ny".to_owned()), Some("2".to_owned())]);
        assert_eq!(table.columns[0].values, [Some("1".to_owned()), None]);

        let table = read(b"a\tb\tb\n1\t\xe9\t3\n");
        assert_eq!((table.delimiter, table.encoding), ('\t', Encoding::Latin1));
        assert_eq!(table.columns[1].values, [Some("é".to_owned())]);
        assert_eq!(table.columns[2].name, "b.1");

        let units = "\u{feff}größe,b\n1,日本\n".encode_utf16();
        let little: Vec<u8> = units.clone().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units.flat_map(u16::to_be_bytes).collect();
        assert_eq!(read(&little), read(&big));
        let table = read(&little);
        assert_eq!((table.encoding, table.columns[0].name.as_str()), (Encoding::Utf16, "größe"));
        assert_eq!(table.columns[1].values, [Some("日本".to_owned())]);
    }

    #[test]
    fn names_are_made_unique_as_pandas_makes_them() {
        let names = |header: &str| -> Vec<String> {
            unique(header.split(',').map(str::to_owned).collect())
        };
        assert_eq!(names("x,x,x.1,x,"), ["x", "x.2", "x.1", "x.3", "Unnamed: 4"]);
        assert_eq!(names("x,x.1,x,x,x.1"), ["x", "x.1", "x.2", "x.3", "x.1.1"]);
    }

    #[test]
    fn rows_that_are_longer_than_the_header_are_aligned() {
        let table = read(b"a,b\nfirst,1,2\nsecond,3,4\n");
        assert_eq!(table.margin, Margin::RowNames);
        assert_eq!(table.columns[0].values, [Some("1".to_owned()), Some("3".to_owned())]);
        let table = read(b"a,b\n1,2,\n3,4,\n");
        assert_eq!(table.margin, Margin::Trailing);
        assert_eq!(table.columns[0].values, [Some("1".to_owned()), Some("3".to_owned())]);
        assert_eq!(read(b"a,b\n1,2\n3,4,5\n").margin, Margin::None);
    }

    #[test]
    fn a_table_of_one_column_is_a_table_and_binary_is_none() {
        assert_eq!(read(b"price\n1.5\n2\n").rows, 2);
        assert!(Table::read_from(&b"a\x00\x01"[..], "a.csv").is_err());
        assert_eq!(Table::read_from(&b""[..], "a.csv").unwrap(), None);
    }
}
