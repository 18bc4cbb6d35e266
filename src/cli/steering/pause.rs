//! `pause`: pauses a thread and all below it.

use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::steering::{Steering, told};
use crate::listeners::thread::{PauseThread, ThreadPaused};

/// Pauses a thread and all below it: handlers at work come to their end, none begins, and new
/// messages wait until `pumphouse resume`.
///
/// A running pump pauses the thread, and the log records who asked for it, and why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse pause sess-k3v9x2ma --reason 'looks odd'
  pumphouse pause sess-k3v9x2ma.research --connect unix:/run/pump.sock

Operators may pause every thread, others their own.
Exits with 1 where the pump refused, as for a thread that doesn't exist; 2 where no pump can be
reached.")]
pub(crate) struct Pause {
    #[command(flatten)]
    steering: Steering,
}

impl Pause {
    pub(crate) async fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let Steering { thread, reason, caller } = self.steering;
        let it = PauseThread { thread: None, reason };
        let said = |it: ThreadPaused| told(&it.thread, "paused", &it.by, it.reason);
        caller.steer(&thread, &it, said, to).await
    }
}
