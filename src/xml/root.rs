//! Reads single parts of a root element from its canonical bytes, without building a tree.
//!
//! Canonical bytes have one form for everything, so a start tag is read by looking for its spaces
//! and quotes. For bytes in another form the functions may return None, or the wrong part.

use std::borrow::Cow;

use memchr::memchr;
use quick_xml::escape::unescape;

/// Returns the value of the attribute with this local name and no namespace.
pub fn root_attribute<'a>(canonical: &'a [u8], local: &str) -> Option<Cow<'a, str>> {
    let is_it = |it: &(&[u8], &[u8])| it.0 == local.as_bytes() && it.0 != b"xmlns";
    let (_, value) = StartTag::of(canonical)?.find(is_it)?;
    unescaped(value)
}

/// Returns the text of the root element. None if the element has other elements in it.
pub fn root_text(canonical: &[u8]) -> Option<Cow<'_, str>> {
    let mut tag = StartTag::of(canonical)?;
    while tag.next().is_some() {}
    let content = tag.rest.strip_prefix(b">")?;
    let (text, end) = content.split_at(memchr(b'<', content)?);
    if end.starts_with(b"</") { unescaped(text) } else { None }
}

/// Undoes the escapes of a text or of a value.
pub fn unescaped(bytes: &[u8]) -> Option<Cow<'_, str>> {
    unescape(std::str::from_utf8(bytes).ok()?).ok()
}

/// The names and the values of a start tag's attributes, as they are written.
struct StartTag<'a> {
    /// The bytes after the last attribute that was read.
    rest: &'a [u8],
}

impl<'a> StartTag<'a> {
    fn of(canonical: &'a [u8]) -> Option<StartTag<'a>> {
        let name_end = canonical.iter().position(|it| matches!(it, b' ' | b'>'))?;
        Some(StartTag { rest: &canonical[name_end..] })
    }
}

impl<'a> Iterator for StartTag<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let attribute = self.rest.strip_prefix(b" ")?;
        let (name, rest) = attribute.split_at(memchr(b'=', attribute)?);
        let value = rest.strip_prefix(b"=\"")?;
        let (value, rest) = value.split_at(memchr(b'"', value)?);
        self.rest = &rest[1..];
        Some((name, value))
    }
}
