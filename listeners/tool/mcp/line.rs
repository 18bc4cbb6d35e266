//! Reads complete lines of a server, up to a length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// The next line that a server wrote, or its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// A line with more bytes than are allowed.
    TooLong,
    /// The end: there are no more lines.
    End,
}

/// Reads the next line. A line of more than `most` bytes is too long, and at most this many of its
/// bytes are kept in memory.
pub(super) async fn next(from: &mut (impl AsyncBufRead + Unpin), most: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    loop {
        let there = from.fill_buf().await?;
        if there.is_empty() {
            return Ok(if line.is_empty() { Line::End } else { Line::Whole(line) });
        }
        let end = there.iter().position(|it| *it == b'\n');
        let taken = end.unwrap_or(there.len());
        if line.len() + taken > most {
            return Ok(Line::TooLong);
        }
        line.extend_from_slice(&there[..taken]);
        from.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(Line::Whole(line));
        }
    }
}
