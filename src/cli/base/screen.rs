//! The output of verbs, and the ways in which verbs end.

use std::io::{self, IsTerminal as _, Write};

use serde_json::Value;

use crate::audit::{self, Style};
use crate::log;
use crate::schema::json;

/// The output of a verb.
pub(crate) struct Screen<'a> {
    pub(crate) out: &'a mut dyn Write,
    pub(crate) style: Style,
    /// Whether JSON objects are wanted, one in each line.
    pub(crate) json: bool,
}

impl Screen<'_> {
    /// Writes a text that has its own line ends.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{line}")
    }

    /// Writes an object in one line.
    pub(crate) fn object(&mut self, object: &Value) -> io::Result<()> {
        writeln!(self.out, "{}", audit::ascii(&json::sorted(object)))
    }

    /// Flushes the output.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// How a verb ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The verb did what it was asked to do.
    Well,
    /// Something is wrong, and the output says so. The exit code is 1.
    Wrong,
}

/// Why a verb failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The verb was refused or failed. The exit code is 1.
    Wrong(String),
    /// The verb couldn't be tried. The exit code is 2.
    Untried(String),
    /// The reader of the output has closed the pipe. The exit code is 0.
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
            | log::Error::OtherFormat { .. }
            | log::Error::Locked { .. }
            | log::Error::Io(_) => Failure::Untried(error.to_string()),
            _ => Failure::Wrong(error.to_string()),
        }
    }
}

/// Returns the style of the output: with colour and the terminal's width on a terminal, else plain.
pub(crate) fn style(out: &io::Stdout) -> Style {
    if !out.is_terminal() {
        return Style::PLAIN;
    }
    let size = terminal_size::terminal_size_of(out);
    let width = size.map_or(80, |(width, _)| usize::from(width.0));
    Style { colour: may_colour(), width }
}

/// Whether the environment lets the program colour a terminal.
#[expect(clippy::disallowed_methods, reason = "the command line reads the environment")]
pub(crate) fn may_colour() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|it| !it.is_empty());
    !is_set("NO_COLOR") && !is_dumb()
}

/// Whether the environment variable `TERM` says that the terminal obeys no escape sequences.
#[expect(clippy::disallowed_methods, reason = "the command line reads the environment")]
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|it| it == "dumb")
}
