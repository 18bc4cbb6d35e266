//! Decodes server-sent events from bytes, however the bytes are chunked.
//!
//! The format is that of the WHATWG standard, as the crate `sse-stream` reads it. There are three
//! differences:
//!
//! - An event without data is returned if it has a type.
//! - An event larger than a limit is an error.
//! - The reader is given whole lines. Bytes that aren't UTF-8 become U+FFFD, as the standard says.

use std::convert::Infallible;
use std::fmt;
use std::mem;
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, poll_fn};
use futures_util::{FutureExt as _, StreamExt as _};
use memchr::memchr2;
use sse_stream::{Sse, SseByteStream};

/// Decodes events from bytes.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::sse::Decoder;
///
/// let mut decoder = Decoder::new(1_024);
/// let mut datas = Vec::new();
/// for mut chunk in [&b"data: He"[..], b"llo\n\ndata: you\n", b"\n"] {
///     while let Some(event) = decoder.next(&mut chunk)? {
///         datas.extend(event.data);
///     }
/// }
/// assert_eq!(datas, ["Hello", "you"]);
/// # Ok::<(), pumphouse::model::sse::Error>(())
/// ```
pub struct Decoder {
    event_bytes_max: usize,
    /// Bytes of the event that has begun.
    begun: usize,
    /// The beginning of a line whose end hasn't come.
    line: Vec<u8>,
    /// Passes bytes to the reader, a line at a time, so that the reader never holds two events.
    lines: mpsc::SyncSender<Bytes>,
    reader: SseByteStream<BoxStream<'static, Result<Bytes, Infallible>>>,
    id: String,
    retry: Option<Duration>,
}

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The type of the event. Empty if it has none.
    pub kind: String,
    /// The data, without the last line end. None if the event has no line of data. By the standard,
    /// such an event is skipped.
    pub data: Option<String>,
    /// The last id that was sent, with this event or before it. Empty if there was none.
    pub id: String,
}

/// The error of a stream that can't be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An event, or the text between two events, is larger than the limit.
    TooLarge {
        /// The most bytes of an event.
        event_bytes_max: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Error::TooLarge { event_bytes_max } = self;
        write!(f, "an event is over a limit: event_bytes_max is {event_bytes_max}")
    }
}

impl std::error::Error for Error {}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("begun", &self.begun).finish_non_exhaustive()
    }
}

impl Decoder {
    /// A decoder at the beginning of a stream.
    #[must_use]
    pub fn new(event_bytes_max: usize) -> Decoder {
        let (lines, came) = mpsc::sync_channel(1);
        let came = poll_fn(move |_| match came.try_recv() {
            Ok(line) => Poll::Ready(Some(Ok(line))),
            Err(mpsc::TryRecvError::Empty) => Poll::Pending,
            Err(mpsc::TryRecvError::Disconnected) => Poll::Ready(None),
        });
        let reader = SseByteStream::new(came.boxed());
        Decoder {
            event_bytes_max,
            begun: 0,
            line: Vec::new(),
            lines,
            reader,
            id: String::new(),
            retry: None,
        }
    }

