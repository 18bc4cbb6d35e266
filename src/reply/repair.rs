//! Repairs elements that a model wrote. An element that isn't well-formed is repaired if its
//! meaning is unambiguous.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::limits::XmlLimits;
use crate::reply::tag;
use crate::xml::{self, Profile};

/// A well-formed element, and the repairs that were needed.
pub(super) struct Mended<'a> {
    pub(super) element: Cow<'a, str>,
    pub(super) repairs: Vec<String>,
}

/// Makes a complete element well-formed.
///
/// # Errors
/// Returns the first error of the unrepaired element if the element can't be repaired.
pub(super) fn element(source: &str) -> Result<Mended<'_>, xml::Error> {
    let read = |text: &str| xml::read(text, Profile::Wire, &XmlLimits::INSIDE).map(drop);
    let error = match read(source) {
        Ok(()) => return Ok(Mended { element: Cow::Borrowed(source), repairs: Vec::new() }),
        Err(error) => error,
    };
    let mut mender =
        Mender { rest: source, out: String::new(), open: Vec::new(), said: Vec::new() };
    if mender.mend().is_none() || read(&mender.out).is_err() {
        return Err(error);
    }
    Ok(Mended { element: Cow::Owned(mender.out), repairs: mender.said })
}

struct Mender<'a> {
    rest: &'a str,
    out: String,
    open: Vec<&'a str>,
    said: Vec<String>,
}

impl<'a> Mender<'a> {
    /// Repairs the whole source. None if its meaning is ambiguous.
    fn mend(&mut self) -> Option<()> {
        while !self.rest.is_empty() {
            let at = self.rest.find(['<', '&']).unwrap_or(self.rest.len());
            self.copy(at);
            if self.rest.starts_with('&') {
                self.ampersand();
            } else if self.rest.starts_with("<!--") {
                let end = self.rest.find("-->")?;
                self.copy(end + 3);
            } else if self.rest.starts_with("<![CDATA[") {
                let end = self.rest.find("]]>")?;
                self.copy(end + 3);
            } else if let Some(rest) = self.rest.strip_prefix("</") {
                let end = rest.find('>')?;
                self.close(rest[..end].trim_ascii_end())?;
                self.rest = &rest[end + 1..];
            } else if self.rest.starts_with('<') {
                self.open()?;
            }
        }
        self.open.is_empty().then_some(())
    }

    fn copy(&mut self, bytes: usize) {
        let (now, later) = self.rest.split_at(bytes);
        self.out.push_str(now);
        self.rest = later;
    }

    /// Adds a note, unless the last note is the same.
    fn say(&mut self, note: String) {
        if self.said.last() != Some(&note) {
            self.said.push(note);
        }
    }

    fn ampersand(&mut self) {
        if tag::entity_at(self.rest).is_some() {
            return self.copy(1);
        }
        self.say("`&` that begins no entity is taken as `&amp;`".to_owned());
        self.out.push_str("&amp;");
        self.rest = &self.rest[1..];
    }

    fn open(&mut self) -> Option<()> {
        let begins = self.rest[1..].starts_with(|it: char| it.is_alphabetic() || it == '_');
        if !begins {
            self.say("`<` that begins no tag is taken as `&lt;`".to_owned());
            self.out.push_str("&lt;");
            self.rest = &self.rest[1..];
            return Some(());
        }
        let length = tag_length(self.rest)?;
        let (tag, rest) = self.rest.split_at(length);
        self.rest = rest;
        let end = tag.find(|it: char| matches!(it, '>' | '/') || it.is_ascii_whitespace())?;
        let name = &tag[1..end];
        let inside = tag::inside(tag);
        if inside.twice.is_some() {
            return None;
        }
        let empty = tag.ends_with("/>");
        let _ = write!(self.out, "<{name}");
        for attribute in &inside.attributes {
            let _ = write!(self.out, " {}=\"", attribute.name);
            for character in attribute.value.chars() {
                match character {
                    '&' => self.out.push_str("&amp;"),
                    '<' => self.out.push_str("&lt;"),
                    '"' => self.out.push_str("&quot;"),
                    '\t' | '\n' | '\r' => {
                        let _ = write!(self.out, "&#{};", u32::from(character));
                    }
                    it => self.out.push(it),
                }
            }
            self.out.push('"');
        }
        for note in inside.repairs {
            self.say(note);
        }
        self.out.push_str(if empty { "/>" } else { ">" });
        if !empty {
            self.open.push(name);
        }
        // `xml::read` refuses deeper elements anyway.
        (self.open.len() <= XmlLimits::INSIDE.depth_max).then_some(())
    }

    fn close(&mut self, name: &'a str) -> Option<()> {
        if !self.open.contains(&name) {
            self.say(format!("</{name}> closes nothing; it is dropped"));
            return Some(());
        }
        while let Some(open) = self.open.pop() {
            let _ = write!(self.out, "</{open}>");
            if open == name {
                break;
            }
            self.say(format!("<{open}> is closed with </{name}>"));
        }
        Some(())
    }
}

/// The length in bytes of the open tag that `text` begins with.
fn tag_length(text: &str) -> Option<usize> {
    let mut quote = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'>' if quote == 0 => return Some(at + 1),
            b'<' if at > 0 => return None,
            b'"' | b'\'' if quote == 0 => quote = byte,
            _ if byte == quote => quote = 0,
            _ => {}
        }
    }
    None
}
