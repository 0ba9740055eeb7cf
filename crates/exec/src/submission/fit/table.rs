//! Reads a table of any size and any bytes, and keeps of it what can be compared.

use std::io::{self, Read};

use camino::Utf8Path;
use fs_err as fs;

use super::counted;
use crate::submission::complaint;

/// What is read and kept of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Of a file with more cells only the columns and the number of rows are kept.
    pub(super) cells: u64,
    /// Of a larger file only the header is read.
    pub(super) bytes: u64,
    /// The parser holds one record in memory with a word per field, and one unclosed quote makes
    /// a whole file one record.
    pub(super) record_bytes: u64,
}

pub(super) const LIMITS: Limits =
    Limits { cells: 20_000_000, bytes: 1 << 30, record_bytes: 16 << 20 };

/// Where the ids are.
#[derive(Debug, Clone, Copy)]
pub(super) enum IdColumn<'a> {
    First,
    Named(&'a str),
}

/// A file as far as it was read.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) columns: Vec<String>,
    /// `None` if the file is too large to count them.
    pub(super) rows: Option<u64>,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    /// The ids (none if there is no such column) and what each column holds.
    Whole(Texts, Vec<Column>),
    TooLarge,
    /// Rows differ in length; where the first one is.
    Ragged(String),
}

/// What is kept of the cells of one column.
#[derive(Debug, Clone, Default)]
pub(super) struct Column {
    pub(super) missing: u64,
    pub(super) first: String,
    pub(super) varies: bool,
}

impl Column {
    fn add(&mut self, cell: &str, is_first_row: bool) {
        if is_first_row {
            cell.clone_into(&mut self.first);
        } else if !self.varies {
            self.varies = cell != self.first;
        }
        if is_missing(cell) {
            self.missing += 1;
        }
    }
}

fn is_missing(cell: &str) -> bool {
    cell.is_empty() || ["nan", "null", "none", "na"].iter().any(|n| cell.eq_ignore_ascii_case(n))
}

/// Many short texts in one allocation.
#[derive(Debug, Default)]
pub(super) struct Texts {
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| self.text.get(start..end).unwrap_or_default())
    }
}

/// Reads at most so many bytes between two records.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other("a record is too long, perhaps a quote is not closed"));
        }
        let count = (&mut self.inner).take(self.left).read(buffer)?;
        self.left = self.left.saturating_sub(count as u64);
        Ok(count)
    }
}

/// Opens only what is known to be a plain file: a pipe never ends, and a link may lead anywhere.
pub(super) fn read_file(file: &Utf8Path, ids: IdColumn<'_>) -> Result<Table, String> {
    let found = match fs::symlink_metadata(file) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err("there is no such file".to_owned());
        }
        Err(error) => return Err(error.to_string()),
    };
    if !found.is_file() {
        return Err("it is not a plain file".to_owned());
    }
    let opened = fs::File::open(file).map_err(|error| error.to_string())?;
    read_table(opened.take(LIMITS.bytes), found.len(), ids, LIMITS)
}

/// The table in `input`, which is `size` bytes long, or why it is none.
pub(super) fn read_table(
    input: impl Read,
    size: u64,
    ids: IdColumn<'_>,
    limits: Limits,
) -> Result<Table, String> {
    let input = Bounded { inner: input, left: limits.record_bytes };
    let mut builder = csv::ReaderBuilder::new();
    let mut reader = builder.flexible(true).trim(csv::Trim::All).from_reader(input);
    let header = reader.headers().map_err(complaint)?;
    if header.is_empty() {
        return Err("the file has no header".to_owned());
    }
    let columns: Vec<String> = header.iter().map(str::to_owned).collect();
    if size > limits.bytes {
        return Ok(Table { columns, rows: None, content: Content::TooLarge });
    }
    let id_column = match ids {
        IdColumn::First => Some(0),
        IdColumn::Named(name) => columns.iter().position(|column| column == name),
    };

    let (mut rows, mut cells) = (0, columns.len() as u64);
    let mut content = Content::Whole(Texts::default(), vec![Column::default(); columns.len()]);
    let mut record = csv::StringRecord::new();
    loop {
        reader.get_mut().left = limits.record_bytes;
        if !reader.read_record(&mut record).map_err(complaint)? {
            break;
        }
        cells += record.len() as u64;
        if record.len() != columns.len() && !matches!(content, Content::Ragged(_)) {
            let line = record.position().map_or(1, csv::Position::line);
            let (fields, expected) = (counted(record.len() as u64, "field"), columns.len());
            content = Content::Ragged(format!(
                "the record at line {line} has {fields}, the header has {expected}"
            ));
        }
        if let Content::Whole(ids, stats) = &mut content {
            if let Some(id) = id_column.and_then(|column| record.get(column)) {
                ids.push(id);
            }
            for (column, cell) in stats.iter_mut().zip(&record) {
                column.add(cell, rows == 0);
            }
            if cells > limits.cells {
                content = Content::TooLarge;
            }
        }
        rows += 1;
    }
    Ok(Table { columns, rows: Some(rows), content })
}
