//! A profile as Markdown for a prompt: the files, then each table with one line per column.
//!
//! The text is bounded, says what it leaves out, and is the same for the same profile. Whatever
//! comes from the data stands in a code span that it cannot close.

use std::collections::BTreeMap;

use crate::{
    ColumnKind, ColumnProfile, DataProfile, Distinct, FileProfile, TableProfile, group_of,
    table::Format,
};

const MAX_BYTES: usize = 12_000;
const MAX_FILE_LIST_BYTES: usize = 3_500;
/// Room for the sentences that say what was left out.
const NOTES_BYTES: usize = 1000;
/// Below this, a table's title and a few columns do not fit.
const MIN_TABLE_BYTES: usize = 400;
/// Larger groups of files are one line.
const MAX_LISTED_PER_GROUP: usize = 10;
const MAX_SHOWN_CHARS: usize = 80;
pub(crate) const MAX_PATH_CHARS: usize = 200;
const MAX_LEFT_OUT_BYTES: usize = 60;

impl DataProfile {
    /// The profile in at most some 12 kB of Markdown, without a heading of its own.
    pub fn describe(&self) -> String {
        let mut text = self.summary();
        text.push_str(&self.file_list());
        let tables = self.tables(MAX_BYTES.saturating_sub(text.len() + NOTES_BYTES));
        text.push_str(&tables);
        text
    }

    fn summary(&self) -> String {
        let at_least = if self.totals_exact { "" } else { "At least " };
        let mut text = format!(
            "{at_least}{}, {} in all.",
            counted(self.total_files, "file"),
            size(self.total_bytes)
        );
        if self.unreadable_folders > 0 {
            let folders = counted(self.unreadable_folders, "folder");
            text.extend([" ", &folders, " could not be listed."]);
        }
        text.push_str("\n\n");
        text
    }

    fn file_list(&self) -> String {
        let mut listed: BTreeMap<_, Vec<&FileProfile>> = BTreeMap::new();
        for file in &self.files {
            listed.entry(group_of(&file.path)).or_default().push(file);
        }
        let mut text = String::new();
        let mut shown = 0;
        for group in &self.groups {
            let key = (group.folder.clone(), group.extension.clone());
            let members = listed.get(&key).map_or(&[][..], Vec::as_slice);
            let lines = if members.len() == group.files && group.files <= MAX_LISTED_PER_GROUP {
                let line =
                    |file: &&FileProfile| format!("- {}: {}\n", path(&file.path), size(file.bytes));
                members.iter().map(|file| (1, line(file))).collect()
            } else {
                let slash = if group.folder.is_empty() { "" } else { "/" };
                let dot = if group.extension.is_empty() { "" } else { "." };
                let pattern = format!("{}{slash}*{dot}{}", group.folder, group.extension);
                let count = counted(group.files, "file");
                let line = format!("- {}: {count}, {}\n", path(&pattern), size(group.bytes));
                vec![(group.files, line)]
            };
            for (files, line) in lines {
                if text.len() + line.len() <= MAX_FILE_LIST_BYTES {
                    text.push_str(&line);
                    shown += files;
                }
            }
        }
        if shown < self.total_files {
            let rest = counted(self.total_files - shown, "more file");
            text.extend(["- and ", &rest, ", not listed here\n"]);
        }
        text
    }

    fn tables(&self, budget: usize) -> String {
        let blocks: Vec<Block> = self
            .files
            .iter()
            .filter_map(|file| Some(Block::of(file, file.table.as_ref()?)))
            .collect();
        let fitting = blocks.len().min((budget / MIN_TABLE_BYTES).max(1));
        let sizes = blocks.iter().take(fitting).map(Block::bytes).collect();
        let limit = fair_share(sizes, budget);
        let mut text = String::new();
        let mut left_out = blocks.len() - fitting;
        for block in blocks.iter().take(fitting).map(|block| block.within(limit)) {
            if text.len() + block.len() <= budget {
                text.push_str(&block);
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            text.extend(["\n", &counted(left_out, "more table"), " not shown here.\n"]);
        }
        let unread: Vec<&FileProfile> = self
            .files
            .iter()
            .filter(|file| {
                let is_promised = matches!(Format::of(&file.path), Some(Format::Csv | Format::Tsv));
                is_promised && file.table.is_none()
            })
            .collect();
        if let Some(first) = unread.first() {
            let count = counted(unread.len(), "file");
            text.extend(["\n", &count, " with a table's name, such as ", &path(&first.path)]);
            text.push_str(", not read as a table: empty, unreadable or beyond the limit.\n");
        }
        text
    }
}

/// The lines of one table, and how many of its columns are left out in the middle.
struct Block {
    title: String,
    leading: Vec<String>,
    left_out: usize,
    trailing: Vec<String>,
}

impl Block {
    fn of(file: &FileProfile, table: &TableProfile) -> Self {
        let rows = counted(usize::try_from(table.rows).unwrap_or(usize::MAX), "row");
        let rows = match (table.rows_exact, table.rows) {
            (true, _) => rows,
            (false, 0) => "rows too long to count".to_owned(),
            (false, _) => format!("about {rows}"),
        };
        let title = format!(
            "\n{}: {rows}, {}, {}\n",
            path(&file.path),
            counted(table.columns.len() + table.omitted_columns, "column"),
            match table.delimiter {
                ',' => "comma-separated",
                ';' => "semicolon-separated",
                '\t' => "tab-separated",
                _ => "pipe-separated",
            }
        );
        let mut leading: Vec<String> = table.columns.iter().map(line).collect();
        let trailing = leading.split_off(TableProfile::leading(leading.len()));
        Self { title, leading, left_out: table.omitted_columns, trailing }
    }

