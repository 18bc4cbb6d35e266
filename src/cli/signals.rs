//! Being told to stop.

use crate::cli::screen::Failure;

/// Ctrl-C and SIGTERM, one after another.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// From here on they are ours.
    pub(crate) fn listen() -> Result<Signals, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let trouble = |error| Failure::Untried(format!("signals can't be heard: {error}"));
        let interrupt = signal(SignalKind::interrupt()).map_err(trouble)?;
        let terminate = signal(SignalKind::terminate()).map_err(trouble)?;
        Ok(Signals { interrupt, terminate })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "Ctrl-C",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// From the first time that one is waited for they are ours.
    pub(crate) fn listen() -> Result<Signals, Failure> {
        Ok(Signals {})
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> &'static str {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "Ctrl-C"
    }
}
