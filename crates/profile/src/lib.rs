//! What a folder of data holds: its files, and for the delimited tables among them the rows and
//! columns. It is read once, in bounded time and memory, to be shown to agents that write code.
//!
//! In reading order: `walk` finds the files, `table` reads one of them, `describe` writes the
//! whole as Markdown for a prompt, and `manifest` notices that data has changed.
//!
//! Data is hostile until shown otherwise. A file that cannot be read or parsed is listed without a
//! table, never an error, and no byte of it can leave the Markdown code span it is shown in.
//! Absent on purpose: compressed files, Parquet, spreadsheets, and any guess about what a column
//! means. The first row of a table is always taken as its header.

mod describe;
mod manifest;
mod table;
mod walk;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BinaryHeap};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

pub use manifest::{Manifest, ManifestFile};
use table::Format;
use walk::{Found, walk};

/// Reads the folder `dir` and everything below it, hidden files aside, within `bounds`.
pub fn profile(dir: &Utf8Path, bounds: &Bounds) -> Result<DataProfile, ProfileError> {
    let mut total_files = 0;
    let mut total_bytes = 0_u64;
    let mut groups = BTreeMap::new();
    let mut kept = BinaryHeap::new();
    let walked = walk(dir, bounds.max_files_walked, &mut |found| {
        total_files += 1;
        total_bytes = total_bytes.saturating_add(found.bytes);
        let (files, bytes) = groups.entry(group_of(&found.path)).or_insert((0_usize, 0_u64));
        *files += 1;
        *bytes = bytes.saturating_add(found.bytes);
        // A heap pops its greatest entry, so the files worth most to a reader stay.
        kept.push((Worth::of(&found.path), found));
        if kept.len() > bounds.max_files {
            kept.pop();
        }
    })?;
    if total_files == 0 {
        return Err(ProfileError::Empty { path: dir.to_owned() });
    }

    let mut files = read_tables(kept.into_sorted_vec(), bounds);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(DataProfile {
        omitted_files: total_files - files.len(),
        files,
        groups: largest(groups, bounds.max_groups),
        total_files,
        total_bytes,
        totals_exact: walked.complete,
        unreadable_folders: walked.unreadable_folders,
    })
}

/// How much of a folder is read and kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// Files kept one by one; the others are only counted. Tables and shallow files come first.
    pub max_files: usize,
    /// Files and folders visited before the walk stops.
    pub max_files_walked: usize,
    /// Groups of files (same folder, same extension) kept, the most numerous first.
    pub max_groups: usize,
    /// Files read as tables.
    pub max_table_files: usize,
    /// Columns kept of each table: its first ones, and a sixth of them from its end.
    pub max_columns: usize,
    /// Rows read of each table.
    pub max_rows_read: u64,
    /// Bytes read of each table.
    pub max_bytes_read_per_file: u64,
    /// Distinct values counted in each column.
    pub max_distinct: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            max_files: 200,
            max_files_walked: 1_000_000,
            max_groups: 200,
            max_table_files: 20,
            max_columns: 60,
            max_rows_read: 50_000,
            max_bytes_read_per_file: 32 * 1024 * 1024,
            max_distinct: 1000,
        }
    }
}

/// What a folder of data holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataProfile {
    /// The files kept one by one, sorted by path.
    pub files: Vec<FileProfile>,
    /// How many files are counted in the totals and groups, but not in `files`.
    pub omitted_files: usize,
    /// All files, in few words; the most numerous groups, sorted by depth, folder and extension.
    pub groups: Vec<FileGroup>,
    /// How many files there are, hidden ones aside.
    pub total_files: usize,
    /// The size of all those files.
    pub total_bytes: u64,
    /// Whether the totals cover the whole folder; if not, they are lower limits.
    pub totals_exact: bool,
    /// Folders whose content could not be listed.
    pub unreadable_folders: usize,
}

/// The files of one folder that share an extension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileGroup {
    /// The folder, relative to the data folder, which itself is the empty string.
    pub folder: String,
    /// The extension without its dot, as spelled; empty for files without one.
    pub extension: String,
    /// How many files.
    pub files: usize,
    /// Their size together.
    pub bytes: u64,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileProfile {
    /// Where it is, relative to the data folder and separated by `/`.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its content, where it was read as a delimited table.
    pub table: Option<TableProfile>,
}

