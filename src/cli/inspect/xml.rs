//! `inspect xml`: shows the strict reader's verdict on files, with one line of output for each
//! file.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{digest, unreadable};
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::limits::XmlLimits;
use crate::wire::Fault;
use crate::xml::{self, Profile};

/// The limit on a document's bytes, as a multiple of its file's size. The canonical form can be
/// larger than the file, because it repeats namespaces.
const ROOM: usize = 8;
/// The least limit on a document's bytes, for small files.
const BYTES_MIN: usize = 1 << 20;

/// Reads XML files as strictly as a door does, and prints one JSON object a line for each file. The
/// object of an accepted file has the BLAKE3 digest of its canonical form. The object of a rejected
/// file says why and where.
///
/// The limits are wider than a door's: a file may have up to 1 GiB and 4,096 levels of elements.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse inspect xml message.xml
  pumphouse inspect xml --profile wire *.xml
  find . -name '*.xml' | pumphouse inspect xml - | jq -r 'select(.verdict == \"reject\") | .file'

A file that can't be read is rejected with the code \"unreadable\" and without a place.
Exits with 0 once each file has its verdict, whichever that is.")]
pub(crate) struct Xml {
    /// Whether processing instructions are skipped, as in files, or refused, as in messages.
    #[arg(long, value_enum, default_value_t = Mode::Document)]
    profile: Mode,
    /// The files to read; - stands for a list of files on the standard input, one a line.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
}

/// How processing instructions are treated.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Mode {
    /// Processing instructions are skipped.
    Document,
    /// Processing instructions are refused.
    Wire,
}

impl Xml {
    pub(crate) fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let profile = match self.profile {
            Mode::Document => Profile::Document,
            Mode::Wire => Profile::Wire,
        };
        super::each(&self.files, to, |file| verdict(file, profile))
    }
}

fn verdict(file: &str, profile: Profile) -> Value {
    let (digest, error) = match inspect(Path::new(file), profile) {
        Ok(digest) => (Some(digest), None),
        Err(error) => (None, Some(error)),
    };
    let verdict = if digest.is_some() { "accept" } else { "reject" };
    json!({ "file": file, "verdict": verdict, "error": error, "canonical_blake3": digest })
}

/// Returns the digest of the canonical form, in hex.
fn inspect(path: &Path, profile: Profile) -> Result<String, Value> {
    let bytes = fs::read(path).map_err(|error| unreadable(&error))?;
    let message_bytes_max = bytes.len().saturating_mul(ROOM).max(BYTES_MIN);
    let limits = XmlLimits { message_bytes_max, ..XmlLimits::FILE };
    let element = xml::read(&bytes, profile, &limits).map_err(refused)?;
    drop(bytes);
    Ok(digest(element.view()))
}

fn refused(error: xml::Error) -> Value {
    let Fault { code, message, line, column, .. } = Fault::from(error);
    json!({ "code": code.to_string(), "line": line, "column": column, "message": message })
}
