//! The newest run of a schedule: whether it is at work, as the log shows it.

use crate::id::{EntryId, ThreadId};
use crate::listener;
use crate::log::{Error, Log, Pages, State};
use pumphouse_listeners::trigger::Firings;
use pumphouse_listeners::trigger::words::TriggersDecided;

/// The newest run of a schedule.
pub(super) struct LastRun {
    /// The message that began the run.
    due: EntryId,
    /// The entries of the message's thread up to this one are read.
    read: u64,
    firings: Firings,
    /// Whether the listener `trigger` has decided on the message.
    is_decided: bool,
    /// Whether a person was told that a time was skipped because of this run.
    pub(super) is_told: bool,
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The run is about to begin.
    Begins,
    /// The run is at work in this thread.
    AtWork(ThreadId),
    /// The run has ended, or never began.
    Over,
}

impl LastRun {
    pub(super) fn new(due: EntryId) -> LastRun {
        let read = due.seq.saturating_sub(1);
        LastRun { due, read, firings: Firings::default(), is_decided: false, is_told: false }
    }

    pub(super) fn due(&self) -> &EntryId {
        &self.due
    }

    /// Reads the new entries, and returns how far the run is.
    pub(super) async fn progress(&mut self, log: &dyn Log, rule: &str) -> Result<Progress, Error> {
        let thread = &self.due.thread;
        let state = log.thread(thread).await?.map(|it| it.state);
        if matches!(state, None | Some(State::Closed | State::Cancelled | State::Failed)) {
            return Ok(Progress::Over);
        }
        let mut pages = Pages::of(log, thread).after(self.read);
        while let Some(page) = pages.next().await? {
            for entry in page.iter().map(|it| listener::Entry::kept(it)) {
                let is_own = entry.seq() == self.due.seq;
                let decided = entry.decode_if::<TriggersDecided>();
                let decides = decided.is_some_and(|it| it.of == self.due.seq);
                self.is_decided |= decides || (is_own && entry.is_refused());
                listener::Apply::apply(&mut self.firings, &entry);
                self.read = entry.seq();
            }
        }
        Ok(match self.firings.run_of_event(rule) {
            Some(Some(thread)) => Progress::AtWork(thread),
            Some(None) => Progress::Begins,
            None if self.is_decided => Progress::Over,
            None => Progress::Begins,
        })
    }
}
