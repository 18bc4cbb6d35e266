//! `show`: a thread, every message whole.

use std::path::Path;

use crate::audit;
use crate::cli::data;
use crate::cli::screen::{Ending, Failure, Screen};
use crate::id::{EntryId, ThreadId};
use crate::log::{Log, ThreadRecord};

/// Entries that are read at a time.
const PAGE: usize = 256;

/// Shows a thread: every message whole, with its sender, its cause and its digest.
///
/// Payloads are laid out for reading; `--json` has their very text. Times are UTC. The characters
/// that would steer a terminal, or hide, are shown as XML's references.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse show sess-k3v9x2ma
  pumphouse show sess-k3v9x2ma/7            one message of it
  pumphouse show sess-k3v9x2ma --json | jq -r .payload")]
pub(crate) struct Show {
    /// The thread, or one message as THREAD/SEQ.
    #[arg(value_name = "THREAD")]
    what: String,
}

impl Show {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let log = data::open(data)?;
        if let Ok(id) = self.what.parse::<EntryId>() {
            let entry = data::entry(&log, &id).await?;
            match to.json {
                true => to.object(&audit::json(&entry))?,
                false => to.text(&audit::lines(&entry, to.style))?,
            }
            return Ok(Ending::Well);
        }
        let id = ThreadId::new(&self.what);
        match log.thread(&id).await? {
            None => Err(data::unknown(&log, &id).await),
            Some(record) => {
                thread(&log, &record, to).await?;
                Ok(Ending::Well)
            }
        }
    }
}

/// Shows a thread, as far as it goes when it is looked up.
pub(crate) async fn thread(
    log: &dyn Log,
    record: &ThreadRecord,
    to: &mut Screen<'_>,
) -> Result<(), Failure> {
    if !to.json {
        to.line(&audit::thread(record, to.style))?;
    }
    let mut after = 0;
    loop {
        let page = log.read(&record.id, after, record.last_seq, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.id.seq;
        for entry in &page {
            if to.json {
                to.object(&audit::json(entry))?;
            } else {
                to.line("")?;
                to.text(&audit::lines(entry, to.style))?;
            }
        }
    }
}