/// A delimited table with a header row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableProfile {
    /// Rows below the header.
    pub rows: u64,
    /// Whether the rows were counted to the end of the file; if not, their number is estimated.
    pub rows_exact: bool,
    /// What separates the fields.
    pub delimiter: char,
    /// The columns kept, in their order.
    pub columns: Vec<ColumnProfile>,
    /// How many columns are not kept. They lie between the kept ones: targets are often last, so
    /// the final sixth of `columns` is taken from the end of the header.
    pub omitted_columns: usize,
}

impl TableProfile {
    /// How many of `kept` columns are taken from the start of the header, before any left out.
    pub(crate) fn leading(kept: usize) -> usize {
        kept - kept / 6
    }
}

/// One column, as far as its rows were read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnProfile {
    /// Its name in the header, cut at 200 characters.
    pub name: String,
    /// What its values are.
    pub kind: ColumnKind,
    /// The share of the rows read that have no value, between 0 and 1.
    pub missing_share: f64,
    /// How many different values it has.
    pub distinct: Distinct,
    /// Its first different values, up to three, each cut at 40 characters.
    pub examples: Vec<String>,
}

/// What all values of a column are, missing ones aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    /// Whole numbers.
    Integer,
    /// Numbers, at least one of them not whole.
    Float,
    /// true and false, or yes and no.
    Boolean,
    /// Dates such as 2024-01-31, with or without a time.
    Date,
    /// Anything else.
    Text,
    /// No value at all.
    Empty,
}

/// How many different values a column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distinct {
    /// Every row was read and every value counted.
    Exactly(usize),
    /// Counting stopped here, or rows remain that were not read.
    AtLeast(usize),
}

/// Why a folder could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Nothing is there.
    #[error("data folder {path} does not exist")]
    NoFolder {
        /// The folder asked for.
        path: Utf8PathBuf,
    },
    /// Something else is there.
    #[error("{path} is not a folder")]
    NotAFolder {
        /// The path asked for.
        path: Utf8PathBuf,
    },
    /// There is no file in it, at any depth, hidden ones aside.
    #[error("data folder {path} holds no files")]
    Empty {
        /// The folder asked for.
        path: Utf8PathBuf,
    },
    /// The folder itself could not be listed.
    #[error("data folder could not be read")]
    Io(#[from] io::Error),
}

/// How early a file is kept and read: likely tables first, then the shallow ones, then by path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Worth {
    no_table: bool,
    depth: usize,
}

impl Worth {
    fn of(path: &str) -> Self {
        // A folder of a thousand .txt documents must not push out the one README beside it.
        let no_table = matches!(Format::of(path), None | Some(Format::Unsure));
        Self { no_table, depth: depth(path) }
    }
}

fn read_tables(kept: Vec<(Worth, Found)>, bounds: &Bounds) -> Vec<FileProfile> {
    let mut tables_left = bounds.max_table_files;
    kept.into_iter()
        .map(|(_, found)| {
            let table = Format::of(&found.path)
                .filter(|_| tables_left > 0)
                .and_then(|format| table::read(&found, format, bounds));
            tables_left -= usize::from(table.is_some());
            FileProfile { path: found.path, bytes: found.bytes, table }
        })
        .collect()
}

fn largest(groups: BTreeMap<(String, String), (usize, u64)>, max: usize) -> Vec<FileGroup> {
    let mut groups: Vec<FileGroup> = groups
        .into_iter()
        .map(|((folder, extension), (files, bytes))| FileGroup { folder, extension, files, bytes })
        .collect();
    // The sort is stable, so equally large groups stay in the order of their paths.
    groups.sort_by_key(|group| std::cmp::Reverse(group.files));
    groups.truncate(max);
    groups.sort_by_cached_key(|group| {
        let depth = if group.folder.is_empty() { 0 } else { 1 + depth(&group.folder) };
        (depth, group.folder.clone(), group.extension.clone())
    });
    groups
}

/// The folder and extension of a file.
fn group_of(path: &str) -> (String, String) {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    (folder.to_owned(), extension.to_owned())
}

fn depth(path: &str) -> usize {
    path.bytes().filter(|byte| *byte == b'/').count()
}
