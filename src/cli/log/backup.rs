//! `backup`: copies the log, also while a pump writes to it, and verifies the copy.

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use crate::audit;
use crate::cli::base::data;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::base::signals::Signals;
use crate::log::{Copied, Error, Existing};
use crate::own_files::own_options;
use crate::regular_file::{self, opened_no_link};
use crate::wire::core::LogBackedUp;
use serde_json::json;

/// Copies the log into a file, also while a pump writes to it, and verifies the copy.
///
/// The file appears once the copy is complete and verified. It holds what the log held when the
/// copying began. Keep the printed head, which names the last commit, somewhere else. With it,
/// `verify --expect HEAD` later finds whether a log was cut, or replaced by an older one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse backup backup/pumphouse.db
  pumphouse backup backup/pumphouse.db --force --json | jq -r .head > /elsewhere/head
  pumphouse verify --expect $(cat /elsewhere/head)
  pumphouse threads --data backup/pumphouse.db

A file that exists stays as it is; `--force` replaces it.
Exits with 1 where the log is damaged or the copying was stopped, and then leaves no copy; with 2
where there is no log, or the file can't be written.")]
pub(crate) struct Backup {
    /// The file to make.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replaces a file that exists.
    #[arg(long)]
    force: bool,
}

impl Backup {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let log = data::open(data)?;
        let file = self.file.display().to_string();
        if self.file.is_file() && !self.force {
            let text = "is there already; name another, or write over it with --force";
            return Err(Failure::Untried(format!("{file} {text}")));
        }
        let existing = if self.force { Existing::Replace } else { Existing::Keep };
        let mut signals = Signals::listen()?;
        let meter = Meter::on_terminal();
        let shown = meter.is_some();
        let backup = log.backup(&self.file, existing, move |copied| {
            if let Some(meter) = &meter {
                meter.show(copied);
            }
        });
        let report = tokio::select! {
            report = backup => report.map_err(|error| match error {
                Error::Full => Failure::Untried(format!("{file} can't be written: {error}")),
                Error::Io(why) => Failure::Untried(format!("no backup was made: {why}")),
                error => error.into(),
            }),
            signal = signals.next() => {
                Err(Failure::Wrong(format!("{signal} stopped it, and no backup was made")))
            }
        };
        if shown {
            Meter.clear();
        }
        let report = report?;
        note(&data::path(data)?, &file, &report.head.to_string());
        match to.json {
            true => to.object(&audit::report_json(&report, &file))?,
            false => to.text(&audit::report(&report, &file, None, to.style))?,
        }
        Ok(Ending::Well)
    }
}

/// The file beside the log in which copies are noted, until a pump records them.
fn notes(log: &Path) -> PathBuf {
    log.with_extension("db-backups")
}

/// The most bytes of the notes. More are forgotten.
const NOTES_BYTES_MAX: u64 = 1 << 20;

/// Notes a copy beside the log. The pump that writes the log, or the next one, records it in the
/// thread `organism`. A copy is good without its note, so a failure is only traced.
fn note(log: &Path, file: &str, head: &str) {
    let now = jiff::Timestamp::now().to_string();
    let line = format!("{}\n", json!({ "file": file, "head": head, "time": now }));
    let opened = opened_no_link(own_options().create(true).append(true), &notes(log));
    if let Err(error) = opened.and_then(|mut it| it.write_all(line.as_bytes())) {
        tracing::warn!(%error, "the copy can't be noted beside the log");
    }
}

/// Takes the copies that were noted beside the log.
pub(crate) fn noted(log: &Path) -> Vec<LogBackedUp> {
    let (notes, taken) = (notes(log), log.with_extension("db-backups-taken"));
    // Renaming first loses no note that comes meanwhile.
    if fs::rename(&notes, &taken).is_err() {
        return Vec::new();
    }
    let text = regular_file::text(&taken, NOTES_BYTES_MAX).unwrap_or_default();
    let _ = fs::remove_file(&taken);
    let copy = |line: &str| {
        let said: serde_json::Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| Some(said[key].as_str()?.to_owned());
        let timestamp = text("time")?.parse::<jiff::Timestamp>().ok()?;
        Some(LogBackedUp { file: text("file")?, head: text("head")?, timestamp })
    };
    text.lines().filter_map(copy).collect()
}

/// Shows the progress of a copy in one line of the terminal. Each update overwrites the line.
struct Meter;

impl Meter {
    fn on_terminal() -> Option<Meter> {
        io::stderr().is_terminal().then_some(Meter)
    }

    fn show(&self, copied: Copied) {
        // The progress is dispensable, so an error is ignored.
        let _ = write!(io::stderr(), "\r\x1b[K{}", told(copied.bytes, copied.of));
    }

    fn clear(&self) {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

fn told(bytes: u64, of: u64) -> String {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    match bytes == of {
        true => format!("{} MiB copied; verifying them", mib(of)),
        false => format!("{} of {} MiB copied", mib(bytes), mib(of)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_meter_says_how_far_it_is_and_what_comes_next() {
        assert_eq!(told(3 << 20, 10 << 20), "3 of 10 MiB copied");
        assert_eq!(told(4_096, 4_096), "1 MiB copied; verifying them");
    }

    #[cfg(unix)]
    #[test]
    fn notes_are_their_owners_and_a_fifo_in_their_place_holds_nothing_up() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log.db");
        let mode = rustix::fs::Mode::from_bits_truncate(0o600);
        let fifo = notes(&log);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let (at, (to, told)) = (log.clone(), std::sync::mpsc::sync_channel(1));
        std::thread::spawn(move || {
            note(&at, "copy.db", "1-abc");
            to.send(noted(&at).len())
        });
        let count = told.recv_timeout(std::time::Duration::from_secs(30)).unwrap();
        assert_eq!(count, 0, "the notes were a FIFO, which is gone now");
        note(&log, "copy.db", "1-abc");
        assert_eq!(fs::metadata(notes(&log)).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(noted(&log).len(), 1);
    }
}
