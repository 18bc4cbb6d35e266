//! `cancel`: ends a thread and all below it.

use crate::audit;
use crate::cli::operate::Operator;
use crate::cli::screen::{Ending, Failure, Screen};
use crate::client::Push;
use crate::id::ThreadId;
use crate::listeners::thread::CancelThread;
use crate::wire::core::ThreadCancelled;

/// Ends a thread and all below it: handlers at work are told to stop, what waits is answered,
/// nothing runs after.
///
/// A running pump does it. The log says who wanted it, and why. It can't be undone, but the
/// thread can be forked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse cancel sess-k3v9x2ma --reason 'goes in circles'
  pumphouse cancel sess-k3v9x2ma.research --connect unix:/run/pump.sock
  PUMPHOUSE_TOKEN=t0psecret pumphouse cancel sess-k3v9x2ma

Operators may cancel every thread, others their own.
Exits with 1 where the pump refused, such as a thread that isn't there; 2 where there is none.")]
pub(crate) struct Cancel {
    /// The thread.
    #[arg(value_name = "THREAD")]
    thread: String,
    /// Why, for those who read the log.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    operator: Operator,
}

impl Cancel {
    pub(crate) async fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let push = Push::of(&CancelThread { thread: None, reason: self.reason });
        let push = push.map_err(|it| Failure::Untried(it.to_string()))?;
        let push = push.in_thread(&ThreadId::new(&self.thread));
        let said = |it: ThreadCancelled| told(&it.thread, "cancelled", &it.by, it.reason);
        self.operator.ask(&push, said, to).await
    }
}

/// What became of a thread, in a line.
pub(crate) fn told(thread: &str, what: &str, by: &str, reason: Option<String>) -> String {
    let reason = reason.map(|it| format!(": {it}")).unwrap_or_default();
    audit::line(&format!("{thread} is {what} by {by}{reason}")).into_owned()
}
