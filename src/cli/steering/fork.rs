//! `fork`: opens a thread that continues from an entry of another thread.

use crate::audit;
use crate::cli::base::connect::Caller;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::client::Push;
use crate::id::EntryId;
use crate::listeners::thread::fork::{ForkThread, ThreadForked};

/// Opens a thread that goes on from an entry of another thread, and prints the new thread's id.
///
/// The fork has the entries up to this one, and no later entries. Nothing runs or waits in the
/// fork: what the entry started isn't started again. The original thread stays as it is. A thread
/// that has ended can be forked, too. A running pump opens the fork, and the log records who asked
/// for it, and why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse fork sess-k3v9x2ma/7 --reason 'the other way'
  pumphouse send --thread $(pumphouse fork sess-k3v9x2ma/7) another.xml
  pumphouse send --thread sess-k3v9x2ma/7 another.xml      the same at once
  pumphouse show sess-a7b8c9d0                             what it shares, and what is its own

Operators may fork every thread, others their own.
Exits with 1 where the pump refused, as for an entry that doesn't exist; 2 where no pump can be
reached.")]
pub(crate) struct Fork {
    /// The last entry that both threads share, as THREAD/SEQ.
    #[arg(value_name = "THREAD/SEQ")]
    entry: EntryId,
    /// The reason, for readers of the log.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    caller: Caller,
}

impl Fork {
    pub(crate) async fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let push = Push::of(&ForkThread { reason: self.reason });
        let push = push.map_err(|it| Failure::Untried(it.to_string()))?;
        let said = |it: ThreadForked| audit::line(&it.thread).into_owned();
        self.caller.ask(&push.fork_at(&self.entry), said, to).await
    }
}
