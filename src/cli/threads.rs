//! `threads`: what there is in the log.

use std::path::Path;

use futures_util::future::try_join_all;

use crate::audit;
use crate::cli::data;
use crate::cli::screen::{Ending, Failure, Screen};
use crate::log::Log as _;

/// Lists the threads of the log, the oldest first: how long each is, when, and how it begins.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse threads
  pumphouse threads --json | jq -r 'select(.parent == null).thread'")]
pub(crate) struct Threads {}

impl Threads {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let log = data::open(data)?;
        let mut after = None;
        loop {
            let page = audit::threads(&log, after.as_ref()).await?;
            let Some(last) = page.last() else { break };
            if !to.json && after.is_none() {
                to.line(&audit::summaries(to.style))?;
            }
            after = Some(last.id.clone());
            if to.json {
                page.iter().try_for_each(|it| to.object(&audit::summary_json(it)))?;
                continue;
            }
            let firsts = page.iter().map(|it| log.read(&it.id, 0, 1, 1));
            for (one, first) in page.iter().zip(try_join_all(firsts).await?) {
                let first = first.first().map(AsRef::as_ref);
                to.line(&audit::summary(one, first, to.style))?;
            }
        }
        if after.is_none() && !to.json {
            to.line("the log holds no threads yet; `pumphouse send` opens one")?;
        }
        Ok(Ending::Well)
    }
}
