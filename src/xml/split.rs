//! Cuts a stream of bytes, fed in any chunks, into whole elements.
//!
//! An element ends where its outermost tag closes. The splitter finds that place by following tags,
//! quotes, comments and CDATA sections. The function `read` checks whether the element is
//! well-formed.

use bytes::{Buf, Bytes, BytesMut};

use super::chars::{find_illegal, is_space};
use super::error::{BYTE_ORDER_MARK, Error, Kind, Refusal};
use crate::limits::XmlLimits;

/// How a connection marks where messages end. The first byte of the connection determines the
/// framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
// Exhaustive: both sides of a connection have to know all framings.
pub enum Framing {
    /// Four bytes before each message give its length, most significant byte first.
    Length,
    /// A message ends where its element ends.
    Element,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The message's bytes. With [`Framing::Element`], they are one element and the markup before
    /// it: an XML declaration, processing instructions, and comments that follow them.
    pub bytes: Bytes,
}

/// Cuts a stream into messages.
///
/// ```
/// # extern crate pumphouse_ground as pumphouse;
/// use pumphouse::limits::XmlLimits;
/// use pumphouse::xml::Splitter;
///
/// let mut splitter = Splitter::new(XmlLimits::DOOR);
/// splitter.feed(b"<a><b>></b></a> <c");
/// let first = splitter.next()?.expect("one element is whole");
/// assert_eq!(&first.bytes[..], b"<a><b>></b></a>");
/// assert_eq!(splitter.next()?, None);
/// # Ok::<(), pumphouse::xml::Error>(())
/// ```
///
/// The splitter looks at every byte once. Places in errors are counted from the first byte of the
/// message.
#[derive(Debug)]
pub struct Splitter {
    limits: XmlLimits,
    framing: Option<Framing>,
    /// The bytes that have arrived, from the first byte of the incomplete message on.
    waiting: BytesMut,
    /// How many bytes of `waiting` have been scanned.
    seen: usize,
    state: Region,
    /// How many elements are open at `seen`.
    depth: usize,
    /// The offset in `waiting` at which the last comment starts.
    comment: usize,
    /// The kind of bytes that were dropped since the last message.
    dropped: Dropped,
    /// Whether a message has been returned. An XML declaration may follow white space after a
    /// message, but not white space at the start of the stream.
    has_given: bool,
    refusal: Option<Error>,
}

/// The kind of bytes that were dropped before a message begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dropped {
    Nothing,
    /// A byte order mark, and nothing else.
    Mark,
    /// White space or comments: neither a byte order mark nor an XML declaration may follow.
    More,
}

/// The scanner's position in the syntax of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    /// Outside the root, where only white space and markup may stand.
    Outside,
    /// In text.
    Text,
    /// After `<`.
    Markup,
    /// After `<!`.
    Bang,
    /// After `<!-`.
    Dash,
    /// After this many bytes of `<![CDATA[`.
    Opening(u8),
    /// In a comment, after this many dashes.
    Comment(u8),
    /// In a CDATA section, after this many `]`.
    Section(u8),
    /// In `<?…?>`. The flag says whether the last byte was a question mark.
    Instruction(bool),
    /// In a start tag. The flag says whether the last byte was a slash.
    Tag(bool),
    /// In an attribute value that this quote closes.
    Quoted(u8),
    /// In an end tag.
    End,
}

const SECTION: &[u8] = b"<![CDATA[";
/// A message of at least this many bytes keeps its buffer, and the splitter allocates a new buffer.
const LARGE_BYTES: usize = 32 * 1024;

/// The result of one scan.
enum Step {
    /// The message isn't complete yet.
    Wait,
    /// The message ends here.
    Whole,
}

impl Splitter {
    /// Creates a splitter at the start of a stream.
    #[must_use]
    pub fn new(limits: XmlLimits) -> Splitter {
        Splitter {
            limits,
            framing: None,
            waiting: BytesMut::new(),
            seen: 0,
            state: Region::Outside,
            depth: 0,
            comment: 0,
            dropped: Dropped::Nothing,
            has_given: false,
            refusal: None,
        }
    }

