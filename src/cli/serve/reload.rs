//! Reads certificates and tokens again at SIGHUP, and certificates also when their files change.

use std::convert::Infallible;
use std::path::PathBuf;

use crate::cli::base::screen::Failure;
use crate::cli::log::backup;
use crate::cli::serve::rules_in_force::RuleSources;
use crate::door::{Tls, Tokens, Unusable};
use crate::engine::{Identity, Port as _, Pump, Tokio};

/// The time between two checks of certificates' files for changes, in microseconds. A new
/// certificate is in use after this time at the latest.
const LOOK_EVERY_US: u64 = 2_000_000;

/// Reads certificates and tokens again, as long as [`Reload::forever`] is polled.
pub(crate) struct Reload {
    tls: Vec<Tls>,
    tokens: Tokens,
    rules: RuleSources,
    /// The log's file, beside which `backup` notes its copies. None for a log in memory.
    log: Option<PathBuf>,
    port: Tokio,
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

impl Reload {
    /// Begins to catch SIGHUP. From now on, the signal doesn't end the process.
    pub(crate) fn of(
        tls: Vec<Tls>,
        tokens: Tokens,
        rules: RuleSources,
        log: Option<PathBuf>,
    ) -> Result<Reload, Failure> {
        let port = Tokio::current();
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let trouble = |error| Failure::Untried(format!("signals can't be heard: {error}"));
            let hangup = signal(SignalKind::hangup()).map_err(trouble)?;
            Ok(Reload { hangup, port, tls, tokens, rules, log })
        }
        #[cfg(not(unix))]
        Ok(Reload { port, tls, tokens, rules, log })
    }

    /// Records what governs the pump, and the copies of the log that were made meanwhile.
    pub(crate) async fn record_start(&self, pump: &Pump) {
        self.rules.record(pump, "start").await;
        self.record_copies(pump);
    }

    /// Records the copies of the log that `backup` has noted beside it.
    fn record_copies(&self, pump: &Pump) {
        for copy in self.log.iter().flat_map(|it| backup::noted(it)) {
            pump.record_in_organism(&copy);
        }
    }

    pub(crate) async fn forever(&mut self, pump: &Pump) -> Infallible {
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
            self.record_copies(pump);
            if is_told {
                self.read_tokens(pump);
                self.rules.record(pump, "reload").await;
            }
        }
    }

    /// Reads the tokens again. As at the start, an identity can't have a listener's name.
    fn read_tokens(&self, pump: &Pump) {
        let check = |who: &Identity| {
            let checked = pump.speaking_as(who.clone()).checked_name();
            checked.map_err(|fault| fault.message)
        };
        match self.tokens.reload(check) {
            Ok(None) => {}
            Ok(Some(count)) => tracing::info!(count, "the tokens were read again"),
            Err(error) => tracing::warn!(%error, "the tokens stay as they were"),
        }
    }
}
