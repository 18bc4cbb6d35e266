//! `pause`: holds a thread and all below it.

use crate::cli::cancel::told;
use crate::cli::operate::Operator;
use crate::cli::screen::{Ending, Failure, Screen};
use crate::client::Push;
use crate::id::ThreadId;
use crate::listeners::thread::{PauseThread, ThreadPaused};

/// Holds a thread and all below it: handlers at work come to their end, none begins, and what
/// comes waits until `pumphouse resume`.
///
/// A running pump does it. The log says who wanted it, and why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse pause sess-k3v9x2ma --reason 'looks odd'
  pumphouse pause sess-k3v9x2ma.research --connect unix:/run/pump.sock

Operators may pause every thread, others their own.
Exits with 1 where the pump refused, such as a thread that isn't there; 2 where there is none.")]
pub(crate) struct Pause {
    /// The thread.
    #[arg(value_name = "THREAD")]
    thread: String,
    /// Why, for those who read the log.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    operator: Operator,
}

impl Pause {
    pub(crate) async fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let push = Push::of(&PauseThread { thread: None, reason: self.reason });
        let push = push.map_err(|it| Failure::Untried(it.to_string()))?;
        let push = push.in_thread(&ThreadId::new(&self.thread));
        let said = |it: ThreadPaused| told(&it.thread, "paused", &it.by, it.reason);
        self.operator.ask(&push, said, to).await
    }
}
