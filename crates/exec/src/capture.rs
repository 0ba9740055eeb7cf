//! Keeps the two ends of a stream, however long the stream is.
//!
//! The head shows how a script began; the tail holds the score line and the traceback. What lies
//! between is counted and forgotten, so that a script that floods its output costs no memory and
//! never waits for a reader.

use std::collections::VecDeque;

use camino::Utf8PathBuf;

use crate::Captured;
use crate::spool::Spool;

/// How much of a stream's beginning is kept.
const HEAD_BYTES: usize = 32 * 1024;
/// How much of a stream's end is kept.
const TAIL_BYTES: usize = 32 * 1024;
/// How much of the head may be given up so that it ends with a whole line.
const LINE_BYTES: usize = 1024;

/// The two ends of one stream, so far.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    spool: Option<Spool>,
    /// Where more is kept, if there is any. Most scripts print nothing to standard error.
    file: Option<Utf8PathBuf>,
}

impl Capture {
    /// Also keeps far longer ends in `file`. Where that cannot be written, it does without.
    pub(crate) fn with_file(file: Utf8PathBuf) -> Self {
        Self { file: Some(file), ..Self::default() }
    }

    /// How much came so far.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.total
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if let Some(file) = self.file.take() {
            self.spool = Spool::create(file).ok();
        }
        if self.spool.as_mut().is_some_and(|spool| spool.push(bytes).is_err()) {
            self.spool = None; // a full disk must not end the capture
        }
        let room = HEAD_BYTES - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);

        let (_, rest) = rest.split_at(rest.len().saturating_sub(TAIL_BYTES));
        let overflow = (self.tail.len() + rest.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..overflow);
        self.tail.extend(rest);
    }

    /// The text of what was kept.
    pub(crate) fn finish(mut self) -> Captured {
        let total_bytes = self.total;
        let file = self.spool.take().and_then(|spool| spool.finish().ok());
        let tail: &[u8] = self.tail.make_contiguous();
        let truncated = total_bytes > (self.head.len() + tail.len()) as u64;
        if !truncated {
            self.head.extend_from_slice(tail); // nothing lies between, not even half a character
            let text = String::from_utf8_lossy(&self.head).into_owned();
            return Captured { text, total_bytes, truncated, file };
        }

        let head = without_broken_line(&self.head);
        let tail = without_broken_start(tail);
        let missing = total_bytes - (head.len() + tail.len()) as u64;
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        let newline = if head.ends_with('\n') { "" } else { "\n" };
        let text = format!("{head}{newline}[... {missing} bytes are missing here ...]\n{tail}");
        Captured { text, total_bytes, truncated, file }
    }
}

/// The head without its last line if that one was cut: half of a printed score reads like a whole
/// one. Output without line ends is cut between two characters instead.
fn without_broken_line(head: &[u8]) -> &[u8] {
    let last_line = head.iter().rev().take(LINE_BYTES).position(|&byte| byte == b'\n');
    let cut = match last_line {
        Some(length) => length,
        None => broken_end(head),
    };
    head.split_at(head.len() - cut).0
}

/// How many bytes at the end of `bytes` begin a character and do not end it.
fn broken_end(bytes: &[u8]) -> usize {
    let continuations = bytes.iter().rev().take(3).take_while(|&&byte| is_continuation(byte));
    let length = continuations.count() + 1;
    let needed = match bytes.iter().nth_back(length - 1) {
        Some(0xC2..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF4) => 4,
        _ => return 0,
    };
    if length < needed { length } else { 0 }
}

/// The tail without the end of a character whose beginning is missing.
fn without_broken_start(tail: &[u8]) -> &[u8] {
    let cut = tail.iter().take(3).take_while(|&&byte| is_continuation(byte)).count();
    tail.split_at(cut).1
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(chunks: &[&[u8]]) -> Captured {
        let mut capture = Capture::default();
        for chunk in chunks {
            capture.push(chunk);
        }
        capture.finish()
    }

    #[test]
    fn a_short_stream_is_kept_whole_however_it_arrives() {
        let whole = "zwölf Boxkämpfer\n".repeat(3_000);
        assert!((HEAD_BYTES..HEAD_BYTES + TAIL_BYTES).contains(&whole.len()));
        let expected = Captured {
            text: whole.clone(),
            total_bytes: whole.len() as u64,
            truncated: false,
            file: None,
        };

        for size in [1, 7, 4096, whole.len()] {
            let chunks: Vec<&[u8]> = whole.as_bytes().chunks(size).collect();
            assert_eq!(captured(&chunks), expected, "in chunks of {size}");
        }
    }

    #[test]
    fn a_long_stream_keeps_both_ends_and_counts_the_rest() {
        let stream: String = (0..100_000).map(|line| format!("line {line}\n")).collect();
        for size in [100, 65_536, stream.len()] {
            let chunks: Vec<&[u8]> = stream.as_bytes().chunks(size).collect();
            let Captured { text, total_bytes, truncated, .. } = captured(&chunks);

            assert!(truncated && total_bytes == stream.len() as u64);
            assert!(text.starts_with("line 0\nline 1\n") && text.ends_with("\nline 99999\n"));
            let (head, rest) = text.split_once("[... ").unwrap();
            let (missing, tail) = rest.split_once(" bytes are missing here ...]\n").unwrap();
            let missing: usize = missing.parse().unwrap();
            assert_eq!(head.len() + missing + tail.len(), stream.len());
            assert!(stream.starts_with(head) && stream.ends_with(tail));
        }
    }

    #[test]
    fn no_character_is_cut_in_two() {
        for character in ["é", "€", "🦀"] {
            for shift in 0..4 {
                let stream = "x".repeat(shift) + &character.repeat(100_000);
                let text = captured(&[stream.as_bytes()]).text;
                assert!(!text.contains('\u{FFFD}'), "{character} shifted by {shift}");
            }
        }
    }

    #[test]
    fn half_a_score_at_the_end_of_the_head_is_not_kept() {
        let mut stream = "x\n".repeat(HEAD_BYTES / 2 - 8) + "Performance: 0.8196\n";
        stream += &"y".repeat(200_000);
        assert!(!captured(&[stream.as_bytes()]).text.contains("Performance"));
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced_and_stay_bounded() {
        assert_eq!(captured(&[b"a\xFFb\xC3"]).text, "a\u{FFFD}b\u{FFFD}");
        let noise = captured(&[&[0xFF; 1 << 20]]);
        assert!(noise.truncated && noise.text.len() < 4 * (HEAD_BYTES + TAIL_BYTES));
    }
}
