//! `inspect`: says what a pump would make of files, without running a pump.

mod chunks;
mod payload;
mod reply;
mod stream;
mod xml;

use std::io::{self, BufRead as _};

use serde_json::{Value, json};

use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::engine::Builder;
use crate::xml::View;

/// Says what a pump would make of files. Nothing is started, sent or kept.
#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    #[command(subcommand)]
    what: Subject,
}

#[derive(Debug, clap::Subcommand)]
enum Subject {
    Reply(reply::Reply),
    Stream(stream::Stream),
    Xml(xml::Xml),
    Payload(payload::Payload),
}

impl Inspect {
    pub(crate) fn run(self, builder: Builder, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        match self.what {
            Subject::Reply(it) => it.run(to),
            Subject::Stream(it) => it.run(to),
            Subject::Xml(it) => it.run(to),
            Subject::Payload(it) => it.run(builder, to),
        }
    }
}

/// Prints the verdict on each file, in order. `-` stands for a list of files on the standard input.
fn each(
    files: &[String],
    to: &mut Screen<'_>,
    verdict: impl Fn(&str) -> Value,
) -> Result<Ending, Failure> {
    for file in files {
        if file != "-" {
            to.object(&verdict(file))?;
            continue;
        }
        // A file whose name isn't UTF-8 can't be opened here. It gets a verdict that says so.
        for line in io::stdin().lock().split(b'\n') {
            let line = line.map_err(|it| Failure::Untried(format!("the input: {it}")))?;
            let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line));
            if !line.is_empty() {
                to.object(&verdict(&line))?;
            }
        }
    }
    Ok(Ending::Well)
}

fn unreadable(error: &io::Error) -> Value {
    let message = format!("the file can't be read: {error}");
    json!({ "code": "unreadable", "line": null, "column": null, "message": message })
}

/// Returns the digest of a payload's canonical form, in hex.
fn digest(view: View<'_>) -> String {
    let mut digest = blake3::Hasher::new();
    view.canonical_pieces(|piece| {
        digest.update(piece);
    });
    digest.finalize().to_hex().to_string()
}
