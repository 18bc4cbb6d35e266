//! `verify`: checks whether the log is as it was written.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::audit;
use crate::cli::base::data;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::log::{Error, Head, Log as _, SqliteLog};

/// The most bytes of an exported document. It is read whole, also from a pipe, since it is the file
/// that was asked for.
const EXPORT_BYTES_MAX: u64 = 1 << 30;

/// Verifies the whole log: every digest, every link and the chain of commits. Prints the head, the
/// number and digest of the last commit.
///
/// With --expect and a head that was kept elsewhere, `verify` also proves that nobody changed
/// anything up to that head.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse verify
  pumphouse verify --json | jq -r .head > /elsewhere/head
  pumphouse verify --expect $(cat /elsewhere/head)
  pumphouse verify --data backup/pumphouse.db
  pumphouse verify thread.xml                       a document that `export` wrote

Exits with 1 where anything is wrong, also where the file is no log any more.")]
pub(crate) struct Verify {
    /// A head that was printed earlier, and must be on the chain: NUMBER:DIGEST.
    #[arg(long, value_name = "HEAD")]
    expect: Option<Head>,
    /// A document that `export` wrote, to be checked in place of the log.
    #[arg(value_name = "FILE", conflicts_with = "expect")]
    file: Option<PathBuf>,
}

impl Verify {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        if let Some(file) = &self.file {
            return document(file, to);
        }
        let path = data::path(data)?;
        let what = path.display().to_string();
        let report = match SqliteLog::open_read_only(&path) {
            Ok(log) => log.verify(self.expect).await,
            Err(error) => Err(error),
        };
        let report = match report {
            Ok(report) => report,
            // A file that no longer looks like a log, or is damaged, is reported as a finding.
            Err(error @ (Error::NotALog { .. } | Error::Damaged { .. })) if to.json => {
                to.object(&json!({ "log": what, "sound": false, "why": error.to_string() }))?;
                return Ok(Ending::Wrong);
            }
            Err(error @ Error::NotALog { .. }) => return Err(Failure::Wrong(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        match to.json {
            true => to.object(&audit::report_json(&report, &what))?,
            false => to.text(&audit::report(&report, &what, self.expect, to.style))?,
        }
        Ok(if report.is_sound() { Ending::Well } else { Ending::Wrong })
    }
}

/// Reads a document of at most [`EXPORT_BYTES_MAX`] bytes.
fn read(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(EXPORT_BYTES_MAX + 1).read_to_string(&mut text)?;
    match text.len() as u64 > EXPORT_BYTES_MAX {
        true => Err(io::Error::other(format!("it has more than {EXPORT_BYTES_MAX} bytes"))),
        false => Ok(text),
    }
}

/// Checks a document that `export` wrote.
fn document(file: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
    let name = file.display();
    let unread = |it: &dyn std::fmt::Display| Failure::Untried(format!("{name}: {it}"));
    let text = read(file).map_err(|it| unread(&it))?;
    let report = audit::check_export(&text).map_err(|it| unread(&it))?;
    if to.json {
        to.object(&json!({
            "file": name.to_string(),
            "sound": report.is_sound(),
            "log": report.log,
            "head": report.head,
            "threads": report.threads,
            "entries": report.entries,
            "findings": report.findings,
            "findings_more": report.findings_more,
        }))?;
    } else {
        for it in &report.findings {
            to.line(&audit::line(it))?;
        }
        let more = report.findings_more;
        if more > 0 {
            to.line(&format!("and {more} more"))?;
        }
        let entries = audit::count(report.entries as u64, "entry", "entries");
        let threads = audit::count(report.threads as u64, "thread", "threads");
        let found = match report.is_sound() {
            true => "every digest is right".to_owned(),
            false => audit::count((report.findings.len() + more) as u64, "finding", "findings"),
        };
        to.line(&format!("{name}: {entries} of {threads}, {found}"))?;
        let head = audit::line(&report.head).into_owned();
        to.line(&format!("written when the log was at {head}; `verify --expect` ties it to that"))?;
    }
    Ok(if report.is_sound() { Ending::Well } else { Ending::Wrong })
}
