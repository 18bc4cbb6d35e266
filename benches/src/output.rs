//! The output of the program, and the ways in which it fails.

use std::io::{self, BufWriter, Stdout, Write as _};

use pumphouse::log;
use serde_json::Value;

/// The standard output.
pub(crate) struct Output {
    out: BufWriter<Stdout>,
    /// Whether JSON objects are wanted, one in each line.
    pub(crate) json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Output {
        Output { out: BufWriter::new(io::stdout()), json }
    }

    /// Writes a line at once.
    pub(crate) fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }

    /// Writes an object in one line, at once.
    pub(crate) fn object(&mut self, object: &Value) -> io::Result<()> {
        self.line(&object.to_string())
    }
}

/// Why there are no more rows.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something that was measured failed. The exit code is 1.
    Wrong(String),
    /// Nothing could be measured. The exit code is 2.
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
        Failure::Wrong(error.to_string())
    }
}
