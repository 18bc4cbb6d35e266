//! `threads`: lists the threads of the log.

use std::path::Path;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::audit::{self, Filter};
use crate::cli::base::data;
use crate::cli::base::filters::Filters;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::log::{Error, Log, ThreadPages, ThreadRecord, ThreadSummary};

/// How many threads are read at once, so that each of the log's two readers has work.
const AT_ONCE: usize = 4;

/// Lists the threads of the log, the oldest first: how long each is, its state unless it is open,
/// and how it begins.
///
/// With filters, `threads` lists only those that are in a wanted state now and hold a wanted
/// message.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse threads
  pumphouse threads --identity ada --since 2026-11-22
  pumphouse threads --failed --since 1h            where anything went wrong in the last hour
  pumphouse threads --state failed --state cancelled
  pumphouse threads --json | jq -r 'select(.parent == null).thread'")]
pub(crate) struct Threads {
    #[command(flatten)]
    filters: Filters,
}

impl Threads {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let log = data::open(data)?;
        let filter = self.filters.filter();
        let (mut pages, mut is_empty, mut shown) = (ThreadPages::of(&log), true, false);
        while let Some(page) = pages.next().await? {
            is_empty = false;
            let wanted = wanted(&log, &filter, page).await?;
            if !to.json && !shown && !wanted.is_empty() {
                to.line(&audit::summaries(to.style))?;
                shown = true;
            }
            for (it, record) in &wanted {
                match to.json {
                    true => to.object(&audit::summary_json(it, record))?,
                    false => to.line(&audit::summary(it, record, to.style))?,
                }
            }
        }
        if !shown && !to.json {
            to.line(match is_empty {
                true => "the log holds no threads yet; `pumphouse send` opens one",
                false => "no thread is wanted by these filters",
            })?;
        }
        Ok(Ending::Well)
    }
}

/// Returns the wanted threads of a page, with their records.
async fn wanted(
    log: &dyn Log,
    filter: &Filter,
    page: Vec<ThreadSummary>,
) -> Result<Vec<(ThreadSummary, ThreadRecord)>, Error> {
    let looked = stream::iter(page).map(async |it| {
        let Some(record) = log.thread(&it.id).await? else { return Ok(None) };
        let is_wanted = filter.wants_thread(log, &record).await?;
        Ok(is_wanted.then_some((it, record)))
    });
    looked.buffered(AT_ONCE).try_filter_map(async |it| Ok(it)).try_collect().await
}
