//! Reads bytes into a tree. The reader enforces every rule of XML 1.0 and of Namespaces in XML for
//! documents without a type declaration. The reader uses the XML library only to find where tokens
//! end.

use std::sync::Arc;

use quick_xml::errors::{Error as TokenError, SyntaxError};
use quick_xml::events::Event;
use quick_xml::reader::Reader;

use super::chars::{Survey, find_illegal, is_space, name_end, space_end, survey};
use super::element::Element;
use super::error::{BYTE_ORDER_MARK, Error, Kind, Refusal, clip};
use super::tag::{self, RawAttribute};
use super::tree::{BYTES_MAX, Builder, Document, Span};
use crate::limits::XmlLimits;

/// How a document's processing instructions are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Exhaustive: a document is a message from the wire, or a file.
pub enum Profile {
    /// Processing instructions are refused.
    Wire,
    /// Processing instructions are checked and skipped.
    Document,
}

/// Reads one document: UTF-8, one root, no document type declaration.
///
/// Comments are dropped. Adjacent texts, CDATA sections and references become one text.
///
/// # Errors
/// Returns an error for the first broken rule, with its line and column. The size, the encoding and
/// the characters of the document are checked before its syntax.
pub fn read(
    bytes: impl AsRef<[u8]>,
    profile: Profile,
    limits: &XmlLimits,
) -> Result<Element, Error> {
    let bytes = bytes.as_ref();
    match read_document(bytes, profile, limits) {
        Ok(document) => Ok(Element::root(Arc::new(document))),
        Err(refusal) => Err(refusal.placed(bytes)),
    }
}

fn read_document(bytes: &[u8], profile: Profile, limits: &XmlLimits) -> Result<Document, Refusal> {
    let bytes_max = limits.message_bytes_max.min(BYTES_MAX);
    if bytes.len() > bytes_max {
        let what = format!("a message of {} bytes", bytes.len());
        return Err(Refusal::limit(bytes_max, &what, "message_bytes_max", bytes_max));
    }
    let source = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let byte = bytes.get(at).copied().unwrap_or_default();
        Refusal::new(Kind::Utf8, at, format!("byte 0x{byte:02X} is no UTF-8 here"))
    })?;
    let survey = survey(source);
    if survey.suspicious()
        && let Some((at, c)) = find_illegal(source)
    {
        let message = format!("U+{:04X} is no XML character", u32::from(c));
        return Err(Refusal::syntax(at, message));
    }
    let base = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    if bytes[base..].starts_with(BYTE_ORDER_MARK) {
        return Err(Refusal::syntax(base, "text stands outside the root element"));
    }
    let mut parse = Parse {
        source,
        survey,
        profile,
        base,
        tree: Builder::new(source.to_owned(), *limits),
        pending: Pending::None,
        pending_offset: 0,
        attributes: Vec::new(),
    };
    parse.run()?;
    Ok(parse.tree.finish(false))
}

/// The text collected so far, which the next token may continue.
#[derive(Clone, Copy)]
enum Pending {
    None,
    /// The text stands in the source unchanged.
    Source(Span),
    /// The text is decoded. It extends from this offset to the end of the extra text.
    Extra(usize),
}

struct Parse<'s> {
    source: &'s str,
    survey: Survey,
    profile: Profile,
    /// The offset at which the document begins: 0, or the end of a byte order mark.
    base: usize,
    tree: Builder,
    pending: Pending,
    pending_offset: usize,
    /// A buffer for a tag's attributes. The next tag reuses the buffer.
    attributes: Vec<RawAttribute>,
}

