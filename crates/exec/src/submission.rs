//! Looks at the submission file that a script left behind.

mod fit;

use std::io::{self, BufRead, BufReader};

use camino::Utf8Path;
use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::workspace::FINAL;

pub use fit::{Fit, compare_with_sample, find_sample};

/// The name of the submission inside `final/`.
const SUBMISSION: &str = "submission.csv";

/// Rows of larger files are not counted: one unclosed quote makes a whole file one record, which
/// the parser holds in memory.
const LARGEST_COUNTED_BYTES: u64 = 1 << 30;

/// `final/submission.csv` after a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmissionInfo {
    /// Whether there is such a file. A link or a pipe of that name is not one.
    pub exists: bool,
    /// Where it is, or would be; absolute.
    pub path: String,
    /// Its size, 0 if it is absent.
    pub size_bytes: u64,
    /// Its records without the header; its lines without the first where it is not valid CSV.
    pub row_count: Option<u64>,
    /// Why it is not valid CSV.
    pub parse_error: Option<String>,
}

impl SubmissionInfo {
    /// Whether there is a submission with something in it.
    pub fn is_present(&self) -> bool {
        self.exists && self.size_bytes > 0
    }
}

/// Looks at `final/submission.csv` in `workspace`.
///
/// Nothing is opened before it is known to be a plain file inside the workspace: a script may put
/// a pipe there, which never ends, or a link to a file that is none of its business.
pub fn inspect_submission(workspace: &Utf8Path) -> SubmissionInfo {
    let folder = workspace.join(FINAL);
    let file = folder.join(SUBMISSION);
    let path = camino::absolute_utf8(&file).unwrap_or_else(|_| file.clone()).into_string();
    let absent = SubmissionInfo { path, ..SubmissionInfo::default() };

    let Ok(found) = fs::symlink_metadata(&folder) else { return absent };
    if !found.is_dir() {
        let parse_error = Some(format!("`{FINAL}` is not a folder"));
        return SubmissionInfo { parse_error, ..absent };
    }
    let Ok(found) = fs::symlink_metadata(&file) else { return absent };
    if !found.is_file() {
        let parse_error = Some(format!("`{FINAL}/{SUBMISSION}` is not a plain file"));
        return SubmissionInfo { parse_error, ..absent };
    }

    let present = SubmissionInfo { exists: true, size_bytes: found.len(), ..absent };
    if found.len() > LARGEST_COUNTED_BYTES {
        let parse_error = Some("the file is too large for its rows to be counted".to_owned());
        return SubmissionInfo { parse_error, ..present };
    }
    match count_records(&file) {
        Ok(rows) => SubmissionInfo { row_count: Some(rows), ..present },
        Err(error) => {
            let row_count = count_lines(&file).ok().map(|lines| lines.saturating_sub(1));
            SubmissionInfo { row_count, parse_error: Some(error), ..present }
        }
    }
}

/// The records after the header, or why this is not CSV.
fn count_records(file: &Utf8Path) -> Result<u64, String> {
    let opened = fs::File::open(file).map_err(|error| error.to_string())?;
    let mut reader = csv::Reader::from_reader(opened);
    if reader.headers().map_err(complaint)?.is_empty() {
        return Err("the file has no header".to_owned());
    }
    let mut record = csv::StringRecord::new();
    let mut rows = 0;
    while reader.read_record(&mut record).map_err(complaint)? {
        rows += 1;
    }
    Ok(rows)
}

/// Says what is wrong in the words of someone who looks at the file.
fn complaint(error: csv::Error) -> String {
    let line = error.position().map_or(1, csv::Position::line);
    #[expect(clippy::wildcard_enum_match_arm, reason = "the enum is open")]
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("the record at line {line} has {len} fields, the header has {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => format!("the record at line {line} is not UTF-8"),
        _ => error.to_string(),
    }
}

fn count_lines(file: &Utf8Path) -> io::Result<u64> {
    let mut reader = BufReader::new(fs::File::open(file)?);
    let (mut lines, mut last) = (0, b'\n');
    loop {
        let bytes = reader.fill_buf()?;
        let Some(&end) = bytes.last() else { break };
        lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        last = end;
        let length = bytes.len();
        reader.consume(length);
    }
    Ok(if last == b'\n' { lines } else { lines + 1 })
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    fn workspace() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        fs::create_dir(workspace.join("final")).unwrap();
        (dir, workspace)
    }

    fn inspected(content: &[u8]) -> SubmissionInfo {
        let (_dir, workspace) = workspace();
        fs::write(workspace.join("final/submission.csv"), content).unwrap();
        let info = inspect_submission(&workspace);
        assert_eq!(info.path, workspace.join("final/submission.csv"));
        assert!(info.exists && info.size_bytes == content.len() as u64);
        info
    }

    fn rows(content: &[u8]) -> u64 {
        let info = inspected(content);
        assert_eq!(info.parse_error, None);
        info.row_count.unwrap()
    }

    /// REQ-EX-025
    #[test]
    fn rows_are_records_without_the_header() {
        assert_eq!(rows(b"id,y\n1,2\n3,4\n"), 2);
        assert_eq!(rows(b"id,y\r\n1,2\r\n3,4"), 2);
        assert_eq!(rows(b"id,y\n1,\"two\nlines\"\n"), 1);
        assert_eq!(rows(b"id,y\n"), 0);
        assert_eq!(rows(b"\xEF\xBB\xBF\"id\",y\n1,2\n"), 1);
    }

    #[test]
    fn a_ragged_file_has_lines_and_a_reason() {
        let info = inspected(b"id,y\n1,2\n3,4,5\n6,7");
        assert_eq!(info.row_count, Some(3));
        let reason = "the record at line 3 has 3 fields, the header has 2";
        assert_eq!(info.parse_error.as_deref(), Some(reason));
        assert!(info.is_present());
    }

    #[test]
    fn a_file_that_is_not_text_has_a_reason() {
        let info = inspected(b"id,y\n1,\xFF\n");
        assert_eq!(info.row_count, Some(1));
        assert_eq!(info.parse_error.as_deref(), Some("the record at line 2 is not UTF-8"));
    }

    #[test]
    fn an_empty_file_is_there_but_not_a_submission() {
        let info = inspected(b"");
        assert_eq!(info.row_count, Some(0));
        assert_eq!(info.parse_error.as_deref(), Some("the file has no header"));
        assert!(!info.is_present());
    }

    /// REQ-EX-025
    #[test]
    fn an_absent_file_is_named_by_its_absolute_path() {
        let (_dir, workspace) = workspace();
        let path = workspace.join("final/submission.csv").into_string();
        let expected = SubmissionInfo { path, ..SubmissionInfo::default() };
        assert_eq!(inspect_submission(&workspace), expected);
    }

    #[test]
    fn a_link_is_not_a_submission_wherever_it_points() {
        let (_dir, workspace) = workspace();
        let target = workspace.join("submission.csv");
        fs::write(&target, "id\n1\n").unwrap();
        let link = workspace.join("final/submission.csv");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(!inspect_submission(&workspace).exists);

        fs::remove_file(link).unwrap();
        fs::remove_dir(workspace.join("final")).unwrap();
        std::os::unix::fs::symlink(&workspace, workspace.join("final")).unwrap();
        assert!(!inspect_submission(&workspace).exists);
    }
}