    /// Adds bytes that have arrived. Call [`next`](Splitter::next) afterwards until it returns
    /// `None`.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.refusal.is_none() {
            self.waiting.extend_from_slice(bytes);
        }
    }

    /// Returns the next message, if it has arrived completely.
    ///
    /// # Errors
    /// Returns an error for bytes that begin no message, for broken markup, and for a document type
    /// declaration. Returns an error, too, as soon as a message crosses a limit. An error is final:
    /// later calls return the same error.
    #[expect(clippy::should_implement_trait, reason = "a stream is not over when it has nothing")]
    pub fn next(&mut self) -> Result<Option<Frame>, Error> {
        if let Some(error) = &self.refusal {
            return Err(error.clone());
        }
        let found = match self.decide() {
            Some(Framing::Length) => self.next_counted(),
            Some(Framing::Element) => self.next_element(),
            None if self.waiting.is_empty() => Ok(None),
            None => {
                let byte = self.waiting[0];
                let message =
                    format!("a stream begins with a length or an element, not with 0x{byte:02X}");
                Err(Refusal::new(Kind::Framing, 0, message))
            }
        };
        found.map_err(|refusal| {
            let error = refusal.placed(&self.waiting);
            self.waiting = BytesMut::new();
            self.seen = 0;
            self.refusal = Some(error.clone());
            error
        })
    }

    /// Checks that the stream may end here. Call [`next`](Splitter::next) until it returns `None`
    /// first.
    ///
    /// # Errors
    /// Returns the error that [`next`](Splitter::next) returned, or an error for an incomplete
    /// message.
    pub fn finish(&self) -> Result<(), Error> {
        if let Some(error) = &self.refusal {
            return Err(error.clone());
        }
        if self.is_between() {
            return Ok(());
        }
        let begun = match self.framing {
            Some(Framing::Length) => self.waiting.get(4..).unwrap_or_default(),
            _ => &self.waiting,
        };
        let message = "the stream ends within a message";
        Err(Refusal::new(Kind::Framing, begun.len(), message).placed(begun))
    }

    /// Returns whether no byte of the next message has arrived. White space before an element
    /// doesn't count.
    #[must_use]
    pub fn is_between(&self) -> bool {
        self.waiting.is_empty()
            || (self.framing != Some(Framing::Length)
                && self.depth == 0
                && self.waiting.iter().all(|&byte| is_space(byte)))
    }

    /// Returns how many bytes wait for the rest of their message.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the memory that the waiting bytes take, in bytes.
    pub fn held_bytes(&self) -> usize {
        if self.waiting.is_empty() { 0 } else { self.waiting.capacity() }
    }

    /// Returns the stream's framing. Returns `None` before the first byte has arrived, and if the
    /// first byte begins no message.
    #[must_use]
    pub fn framing(&self) -> Option<Framing> {
        self.framing.or_else(|| framing_of(*self.waiting.first()?))
    }

    fn decide(&mut self) -> Option<Framing> {
        self.framing = self.framing();
        self.framing
    }

    fn next_counted(&mut self) -> Result<Option<Frame>, Refusal> {
        let Some(&length) = self.waiting.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(length) as usize;
        if length == 0 {
            return Err(Refusal::new(Kind::Framing, 0, "a message of no bytes"));
        }
        if length > self.limits.message_bytes_max {
            let what = format!("a message of {length} bytes");
            let max = self.limits.message_bytes_max;
            return Err(Refusal::limit(0, &what, "message_bytes_max", max));
        }
        if self.waiting.len() - 4 < length {
            return Ok(None);
        }
        self.waiting.advance(4);
        Ok(Some(self.cut_off(length)))
    }

    /// Takes the first `length` waiting bytes as a message.
    fn cut_off(&mut self, length: usize) -> Frame {
        let bytes = self.waiting.split_to(length).freeze();
        if length >= LARGE_BYTES {
            // The remaining bytes would keep the buffer of the large message in memory.
            self.waiting = BytesMut::from(&self.waiting[..]);
        }
        Frame { bytes }
    }

    fn next_element(&mut self) -> Result<Option<Frame>, Refusal> {
        if !self.skip_between()? {
            return Ok(None);
        }
        let max = self.limits.message_bytes_max;
        while self.seen < self.waiting.len().min(max) {
            match self.look(self.waiting.len().min(max))? {
                Step::Wait => {}
                Step::Whole => {
                    self.begin_message()?;
                    let frame = self.cut_off(self.seen);
                    self.seen = 0;
                    self.state = Region::Outside;
                    return Ok(Some(frame));
                }
            }
            if self.seen == 0 && !self.skip_between()? {
                return Ok(None);
            }
        }
        if self.waiting.len() > max {
            return Err(Refusal::limit(max, "too large a message", "message_bytes_max", max));
        }
        Ok(None)
    }

    /// Drops white space and a byte order mark before a message. Returns whether the message has
    /// begun.
    fn skip_between(&mut self) -> Result<bool, Refusal> {
        if self.seen > 0 {
            return Ok(true);
        }
        loop {
            let space = self.waiting.iter().take_while(|&&byte| is_space(byte)).count();
            self.waiting.advance(space);
            let is_between = self.has_given && self.dropped == Dropped::Nothing;
            if space > 0 && !is_between {
                self.dropped = Dropped::More;
            }
            if !self.waiting.starts_with(BYTE_ORDER_MARK) {
                break;
            }
            if self.dropped != Dropped::Nothing {
                return Err(Refusal::syntax(0, "a byte order mark stands at the very start"));
            }
            self.dropped = Dropped::Mark;
            self.waiting.advance(BYTE_ORDER_MARK.len());
        }
        // A byte order mark that has only arrived in part doesn't begin a message yet.
        Ok(!BYTE_ORDER_MARK.starts_with(&self.waiting))
    }

    /// Ends the gap before a message. Fails if the message starts with an XML declaration and
    /// `dropped` is [`Dropped::More`].
    fn begin_message(&mut self) -> Result<(), Refusal> {
        let rest = self.waiting.strip_prefix(b"<?xml");
        let is_declared = rest.and_then(|it| it.first()).is_some_and(|it| !is_name(*it));
        if is_declared && self.dropped == Dropped::More {
            let message = "an XML declaration stands at the very start or nowhere";
            return Err(Refusal::syntax(0, message));
        }
        (self.dropped, self.has_given) = (Dropped::Nothing, true);
        Ok(())
    }

    /// Skips to the next byte that can change the state, and processes that byte.
    fn look(&mut self, window: usize) -> Result<Step, Refusal> {
        let at = self.seen;
        let rest = &self.waiting[at..window];
        let skipped = match self.state {
            Region::Text => memchr::memchr(b'<', rest),
            Region::Comment(0) => memchr::memchr(b'-', rest),
            Region::Section(0) => memchr::memchr(b']', rest),
            Region::Instruction(false) => memchr::memchr(b'?', rest),
            Region::Quoted(quote) => memchr::memchr2(quote, b'<', rest),
            Region::End => memchr::memchr3(b'>', b'<', b'"', rest),
            Region::Tag(false) => {
                rest.iter().position(|byte| matches!(byte, b'>' | b'/' | b'"' | b'\'' | b'<'))
            }
            _ => Some(0),
        };
        let Some(skipped) = skipped else {
            self.seen = window;
            return Ok(Step::Wait);
        };
        let (at, byte) = (at + skipped, rest[skipped]);
        self.seen = at + 1;
        self.step(at, byte)
    }

    /// Processes one byte.
    fn step(&mut self, at: usize, byte: u8) -> Result<Step, Refusal> {
        self.state = match (self.state, byte) {
            (Region::Outside, b'<') | (Region::Text, _) => Region::Markup,
            (Region::Outside, _) if is_space(byte) => Region::Outside,
            (Region::Outside, _) => {
                let message = format!("0x{byte:02X} stands between elements");
                return Err(Refusal::new(Kind::Framing, at, message));
            }
            (Region::Markup, b'!') => Region::Bang,
            (Region::Markup, b'?') => Region::Instruction(false),
            (Region::Markup, b'/') if self.depth > 0 => Region::End,
            (Region::Markup, b'/') => {
                return Err(Refusal::syntax(at - 1, "an end tag closes nothing"));
            }
            (Region::Markup, b'>' | b'<' | b'"' | b'\'') => {
                return Err(Refusal::syntax(at, "a name must follow `<`"));
            }
            (Region::Markup, _) => Region::Tag(false),
            (Region::Bang, b'-') => Region::Dash,
            (Region::Dash, b'-') => {
                self.comment = at - 3;
                Region::Comment(0)
            }
            (Region::Bang, b'[') if self.depth > 0 => Region::Opening(3),
            (Region::Bang, b'D') => {
                let message = "a document type declaration is refused";
                return Err(Refusal::new(Kind::Doctype, at - 2, message));
            }
            (Region::Opening(count), _) if SECTION[usize::from(count)] == byte => {
                let count = count + 1;
                let whole = usize::from(count) == SECTION.len();
                if whole { Region::Section(0) } else { Region::Opening(count) }
            }
            (Region::Bang | Region::Dash | Region::Opening(_), _) => {
                let message = "`<!` begins neither a comment nor a CDATA section here";
                return Err(Refusal::syntax(at, message));
            }
            (Region::Comment(count), b'-') => Region::Comment((count + 1).min(2)),
            (Region::Comment(2), b'>') => return Ok(self.after_comment()),
            (Region::Comment(_), _) => Region::Comment(0),
            (Region::Section(count), b']') => Region::Section((count + 1).min(2)),
            (Region::Section(2), b'>') => self.between_markup(),
            (Region::Section(_), _) => Region::Section(0),
            (Region::Instruction(_), b'?') => Region::Instruction(true),
            (Region::Instruction(true), b'>') => self.between_markup(),
            (Region::Instruction(_), _) => Region::Instruction(false),
            (Region::Tag(_) | Region::Quoted(_) | Region::End, b'<') => {
                return Err(Refusal::syntax(at, "`<` stands within a tag"));
            }
            (Region::Tag(slash), b'>') => return self.after_tag(at, slash),
            (Region::Tag(_), b'"' | b'\'') => Region::Quoted(byte),
            (Region::Tag(_), _) => Region::Tag(byte == b'/'),
            (Region::Quoted(_), _) => Region::Tag(false),
            (Region::End, b'>') => {
                self.depth -= 1;
                if self.depth == 0 {
                    return Ok(Step::Whole);
                }
                Region::Text
            }
            (Region::End, _) => {
                return Err(Refusal::syntax(at, "an end tag has no attributes"));
            }
        };
        Ok(Step::Wait)
    }

    /// Ends a comment. A comment between messages belongs to no message and is dropped. A malformed
    /// comment stays in front of the next message, so that `read` refuses that message.
    fn after_comment(&mut self) -> Step {
        self.state = self.between_markup();
        if self.depth == 0 && self.comment == 0 && is_comment(&self.waiting[..self.seen]) {
            self.waiting.advance(self.seen);
            self.seen = 0;
            self.dropped = Dropped::More;
        }
        Step::Wait
    }

    fn after_tag(&mut self, at: usize, is_empty: bool) -> Result<Step, Refusal> {
        self.state = Region::Text;
        if is_empty {
            return Ok(if self.depth == 0 { Step::Whole } else { Step::Wait });
        }
        if self.depth >= self.limits.depth_max {
            let what = "elements too deep within elements";
            return Err(Refusal::limit(at, what, "depth_max", self.limits.depth_max));
        }
        self.depth += 1;
        Ok(Step::Wait)
    }

    fn between_markup(&self) -> Region {
        if self.depth == 0 { Region::Outside } else { Region::Text }
    }
}

