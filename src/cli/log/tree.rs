//! `tree`: draws threads below their parents, with their states.

use std::collections::HashMap;
use std::path::Path;

use crate::audit::{self, Branches, Remaining};
use crate::cli::base::data;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::id::ThreadId;
use crate::listener;
use crate::listeners::todo::words::TodoOpen;
use crate::log::{Log, ThreadPages};

/// Draws threads as trees, each with its state, its size, its work under way and its beginning.
///
/// Without THREAD, all sessions are drawn, the oldest first; with it, that thread and all below it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse tree
  pumphouse tree sess-k3v9x2ma
  pumphouse tree --json | jq -r 'select(.state != \"open\").thread'

Work under way are messages that a listener has yet to begin or to finish. `todo 1/3` means that of
the three steps of open checklists one is not done.
Exits with 1 where there is no such thread.")]
pub(crate) struct Tree {
    /// The thread to draw, with all below it.
    #[arg(value_name = "THREAD")]
    thread: Option<String>,
}

impl Tree {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let log = data::open(data)?;
        let left = left(&log).await?;
        if let Some(id) = self.thread.as_deref().map(ThreadId::new) {
            if log.thread(&id).await?.is_none() {
                return Err(data::unknown(&log, &id).await);
            }
            draw(&log, &id, &left, to).await?;
            return Ok(Ending::Well);
        }
        let (mut pages, mut is_empty) = (ThreadPages::of(&log), true);
        while let Some(page) = pages.next().await? {
            is_empty = false;
            for session in page.iter().filter(|it| it.parent.is_none()) {
                draw(&log, &session.id, &left, to).await?;
            }
        }
        if is_empty && !to.json {
            to.line("the log holds no threads yet; `pumphouse send` opens one")?;
        }
        Ok(Ending::Well)
    }
}

/// Draws a thread and all below it.
pub(crate) async fn one(
    log: &dyn Log,
    root: &ThreadId,
    to: &mut Screen<'_>,
) -> Result<(), Failure> {
    draw(log, root, &left(log).await?, to).await
}

/// Maps each thread to the work that is left in it. Threads without such work are absent.
async fn left(log: &dyn Log) -> Result<HashMap<ThreadId, Remaining>, Failure> {
    let mut left: HashMap<ThreadId, Remaining> = HashMap::new();
    for open in log.open_entries().await? {
        let left = left.entry(open.entry.id.thread.clone()).or_default();
        let entry = listener::Entry::kept(&open.entry);
        let todo = entry.is::<TodoOpen>().then(|| entry.decode::<TodoOpen>());
        if let Some(Ok(todo)) = todo {
            left.steps_open += todo.open;
            left.steps += todo.total;
        } else {
            left.under_way += 1;
        }
    }
    Ok(left)
}

/// Draws a thread and all below it, with the work that is left in each.
async fn draw(
    log: &dyn Log,
    root: &ThreadId,
    left: &HashMap<ThreadId, Remaining>,
    to: &mut Screen<'_>,
) -> Result<(), Failure> {
    let branches = if has_boxes() { Branches::Boxes } else { Branches::Ascii };
    for it in audit::placed(log.tree(root).await?) {
        // The log's records of a tree contain the first entries of live threads only.
        let first = match &it.thread.first {
            Some(first) => Some(first.clone()),
            None => log.read(&it.thread.id, 0, 1, 1).await?.into_iter().next(),
        };
        let left = left.get(&it.thread.id).copied().unwrap_or_default();
        match to.json {
            true => to.object(&audit::branch_json(&it, first.as_deref(), left))?,
            false => {
                let line = audit::branch(&it, first.as_deref(), left, branches, to.style);
                to.line(&line)?;
            }
        }
    }
    Ok(())
}

/// Whether the terminal can show box-drawing characters, judged by the locale in the environment.
/// Without a locale, terminals of Unix can't.
#[expect(clippy::disallowed_methods, reason = "the command line reads the environment")]
fn has_boxes() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os);
    let mut set = set.filter(|it| !it.is_empty());
    let locale = set.next().map(|it| it.to_string_lossy().to_ascii_lowercase());
    locale.map_or(cfg!(not(unix)), |it| it.contains("utf-8") || it.contains("utf8"))
}
