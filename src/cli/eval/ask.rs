//! Asks a listener a question in a new thread. Then waits until the work is done, the time is up,
//! or the evaluation stops.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};

use crate::clock;
use crate::engine::{Identity, Port as _, Pump, PushEvent, PushObserver, Tokio};
use crate::id::{EntryId, ThreadId};
use crate::listener::{CONSOLE, Entry};
use crate::listeners::agent::words::Response;
use crate::listeners::thread::CancelThread;
use crate::xml::Element;

/// How long an agent's work may go on after its answer, in microseconds. The last turn's usage is
/// charged in this time.
const SETTLE_US: u64 = 5_000_000;

/// Asks questions, each in a new thread.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) pump: Pump,
    /// How long an answer may take, in seconds.
    pub(super) seconds: u64,
    /// True once the evaluation is to stop.
    pub(super) stop: watch::Receiver<bool>,
}

/// The outcome of a question.
pub(super) struct AskOutcome {
    /// The message's entry. None if the message was refused.
    pub(super) id: Option<EntryId>,
    /// Why the message was refused, or how the log failed after the message was accepted.
    pub(super) refused: Option<String>,
    /// The answers, in order.
    pub(super) replies: Vec<Entry>,
    pub(super) ended: Ended,
    /// The time from the message to the last answer, or to the end of the wait if there is no
    /// answer.
    pub(super) milliseconds: u64,
}

/// How the wait for an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// All that the message caused is done.
    Settled,
    /// The answer came, but other work went on for too long.
    Answered,
    /// No answer came in time.
    Late,
    /// The evaluation was stopped.
    Stopped,
}

impl Asker {
    /// Sends a payload, and waits for the outcome. Work that still goes on after the wait is
    /// cancelled.
    pub(super) async fn ask(&self, pump: &Pump, payload: Element) -> AskOutcome {
        let (begun_us, observer) = (clock::now_us(), Arc::new(AskObserver::default()));
        pump.send_observed(payload, observer.clone()).await;
        let ended = self.wait(&observer, begun_us).await;
        let progress = observer.began().await;
        if let Some(id) = progress.id.as_ref().filter(|_| ended != Ended::Settled) {
            self.cancel(&id.thread, ended).await;
        }
        let answered_us = progress.answered_us.unwrap_or_else(clock::now_us);
        AskOutcome {
            id: progress.id,
            refused: progress.refused,
            replies: progress.replies,
            ended,
            milliseconds: answered_us.saturating_sub(begun_us) / 1_000,
        }
    }

    /// Waits until all that a message caused is done, the time is up, or the evaluation stops.
    async fn wait(&self, observer: &AskObserver, begun_us: u64) -> Ended {
        let late_us = begun_us.saturating_add(self.seconds.saturating_mul(1_000_000));
        let mut stop = self.stop.clone();
        loop {
            let progress = observer.progress();
            if progress.is_over {
                return Ended::Settled;
            }
            let (until_us, then) = match progress.answered_us {
                Some(at_us) => (at_us.saturating_add(SETTLE_US), Ended::Answered),
                None => (late_us, Ended::Late),
            };
            tokio::select! {
                biased;
                () = observer.more.notified() => {}
                _ = stop.wait_for(|it| *it) => return Ended::Stopped,
                () = Tokio::current().sleep_until(until_us) => return then,
            }
        }
    }

    /// Cancels a thread and all below it.
    async fn cancel(&self, thread: &ThreadId, ended: Ended) {
        let reason = match ended {
            Ended::Late => self.too_late(),
            Ended::Answered => "the answer is there".to_owned(),
            Ended::Stopped | Ended::Settled => "the evaluation was stopped".to_owned(),
        };
        let operator = Identity { name: CONSOLE.into(), operator: true };
        let pump = self.pump.speaking_as(operator).in_thread(thread);
        let cancel = CancelThread { thread: None, reason: Some(reason) };
        if let Err(fault) = pump.tell(cancel).await {
            tracing::debug!(%thread, %fault, "can't be cancelled");
        }
    }

    /// Returns the text that says that no answer came in time.
    pub(super) fn too_late(&self) -> String {
        let seconds = self.seconds;
        format!("no answer within {seconds} s; the limit --seconds is {seconds}")
    }
}

/// What the observer has heard of a message so far.
#[derive(Clone, Debug, Default)]
struct AskProgress {
    id: Option<EntryId>,
    refused: Option<String>,
    replies: Vec<Entry>,
    /// When the last answer came. A response that isn't final doesn't count.
    answered_us: Option<u64>,
    is_over: bool,
}

/// Observes what becomes of a message.
#[derive(Default)]
struct AskObserver {
    progress: Mutex<AskProgress>,
    more: Notify,
}

impl AskObserver {
    fn progress(&self) -> AskProgress {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the message was accepted or refused, and returns what was heard. Before that,
    /// there is no thread that could be cancelled.
    async fn began(&self) -> AskProgress {
        loop {
            let progress = self.progress();
            if progress.id.is_some() || progress.is_over {
                return progress;
            }
            self.more.notified().await;
        }
    }
}

impl PushObserver for AskObserver {
    fn hear(&self, _: u64, event: PushEvent) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            PushEvent::Accepted { id, .. } => progress.id = Some(id),
            PushEvent::Refused(fault) => {
                progress.refused = Some(format!("the message was refused: {fault}"));
                progress.is_over = true;
            }
            PushEvent::Lost(fault) => {
                let text = format!("the log failed after the message was accepted: {fault}");
                progress.refused = Some(text);
            }
            PushEvent::Reply(entry) => {
                // After a response that isn't final, the agent says more.
                if entry.decode::<Response>().map_or(true, |it| it.is_final) {
                    progress.answered_us = Some(clock::now_us());
                }
                progress.replies.push(entry);
            }
            PushEvent::Settled => progress.is_over = true,
        }
        drop(progress);
        self.more.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Code, Fault};

    #[test]
    fn a_refused_message_and_a_lost_one_are_told_apart() {
        let told = |event| {
            let observer = AskObserver::default();
            observer.hear(0, event);
            observer.progress().refused.unwrap_or_default()
        };
        let fault = || Fault::new(Code::LogFailed, "the disk is full");
        let refused = told(PushEvent::Refused(fault()));
        assert!(refused.starts_with("the message was refused: "), "{refused}");
        let lost = told(PushEvent::Lost(fault()));
        assert!(lost.starts_with("the log failed after the message was accepted: "), "{lost}");
    }
}
