//! `threads`: what there is in the log.

use std::path::Path;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::audit::{self, Filter};
use crate::cli::data;
use crate::cli::filters::Filters;
use crate::cli::screen::{Ending, Failure, Screen};
use crate::log::{Error, Log, ThreadSummary};

/// Threads that are looked into at once: the log has two readers, and each is to have work.
const AT_ONCE: usize = 4;

/// Lists the threads of the log, the oldest first: how long each is, when, and how it begins.
///
/// With filters, those that are in a wanted state now and hold a message that is wanted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse threads
  pumphouse threads --identity ada --since 2026-11-22
  pumphouse threads --payload huh                  where anything went wrong
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
        let (mut after, mut shown) = (None, false);
        loop {
            let page = audit::threads(&log, after.as_ref()).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id.clone());
            let wanted = wanted(&log, &filter, page).await?;
            if to.json {
                wanted.iter().try_for_each(|it| to.object(&audit::summary_json(it)))?;
                continue;
            }
            if !shown && !wanted.is_empty() {
                to.line(&audit::summaries(to.style))?;
                shown = true;
            }
            let firsts = stream::iter(&wanted).map(|it| log.read(&it.id, 0, 1, 1));
            let firsts: Vec<_> = firsts.buffered(AT_ONCE).try_collect().await?;
            for (one, first) in wanted.iter().zip(firsts) {
                let first = first.first().map(AsRef::as_ref);
                to.line(&audit::summary(one, first, to.style))?;
            }
        }
        if !shown && !to.json {
            to.line(match after {
                None => "the log holds no threads yet; `pumphouse send` opens one",
                Some(_) => "no thread is wanted by these filters",
            })?;
        }
        Ok(Ending::Well)
    }
}

/// Those of a page that are wanted.
async fn wanted(
    log: &dyn Log,
    filter: &Filter,
    page: Vec<ThreadSummary>,
) -> Result<Vec<ThreadSummary>, Error> {
    if filter.takes_all() {
        return Ok(page);
    }
    let looked = stream::iter(page).map(async |it| {
        let is_wanted = filter.wants_thread(log, &it).await?;
        Ok(is_wanted.then_some(it))
    });
    looked.buffered(AT_ONCE).try_filter_map(async |it| Ok(it)).try_collect().await
}