    fn bytes(&self) -> usize {
        let lines = self.leading.iter().chain(&self.trailing);
        self.title.len() + lines.map(String::len).sum::<usize>() + left_out(self.left_out).len()
    }

    /// The block with as many columns taken from its middle as it takes to fit.
    fn within(&self, limit: usize) -> String {
        let mut leading = self.leading.as_slice();
        let mut trailing = self.trailing.as_slice();
        let mut bytes = self.bytes();
        if bytes > limit {
            // The line about the columns left out appears, or grows.
            bytes += MAX_LEFT_OUT_BYTES;
        }
        while bytes > limit {
            let dropped;
            if let [kept @ .., last] = leading
                && !kept.is_empty()
            {
                (dropped, leading) = (last, kept);
            } else if let [first, kept @ ..] = trailing {
                (dropped, trailing) = (first, kept);
            } else {
                break;
            }
            bytes = bytes.saturating_sub(dropped.len());
        }
        let shown = leading.len() + trailing.len();
        let all = self.leading.len() + self.left_out + self.trailing.len();
        let mut text = self.title.clone();
        text.extend(leading.iter().map(String::as_str));
        text.push_str(&left_out(all - shown));
        text.extend(trailing.iter().map(String::as_str));
        text
    }
}

/// The line that stands for columns left out, if there are any.
fn left_out(columns: usize) -> String {
    if columns == 0 {
        return String::new();
    }
    format!("- ({} left out here)\n", counted(columns, "column"))
}

/// The most that each of `sizes` may take so that together they stay within `budget`, when the
/// small ones leave what they do not need to the large.
fn fair_share(mut sizes: Vec<usize>, budget: usize) -> usize {
    sizes.sort_unstable();
    let mut left = budget;
    let mut takers = sizes.len();
    for size in sizes {
        let share = left / takers;
        if size > share {
            return share;
        }
        left -= size;
        takers -= 1;
    }
    usize::MAX
}

fn line(column: &ColumnProfile) -> String {
    let name = if column.name.is_empty() { "(unnamed)".to_owned() } else { code(&column.name) };
    let kind = match column.kind {
        ColumnKind::Integer => "integer",
        ColumnKind::Float => "float",
        ColumnKind::Boolean => "boolean",
        ColumnKind::Date => "date",
        ColumnKind::Text => "text",
        ColumnKind::Empty => return format!("- {name}: empty\n"),
    };
    let missing = match column.missing_share * 100.0 {
        0.0 => String::new(),
        ..0.1 => ", under 0.1% missing".to_owned(),
        percent => format!(", {percent:.1}% missing"),
    };
    let distinct = match column.distinct {
        Distinct::Exactly(count) => grouped(count as u64),
        Distinct::AtLeast(count) => format!("at least {}", grouped(count as u64)),
    };
    let examples: Vec<String> = column.examples.iter().map(|example| code(example)).collect();
    format!("- {name}: {kind}{missing}, {distinct} distinct, e.g. {}\n", examples.join(", "))
}

fn path(path: &str) -> String {
    format!("`{}`", clean(path, MAX_PATH_CHARS))
}

fn code(text: &str) -> String {
    format!("`{}`", clean(text, MAX_SHOWN_CHARS))
}

/// A text from the data, short, on one line and without anything that could end a code span.
///
/// Spaces stay as they are: a column named ` age` is found under no other name.
pub(crate) fn clean(text: &str, max: usize) -> String {
    let mut characters = text.chars().map(harmless);
    let mut clean: String = characters.by_ref().take(max).collect();
    if characters.next().is_some() {
        clean.push('…');
    }
    if clean.trim().is_empty() { "(blank)".to_owned() } else { clean }
}

fn harmless(character: char) -> char {
    match character {
        '`' => '\'',
        // Marks that are not seen but reorder, join or hide the text around them.
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => {
            ' '
        }
        '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' => ' ',
        '\u{e0000}'..='\u{e007f}' => ' ',
        other if other.is_control() || other.is_whitespace() => ' ',
        other => other,
    }
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count as u64))
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size in powers of 1000, as people say it.
fn size(bytes: u64) -> String {
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut units = ["kB", "MB", "GB", "TB", "PB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    // 999.95 would round up to the next unit's 1000.0.
    while value >= 999.95
        && let Some(next) = units.next()
    {
        value /= 1000.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}
