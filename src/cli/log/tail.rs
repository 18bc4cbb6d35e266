//! `tail`: shows the last messages of all threads, and new messages as they come.

use std::path::Path;

use crate::audit::{self, Filter, States};
use crate::cli::base::filters::Filters;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::base::{data, follow};
use crate::log::Log;

/// How many entries are read at a time.
const PAGE: u64 = 256;
/// How many messages are shown by default.
const LINES: u64 = 20;

/// Shows the last messages of all threads, one in each line. Lines that are too long are cut.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse tail
  pumphouse tail -n 100
  pumphouse tail --failed --since 1h         what went wrong in the last hour
  pumphouse tail --follow                    until Ctrl-C
  pumphouse tail -n 0 --follow --json        every new message, whole")]
pub(crate) struct Tail {
    /// How many of the last wanted messages to show. Without it 20 are shown, or all of them with
    /// --failed or --since.
    #[arg(short = 'n', long, value_name = "N", value_parser = number)]
    lines: Option<u64>,
    /// Goes on with new messages, until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    filters: Filters,
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a whole number of messages, such as 100".to_owned())
}

impl Tail {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let log = data::open(data)?;
        match self.follow {
            true => follow::until_stopped(self.read(&log, to)).await,
            false => self.read(&log, to).await,
        }
    }

    async fn read(&self, log: &dyn Log, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let last = audit::last_position(log).await?;
        if last == 0 && !self.follow && !to.json {
            to.line("the log holds no messages yet; `pumphouse send` pushes some")?;
        }
        let filter = self.filters.filter();
        let usual = if self.filters.want_all() { u64::MAX } else { LINES };
        let lines = self.lines.unwrap_or(usual);
        let start = start(log, &filter, last, lines).await?;
        let (mut after, mut skip, mut states) = (start.after, start.skip, States::default());
        let mut shown = false;
        loop {
            let page = log.tail(after, usize::try_from(PAGE).unwrap_or(usize::MAX)).await?;
            for entry in &page {
                after = entry.position;
                if !filter.wants(entry, &mut states) {
                    continue;
                }
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                shown = true;
                match to.json {
                    true => to.object(&audit::json(entry))?,
                    false => to.line(&audit::brief(entry, to.style))?,
                }
            }
            if !page.is_empty() {
                continue;
            }
            if !self.follow {
                if !shown && last > 0 && lines > 0 && !to.json {
                    to.line("no message is wanted by these filters")?;
                }
                return Ok(Ending::Well);
            }
            to.flush()?;
            follow::pause().await;
        }
    }
}

/// The place where the last wanted messages begin.
struct Start {
    /// The position after which reading begins.
    after: u64,
    /// How many wanted messages after that position are skipped.
    skip: u64,
}

async fn start(log: &dyn Log, filter: &Filter, last: u64, lines: u64) -> Result<Start, Failure> {
    // States are known only by reading forwards from the log's first entry. Without a filter on
    // states, reading goes backwards from the end.
    let forwards = filter.asks_for_states();
    if filter.wants_all() || lines == 0 && !forwards {
        return Ok(Start { after: last.saturating_sub(lines), skip: 0 });
    }
    let (mut found, mut after) = (0, last);
    let mut states = States::default();
    while after > 0 && (found < lines || forwards) {
        let from = if forwards { last - after } else { after.saturating_sub(PAGE) };
        let upto = if forwards { last.min(from + PAGE) } else { after };
        let size = usize::try_from(upto - from).unwrap_or(usize::MAX);
        for entry in log.tail(from, size).await? {
            found += u64::from(filter.wants(&entry, &mut states));
        }
        after -= upto - from;
    }
    Ok(Start { after, skip: found.saturating_sub(lines) })
}
