//! Cuts a stream into lines of bounded length.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Larger buffers than this are given back after a long line.
const KEPT_BYTES: usize = 1 << 20;

/// The lines of a stream.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    stream: BufReader<R>,
    line: Vec<u8>,
    at_most: usize,
}

/// Why there is no next line.
#[derive(Debug)]
pub(crate) enum NoLine {
    /// The stream has ended.
    Ended,
    /// The line is longer than is allowed.
    TooLong,
    /// The stream cannot be read.
    Unreadable(io::Error),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The lines of `stream`, none of them longer than `at_most` bytes.
    pub(crate) fn new(stream: R, at_most: usize) -> Self {
        Self { stream: BufReader::with_capacity(64 * 1024, stream), line: Vec::new(), at_most }
    }

    /// The next line, without its end. What was read is kept when the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<Vec<u8>, NoLine> {
        loop {
            let chunk = self.stream.fill_buf().await.map_err(NoLine::Unreadable)?;
            if chunk.is_empty() {
                // The program ends each line; a rest without an end was cut off.
                return match self.line.is_empty() {
                    true => Err(NoLine::Ended),
                    false => Ok(self.take()),
                };
            }
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let part = end.unwrap_or(chunk.len());
            if self.line.len() + part > self.at_most {
                return Err(NoLine::TooLong);
            }
            self.line.extend(chunk.iter().take(part));
            self.stream.consume(end.map_or(part, |end| end + 1));
            if end.is_some() {
                return Ok(self.take());
            }
        }
    }

    fn take(&mut self) -> Vec<u8> {
        let room = self.line.capacity().min(KEPT_BYTES);
        std::mem::replace(&mut self.line, Vec::with_capacity(room.min(4096)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    async fn all(bytes: &[u8], at_most: usize) -> (Vec<Vec<u8>>, NoLine) {
        let mut lines = Lines::new(bytes, at_most);
        let mut found = Vec::new();
        loop {
            match lines.next().await {
                Ok(line) => found.push(line),
                Err(end) => return (found, end),
            }
        }
    }

    #[tokio::test]
    async fn a_line_may_be_as_long_as_is_allowed_and_no_longer() {
        let (lines, end) = all(b"12345\n123456\n1\n", 5).await;
        assert_eq!(lines, [b"12345"]);
        assert!(matches!(end, NoLine::TooLong));
    }

    proptest! {
        #[test]
        fn lines_come_out_as_they_went_in(bytes: Vec<u8>) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (lines, end) = runtime.block_on(all(&bytes, usize::MAX / 2));
            let mut expected: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
            if expected.last().is_some_and(|last| last.is_empty()) {
                expected.pop(); // after the last line's end there is no line
            }
            prop_assert_eq!(lines, expected);
            prop_assert!(matches!(end, NoLine::Ended));
        }
    }
}
