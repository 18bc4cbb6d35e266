//! `verify`: checks whether the log is as it was written.

use std::path::Path;

use serde_json::json;

use crate::audit;
use crate::cli::data;
use crate::cli::screen::{Ending, Failure, Screen};
use crate::log::{Error, Head, Log as _, SqliteLog};

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

Exits with 1 where anything is wrong, also where the file is no log any more.")]
pub(crate) struct Verify {
    /// A head that was printed earlier, and must be on the chain: NUMBER:DIGEST.
    #[arg(long, value_name = "HEAD")]
    expect: Option<Head>,
}

impl Verify {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
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
