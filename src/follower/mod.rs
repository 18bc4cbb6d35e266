//! A [`Follower`] reads the entries of all threads while a pump runs. It passes each entry to a
//! [`Target`] at least once, in the order of the log. A target that was unreachable may ask to skip
//! the entries that were written meanwhile.
//!
//! A target sends entries elsewhere, for example to OpenTelemetry or a sink. The log is the
//! target's buffer: while a target is unreachable, the follower stays at its position. The position
//! may be kept in a file beside the log, so that the next start continues from it.

pub mod kept_file;
mod position;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt as _;

use crate::engine::{Port as _, Tokio};
use crate::log::{Entry, Error, Log, last_position_from};
pub use position::NoPosition;
pub use position::{FROM_BEGINNING, KeptPosition, check, file_beside};

/// Entries read per page.
const PAGE: usize = 256;
/// A page ends with the entry with which it has so many bytes: entries may be large, and each
/// follower holds a page of its own.
const PAGE_BYTES: usize = 8 * 1024 * 1024;
/// How long a follower that has sent everything waits before it reads the log again, in
/// microseconds, unless the target wakes it.
const LOOK_EVERY_US: u64 = 200_000;
/// The first and the longest wait for an unreachable target, in microseconds.
const AWAY_US: (u64, u64) = (500_000, 30_000_000);
/// The error of a target that is unreachable. The text says why.
#[derive(Debug)]
pub struct Unreachable(pub String);

/// How far a target has sent the entries that it has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Everything is sent.
    All,
    /// A part is sent, and the target can send more soon.
    Partly,
    /// The target is reachable again, and wants only entries that are recorded from now on.
    FromNowOn,
}