    /// Removes bytes from `bytes` until an event is complete, and returns the event. Returns None
    /// if the bytes are used up before that.
    ///
    /// # Errors
    /// If an event is larger than the limit.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Event>, Error> {
        while !bytes.is_empty() {
            let end = memchr2(b'\r', b'\n', bytes).map(|at| at + 1);
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            *bytes = rest;
            self.begun += part.len();
            if self.begun > self.event_bytes_max {
                return Err(Error::TooLarge { event_bytes_max: self.event_bytes_max });
            }
            self.line.extend_from_slice(part);
            if end.is_some()
                && let Some(event) = self.read_line()
            {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Returns the event that had begun when the stream ended. The blank line after it is missing.
    /// The standard drops such an event. Only the caller can tell whether the event is complete.
    pub fn end(&mut self) -> Option<Event> {
        self.line.extend_from_slice(b"\n\n");
        self.read_line()
    }

    /// How long the server asked to wait before connecting again. None if it didn't ask.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Reads the line that has begun. Returns the event that the line ends, if it ends one.
    fn read_line(&mut self) -> Option<Event> {
        let line = String::from_utf8_lossy(&mem::take(&mut self.line)).into_owned();
        // The reader takes each line at once, so there is always room for the next one. It refuses
        // only bytes that aren't UTF-8.
        let sent = self.lines.try_send(line.into());
        let read = self.reader.next().now_or_never().filter(|_| sent.is_ok())?;
        let Sse { event, data, id, retry } = read?.ok()?;
        self.begun = 0;
        self.retry = retry.map(Duration::from_millis).or(self.retry);
        self.id = id.unwrap_or(mem::take(&mut self.id));
        let (kind, id) = (event.unwrap_or_default(), self.id.clone());
        let is_there = data.is_some() || !kind.is_empty();
        is_there.then_some(Event { kind, data, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Result<Vec<(String, Option<String>, String)>, Error> {
        let (mut decoder, mut events) = (Decoder::new(64), Vec::new());
        for mut chunk in chunks.iter().copied() {
            while let Some(Event { kind, data, id }) = decoder.next(&mut chunk)? {
                events.push((kind, data, id));
            }
            assert_eq!(chunk, b"", "it takes all there is");
        }
        Ok(events)
    }

    /// Checks that the events are the same however the bytes are cut.
    fn check(text: &[u8], expected: &[(&str, Option<&str>, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(kind, data, id)| ((*kind).into(), data.map(Into::into), (*id).into()))
            .collect();
        let shown = String::from_utf8_lossy(text);
        assert_eq!(read(&[text]).unwrap(), expected, "{shown:?}");
        for at in 0..=text.len() {
            let (first, rest) = text.split_at(at);
            assert_eq!(read(&[first, rest]).unwrap(), expected, "{shown:?} cut at {at}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(read(&bytes).unwrap(), expected, "{shown:?} byte by byte");
    }

    #[test]
    fn fields_make_an_event() {
        check(b"data: a\n\n", &[("", Some("a"), "")]);
        check(b"data:a\ndata: b\ndata\n\n", &[("", Some("a\nb\n"), "")]);
        check(b"event: x\nid: 7\ndata:  a:b \n\n", &[("x", Some(" a:b "), "7")]);
        check(b"id: 7\ndata: a\n\ndata: b\n\n", &[("", Some("a"), "7"), ("", Some("b"), "7")]);
        check(b"id: 7\n\nid\ndata: b\n\n", &[("", Some("b"), "")]);
        check(b"id: 7\nid: 8\0\ndata: b\n\n", &[("", Some("b"), "7")]);
        check(b"event: x\nevent: y\n\n", &[("y", None, "")]);
        check(b"event: x\nevent\n\ndata: a\n", &[]);
        check(b": a\ncolour: red\nDATA: b\n data: c\n\n", &[]);
    }

    #[test]
    fn lines_end_in_three_ways() {
        let expected = [("", Some("a\nb"), ""), ("", Some("c"), "")];
        check(b"data:a\ndata:b\n\ndata:c\n\n", &expected);
        check(b"data:a\rdata:b\r\rdata:c\r\r", &expected);
        check(b"data:a\r\ndata:b\r\n\r\ndata:c\r\n\r\n", &expected);
        check(b"data:a\r\ndata:b\n\r\n\rdata:c\n\r", &expected);
        check("data:a\u{2028}\u{85}b\n\n".as_bytes(), &[("", Some("a\u{2028}\u{85}b"), "")]);
    }

    #[test]
    fn a_byte_order_mark_is_one_at_the_beginning_only() {
        check(b"\xEF\xBB\xBFdata:a\n\n", &[("", Some("a"), "")]);
        check(b"\xEF\xBB\xBF\ndata:a\n\n", &[("", Some("a"), "")]);
        check(b"\n\xEF\xBB\xBFdata:a\n\n", &[]);
        check(b"\xEF\xBB\xBF\xEF\xBB\xBFdata:a\n\n", &[]);
        check(b"\xEF\xBBdata:a\n\n", &[]);
    }

    #[test]
    fn what_is_no_utf_8_is_replaced() {
        check(b"data:a\xFFb\n\n", &[("", Some("a\u{FFFD}b"), "")]);
        check(b"data:a\xE2\x82\n\ndata:c\n\n", &[("", Some("a\u{FFFD}"), ""), ("", Some("c"), "")]);
        check(b"event:\xC0\x80\n\n", &[("\u{FFFD}\u{FFFD}", None, "")]);
        check("data:日\n\n".as_bytes(), &[("", Some("日"), "")]);
    }

    #[test]
    fn no_event_is_larger_than_it_may_be() {
        let too_large = Err(Error::TooLarge { event_bytes_max: 64 });
        let line = |bytes: usize| [b"data:", "a".repeat(bytes - 5).as_bytes()].concat();
        assert!(read(&[&line(62), b"\n\n"]).is_ok());
        assert_eq!(read(&[&line(65)]), too_large);
        assert_eq!(read(&[&line(64), b"a"]), too_large);
        assert_eq!(read(&[b":".repeat(65).as_slice()]), too_large);
        // All lines of an event count together.
        assert!(read(&[&line(30), b"\n", &line(31), b"\n\n"]).is_ok());
        assert_eq!(read(&[&line(30), b"\n", &line(32), b"\n\n"]), too_large);
        assert_eq!(read(&[b"event:", &[b'a'; 58], b"\ndata:aa\n\n"]), too_large);
        // The limit is for each event, not for all together.
        let many = b"data: a\n\n".repeat(100);
        assert_eq!(read(&[&many]).unwrap().len(), 100);
    }

    #[test]
    fn a_time_to_wait_is_a_whole_number() {
        let check = |text: &str, expected: Option<u64>| {
            let mut decoder = Decoder::new(64);
            assert_eq!(decoder.next(&mut text.as_bytes()), Ok(None));
            assert_eq!(decoder.retry(), expected.map(Duration::from_millis), "{text}");
        };
        check("retry: 1500\n\n", Some(1_500));
        check("retry: 15\nretry: 1.5\nretry: -1\nretry\n\n", Some(15));
        check("retry: 99999999999999999999\n\n", None);
        check("retry: x\n\n", None);
    }

    #[test]
    fn the_end_gives_what_has_begun() {
        let check = |text: &str, expected: Option<&str>| {
            let mut decoder = Decoder::new(64);
            assert_eq!(decoder.next(&mut text.as_bytes()), Ok(None));
            let data = decoder.end().map(|it| it.data.unwrap());
            assert_eq!(data.as_deref(), expected, "{text}");
            assert_eq!(decoder.end(), None);
        };
        check("", None);
        check(": a", None);
        check("data: a", Some("a"));
        check("data: a\n", Some("a"));
        check("data: a\ndata: b", Some("a\nb"));
    }
}
