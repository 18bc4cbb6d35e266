//! The signals that ask the program to stop.

use crate::cli::screen::Failure;

/// The name of the signal that asks the program to end for good.
pub(crate) const TERMINATE: &str = "SIGTERM";

/// Receives Ctrl-C and SIGTERM. On systems other than Unix, receives Ctrl-C only.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Begins to catch Ctrl-C and SIGTERM. From now on, neither signal ends the process by itself.
    pub(crate) fn listen() -> Result<Signals, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let trouble = |error| Failure::Untried(format!("signals can't be heard: {error}"));
        let interrupt = signal(SignalKind::interrupt()).map_err(trouble)?;
        let terminate = signal(SignalKind::terminate()).map_err(trouble)?;
        Ok(Signals { interrupt, terminate })
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
