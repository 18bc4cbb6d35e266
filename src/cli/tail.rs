//! `tail`: the last messages of all threads, and those to come.

use std::path::Path;
use std::time::Duration;

use crate::audit;
use crate::cli::data;
use crate::cli::screen::{Ending, Failure, Screen};
use crate::clock;
use crate::engine::{Port as _, Tokio};
use crate::log::Log as _;

/// Entries that are read at a time.
const PAGE: usize = 256;
/// How often the log is asked for more.
const PAUSE: Duration = Duration::from_millis(200);

/// Shows the last messages of all threads, each in a line that is cut where it gets too long.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse tail
  pumphouse tail -n 100
  pumphouse tail --follow               until Ctrl-C
  pumphouse tail -n 0 --follow --json   every new message, whole")]
pub(crate) struct Tail {
    /// How many of the last messages.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    lines: u64,
    /// Goes on with those to come.
    #[arg(short, long)]
    follow: bool,
}

impl Tail {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let log = data::open(data)?;
        let last = audit::last_position(&log).await?;
        if last == 0 && !self.follow && !to.json {
            to.line("the log holds no messages yet; `pumphouse send` pushes some")?;
        }
        let mut after = last.saturating_sub(self.lines);
        loop {
            let page = log.tail(after, PAGE).await?;
            for entry in &page {
                match to.json {
                    true => to.object(&audit::json(entry))?,
                    false => to.line(&audit::brief(entry, to.style))?,
                }
            }
            if let Some(entry) = page.last() {
                after = entry.position;
                continue;
            }
            to.flush()?;
            if !self.follow {
                return Ok(Ending::Well);
            }
            let pause = u64::try_from(PAUSE.as_micros()).unwrap_or(u64::MAX);
            Tokio::current().sleep_until(clock::now_us().saturating_add(pause)).await;
        }
    }
}
