//! The bytes that wait to be written to a client: whole messages in two buffers. One buffer is
//! being written, and the other takes new messages.

use std::io::Write;

use crate::xml::Framing;

/// How many bytes an idle connection's buffers may keep allocated.
const IDLE_BYTES: usize = 4 * 1024;

/// How many bytes a buffer keeps allocated after it was written.
const KEPT_BYTES: usize = 64 * 1024;

/// Messages that wait to be written to a connection.
#[derive(Debug, Default)]
pub(super) struct Egress {
    writing: Messages,
    written: usize,
    next: Messages,
}

/// Messages, one after another, and where each ends.
#[derive(Debug, Default)]
struct Messages {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Egress {
    /// Adds a message with this framing. In length framing, the message's length comes before it.
    /// In element framing, the message becomes one line: a line end in its text is written as a
    /// character reference, which means the same.
    pub(super) fn add(&mut self, framing: Framing, write: impl FnOnce(&mut Vec<u8>)) {
        let Messages { bytes, ends } = &mut self.next;
        let start = bytes.len();
        match framing {
            Framing::Length => {
                bytes.extend_from_slice(&[0; 4]);
                write(bytes);
                let length = u32::try_from(bytes.len() - start - 4).unwrap_or(u32::MAX);
                bytes[start..start + 4].copy_from_slice(&length.to_be_bytes());
            }
            Framing::Element => {
                write(bytes);
                if memchr::memchr(b'\n', &bytes[start..]).is_some() {
                    let message = bytes.split_off(start);
                    for (at, line) in message.split(|&it| it == b'\n').enumerate() {
                        bytes.extend_from_slice(if at == 0 { b"" } else { b"&#xA;" });
                        bytes.extend_from_slice(line);
                    }
                }
                bytes.push(b'\n');
            }
        }
        ends.push(bytes.len());
    }

    /// The number of bytes that wait.
    pub(super) fn len(&self) -> usize {
        self.writing.bytes.len() - self.written + self.next.bytes.len()
    }

    /// The memory that waiting messages take, in bytes. The written part of a buffer counts until
    /// the whole buffer is written.
    pub(super) fn held_bytes(&self) -> usize {
        if self.is_empty() { 0 } else { self.room() }
    }

    fn room(&self) -> usize {
        self.writing.bytes.capacity() + self.next.bytes.capacity()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes to write now.
    pub(super) fn pending(&mut self) -> &[u8] {
        if self.written == self.writing.bytes.len() {
            std::mem::swap(&mut self.writing, &mut self.next);
            self.next.clear();
            self.written = 0;
        }
        &self.writing.bytes[self.written..]
    }

    /// Notes how many bytes were written.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        debug_assert!(self.written <= self.writing.bytes.len());
    }

    /// Drops all messages that wait. If one is partly written, its rest stays.
    pub(super) fn cut(&mut self) {
        let ends = &self.writing.ends;
        let border = ends.partition_point(|end| *end < self.written);
        let border = if self.written == 0 { 0 } else { ends.get(border).copied().unwrap_or(0) };
        let bytes = self.writing.bytes.get(self.written..border).unwrap_or_default().to_vec();
        self.writing = Messages { ends: vec![bytes.len()], bytes };
        self.written = 0;
        self.next = Messages::default();
    }

    /// Whether the buffers hold more memory than an idle connection should.
    pub(super) fn is_large(&self) -> bool {
        self.room() > IDLE_BYTES
    }
}

impl Messages {
    fn clear(&mut self) {
        if self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Writes text, and calls `escape` only if a character may need escaping.
pub(super) fn put_text(text: &str, escape: fn(&str, &mut String), out: &mut Vec<u8>) {
    let is_plain = |it: u8| it >= b' ' && !matches!(it, b'&' | b'<' | b'>' | b'"');
    if text.bytes().all(is_plain) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    let mut escaped = String::new();
    escape(text, &mut escaped);
    out.extend_from_slice(escaped.as_bytes());
}

pub(super) fn put_number(number: u64, out: &mut Vec<u8>) {
    // Writing into memory doesn't fail.
    let _ = write!(out, "{number}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(egress: &mut Egress, framing: Framing, text: &str) {
        egress.add(framing, |out| out.extend_from_slice(text.as_bytes()));
    }

    #[test]
    fn messages_go_out_in_order_whatever_is_written_at_once() {
        let mut egress = Egress::default();
        let mut out = Vec::new();
        for text in ["<a/>", "<b>1\n\n2</b>", "<c/>"] {
            add(&mut egress, Framing::Element, text);
            out.push(egress.pending()[0]);
            egress.wrote(1);
        }
        while !egress.is_empty() {
            out.push(egress.pending()[0]);
            egress.wrote(1);
        }
        assert_eq!(String::from_utf8(out).unwrap(), "<a/>\n<b>1&#xA;&#xA;2</b>\n<c/>\n");
        add(&mut egress, Framing::Length, "<a>\n</a>");
        assert_eq!(egress.pending(), b"\0\0\0\x08<a>\n</a>");
    }

    #[test]
    fn a_cut_falls_between_messages() {
        for (written, expected) in [(0, ""), (1, "a>\n"), (4, ""), (5, "b>\n"), (8, "")] {
            let mut egress = Egress::default();
            add(&mut egress, Framing::Element, "<a>");
            add(&mut egress, Framing::Element, "<b>");
            assert_eq!(egress.pending().len(), 8);
            add(&mut egress, Framing::Element, "<c>");
            egress.wrote(written);
            egress.cut();
            assert_eq!(egress.len(), expected.len(), "{written}");
            assert_eq!(egress.pending(), expected.as_bytes(), "{written}");
        }
    }
}
