//! `cancel`: ends a thread and all below it.

use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::steering::{Steering, told};
use crate::listeners::thread::CancelThread;
use crate::wire::core::ThreadCancelled;

/// Ends a thread and all below it: handlers at work are told to stop, waiting messages are
/// answered, and nothing runs afterwards.
///
/// A running pump cancels the thread, and the log records who asked for it, and why. A cancelled
/// thread can't go on, but it can be forked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse cancel sess-k3v9x2ma --reason 'goes in circles'
  pumphouse cancel sess-k3v9x2ma.research --connect unix:/run/pump.sock
  PUMPHOUSE_TOKEN=t0psecret pumphouse cancel sess-k3v9x2ma

Operators may cancel every thread, others their own.
Exits with 1 where the pump refused, as for a thread that doesn't exist; 2 where no pump can be
reached.")]
pub(crate) struct Cancel {
    #[command(flatten)]
    steering: Steering,
}

impl Cancel {
    pub(crate) async fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let Steering { thread, reason, caller } = self.steering;
        let it = CancelThread { thread: None, reason };
        let said = |it: ThreadCancelled| told(&it.thread, "cancelled", &it.by, it.reason);
        caller.steer(&thread, &it, said, to).await
    }
}
