//! The format, apart from any file: bytes in, records out.
//!
//! A line is a record only once its newline is there, because the newline is the last byte of a
//! write. That is the whole crash rule: bytes after the last newline are a write that never
//! finished, and bytes before it were finished, so if they do not parse, something else wrote them.

use serde::de::{DeserializeOwned, Error as _};

/// What a journal's bytes hold.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    /// One record for each whole line.
    pub(crate) records: Vec<R>,
    /// How many bytes those lines take; what follows is torn.
    pub(crate) whole: usize,
}

/// A finished line that is not a record.
#[derive(Debug)]
pub(crate) struct BadLine {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) source: serde_json::Error,
}

/// Reads every whole line.
///
/// This takes bytes, not text: a crash can cut a character in half or leave a run of NULs.
pub(crate) fn parse<R: DeserializeOwned>(bytes: &[u8]) -> Result<Lines<R>, BadLine> {
    let mut lines = Lines { records: Vec::new(), whole: 0 };
    for (index, with_newline) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let Some(line) = with_newline.strip_suffix(b"\n") else { break };
        let record =
            parse_line(line).map_err(|source| BadLine { line: index.saturating_add(1), source })?;
        lines.records.push(record);
        lines.whole += with_newline.len();
    }
    Ok(lines)
}

pub(crate) fn parse_line<R: DeserializeOwned>(line: &[u8]) -> serde_json::Result<R> {
    // To JSON a carriage return is only white space. To us it says that an editor or a file
    // transfer rewrote the journal, and then nothing else in it can be trusted either.
    if line.ends_with(b"\r") {
        return Err(serde_json::Error::custom("the line ends in a carriage return"));
    }
    serde_json::from_slice(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::Index;

    fn written(records: &[String]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for record in records {
            bytes.extend(serde_json::to_vec(record).unwrap());
            bytes.push(b'\n');
        }
        bytes
    }

    fn bad_line(bytes: &[u8]) -> usize {
        parse::<String>(bytes).unwrap_err().line
    }

    proptest! {
        #[test]
        fn a_cut_at_any_byte_keeps_every_whole_record(records: Vec<String>, cut: Index) {
            let bytes = written(&records);
            let left = &bytes[..cut.index(bytes.len() + 1)];
            let finished = left.iter().filter(|&&byte| byte == b'\n').count();

            let lines = parse::<String>(left).unwrap();

            prop_assert_eq!(&lines.records, &records[..finished]);
            prop_assert_eq!(&left[..lines.whole], written(&records[..finished]));
        }

        #[test]
        fn any_unfinished_bytes_after_the_last_newline_are_torn(
            records: Vec<String>,
            torn in prop::collection::vec(any::<u8>().prop_filter("a newline", |&it| it != b'\n'), 0..64),
        ) {
            let mut bytes = written(&records);
            let whole = bytes.len();
            bytes.extend(torn);

            let lines = parse::<String>(&bytes).unwrap();

            prop_assert_eq!((lines.records, lines.whole), (records, whole));
        }

        #[test]
        fn a_bad_line_is_named_wherever_it_is(records: Vec<String>, at: Index) {
            let at = at.index(records.len() + 1);
            let mut bytes = written(&records[..at]);
            bytes.extend(b"not json\n");
            bytes.extend(written(&records[at..]));

            prop_assert_eq!(bad_line(&bytes), at + 1);
        }
    }

    #[test]
    fn nothing_but_a_record_may_stand_on_a_finished_line() {
        assert_eq!(bad_line(b"\"one\"\n\n\"three\"\n"), 2, "a blank line");
        assert_eq!(bad_line(b"\"one\"\n\n"), 2, "a blank last line");
        assert_eq!(bad_line(b"\"one\"\r\n"), 1, "a carriage return");
        assert_eq!(bad_line(b"\"one\"\n\"two\n"), 2, "half a record with a newline");
        assert_eq!(bad_line(b"\"one\"\"two\"\n"), 1, "two records");
        assert_eq!(bad_line(b"\"one\"\n\0\0\0\n"), 2, "zeros");
        assert_eq!(bad_line(b"\"\xc3\"\n"), 1, "half a character");
        assert_eq!(bad_line(b"1\n"), 1, "another kind of record");
    }
}
