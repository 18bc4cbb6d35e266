//! Asks a listener something in a thread of its own, and waits for the end of it: for as long as it
//! may take, or until all is to stop.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};

use crate::clock;
use crate::engine::{Identity, Port as _, Pump, PushEvent, PushObserver, Tokio};
use crate::id::{EntryId, ThreadId};
use crate::listener::{CONSOLE, Entry};
use crate::listeners::agent::words::Response;
use crate::listeners::thread::CancelThread;
use crate::xml::Element;

/// How long the end of an agent's work is waited for when its answer is there: what a turn took is
/// settled then.
const SETTLE_US: u64 = 5_000_000;

/// Asks, each time in a thread of its own.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) pump: Pump,
    /// How long an answer may take.
    pub(super) seconds: u64,
    /// Whether all is to stop.
    pub(super) stop: watch::Receiver<bool>,
}

/// What came of something that was asked.
pub(super) struct Asked {
    /// Where the message stands; none where it was refused.
    pub(super) id: Option<EntryId>,
    /// What is wrong with the message itself.
    pub(super) refused: Option<String>,
    /// What was answered, in its order.
    pub(super) replies: Vec<Entry>,
    pub(super) ended: Ended,
    /// From the message to the last word.
    pub(super) milliseconds: u64,
}

/// How it came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// All that the message caused is done.
    Settled,
    /// The answer is there, and something else went on.
    Answered,
    /// The time was up.
    Late,
    /// All was to stop.
    Stopped,
}

impl Asker {
    /// Sends a payload to the listener that it is for. What still goes on in the end is cancelled.
    pub(super) async fn ask(&self, pump: &Pump, payload: Element) -> Asked {
        let (begun_us, heard) = (clock::now_us(), Arc::new(Heard::default()));
        pump.send_observed(payload, heard.clone()).await;
        let ended = self.wait(&heard, begun_us).await;
        let news = heard.began().await;
        if let Some(id) = news.id.as_ref().filter(|_| ended != Ended::Settled) {
            self.cancel(&id.thread, ended).await;
        }
        let answered_us = news.answered_us.unwrap_or_else(clock::now_us);
        Asked {
            id: news.id,
            refused: news.refused,
            replies: news.replies,
            ended,
            milliseconds: answered_us.saturating_sub(begun_us) / 1_000,
        }
    }

    /// Waits for the end of all that a message caused, or for the time's end, or a stop.
    async fn wait(&self, heard: &Heard, begun_us: u64) -> Ended {
        let late_us = begun_us.saturating_add(self.seconds.saturating_mul(1_000_000));
        let mut stop = self.stop.clone();
        loop {
            let news = heard.news();
            if news.is_over {
                return Ended::Settled;
            }
            let (until_us, then) = match news.answered_us {
                Some(at_us) => (at_us.saturating_add(SETTLE_US), Ended::Answered),
                None => (late_us, Ended::Late),
            };
            tokio::select! {
                biased;
                () = heard.more.notified() => {}
                _ = stop.wait_for(|it| *it) => return Ended::Stopped,
                () = Tokio::current().sleep_until(until_us) => return then,
            }
        }
    }

    /// Ends a thread, so that nothing goes on in it.
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

    /// Why there is no answer where the time was up.
    pub(super) fn too_late(&self) -> String {
        let seconds = self.seconds;
        format!("no answer within {seconds} s; the limit --seconds is {seconds}")
    }
}

/// What was heard of a message so far.
#[derive(Clone, Debug, Default)]
struct News {
    id: Option<EntryId>,
    refused: Option<String>,
    replies: Vec<Entry>,
    /// When the last word came.
    answered_us: Option<u64>,
    is_over: bool,
}

/// Hears what becomes of a message.
#[derive(Default)]
struct Heard {
    news: Mutex<News>,
    more: Notify,
}

impl Heard {
    fn news(&self) -> News {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was heard, once it is known whether the message is in the log: only then can its thread
    /// be cancelled.
    async fn began(&self) -> News {
        loop {
            let news = self.news();
            if news.id.is_some() || news.is_over {
                return news;
            }
            self.more.notified().await;
        }
    }
}

impl PushObserver for Heard {
    fn hear(&self, _: u64, event: PushEvent) {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            PushEvent::Accepted { id, .. } => news.id = Some(id),
            PushEvent::Refused(fault) => {
                news.refused = Some(fault.to_string());
                news.is_over = true;
            }
            PushEvent::Lost(fault) => news.refused = Some(fault.to_string()),
            PushEvent::Reply(entry) => {
                // Of an agent that says more later, this isn't the last word.
                if entry.decode::<Response>().map_or(true, |it| it.is_final) {
                    news.answered_us = Some(clock::now_us());
                }
                news.replies.push(entry);
            }
            PushEvent::Settled => news.is_over = true,
        }
        drop(news);
        self.more.notify_one();
    }
}
