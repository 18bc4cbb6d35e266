//! Being told to read the certificate again.

use std::convert::Infallible;

use crate::cli::screen::Failure;
use crate::door::Tls;

/// Reads a certificate again at each SIGHUP, for as long as it is polled.
pub(crate) struct Reload {
    tls: Vec<Tls>,
    #[cfg(unix)]
    hangup: Option<tokio::signal::unix::Signal>,
}

impl Reload {
    /// From here on SIGHUP is ours, if there is something to read again; else it ends the program
    /// as it ends others.
    pub(crate) fn of(tls: Vec<Tls>) -> Result<Reload, Failure> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let trouble = |error| Failure::Untried(format!("signals can't be heard: {error}"));
            let hangup = tls.first().map(|_| signal(SignalKind::hangup()).map_err(trouble));
            Ok(Reload { hangup: hangup.transpose()?, tls })
        }
        #[cfg(not(unix))]
        Ok(Reload { tls })
    }

    pub(crate) async fn forever(&mut self) -> Infallible {
        loop {
            #[cfg(unix)]
            match &mut self.hangup {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
            #[cfg(not(unix))]
            std::future::pending::<()>().await;
            for error in self.tls.iter().filter_map(|it| it.reload().err()) {
                tracing::error!(%error, "the certificate stays as it was");
            }
        }
    }
}
