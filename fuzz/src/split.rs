//! Bytes to frames: the same in any chunks, and what is right goes through again unchanged.

use bytes::Bytes;
use pumphouse::limits::XmlLimits;
use pumphouse::xml::{self, Error, Framing, Profile, Splitter};

/// The first byte chooses the chunks, the rest is the stream.
pub fn split(data: &[u8]) {
    let Some((&seed, stream)) = data.split_first() else { return };
    let mut limits = XmlLimits::DOOR;
    limits.message_bytes_max = 2_048;
    limits.depth_max = 24;
    let whole = arrive([stream], limits);
    assert_eq!(arrive(stream.chunks(1), limits), whole, "byte by byte");
    let size = usize::from(seed % 23) + 2;
    assert_eq!(arrive(stream.chunks(size), limits), whole, "{size} bytes at a time");
    let (head, tail) = stream.split_at(usize::from(seed).min(stream.len()));
    assert_eq!(arrive([head, tail], limits), whole, "cut at {seed}");
    let right = |it: &&Bytes| xml::read(it, Profile::Wire, &limits).is_ok();
    let right: Vec<Bytes> = whole.0.iter().filter(right).cloned().collect();
    for framing in [Framing::Element, Framing::Length] {
        let mut out = Vec::new();
        right.iter().for_each(|it| xml::frame(framing, it, &mut out));
        let (again, end) = arrive([&out[..]], limits);
        assert!(end.is_ok(), "framed again: {end:?}");
        assert_eq!(again.len(), right.len(), "framed again");
        for (again, right) in again.iter().zip(&right) {
            let read = |it: &Bytes| xml::read(it, Profile::Wire, &limits).map(|it| it.canonical());
            assert_eq!(read(again), read(right), "framed again");
        }
    }
}

fn arrive<'a>(
    chunks: impl IntoIterator<Item = &'a [u8]>,
    limits: XmlLimits,
) -> (Vec<Bytes>, Result<(), Error>) {
    let mut splitter = Splitter::new(limits);
    let mut frames = Vec::new();
    for chunk in chunks {
        splitter.feed(chunk);
        loop {
            match splitter.next() {
                Ok(Some(frame)) => frames.push(frame.bytes),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    let end = splitter.finish();
    assert_eq!(end.is_ok(), splitter.is_between());
    (frames, end)
}
