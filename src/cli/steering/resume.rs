//! `resume`: lets a paused thread continue.

use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::steering::{Steering, told};
use crate::listeners::thread::{ResumeThread, ThreadResumed};

/// Lets a paused thread and all below it go on: waiting messages are handled.
///
/// A running pump resumes the thread, and the log records who asked for it, and why. A thread that
/// is over its budget goes on once `pumphouse budget THREAD --raise KEY=N` raises the limit.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse resume sess-k3v9x2ma
  pumphouse resume sess-k3v9x2ma --reason 'looked fine' --connect unix:/run/pump.sock

Operators may resume every thread, others their own.
Exits with 1 where the pump refused, as for a thread that doesn't exist; 2 where no pump can be
reached.")]
pub(crate) struct Resume {
    #[command(flatten)]
    steering: Steering,
}

impl Resume {
    pub(crate) async fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let Steering { thread, reason, caller } = self.steering;
        let it = ResumeThread { thread: None, reason };
        let said = |it: ThreadResumed| told(&it.thread, "resumed", &it.by, it.reason);
        caller.steer(&thread, &it, said, to).await
    }
}
