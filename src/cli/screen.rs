//! What verbs write to, and how they end.

use std::io::{self, Write};

use serde_json::Value;

use crate::audit::{self, Style};
use crate::log;

/// What a verb writes to.
pub(crate) struct Screen<'a> {
    pub(crate) out: &'a mut dyn Write,
    pub(crate) style: Style,
    /// Whether objects are wanted, one a line.
    pub(crate) json: bool,
}

impl Screen<'_> {
    /// A text that brings its own line ends.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    /// A line.
    pub(crate) fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{line}")
    }

    /// An object, in a line.
    pub(crate) fn object(&mut self, object: &Value) -> io::Result<()> {
        writeln!(self.out, "{}", audit::ascii(&object.to_string()))
    }

    /// Shows now what was written.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// How a verb came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Done.
    Well,
    /// Something is wrong, and was said.
    Wrong,
}

/// Why a verb has no end to show.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Tried, and refused or failed.
    Wrong(String),
    /// It couldn't be tried.
    Untried(String),
    /// Whoever read the output has read enough.
    Pipe,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Pipe,
            _ => Failure::Untried(format!("nothing can be written: {error}")),
        }
    }
}

impl From<log::Error> for Failure {
    fn from(error: log::Error) -> Failure {
        match error {
            log::Error::NotALog { .. }
            | log::Error::Newer { .. }
            | log::Error::Locked { .. }
            | log::Error::Io(_) => Failure::Untried(error.to_string()),
            _ => Failure::Wrong(error.to_string()),
        }
    }
}
