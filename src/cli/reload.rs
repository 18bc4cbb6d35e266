//! Reading certificates again: when their files change, and when a signal says so.

use std::convert::Infallible;

use crate::cli::screen::Failure;
use crate::door::{Tls, Unusable};
use crate::engine::{Port as _, Tokio};

/// How often the files are looked at. Two looks at two files cost nothing, and nobody waits longer
/// than this for a new certificate.
const LOOK_EVERY_US: u64 = 2_000_000;

/// Reads certificates again for as long as it is polled.
pub(crate) struct Reload {
    tls: Vec<Tls>,
    port: Tokio,
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

impl Reload {
    /// From here on SIGHUP is ours: it reads again what there is to read, and ends nothing.
    pub(crate) fn of(tls: Vec<Tls>) -> Result<Reload, Failure> {
        let port = Tokio::current();
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let trouble = |error| Failure::Untried(format!("signals can't be heard: {error}"));
            let hangup = signal(SignalKind::hangup()).map_err(trouble)?;
            Ok(Reload { hangup, port, tls })
        }
        #[cfg(not(unix))]
        Ok(Reload { port, tls })
    }

    pub(crate) async fn forever(&mut self) -> Infallible {
        loop {
            let look = self.port.sleep_until(self.port.now_us() + LOOK_EVERY_US);
            #[cfg(unix)]
            let is_told = tokio::select! {
                _ = self.hangup.recv() => true,
                () = look => false,
            };
            #[cfg(not(unix))]
            let is_told = {
                look.await;
                false
            };
            let again = |it: &Tls| -> Result<(), Unusable> {
                if is_told { it.reload() } else { it.reload_if_changed().map(drop) }
            };
            for error in self.tls.iter().filter_map(|it| again(it).err()) {
                tracing::warn!(%error, "the certificate stays as it was");
            }
        }
    }
}
