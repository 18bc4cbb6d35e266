//! The signals that ask the program to stop.

use crate::cli::base::screen::Failure;

/// The name of the signal that asks the program to end for good.
pub(crate) const TERMINATE: &str = "SIGTERM";

/// Receives Ctrl-C and SIGTERM. On systems other than Unix, receives Ctrl-C only.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    /// Signals that mean nothing, and would end the process if nobody caught them.
    #[cfg(unix)]
    _ignored: [tokio::signal::unix::Signal; 2],
}

#[cfg(unix)]
impl Signals {
    /// Begins to catch Ctrl-C and SIGTERM. From now on, neither signal ends the process by itself,
    /// nor do SIGUSR1 and SIGUSR2.
    pub(crate) fn listen() -> Result<Signals, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let trouble = |error| Failure::Untried(format!("signals can't be heard: {error}"));
        let interrupt = signal(SignalKind::interrupt()).map_err(trouble)?;
        let terminate = signal(SignalKind::terminate()).map_err(trouble)?;
        let ignored = |kind| signal(kind).map_err(trouble);
        let _ignored =
            [ignored(SignalKind::user_defined1())?, ignored(SignalKind::user_defined2())?];
        Ok(Signals { interrupt, terminate, _ignored })
    }

    /// Waits for the next signal, and returns its name.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "Ctrl-C",
            _ = self.terminate.recv() => TERMINATE,
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Catches nothing yet: Ctrl-C is caught from the first call of `next` on.
    pub(crate) fn listen() -> Result<Signals, Failure> {
        Ok(Signals {})
    }

    /// Waits for the next signal, and returns its name.
    pub(crate) async fn next(&mut self) -> &'static str {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "Ctrl-C"
    }
}
