//! Decides where in a text a tag may be markup, by the parsing rules before version 3. These rules
//! serve only the replay of old turns. For new replies, `code.rs` decides.

use crate::reply::names::Markup;

#[derive(Clone, Copy, Debug)]
pub(super) struct CodeBefore3 {
    mode: ScanState,
    /// Whether only white space and the markers of quotes and lists stand before this place. Only
    /// text after the beginning of the line, and after the last tag, counts.
    fresh: bool,
    run: Option<Run>,
    /// Whether calls may be JSON, too.
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanState {
    Prose,
    Span(usize),
    /// The line on which a fence begins.
    Opening(Fence),
    Fenced(Fence),
    /// The line on which a fence ends, unless other text follows on it.
    Closing(Fence),
    /// In a comment. The value is the number of `-` that were just read in a row.
    Comment(u8),
    /// In a CDATA section. The value is the number of `]` that were just read in a row.
    Section(u8),
    /// In a tool's output. The values are the index of the element's name, and the number of bytes
    /// of its close tag that were read.
    Output(usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    mark: u8,
    count: usize,
}

/// A run of backticks or tildes.
#[derive(Clone, Copy, Debug)]
struct Run {
    mark: u8,
    count: usize,
    fresh: bool,
}

impl CodeBefore3 {
    pub(super) fn new(json: bool) -> CodeBefore3 {
        CodeBefore3 { mode: ScanState::Prose, fresh: true, run: None, json }
    }

    /// Takes a tag that is markup. The tag ends any open code.
    pub(super) fn reset(&mut self) {
        *self = CodeBefore3::new(self.json);
    }

    /// Takes text without markup.
    pub(super) fn plain(&mut self) {
        self.fresh = false;
    }

    pub(super) fn comment(&mut self) {
        self.mode = ScanState::Comment(0);
    }

    pub(super) fn section(&mut self) {
        self.mode = ScanState::Section(0);
    }

    /// Takes the open tag of a tool's output.
    pub(super) fn output(&mut self, place: usize) {
        self.mode = ScanState::Output(place, 0);
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }

    pub(super) fn in_span(&self) -> bool {
        self.span().is_some()
    }

    pub(super) fn is_code(&self) -> bool {
        let is_fence = matches!(
            self.mode,
            ScanState::Opening(_) | ScanState::Fenced(_) | ScanState::Closing(_)
        );
        is_fence || self.in_span()
    }

    /// How many backticks end the code span here. None if the text here isn't in a code span.
    pub(super) fn span(&self) -> Option<usize> {
        match self.mode {
            ScanState::Span(count) => Some(count),
            _ => None,
        }
    }

    /// Ends a code span.
    pub(super) fn end_span(&mut self) {
        self.mode = ScanState::Prose;
        self.fresh = false;
    }

    /// Reads up to the next byte at which markup may begin, and returns its index.
    pub(super) fn next(&mut self, bytes: &[u8], markup: &Markup) -> Option<usize> {
        let mut at = 0;
        loop {
            at += self.skip(&bytes[at..]);
            let &byte = bytes.get(at)?;
            match &mut self.run {
                Some(run) if run.mark == byte => run.count += 1,
                run => {
                    if let Some(run) = run.take() {
                        self.resolve(run);
                    }
                    if self.look(byte, markup) {
                        return Some(at);
                    }
                }
            }
            at += 1;
        }
    }

    /// Returns how many bytes come before the next byte that matters.
    fn skip(&self, bytes: &[u8]) -> usize {
        if self.run.is_some() || (self.fresh && !self.is_opaque()) {
            return 0;
        }
        let found = match self.mode {
            ScanState::Prose if self.json => {
                bytes.iter().position(|it| matches!(it, b'<' | b'`' | b'\n' | b'{' | b'['))
            }
            ScanState::Prose => memchr::memchr3(b'<', b'`', b'\n', bytes),
            ScanState::Span(_) => memchr::memchr3(b'`', b'\n', b'<', bytes),
            ScanState::Opening(_) => memchr::memchr2(b'`', b'\n', bytes),
            ScanState::Fenced(_) => memchr::memchr(b'\n', bytes),
            ScanState::Comment(0) => memchr::memchr(b'-', bytes),
            ScanState::Section(0) => memchr::memchr(b']', bytes),
            ScanState::Output(_, 0) => memchr::memchr(b'<', bytes),
            _ => Some(0),
        };
        found.unwrap_or(bytes.len())
    }

    fn is_opaque(&self) -> bool {
        matches!(self.mode, ScanState::Comment(_) | ScanState::Section(_) | ScanState::Output(..))
    }

    /// Takes one byte, and returns whether markup may begin at it.
    fn look(&mut self, byte: u8, markup: &Markup) -> bool {
        match self.mode {
            ScanState::Comment(count) => self.mode = run_to(count, byte, b'-', ScanState::Comment),
            ScanState::Section(count) => self.mode = run_to(count, byte, b']', ScanState::Section),
            ScanState::Output(place, seen) => {
                self.mode = output(place, seen, byte, markup.at(place).text.as_bytes());
            }
            _ => return self.look_at_text(byte),
        }
        false
    }

    fn look_at_text(&mut self, byte: u8) -> bool {
        match byte {
            b'\n' => self.line(),
            b' ' | b'\t' | b'\r' => {}
            // The markers of quotes and lists may stand before a fence.
            b'>' | b'-' | b'*' | b'+' | b'.' | b')' | b'0'..=b'9' if self.fresh => {}
            b'`' => self.run = Some(Run { mark: byte, count: 1, fresh: self.fresh }),
            b'~' if self.fresh => self.run = Some(Run { mark: byte, count: 1, fresh: true }),
            b'<' => {
                if let ScanState::Closing(_) = self.mode {
                    self.mode = ScanState::Prose;
                    self.fresh = true;
                }
                let may = self.mode == ScanState::Prose || self.in_span();
                self.fresh &= may;
                return may;
            }
            b'{' | b'[' if self.json && self.mode == ScanState::Prose => return true,
            _ => {
                self.fresh = false;
                if let ScanState::Closing(fence) = self.mode {
                    self.mode = ScanState::Fenced(fence);
                }
            }
        }
        false
    }

    fn line(&mut self) {
        self.mode = match self.mode {
            ScanState::Opening(fence) => ScanState::Fenced(fence),
            ScanState::Closing(_) => ScanState::Prose,
            ScanState::Span(_) if self.fresh => ScanState::Prose,
            mode => mode,
        };
        self.fresh = true;
    }

    /// Handles the end of a run of backticks or tildes.
    fn resolve(&mut self, run: Run) {
        let Run { mark, count, fresh } = run;
        let fences = fresh && count >= 3;
        let fence = Fence { mark, count };
        self.fresh = false;
        self.mode = match self.mode {
            ScanState::Span(open) if mark == b'`' && open == count => ScanState::Prose,
            ScanState::Prose | ScanState::Span(_) if fences => ScanState::Opening(fence),
            ScanState::Prose if mark == b'`' => ScanState::Span(count),
            // The line that opens a fence can't have further backticks, so this was a code span.
            ScanState::Opening(open) if open.mark == b'`' && mark == b'`' => {
                if open.count == count { ScanState::Prose } else { ScanState::Span(open.count) }
            }
            ScanState::Fenced(open) if fences && open.mark == mark && open.count <= count => {
                ScanState::Closing(open)
            }
            ScanState::Closing(open) => ScanState::Fenced(open),
            mode => mode,
        };
    }
}

/// Takes a byte of a comment or a section, which ends with `mark` twice and `>`.
fn run_to(count: u8, byte: u8, mark: u8, mode: fn(u8) -> ScanState) -> ScanState {
    match byte {
        b'>' if count == 2 => ScanState::Prose,
        _ if byte == mark => mode((count + 1).min(2)),
        _ => mode(0),
    }
}

/// Takes a byte of a tool's output, and looks for `</name>`, which may have white space before the
/// `>`.
fn output(place: usize, seen: usize, byte: u8, name: &[u8]) -> ScanState {
    let seen = match seen {
        _ if byte == b'<' => 1,
        1 if byte == b'/' => 2,
        2.. if name.get(seen - 2) == Some(&byte) => seen + 1,
        _ if seen == name.len() + 2 && byte == b'>' => return ScanState::Prose,
        _ if seen == name.len() + 2 && byte.is_ascii_whitespace() => seen,
        _ => 0,
    };
    ScanState::Output(place, seen)
}
