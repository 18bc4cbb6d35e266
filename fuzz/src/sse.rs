//! Server-sent events: every chunking gives the same events, and none is larger than it may be.

use pumphouse::model::sse::{Decoder, Event};

/// Bytes of an event.
const EVENT_BYTES_MAX: usize = 64;

/// The first byte says how the rest is cut.
pub fn sse(data: &[u8]) {
    let Some((&seed, stream)) = data.split_first() else { return };
    let whole = events([stream]);
    assert_eq!(events(stream.chunks(1)), whole, "byte by byte");
    assert_eq!(events(stream.chunks(usize::from(seed).max(1))), whole, "cut by {seed}");
    for Event { kind, data, .. } in &whole.events {
        let size = kind.len() + data.as_ref().map_or(0, String::len);
        assert!(size <= EVENT_BYTES_MAX, "{size} bytes of an event");
    }
}

#[derive(Debug, PartialEq)]
struct Read {
    events: Vec<Event>,
    is_refused: bool,
}

fn events<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let (mut decoder, mut events) = (Decoder::new(EVENT_BYTES_MAX), Vec::new());
    for mut chunk in chunks {
        loop {
            match decoder.next(&mut chunk) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(_) => return Read { events, is_refused: true },
            }
        }
        assert!(chunk.is_empty(), "it takes all there is");
    }
    Read { events, is_refused: false }
}
