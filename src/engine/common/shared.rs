//! What the workers, the handle and the arguments share, by purpose: the organism as it was
//! declared, its log, its workers, its clients, what is counted, how far it has come, and the time.

use std::future::poll_fn;
use std::hash::{Hash, Hasher};
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
use crate::engine::common::runtime::Runtime;
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

/// What everything in a pump shares.
pub(crate) struct Shared {
    pub(crate) routes: Routes,
    pub(crate) limits: Limits,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) core: Arc<str>,
    /// What the organism says of its own life, if it has a name.
    pub(crate) life: Option<Life>,
    pub(crate) workers: Workers,
    pub(crate) clients: Clients,
    pub(crate) counts: Counts,
    /// What doors refuse, by sender.
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) running: Running,
    pub(crate) runtime: Runtime,
}

/// What the workers share: each reads its own inbox and whatever a listener's gate says.
pub(crate) struct Workers {
    /// The places of each listener's handlers.
    pub(crate) gates: Vec<Gate>,
    pub(crate) inboxes: Vec<Inbox>,
    /// How many trees each worker keeps awake.
    pub(crate) awake: Vec<AtomicU64>,
    /// Until when batches are to be small, since something went ahead of some.
    pub(crate) hurry_until_us: AtomicU64,
    /// By how much the wall clock is ahead of the log's time, as far as a worker has seen.
    pub(crate) ahead_us: AtomicI64,
}

impl Workers {
    pub(crate) fn new(number: usize, gates: Vec<Gate>, ahead_us: i64) -> Workers {
        Workers {
            gates,
            inboxes: (0..number).map(|_| Inbox::default()).collect(),
            awake: (0..number).map(|_| AtomicU64::new(0)).collect(),
            hurry_until_us: AtomicU64::new(0),
            ahead_us: AtomicI64::new(ahead_us),
        }
    }

    /// The number of the worker that owns a thread's tree.
    pub(crate) fn owner(&self, tree: &ThreadId) -> usize {
        let mut hasher = rustc_hash::FxHasher::default();
        tree.tree_str().hash(&mut hasher);
        usize::try_from(hasher.finish() >> 7).unwrap_or(0) % self.inboxes.len()
    }

    pub(crate) fn post(&self, tree: &ThreadId, mail: Mail) {
        self.inboxes[self.owner(tree)].post(mail);
    }
}

/// What is known of those who push and follow.
pub(crate) struct Clients {
    pub(crate) followers: Followers,
    /// Client ids on their way into the log: whoever comes second waits for the first.
    pub(crate) client_ids: DashMap<(Arc<str>, Arc<str>), watch::Receiver<()>>,
    /// What all connections are owed.
    pub(crate) owed: Arc<Owed>,
    /// Whether some door knows tokens.
    pub(crate) has_tokens: bool,
}

/// How far the pump has come, from recovery to the end.
pub(crate) struct Running {
    /// Empty until recovery is over; then whether the log could be read.
    pub(crate) ready: watch::Sender<Option<Result<(), log::Error>>>,
    /// How far a shutdown has come; doors watch it.
    pub(crate) stage: watch::Sender<Stage>,
    /// Every door that serves holds a receiver: a shutdown waits until there is none.
    pub(crate) doors: watch::Sender<()>,
    /// Whether a worker failed: a mistake of ours, after which nothing can be promised.
    pub(crate) broken: AtomicBool,
    /// Whether it has stopped, or nobody has it any more.
    pub(crate) over: Arc<AtomicBool>,
}

impl Default for Running {
    fn default() -> Running {
        Running {
            ready: watch::Sender::new(None),
            stage: watch::Sender::new(Stage::Running),
            doors: watch::Sender::new(()),
            broken: AtomicBool::new(false),
            over: Arc::default(),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.running.over.store(true, Ordering::Relaxed);
        self.refusals.close();
    }
}

impl Shared {
    /// An id for a new session.
    pub(crate) fn draw(&self) -> ThreadId {
        ThreadId::session(self.runtime.random())
    }

    /// Why nothing can be taken now, if that is so.
    pub(crate) fn closed(&self) -> Option<Fault> {
        if *self.running.stage.borrow() != Stage::Running {
            return Some(Fault::new(Code::Stopping, "the pump is stopping"));
        }
        if self.running.broken.load(Ordering::Relaxed) {
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
        let (inbox, mut mail) = (&self.workers.inboxes[worker], Vec::new());
        poll_fn(|context| {
            inbox.wake(context.waker());
            inbox.take(&mut mail);
            for it in mail.drain(..) {
                match it {
                    Mail::Push { push, .. } => {
                        let fault = Fault::new(Code::Broken, "the pump failed inside");
                        let fault = fault.of_client(push.client_id());
                        push.by.inlet.hear(push.by.number, PushEvent::Refused(fault));
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
}

/// What an organism says of its own life.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) name: Arc<str>,
    pub(crate) heartbeat: Option<Duration>,
}
