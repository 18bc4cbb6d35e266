//! What the workers, the handle and the arguments share: who is there, the log, the inboxes.

use std::collections::HashMap;
use std::future::poll_fn;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::watch;

use crate::engine::common::counts::Counts;
use crate::engine::common::followers::Followers;
use crate::engine::common::gate::Gate;
use crate::engine::common::inbox::{Inbox, Mail};
use crate::engine::common::owed::Owed;
use crate::engine::common::refusals::Refusals;
use crate::engine::tree::observer::PushEvent;
use crate::engine::tree::route::Routes;
use crate::id::ThreadId;
use crate::limits::Limits;
use crate::log;
use crate::log::Log;
use crate::wire::{Code, Fault};

/// How far a pump has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
// Exhaustive: a door has to do something at each.
pub enum Stage {
    /// It takes pushes.
    Running,
    /// It takes no more; what is under way comes to its end. Doors let nobody in.
    Stopping,
    /// Whatever is still to be told was told. Doors pass it on and close.
    Drained,
}

/// A future that waits until a time.
pub(crate) type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What everything in a pump shares.
pub(crate) struct Shared {
    pub(crate) routes: Routes,
    pub(crate) gates: Vec<Gate>,
    pub(crate) limits: Limits,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) key: [u8; 32],
    pub(crate) core: Arc<str>,
    pub(crate) inboxes: Vec<Inbox>,
    /// How many trees each worker keeps awake.
    pub(crate) awake: Vec<AtomicU64>,
    /// What the organism says of its own life, if it has a name.
    pub(crate) life: Option<Life>,
    pub(crate) followers: Followers,
    /// Client ids on their way into the log: whoever comes second waits for the first.
    pub(crate) client_ids: DashMap<(Arc<str>, Arc<str>), watch::Receiver<()>>,
    /// Pushes refused, by the number of the fault: counted, not logged.
    pub(crate) refused: Vec<AtomicU64>,
    /// What doors refuse, by sender.
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) counts: Counts,
    /// What all connections are owed.
    pub(crate) owed: Arc<Owed>,
    /// Until when batches are to be small, since something went ahead of some.
    pub(crate) hurry_until_us: AtomicU64,
    /// By how much the wall clock is ahead of the log's time, as far as a worker has seen.
    pub(crate) ahead_us: AtomicI64,
    /// How far a shutdown has come; doors watch it.
    pub(crate) stage: watch::Sender<Stage>,
    /// Every door that serves holds a receiver: a shutdown waits until there is none.
    pub(crate) doors: watch::Sender<()>,
    /// Whether some door knows tokens.
    pub(crate) has_tokens: bool,
    /// Whether a worker failed: a mistake of ours, after which nothing can be promised.
    pub(crate) broken: AtomicBool,
    /// Whether it has stopped, or nobody has it any more.
    pub(crate) over: Arc<AtomicBool>,
    /// Empty until recovery is over; then whether the log could be read.
    pub(crate) ready: watch::Sender<Option<Result<(), log::Error>>>,
    pub(crate) sleep_until: Box<dyn Fn(u64) -> Sleep + Send + Sync>,
    pub(crate) now_us: Box<dyn Fn() -> u64 + Send + Sync>,
    pub(crate) random: Box<dyn Fn() -> u64 + Send + Sync>,
    pub(crate) pass_on: Box<dyn Fn() + Send + Sync>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.refusals.close();
    }
}

impl Shared {
    /// The worker that owns a thread's tree.
    pub(crate) fn worker_of(&self, tree: &ThreadId) -> usize {
        let mut hasher = rustc_hash::FxHasher::default();
        tree.tree_str().hash(&mut hasher);
        usize::try_from(hasher.finish() >> 7).unwrap_or(0) % self.inboxes.len()
    }

    pub(crate) fn post(&self, tree: &ThreadId, mail: Mail) {
        self.inboxes[self.worker_of(tree)].post(mail);
    }

    /// An id for a new session.
    pub(crate) fn draw(&self) -> ThreadId {
        ThreadId::session((self.random)())
    }

    /// Why nothing can be taken now, if that is so.
    pub(crate) fn closed(&self) -> Option<Fault> {
        if *self.stage.borrow() != Stage::Running {
            return Some(Fault::new(Code::Stopping, "the pump is stopping"));
        }
        if self.broken.load(Ordering::Relaxed) {
            return Some(Fault::new(Code::Broken, "the pump failed inside"));
        }
        match self.log.health() {
            log::Health::Well => None,
            log::Health::Full => Some(Fault::new(Code::LogFull, "the log's disk is full")),
            log::Health::Poisoned(_) => {
                Some(Fault::new(Code::LogFailed, "the log can't be written any more"))
            }
        }
    }

    /// Stands in for a worker that failed: refuses what is pushed, and holds nobody up.
    pub(crate) async fn refuse_all(&self, worker: usize) {
        let (inbox, mut mail) = (&self.inboxes[worker], Vec::new());
        poll_fn(|context| {
            inbox.wake(context.waker());
            inbox.take(&mut mail);
            for it in mail.drain(..) {
                match it {
                    Mail::Push { push, .. } => {
                        let fault = Fault::new(Code::Broken, "the pump failed inside");
                        let fault = fault.of_client(push.client_id.as_deref());
                        push.inlet.hear(push.number, PushEvent::Refused(fault));
                    }
                    Mail::Drain(done) => drop(done.send(())),
                    Mail::Stop => return Poll::Ready(()),
                    _ => {}
                }
            }
            Poll::Pending
        })
        .await;
    }

    /// Counts a refusal.
    pub(crate) fn count(&self, fault: &Fault) {
        if let Some(count) = self.refused.get(fault.code as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many pushes were refused, by the fault's number.
    pub(crate) fn refusals(&self) -> HashMap<Code, u64> {
        let count = |code: Code| {
            let count = self.refused.get(code as usize)?.load(Ordering::Relaxed);
            (count > 0).then_some((code, count))
        };
        Code::ALL.iter().filter_map(|code| count(*code)).collect()
    }
}

/// What an organism says of its own life.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) name: Arc<str>,
    pub(crate) heartbeat: Option<Duration>,
}
