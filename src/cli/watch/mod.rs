//! `watch`: shows what each agent does, live.

mod agent_row;
mod organism;
mod drawing;

use std::io::{self, IsTerminal as _};
use std::path::Path;

use crate::audit::{self, When};
use crate::cli::base::screen::{Ending, Failure, Screen, is_dumb};
use crate::cli::base::time::second;
use crate::cli::base::{data, follow};
use crate::clock;
use crate::id::ThreadId;
use crate::log::Log;
use crate::wire::iso_time;
use agent_row::AgentRow;
use drawing::Drawing;
use organism::{Organism, Wanted};

/// How many entries are read at a time.
const PAGE: usize = 256;
/// How long an agent without work is shown, by default.
const RECENT: &str = "10m";

/// Shows what each agent does, in each of its threads, until Ctrl-C: the turn, the state, the
/// metadata, and the unfinished runs of workflows that the agent began.
///
/// An agent is thinking while a turn is running or about to begin. It is waiting while it needs
/// actions, timers, threads or answers. It is paused while its thread is. Without work, it is idle,
/// done or stopped. On a terminal, the lines are redrawn in place. Elsewhere, or with --json, each
/// change is a line of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse watch
  pumphouse watch sess-k3v9x2ma                 a session and all threads below it
  pumphouse watch --agent coder --since 1d
  pumphouse watch --json | jq -r 'select(.state == \"stopped\").thread'

`watch` reads the log, so it also works while no pump runs.
Exits with 1 where there is no such thread.")]
pub(crate) struct Watch {
    /// Only this thread and all threads below it.
    #[arg(value_name = "THREAD")]
    thread: Option<String>,
    /// Only this agent. May be repeated.
    #[arg(long, value_name = "NAME")]
    agent: Vec<String>,
    /// Agents without work are shown if something happened in their thread since this time: 10m
    /// (ago), 2h, 3d, or 2026-11-22, 2026-11-22T10:00 in UTC.
    #[arg(long, value_name = "TIME", default_value = RECENT)]
    since: When,
}

impl Watch {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let log = data::open(data)?;
        let root = self.thread.as_deref().map(ThreadId::new);
        if let Some(thread) = &root
            && log.thread(thread).await?.is_none()
        {
            return Err(data::unknown(&log, thread).await);
        }
        let wanted = Wanted { root, agents: self.agent.clone() };
        let is_terminal = io::stdout().is_terminal() && !to.json && !is_dumb();
        if !is_terminal {
            return follow::until_stopped(self.tell(&log, wanted, to)).await;
        }
        to.text(Drawing::BEGIN)?;
        to.flush()?;
        let ended = follow::until_stopped(self.draw(&log, wanted, to)).await;
        to.text(Drawing::END)?;
        to.flush()?;
        ended
    }

    /// Reads from the log what each agent does. Also returns the position up to which the log was
    /// read.
    async fn begin(&self, log: &dyn Log, wanted: Wanted) -> Result<(Organism, u64), Failure> {
        let last = audit::last_position(log).await?;
        let since_us = self.since.at_us(clock::wall_us());
        Ok((Organism::read(log, wanted, since_us, last).await?, last))
    }

    /// Writes a line for each agent, and then a line for each change.
    async fn tell(
        &self,
        log: &dyn Log,
        wanted: Wanted,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let (mut organism, mut after) = self.begin(log, wanted).await?;
        for (row, at_us) in organism.rows() {
            tell_row(row, at_us, to)?;
        }
        loop {
            let page = log.tail(after, PAGE).await?;
            for entry in &page {
                after = entry.position;
                for row in organism.take(log, entry).await? {
                    tell_row(&row, entry.at_us, to)?;
                }
            }
            if page.is_empty() {
                to.flush()?;
                follow::pause().await;
            }
        }
    }

    /// Redraws the lines of all agents whenever one of them has changed.
    async fn draw(
        &self,
        log: &dyn Log,
        wanted: Wanted,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let (mut organism, mut after) = self.begin(log, wanted).await?;
        let (mut has_changed, mut drawing) = (true, Drawing::default());
        loop {
            let page = log.tail(after, PAGE).await?;
            for entry in &page {
                after = entry.position;
                has_changed |= !organism.take(log, entry).await?.is_empty();
            }
            if page.len() == PAGE {
                continue;
            }
            has_changed |= drawing.measure(to.style);
            if std::mem::take(&mut has_changed) {
                let since_us = self.since.at_us(clock::wall_us());
                let rows: Vec<(&AgentRow, u64)> = organism.rows().collect();
                to.text(&drawing.frame(&rows, since_us))?;
                to.flush()?;
            }
            follow::pause().await;
        }
    }
}

/// Writes an agent's row, as of a time in microseconds since the epoch.
fn tell_row(row: &AgentRow, at_us: u64, to: &mut Screen<'_>) -> Result<(), Failure> {
    match to.json {
        true => to.object(&row.object(&iso_time(at_us)))?,
        false => to.line(&row.line(&format!("{}  ", second(at_us)), to.style))?,
    }
    Ok(())
}
