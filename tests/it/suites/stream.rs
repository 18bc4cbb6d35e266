//! Feeds a document to the splitter in chunks: whole, byte by byte, or in random pieces.

use bytes::Bytes;
use pumphouse::limits::XmlLimits;
use pumphouse::xml::{Error, Profile, Splitter, read};

/// The frames that came, and what ended the stream.
#[derive(Debug, PartialEq)]
pub(super) struct Arrived {
    pub(super) frames: Vec<Bytes>,
    pub(super) end: Result<(), Error>,
}

/// Feeds chunks and asks for frames after each, as a door does.
pub(super) fn arrive<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, limits: XmlLimits) -> Arrived {
    let mut splitter = Splitter::new(limits);
    let mut frames = Vec::new();
    for chunk in chunks {
        splitter.feed(chunk);
        loop {
            match splitter.next() {
                Ok(Some(frame)) => frames.push(frame.bytes),
                Ok(None) => break,
                Err(error) => return Arrived { frames, end: Err(error) },
            }
        }
    }
    Arrived { frames, end: splitter.finish() }
}

/// Pieces of one to thirteen bytes, the same for the same seed.
pub(super) fn pieces(bytes: &[u8], seed: u64) -> Vec<&[u8]> {
    let mut state = seed | 1;
    let (mut rest, mut pieces) = (bytes, Vec::new());
    while !rest.is_empty() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let (piece, after) = rest.split_at((state % 13 + 1).min(rest.len() as u64) as usize);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// The same frames and the same end, however the bytes arrive.
pub(super) fn assert_same_in_any_chunks(name: &str, bytes: &[u8], limits: XmlLimits) -> Arrived {
    let whole = arrive([bytes], limits);
    assert_eq!(arrive(bytes.chunks(1), limits), whole, "{name}: byte by byte");
    for seed in [3, 77, 4_242] {
        assert_eq!(arrive(pieces(bytes, seed), limits), whole, "{name}: at random, {seed}");
    }
    whole
}

/// Whether exactly one message came, all of it, and it is right.
pub(super) fn is_accepted(arrived: &Arrived, profile: Profile, limits: &XmlLimits) -> bool {
    let Arrived { frames, end } = arrived;
    end.is_ok() && frames.len() == 1 && read(&frames[0], profile, limits).is_ok()
}
