//! `retry`: tries the stopped listeners of a thread again.

use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::steering::{Steering, told};
use crate::wire::core::{ListenersRetried, RetryListeners};

/// Tries the stopped listeners of a thread, and of all below it, again.
///
/// A listener is stopped in a thread where one of its folds panicked: it keeps its messages there,
/// and handles none. A start of the pump tries it again, too, so the usual way is to start a
/// program whose fold doesn't panic. If the fold panics again, the listener is stopped again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse threads --failed --payload listener-stopped
  pumphouse retry sess-k3v9x2ma
  pumphouse retry sess-k3v9x2ma --reason 'more memory' --connect unix:/run/pump.sock

Operators may try those of every thread, others those of their own.
Exits with 1 where none is stopped, or the pump refused, as for a thread that doesn't exist; 2 where
no pump can be reached.")]
pub(crate) struct Retry {
    #[command(flatten)]
    steering: Steering,
}

impl Retry {
    pub(crate) async fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let Steering { thread, reason, caller } = self.steering;
        let it = RetryListeners { thread: None, reason: reason.clone() };
        let mut was_stopped = true;
        let said = |it: ListenersRetried| {
            was_stopped = !it.listener.is_empty();
            match was_stopped {
                true => told(&it.listener.join(", "), "tried again", &it.by, reason.clone()),
                false => format!("no listener is stopped in {}", it.thread),
            }
        };
        let ending = caller.steer(&thread, &it, said, to).await?;
        Ok(if was_stopped { ending } else { Ending::Wrong })
    }
}