/// A destination to which a follower passes entries.
pub trait Target: Send + 'static {
    /// How many attempts in a row may fail before the follower waits for the next entry of the log.
    /// `None` means no limit.
    fn attempts_max(&self) -> Option<u32> {
        None
    }

    /// Takes the next entry, to send it later.
    fn take(&mut self, entry: Arc<Entry>) -> impl Future<Output = Result<(), Error>> + Send;

    /// Fetches the items that wait elsewhere for this target and aren't entries, such as live
    /// payloads. An item that belongs after a later entry than `_position` stays where it is.
    fn take_live(&mut self, _position: u64) {}

    /// Whether the target has taken something that it hasn't sent yet.
    fn has_waiting(&self) -> bool;

    /// Sends what the target has taken. The follower calls this method in each of its steps, also
    /// if nothing waits.
    ///
    /// # Errors
    /// If the target is unreachable.
    fn send(&mut self) -> impl Future<Output = Result<Sent, Unreachable>> + Send;

    /// Drops everything that the target has taken and not sent. `_entries` is the number of entries
    /// that are skipped.
    fn skip(&mut self, _entries: u64) {}

    /// Makes the sent entries durable. The follower calls this method before it writes its position
    /// into a file.
    ///
    /// # Errors
    /// If the target is unreachable.
    fn settle(&mut self) -> impl Future<Output = Result<(), Unreachable>> + Send {
        async { Ok(()) }
    }

    /// Waits until there may be something to send, such as new entries or live payloads.
    fn wake(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Ends the target. A follower that stops in time calls this method.
    fn end(&mut self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Reports that the target has become unreachable.
    fn report_unreachable(&self, reason: &str);

    /// Reports that the target is reachable again.
    fn report_reachable(&self);
}

/// Why a step failed.
enum StepError {
    Target(Unreachable),
    Log(Error),
}

impl From<Error> for StepError {
    fn from(error: Error) -> StepError {
        StepError::Log(error)
    }
}

impl From<Unreachable> for StepError {
    fn from(error: Unreachable) -> StepError {
        StepError::Target(error)
    }
}

/// Passes the entries of a log to a target.
pub struct Follower<T> {
    log: Arc<dyn Log>,
    target: T,
    position: KeptPosition,
    /// The position up to which the target has taken entries.
    read: u64,
    /// The position up to which everything is sent.
    sent: u64,
    /// The number of failed attempts in a row.
    failures: u32,
    /// The first and the longest wait for an unreachable target, in microseconds.
    away_us: (u64, u64),
    /// How many entries the target is behind the log.
    lag: Arc<AtomicU64>,
}

impl<T: Target> Follower<T> {
    /// Creates a follower that begins after the entry at `position`.
    pub fn new(
        log: Arc<dyn Log>,
        target: T,
        position: KeptPosition,
        lag: Arc<AtomicU64>,
    ) -> Follower<T> {
        let at = position.get();
        let (failures, away_us) = (0, AWAY_US);
        Follower { log, target, position, read: at, sent: at, failures, away_us, lag }
    }

    /// Sets the first and the longest wait for an unreachable target.
    #[doc(hidden)]
    #[must_use]
    pub fn waiting(self, away_us: (u64, u64)) -> Follower<T> {
        Follower { away_us, ..self }
    }

    /// Passes entries on until `stopped` is ready. Then sends the entries that are left in the log,
    /// for at most `stop_time_max_us` more.
    pub async fn run(mut self, stopped: impl Future<Output = ()> + Send, stop_time_max_us: u64) {
        let port = Tokio::current();
        let stopped = stopped.shared();
        let over = async {
            stopped.clone().await;
            port.sleep_until(port.now_us().saturating_add(stop_time_max_us)).await;
        };
        tokio::select! {
            biased;
            () = self.work(&port, &stopped) => {}
            () = over => {}
        }
        if let Err(Unreachable(reason)) = self.keep().await {
            self.target.report_unreachable(&reason);
        }
    }

    async fn work(&mut self, port: &Tokio, stopped: &(impl Future<Output = ()> + Clone)) {
        self.follow(port, stopped).await;
        while matches!(self.step().await, Ok(true)) {}
        self.target.end().await;
    }

    /// Makes one step after another until `stopped` is ready. `stopped` interrupts the waits
    /// between steps, but not a step.
    async fn follow(&mut self, port: &Tokio, stopped: &(impl Future<Output = ()> + Clone)) {
        let mut away_us = self.away_us.0;
        loop {
            let step = self.step().await;
            let wait_us = match &step {
                Ok(true) if stopped.clone().now_or_never().is_some() => return,
                Ok(true) => {
                    away_us = self.away_us.0;
                    continue;
                }
                Ok(false) => {
                    away_us = self.away_us.0;
                    LOOK_EVERY_US
                }
                Err(StepError::Target(_)) => {
                    let wait_us = away_us;
                    away_us = (2 * away_us).min(self.away_us.1);
                    wait_us
                }
                Err(StepError::Log(error)) => {
                    tracing::warn!(%error, "the log can't be read for a follower; trying on");
                    AWAY_US.1
                }
            };
            let over = port.sleep_until(port.now_us().saturating_add(wait_us));
            if step.is_err() && self.is_to_rest() {
                away_us = self.away_us.0;
                tokio::select! {
                    () = stopped.clone() => return,
                    () = self.rest(port) => {}
                }
            } else if step.is_err() {
                tokio::select! {
                    () = stopped.clone() => return,
                    () = over => {}
                }
            } else {
                tokio::select! {
                    () = stopped.clone() => return,
                    () = self.target.wake() => {}
                    () = over => {}
                }
            }
        }
    }

    /// Reads a page of entries if the target has nothing left to send. Then lets the target send.
    /// Returns true if there may be more to send now.
    async fn step(&mut self) -> Result<bool, StepError> {
        let sent = self.read_and_send().await;
        match &sent {
            Ok(_) if std::mem::take(&mut self.failures) > 0 => self.target.report_reachable(),
            Err(StepError::Target(Unreachable(reason))) => {
                if self.failures == 0 {
                    self.target.report_unreachable(reason);
                }
                self.failures = self.failures.saturating_add(1);
                self.measure().await?;
            }
            _ => {}
        }
        sent
    }

    async fn read_and_send(&mut self) -> Result<bool, StepError> {
        if !self.target.has_waiting() {
            for entry in self.log.tail_within(self.read, PAGE, PAGE_BYTES).await? {
                let position = entry.position;
                self.target.take(entry).await?;
                self.read = position;
            }
            self.target.take_live(self.read);
        }
        let is_idle = !self.target.has_waiting() && self.read == self.sent;
        let sent = self.target.send().await?;
        if sent == Sent::Partly {
            self.measure().await?;
            return Ok(true);
        }
        if sent == Sent::FromNowOn {
            let last = last_position_from(&*self.log, self.read).await?;
            self.target.skip(last.saturating_sub(self.sent));
            self.read = last;
        }
        self.sent = self.read;
        if self.position.is_due(self.sent) {
            self.keep().await?;
        }
        if is_idle && sent == Sent::All {
            self.lag.store(0, Ordering::Relaxed);
            return Ok(false);
        }
        self.measure().await?;
        Ok(true)
    }

    /// Writes the position into its file, after the target has made the sent entries durable.
    async fn keep(&mut self) -> Result<(), Unreachable> {
        if self.position.is_behind(self.sent) {
            self.target.settle().await?;
            self.position.keep(self.sent);
        }
        Ok(())
    }

    /// Whether the follower rests until the log has a new entry. It rests after every
    /// `attempts_max` failed attempts in a row.
    fn is_to_rest(&self) -> bool {
        let most = self.target.attempts_max();
        self.failures > 0 && most.is_some_and(|it| self.failures.is_multiple_of(it.max(1)))
    }

    /// Waits until the log has another entry.
    async fn rest(&self, port: &Tokio) {
        let mut seen = None;
        loop {
            let last = last_position_from(&*self.log, self.read).await.ok();
            if last > *seen.get_or_insert(last) {
                return;
            }
            port.sleep_until(port.now_us().saturating_add(LOOK_EVERY_US)).await;
        }
    }

    /// Measures how many entries the target is behind the log.
    async fn measure(&self) -> Result<(), Error> {
        let last = last_position_from(&*self.log, self.read).await?;
        self.lag.store(last.saturating_sub(self.sent), Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;
    use crate::id::{EntryId, ThreadId};
    use crate::log::{Batch, Draft, MemoryLog, NewThread};
    use crate::name::Name;

    /// A target that sends everything, but can't make it durable.
    #[derive(Clone, Default)]
    struct Unsettled(Arc<Mutex<Vec<&'static str>>>);

    impl Unsettled {
        fn report(&self, word: &'static str) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(word);
        }
    }

    impl Target for Unsettled {
        async fn take(&mut self, _: Arc<Entry>) -> Result<(), Error> {
            Ok(())
        }

        fn has_waiting(&self) -> bool {
            false
        }

        async fn send(&mut self) -> Result<Sent, Unreachable> {
            Ok(Sent::All)
        }

        async fn settle(&mut self) -> Result<(), Unreachable> {
            Err(Unreachable("the disk is full".to_owned()))
        }

        fn report_unreachable(&self, _: &str) {
            self.report("unreachable");
        }

        fn report_reachable(&self) {
            self.report("reachable");
        }
    }

    /// A target that notes how many entries it has taken before each time that it sends.
    #[derive(Default)]
    struct Pages {
        taken: usize,
        pages: Arc<Mutex<Vec<usize>>>,
    }

    impl Target for Pages {
        async fn take(&mut self, _: Arc<Entry>) -> Result<(), Error> {
            self.taken += 1;
            Ok(())
        }

        fn has_waiting(&self) -> bool {
            self.taken > 0
        }

        async fn send(&mut self) -> Result<Sent, Unreachable> {
            self.pages.lock().unwrap().push(std::mem::take(&mut self.taken));
            Ok(Sent::All)
        }

        fn report_unreachable(&self, _: &str) {}

        fn report_reachable(&self) {}
    }

    #[tokio::test]
    async fn a_page_of_large_entries_ends_at_its_bytes() {
        let log = Arc::new(MemoryLog::new());
        let thread = ThreadId::new("sess-a");
        let drafts = (1..).zip([PAGE_BYTES / 2, PAGE_BYTES / 2, 2 * PAGE_BYTES, 9, 9]);
        let drafts = drafts.map(|(seq, bytes)| {
            let body = bytes::Bytes::from(vec![b'x'; bytes]);
            Draft::new(EntryId::new(&thread, seq), 1, "ada".into(), Name::new("urn:x", "a"), body)
        });
        let entries = drafts.collect();
        let threads = vec![NewThread { id: thread, parent: None, fork: None }];
        log.append(Batch { threads, entries, marks: Vec::new() }).await.unwrap();
        let position = KeptPosition::read(&*log, None).await.unwrap();
        let target = Pages::default();
        let pages = target.pages.clone();
        let mut follower = Follower::new(log, target, position, Arc::default());
        for _ in 0..3 {
            assert!(matches!(follower.step().await, Ok(true)));
        }
        assert_eq!(*pages.lock().unwrap(), [2, 1, 2]);
    }

    #[tokio::test]
    async fn a_target_that_cannot_make_entries_durable_is_reported_once() {
        let log = Arc::new(MemoryLog::new());
        let (thread, name) = (ThreadId::new("sess-a"), Name::new("urn:x", "a"));
        let body = bytes::Bytes::from_static(b"<a xmlns=\"urn:x\"></a>");
        let draft = Draft::new(EntryId::new(&thread, 1), 1, "ada".into(), name, body);
        let threads = vec![NewThread { id: thread, parent: None, fork: None }];
        log.append(Batch { threads, entries: vec![draft], marks: Vec::new() }).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = Some(folder.path().join("position"));
        let position = KeptPosition::read(&*log, file).await.unwrap();
        let target = Unsettled::default();
        let reports = target.0.clone();
        let mut follower = Follower::new(log, target, position, Arc::default());
        for _ in 0..4 {
            assert!(follower.step().await.is_err());
        }
        assert_eq!(*reports.lock().unwrap(), ["unreachable"]);
    }
}
