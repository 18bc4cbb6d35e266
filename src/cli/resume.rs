//! `resume`: lets a thread that pauses go on.

use crate::cli::cancel::told;
use crate::cli::operate::Operator;
use crate::cli::screen::{Ending, Failure, Screen};
use crate::client::Push;
use crate::id::ThreadId;
use crate::listeners::thread::{ResumeThread, ThreadResumed};

/// Lets a thread that pauses go on, with all below it: what waited begins.
///
/// A running pump does it. The log says who wanted it, and why. A thread that is over its budget
/// goes on by `pumphouse budget THREAD --raise KEY=N`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse resume sess-k3v9x2ma
  pumphouse resume sess-k3v9x2ma --reason 'looked fine' --connect unix:/run/pump.sock

Operators may resume every thread, others their own.
Exits with 1 where the pump refused, such as a thread that isn't there; 2 where there is none.")]
pub(crate) struct Resume {
    /// The thread.
    #[arg(value_name = "THREAD")]
    thread: String,
    /// Why, for those who read the log.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    operator: Operator,
}

impl Resume {
    pub(crate) async fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let push = Push::of(&ResumeThread { thread: None, reason: self.reason });
        let push = push.map_err(|it| Failure::Untried(it.to_string()))?;
        let push = push.in_thread(&ThreadId::new(&self.thread));
        let said = |it: ThreadResumed| told(&it.thread, "resumed", &it.by, it.reason);
        self.operator.ask(&push, said, to).await
    }
}
