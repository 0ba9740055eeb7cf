//! Reads one delimited table: which delimiter, how many rows, and what its columns hold.
//!
//! The reader is lenient, as the libraries are that will load the file later: rows may be ragged,
//! line ends mixed, bytes not UTF-8. Memory is bounded by the longest row: values are remembered by
//! their hash, columns beyond the bound only counted.

use std::io::{self, Read};

use csv::ByteRecord;

use crate::table::column::Column;
use crate::walk::Found;
use crate::{Bounds, TableProfile};

mod column;
#[cfg(test)]
mod tests;

/// Enough to see a few dozen rows of an ordinary table.
const SAMPLE_BYTES: u64 = 64 * 1024;
const SAMPLE_ROWS: usize = 50;
const MAX_FIELDS: usize = 1_000_000;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What a file's name promises about its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// A table, likely separated by commas.
    Csv,
    /// A table, likely separated by tabs.
    Tsv,
    /// Perhaps a table, perhaps prose.
    Unsure,
}

impl Format {
    /// None when the file is certainly no table.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let (_, extension) = path.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "tsv" => Some(Self::Tsv),
            "txt" => Some(Self::Unsure),
            _ => None,
        }
    }
}

/// Reads a file as a table. None when it is empty, unreadable or not a table.
pub(crate) fn read(found: &Found, format: Format, bounds: &Bounds) -> Option<TableProfile> {
    let file = fs_err::File::open(&found.at).ok()?;
    read_from(file, found.bytes, format, bounds).ok().flatten()
}

/// Reads a table from `source`, which holds `total` bytes.
fn read_from(
    source: impl Read,
    total: u64,
    format: Format,
    bounds: &Bounds,
) -> io::Result<Option<TableProfile>> {
    let limit = bounds.max_bytes_read_per_file;
    let mut source = source.take(limit);
    let mut sample = Vec::new();
    source.by_ref().take(SAMPLE_BYTES).read_to_end(&mut sample)?;
    let sampled_all = (sample.len() as u64) < SAMPLE_BYTES.min(limit);
    let mut marked = 0;
    if sample.starts_with(BYTE_ORDER_MARK) {
        sample.drain(..BYTE_ORDER_MARK.len());
        marked = BYTE_ORDER_MARK.len() as u64;
    }
    let Some(delimiter) = sniff(&sample, sampled_all, format) else { return Ok(None) };

    let content = total.saturating_sub(marked);
    // Where the byte limit cuts the file, and with it the record that lies there.
    let cut = (total > limit).then_some(limit.saturating_sub(marked));
    let was_cut = |position: u64| cut.is_some_and(|cut| position >= cut);

    let source = Narrow { source: sample.as_slice().chain(source), delimiter, fields: 0 };
    let mut reader = reader(source, delimiter);
    let mut record = ByteRecord::new();
    if !reader.read_byte_record(&mut record)? || was_cut(reader.position().byte()) {
        return Ok(None);
    }
    let width = record.len();
    let mut columns = columns_kept(&record, bounds);
    let header_end = reader.position().byte();

    let mut rows = 0;
    let mut rows_end = header_end;
    let rows_exact = loop {
        if !reader.read_byte_record(&mut record)? {
            break cut.is_none();
        }
        if rows == bounds.max_rows_read || was_cut(reader.position().byte()) {
            break false;
        }
        rows += 1;
        rows_end = reader.position().byte();
        for column in &mut columns {
            column.add(&record, bounds.max_distinct);
        }
    };

    Ok(Some(TableProfile {
        rows: if rows_exact { rows } else { estimate(rows, header_end, rows_end, content) },
        rows_exact,
        delimiter: char::from(delimiter),
        omitted_columns: width - columns.len(),
        columns: columns.into_iter().map(|column| column.finish(rows, rows_exact)).collect(),
    }))
}

fn reader<R: Read>(source: R, delimiter: u8) -> csv::Reader<R> {
    csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(source)
}

/// Passes bytes on until a line has more fields than any table.
///
/// The parser remembers where each field ends: a file of nothing but commas would take fifty times
/// its size in memory.
struct Narrow<R> {
    source: R,
    delimiter: u8,
    fields: usize,
}

impl<R: Read> Read for Narrow<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        for byte in buffer.iter().take(count) {
            match byte {
                b'\n' | b'\r' => self.fields = 0,
                byte if *byte == self.delimiter => self.fields += 1,
                _ => {}
            }
            if self.fields >= MAX_FIELDS {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "too many fields"));
            }
        }
        Ok(count)
    }
}

/// The first columns of the header and, where not all fit, its last.
fn columns_kept(header: &ByteRecord, bounds: &Bounds) -> Vec<Column> {
    let kept = header.len().min(bounds.max_columns);
    let leading = TableProfile::leading(kept);
    let trailing = header.len() - (kept - leading);
    header
        .iter()
        .enumerate()
        .filter(|(position, _)| *position < leading || *position >= trailing)
        .map(|(position, name)| Column::new(position, name))
        .collect()
}

/// Rows in the whole file, if those not read are as long as those that were.
fn estimate(rows: u64, header_end: u64, rows_end: u64, content: u64) -> u64 {
    let read = u128::from(rows_end.saturating_sub(header_end)).max(1);
    let whole = u128::from(content.saturating_sub(header_end));
    let estimate = u128::from(rows) * whole / read;
    u64::try_from(estimate).unwrap_or(u64::MAX).max(rows)
}

/// The delimiter that explains most cells of the sample; None when the file is no table.
fn sniff(sample: &[u8], sampled_all: bool, format: Format) -> Option<u8> {
    let candidates = match format {
        Format::Csv | Format::Unsure => [b',', b';', b'\t', b'|'],
        Format::Tsv => [b'\t', b',', b';', b'|'],
    };
    let [likely, ..] = candidates;
    let mut best = Split { delimiter: likely, width: 1, rows: 0, even_rows: 0, named: false };
    for delimiter in candidates {
        let split = Split::of(sample, sampled_all, delimiter);
        if split.width > 1 && split.cells() > best.cells() {
            best = split;
        }
    }
    let convinced = format != Format::Unsure || best.is_surely_a_table();
    convinced.then_some(best.delimiter)
}

/// How a delimiter divides the sample.
struct Split {
    delimiter: u8,
    /// Fields in the header.
    width: usize,
    rows: usize,
    /// Rows as wide as the header, itself included.
    even_rows: usize,
    /// Whether the header reads like names.
    named: bool,
}

impl Split {
    fn of(sample: &[u8], sampled_all: bool, delimiter: u8) -> Self {
        let mut reader = reader(sample, delimiter);
        let mut record = ByteRecord::new();
        let mut widths = Vec::new();
        let mut named = false;
        while widths.len() < SAMPLE_ROWS
            && reader.read_byte_record(&mut record).is_ok_and(|more| more)
        {
            if widths.is_empty() {
                named = column::all_are_names(&record);
            }
            widths.push(record.len());
        }
        // The sample may end within a row, which then looks too short.
        if !sampled_all && widths.len() > 1 && reader.position().byte() >= sample.len() as u64 {
            widths.pop();
        }
        let width = widths.first().copied().unwrap_or_default();
        let even_rows = widths.iter().filter(|each| **each == width).count();
        Self { delimiter, width, rows: widths.len(), even_rows, named }
    }

    fn cells(&self) -> usize {
        self.width.saturating_mul(self.even_rows)
    }

    /// Prose has commas too, but neither as many in each line nor below a row of names.
    fn is_surely_a_table(&self) -> bool {
        self.width > 1 && self.rows > 1 && self.named && self.even_rows * 20 >= self.rows * 19
    }
}
