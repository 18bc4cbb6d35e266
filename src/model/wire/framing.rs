//! Splits the bytes of a reply into events.

use bytes::{Buf, Bytes};
use memchr::memchr;

use crate::model::error::{Error, Kind};
use crate::model::sse;
use crate::model::sse::Decoder;

/// Splits bytes into events, however the bytes are chunked.
pub enum Framing {
    /// Server-sent events.
    Events(Box<Decoder>),
    /// One line for each event.
    Lines {
        /// The line that has begun.
        begun: Vec<u8>,
        /// The most bytes of a line.
        bytes_max: usize,
    },
    /// One JSON document, for a reply that isn't streamed.
    Whole(Vec<u8>),
}

impl Framing {
    pub(crate) fn events(event_bytes_max: usize) -> Framing {
        Framing::Events(Box::new(Decoder::new(event_bytes_max)))
    }

    pub(crate) fn lines(bytes_max: usize) -> Framing {
        Framing::Lines { begun: Vec::new(), bytes_max }
    }

    /// The framing of a reply that is one document.
    pub fn whole() -> Framing {
        Framing::Whole(Vec::new())
    }

    /// Whether the reply is one document.
    pub fn is_whole(&self) -> bool {
        matches!(self, Framing::Whole(_))
    }

    /// Bytes of the document so far. 0 for a stream.
    pub(crate) fn whole_bytes(&self) -> usize {
        match self {
            Framing::Whole(whole) => whole.len(),
            _ => 0,
        }
    }

    /// Removes bytes from `bytes` up to the end of an event, and returns the event's data. Returns
    /// None if the bytes end before that, or if the event has no data.
    ///
    /// # Errors
    /// If the event is larger than the limit.
    pub fn next(&mut self, bytes: &mut Bytes) -> Result<Option<String>, Error> {
        match self {
            Framing::Events(decoder) => {
                let mut rest = &bytes[..];
                let event = decoder.next(&mut rest);
                let taken = bytes.len() - rest.len();
                bytes.advance(taken);
                Ok(event.map_err(too_large)?.and_then(|it| it.data))
            }
            Framing::Lines { begun, bytes_max } => {
                let end = memchr(b'\n', bytes);
                let taken = bytes.split_to(end.map_or(bytes.len(), |it| it + 1));
                if begun.len() + taken.len() > *bytes_max {
                    return Err(too_large(sse::Error::TooLarge { event_bytes_max: *bytes_max }));
                }
                begun.extend_from_slice(&taken);
                Ok(end.map(|_| line(begun)))
            }
            Framing::Whole(whole) => {
                whole.extend_from_slice(&std::mem::take(bytes));
                Ok(None)
            }
        }
    }

    /// The data after the last whole event, at the end of the stream.
    pub fn end(&mut self) -> Result<Option<String>, Error> {
        match self {
            Framing::Events(decoder) => Ok(decoder.end().and_then(|it| it.data)),
            Framing::Lines { begun, .. } if begun.is_empty() => Ok(None),
            Framing::Lines { begun, .. } => Ok(Some(line(begun))),
            Framing::Whole(whole) => Ok(Some(String::from_utf8_lossy(whole).trim().to_owned())),
        }
    }
}

/// Takes the line that has begun, as text. Bytes that aren't UTF-8 become U+FFFD.
fn line(begun: &mut Vec<u8>) -> String {
    String::from_utf8_lossy(&std::mem::take(begun)).into_owned()
}

fn too_large(error: sse::Error) -> Error {
    Error::new(Kind::TooLarge, error.to_string())
}