impl Parse<'_> {
    fn run(&mut self) -> Result<(), Refusal> {
        let mut tokens = Reader::from_str(&self.source[self.base..]);
        let config = tokens.config_mut();
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        let mut start = self.base;
        loop {
            let event = match tokens.read_event() {
                Ok(event) => event,
                Err(error) => return Err(self.unfinished(&error, start)),
            };
            #[expect(clippy::cast_possible_truncation, reason = "within BYTES_MAX")]
            let end = self.base + tokens.buffer_position() as usize;
            match event {
                Event::Text(_) => self.text(start, end)?,
                Event::Start(_) => self.start(start, end - 1)?,
                Event::Empty(_) => {
                    self.start(start, end - 2)?;
                    self.tree.close();
                }
                Event::End(_) => self.end(start, end)?,
                Event::CData(_) => self.cdata(start, end)?,
                Event::GeneralRef(_) => self.reference(start)?,
                Event::Comment(_) => self.comment(start, end)?,
                Event::PI(_) => self.instruction(start, end)?,
                Event::Decl(_) => self.declaration(start, end)?,
                Event::DocType(_) => return Err(doctype(start)),
                Event::Eof => return self.finish(),
            }
            start = end;
        }
    }

    fn start(&mut self, start: usize, stop: usize) -> Result<(), Refusal> {
        self.flush()?;
        if !self.tree.is_inside() && !self.tree.nodes.is_empty() {
            return Err(Refusal::syntax(start, "a second root element"));
        }
        tag::start(self.source, start, stop, &mut self.tree, &mut self.attributes)
    }

    fn end(&mut self, start: usize, end: usize) -> Result<(), Refusal> {
        self.flush()?;
        let Some(open) = self.tree.open_element() else {
            let message = format!("{} closes nothing", clip(&self.source[start..end]));
            return Err(Refusal::syntax(start, message));
        };
        let (from, to) = self.tree.written_name(open);
        let name = &self.source[from..to];
        let bytes = self.source.as_bytes();
        let after = start + 2 + name.len();
        if bytes[start + 2..].starts_with(name.as_bytes()) && space_end(bytes, after) == end - 1 {
            self.tree.close();
            return Ok(());
        }
        let found = clip(&self.source[start..end]);
        let message = format!("{found} stands where </{}> must", clip(name));
        Err(Refusal::syntax(start, message))
    }

    fn text(&mut self, start: usize, end: usize) -> Result<(), Refusal> {
        let piece = &self.source[start..end];
        if !self.tree.is_inside() {
            return match piece.bytes().position(|byte| !is_space(byte)) {
                Some(at) => {
                    Err(Refusal::syntax(start + at, "text stands outside the root element"))
                }
                None => Ok(()),
            };
        }
        if self.survey.brackets()
            && let Some(at) = memchr::memmem::find(piece.as_bytes(), b"]]>")
        {
            return Err(Refusal::syntax(start + at, "`]]>` in text must be written `]]&gt;`"));
        }
        self.append(start, end);
        Ok(())
    }

    fn cdata(&mut self, start: usize, end: usize) -> Result<(), Refusal> {
        if !self.tree.is_inside() {
            return Err(Refusal::syntax(start, "text stands outside the root element"));
        }
        self.append(start + "<![CDATA[".len(), end - "]]>".len());
        Ok(())
    }

    fn reference(&mut self, start: usize) -> Result<(), Refusal> {
        if !self.tree.is_inside() {
            return Err(Refusal::syntax(start, "text stands outside the root element"));
        }
        let (character, _) = tag::reference(self.source, start)?;
        self.decode(start).push(character);
        Ok(())
    }

    fn comment(&self, start: usize, end: usize) -> Result<(), Refusal> {
        // The searched bytes include one dash of the closing `-->`, because `--->` is an error,
        // too.
        let content = start + "<!--".len();
        match memchr::memmem::find(&self.source.as_bytes()[content..end - 2], b"--") {
            Some(at) => Err(Refusal::syntax(content + at, "`--` stands in a comment")),
            None => Ok(()),
        }
    }

    fn instruction(&self, start: usize, end: usize) -> Result<(), Refusal> {
        let target = start + "<?".len();
        let target_end = name_end(self.source, target);
        let name = &self.source[target..target_end];
        if name.is_empty() {
            return Err(Refusal::syntax(target, "a processing instruction needs a name"));
        }
        let bytes = self.source.as_bytes();
        match bytes[target_end] {
            b':' => {
                let message = "a processing instruction's name has no colon";
                return Err(Refusal::namespace(target_end, message));
            }
            byte if is_space(byte) || target_end == end - 2 => {}
            _ => {
                let message = "white space is missing after a processing instruction's name";
                return Err(Refusal::syntax(target_end, message));
            }
        }
        if name.eq_ignore_ascii_case("xml") {
            let message = format!("<?{name}?> is reserved for the XML declaration");
            return Err(Refusal::syntax(start, message));
        }
        match self.profile {
            Profile::Document => Ok(()),
            Profile::Wire => {
                let message = format!("<?{}?>: processing instructions are refused", clip(name));
                Err(Refusal::new(Kind::ProcessingInstruction, start, message))
            }
        }
    }

    fn declaration(&self, start: usize, end: usize) -> Result<(), Refusal> {
        if start != self.base {
            let message = "an XML declaration stands at the very start or nowhere";
            return Err(Refusal::syntax(start, message));
        }
        if tag::declaration(self.source, start, end)?.is_ascii
            && let Some(at) = self.source.bytes().skip(end).position(|byte| byte >= 0x80)
        {
            let message = "a document that says US-ASCII holds another character";
            return Err(Refusal::new(Kind::Utf8, end + at, message));
        }
        Ok(())
    }

    fn finish(&self) -> Result<(), Refusal> {
        if let Some(open) = self.tree.open_element() {
            let (from, to) = self.tree.written_name(open);
            let name = clip(&self.source[from..to]);
            return Err(Refusal::syntax(from - 1, format!("<{name}> is never closed")));
        }
        if self.tree.nodes.is_empty() {
            return Err(Refusal::syntax(self.source.len(), "there is no element"));
        }
        Ok(())
    }

    /// Adds a part of the source to the pending text.
    fn append(&mut self, start: usize, end: usize) {
        if start == end {
            return;
        }
        let piece = &self.source[start..end];
        let plain = !self.survey.returns() || !piece.contains('\r');
        if plain && matches!(self.pending, Pending::None) {
            self.pending = Pending::Source(Span::new(start, end));
            self.pending_offset = start;
            return;
        }
        let extra = self.decode(start);
        if plain {
            extra.push_str(piece);
        } else {
            tag::push_lines(piece, extra);
        }
    }

    /// Returns the extra text, to which the caller adds decoded text. The text collected so far is
    /// copied there first.
    fn decode(&mut self, offset: usize) -> &mut String {
        let extra = self.tree.text.extra.len();
        match self.pending {
            Pending::None => {
                self.pending = Pending::Extra(extra);
                self.pending_offset = offset;
            }
            Pending::Source(span) => {
                self.tree.text.extra.push_str(&self.source[span.start()..span.end()]);
                self.pending = Pending::Extra(extra);
            }
            Pending::Extra(_) => {}
        }
        &mut self.tree.text.extra
    }

    /// Turns the pending text into a node, if there is any text.
    fn flush(&mut self) -> Result<(), Refusal> {
        let span = match std::mem::replace(&mut self.pending, Pending::None) {
            Pending::None => return Ok(()),
            Pending::Source(span) => span,
            Pending::Extra(start) => self.tree.text.extra_since(start),
        };
        self.tree.push_text(span, self.pending_offset)
    }

    /// Returns the error for a token that the tokenizer could not end. `at` is where the token
    /// starts.
    fn unfinished(&self, error: &TokenError, at: usize) -> Refusal {
        let rest = &self.source[at..];
        if rest.starts_with("<!DOCTYPE") {
            return doctype(at);
        }
        let message = match error {
            TokenError::Syntax(
                SyntaxError::UnclosedSingleQuotedAttributeValue
                | SyntaxError::UnclosedDoubleQuotedAttributeValue,
            ) => {
                let message = "an attribute value is never closed";
                return Refusal::syntax(at + open_quote(rest.as_bytes()), message);
            }
            TokenError::Syntax(SyntaxError::UnclosedTag) => "a tag is never closed",
            _ if rest.starts_with("<!--") => "a comment is never closed",
            _ if rest.starts_with("<![CDATA[") => "a CDATA section is never closed",
            _ if rest.starts_with("<?") => "a processing instruction is never closed",
            _ if rest.starts_with('&') => tag::BARE_AMPERSAND,
            _ => "`<!` begins neither a comment nor a CDATA section",
        };
        Refusal::syntax(at, message)
    }
}

/// Returns the offset of the quote that is never closed in `tag`.
fn open_quote(tag: &[u8]) -> usize {
    let mut at = 0;
    while let Some(open) = memchr::memchr2(b'"', b'\'', &tag[at..]).map(|found| at + found) {
        match memchr::memchr(tag[open], &tag[open + 1..]) {
            Some(length) => at = open + length + 2,
            None => return open,
        }
    }
    at
}

fn doctype(at: usize) -> Refusal {
    Refusal::new(Kind::Doctype, at, "a document type declaration is refused")
}
