//! Reads the lines that a server writes, up to a maximum length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line, without its line end.
    Whole(Vec<u8>),
    /// The beginning of a line with more bytes than are allowed.
    TooLong(Vec<u8>),
    /// The end of the input.
    End,
}

/// Reads the next line. If the line has more than `most` bytes, the result is [`Line::TooLong`],
/// and the rest of the line isn't consumed; [`skip`] does that.
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
            return Ok(Line::TooLong(line));
        }
        line.extend_from_slice(&there[..taken]);
        from.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(Line::Whole(line));
        }
    }
}

/// Skips the rest of a line. Returns whether the line ended within `most` bytes.
pub(super) async fn skip(from: &mut (impl AsyncBufRead + Unpin), most: usize) -> io::Result<bool> {
    let mut skipped = 0;
    while skipped <= most {
        let there = from.fill_buf().await?;
        if there.is_empty() {
            return Ok(true);
        }
        let end = there.iter().position(|it| *it == b'\n');
        let taken = end.map_or(there.len(), |it| it + 1);
        from.consume(taken);
        if end.is_some() {
            return Ok(true);
        }
        skipped += taken;
    }
    Ok(false)
}
