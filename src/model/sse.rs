//! Server-sent events: bytes in any chunks, events out.
//!
//! As the WHATWG standard has it, but for two things: an event without data is given out, for
//! whoever wants to know of it, and no event may be larger than a limit.

use std::fmt;
use std::time::Duration;

use memchr::memchr2;

/// Takes events out of bytes.
///
/// ```
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
/// # Ok::<(), pumphouse::model::sse::TooLarge>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    event_bytes_max: usize,
    /// The line that has begun.
    line: Vec<u8>,
    /// Whether a line feed belongs to the carriage return before it.
    is_after_return: bool,
    /// Whether a line has ended yet: before that there may be a byte order mark.
    is_begun: bool,
    event: Event,
    id: String,
    retry: Option<Duration>,
}

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// What kind it is; empty where it doesn't say.
    pub kind: String,
    /// What it says, without the last line end; none where it has no line of data. The standard
    /// knows no such events: whoever goes by it skips them.
    pub data: Option<String>,
    /// The last id that was sent, with this event or before it; empty where none was.
    pub id: String,
}

/// An event is larger than it may be. What came can't be trusted any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TooLarge {
    /// The most bytes of an event.
    pub event_bytes_max: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event is over a limit: event_bytes_max is {}", self.event_bytes_max)
    }
}

impl std::error::Error for TooLarge {}

impl Decoder {
    /// A decoder at the beginning of a stream.
    #[must_use]
    pub fn new(event_bytes_max: usize) -> Decoder {
        Decoder {
            event_bytes_max,
            line: Vec::new(),
            is_after_return: false,
            is_begun: false,
            event: Event::default(),
            id: String::new(),
            retry: None,
        }
    }

    /// Takes bytes away until an event is whole; none where it needs more.
    ///
    /// # Errors
    /// Where an event, or a line, is larger than it may be.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Event>, TooLarge> {
        while let [first, rest @ ..] = *bytes {
            if std::mem::take(&mut self.is_after_return) && *first == b'\n' {
                *bytes = rest;
                continue;
            }
            let end = memchr2(b'\r', b'\n', bytes);
            let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.make_room(line.len())?;
            self.line.extend_from_slice(line);
            *bytes = rest;
            let [end, rest @ ..] = rest else { break };
            self.is_after_return = *end == b'\r';
            *bytes = rest;
            if let Some(event) = self.end_line() {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// What the stream ended in the middle of: an event without the blank line behind it. The
    /// standard throws it away; whether it is whole only its reader can tell.
    pub fn end(&mut self) -> Option<Event> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.end_line()
    }

    /// How long to wait before connecting again, if the server said so.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn make_room(&self, more: usize) -> Result<(), TooLarge> {
        let Event { kind, data, .. } = &self.event;
        let there = self.line.len() + kind.len() + data.as_ref().map_or(0, String::len);
        match there + more > self.event_bytes_max {
            true => Err(TooLarge { event_bytes_max: self.event_bytes_max }),
            false => Ok(()),
        }
    }

    /// A line is there; the blank one ends an event.
    fn end_line(&mut self) -> Option<Event> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        if is_first && self.line.starts_with(b"\xEF\xBB\xBF") {
            self.line.drain(..3);
        }
        if self.line.is_empty() {
            let event = std::mem::take(&mut self.event);
            let is_there = event.data.is_some() || !event.kind.is_empty();
            return is_there.then(|| Event { id: self.id.clone(), ..event });
        }
        let mut line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        let (field, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.event.data {
                Some(data) => data.extend(["\n", value]),
                none => *none = Some(value.to_owned()),
            },
            "event" => self.event.kind = value.to_owned(),
            "id" if !value.contains('\0') => self.id = value.to_owned(),
            "retry" if value.bytes().all(|it| it.is_ascii_digit()) => {
                self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry);
            }
            // A comment, or a field that nobody knows.
            _ => {}
        }
        // Its room is kept for the next line.
        line.clear();
        self.line = line;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Result<Vec<(String, Option<String>, String)>, TooLarge> {
        let (mut decoder, mut events) = (Decoder::new(64), Vec::new());
        for mut chunk in chunks.iter().copied() {
            while let Some(Event { kind, data, id }) = decoder.next(&mut chunk)? {
                events.push((kind, data, id));
            }
            assert_eq!(chunk, b"", "it takes all there is");
        }
        Ok(events)
    }

    /// The same events, however the bytes are cut.
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
        check(b"data:a\xFFb\xE2\x82\n\n", &[("", Some("a\u{FFFD}b\u{FFFD}"), "")]);
    }

    #[test]
    fn no_event_is_larger_than_it_may_be() {
        let too_large = Err(TooLarge { event_bytes_max: 64 });
        let line = |bytes: usize| [b"data:", "a".repeat(bytes - 5).as_bytes()].concat();
        assert!(read(&[&line(64), b"\n\n"]).is_ok());
        assert_eq!(read(&[&line(65)]), too_large);
        assert_eq!(read(&[&line(64), b"a"]), too_large);
        assert_eq!(read(&[b":".repeat(65).as_slice()]), too_large);
        // What is kept counts together with what comes.
        assert!(read(&[&line(33), b"\n", &line(36), b"\n\n"]).is_ok());
        assert_eq!(read(&[&line(33), b"\n", &line(37), b"\n\n"]), too_large);
        assert_eq!(read(&[b"event:", &[b'a'; 58], b"\ndata:aa\n\n"]), too_large);
        // Events don't add up.
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
        check("retry: 1500\n", Some(1_500));
        check("retry: 15\nretry: 1.5\nretry: -1\nretry\nretry: 99999999999999999999\n", Some(15));
        check("retry: x\n", None);
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