/// Returns whether a byte may continue the name of a processing instruction.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':') || byte >= 0x80
}

/// Returns whether `bytes`, from `<!--` to `-->`, are a well-formed comment: only characters that
/// XML allows, and no `--` before the end.
fn is_comment(bytes: &[u8]) -> bool {
    let inside = &bytes["<!--".len()..bytes.len() - "->".len()];
    let text = std::str::from_utf8(inside);
    memchr::memmem::find(inside, b"--").is_none()
        && text.is_ok_and(|text| find_illegal(text).is_none())
}

fn framing_of(first: u8) -> Option<Framing> {
    match first {
        0 => Some(Framing::Length),
        b'<' => Some(Framing::Element),
        byte if is_space(byte) || byte == BYTE_ORDER_MARK[0] => Some(Framing::Element),
        _ => None,
    }
}

/// Appends one message to `out`, in this framing.
///
/// `element_bytes` is one element. An element is shorter than 4 GiB, since no limit allows more.
pub fn frame(framing: Framing, element_bytes: &[u8], out: &mut Vec<u8>) {
    match framing {
        Framing::Length => {
            #[expect(clippy::expect_used, reason = "an element's text is below 2 GiB")]
            let length = u32::try_from(element_bytes.len()).expect("a message is below 4 GiB");
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(element_bytes);
        }
        Framing::Element => {
            out.extend_from_slice(element_bytes);
            out.push(b'\n');
        }
    }
}
