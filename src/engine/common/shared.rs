//! The state that all parts of a running pump share: the organism as it was declared, its log, its
//! workers, its clients, its counters, its stage and its clock.

use std::future::poll_fn;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use dashmap::{DashMap, DashSet};
use tokio::sync::{oneshot, watch};

use crate::engine::common::counts::Counts;
use crate::engine::common::followers::Followers;
use crate::engine::common::gate::Gate;
use crate::engine::common::inbox::{Inbox, Mail};
use crate::engine::common::refusals::Refusals;
use crate::engine::common::runtime::Runtime;
use crate::engine::common::unread_bytes::UnreadBytes;
use crate::engine::tree::event::Push;
use crate::engine::tree::observer::{PushEvent, tell};
use crate::engine::tree::route::Routes;
use crate::id::ThreadId;
use crate::limits::Limits;
use crate::log;
use crate::log::Log;
use crate::wire::{Code, Fault};

/// The stage of a pump, from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
// Exhaustive, since a door has to act on each stage.
pub enum Stage {
    /// The pump takes pushes.
    Running,
    /// The pump takes no more pushes, and work that is under way comes to its end. Doors accept no
    /// more clients.
    Stopping,
    /// All work has ended. Doors send what they still have and close.
    Drained,
}

/// The shared state of a running pump.
pub(crate) struct Shared {
    pub(crate) routes: Routes,
    pub(crate) limits: Limits,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) core: Arc<str>,
    /// The organism's name and heartbeat, if it records its own life.
    pub(crate) life: Option<Life>,
    pub(crate) workers: Workers,
    pub(crate) clients: Clients,
    pub(crate) counts: Counts,
    /// Counts of the pushes that doors refuse.
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) state: PumpState,
    pub(crate) runtime: Runtime,
}

/// The state that the workers share. Each worker reads only its own inbox. All workers use the same
/// gates.
pub(crate) struct Workers {
    /// The places of each listener's handlers.
    pub(crate) gates: Vec<Gate>,
    pub(crate) inboxes: Vec<Inbox>,
    /// How many trees each worker has in memory.
    pub(crate) awake: Vec<AtomicU64>,
    /// The time until which batches stay small, because the priority lane was used.
    pub(crate) hurry_until_us: AtomicU64,
    /// How many microseconds the wall clock is ahead of the monotonic clock, as last measured by a
    /// worker.
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

    /// Returns the number of the worker that owns a thread's tree.
    pub(crate) fn owner(&self, tree: &ThreadId) -> usize {
        let mut hasher = rustc_hash::FxHasher::default();
        tree.tree_str().hash(&mut hasher);
        usize::try_from(hasher.finish() >> 7).unwrap_or(0) % self.inboxes.len()
    }

    pub(crate) fn post(&self, tree: &ThreadId, mail: Mail) {
        self.inboxes[self.owner(tree)].post(mail);
    }
}

/// The state of clients that push and follow.
pub(crate) struct Clients {
    pub(crate) followers: Followers,
    /// The client ids of pushes on their way into the log, each with its identity. A second push
    /// with the same id waits for the first.
    pub(crate) client_ids: DashMap<(Arc<str>, Arc<str>), watch::Receiver<()>>,
    /// The identities that followed a thread since the start, each with the thread.
    pub(crate) followed: DashSet<(Arc<str>, Arc<str>)>,
    /// The unread bytes of all connections.
    pub(crate) unread: Arc<UnreadBytes>,
    /// Whether some door asks for tokens.
    pub(crate) has_tokens: bool,
}

/// The pump's progress from recovery to its end.
pub(crate) struct PumpState {
    /// None until recovery is over. After that: whether the log could be read.
    pub(crate) ready: watch::Sender<Option<Result<(), log::Error>>>,
    /// The pump's stage, which doors watch.
    pub(crate) stage: watch::Sender<Stage>,
    /// Every door that serves holds a receiver. A shutdown waits until all receivers are gone.
    pub(crate) doors: watch::Sender<()>,
    /// Whether a worker panicked. Such a panic is a bug of the pump, after which the pump accepts
    /// nothing more.
    pub(crate) broken: AtomicBool,
    /// Whether the pump has stopped, or its `Shared` was dropped.
    pub(crate) over: Arc<AtomicBool>,
}

impl Default for PumpState {
    fn default() -> PumpState {
        PumpState {
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
        self.state.over.store(true, Ordering::Relaxed);
        self.refusals.close();
    }
}

impl Shared {
    /// Returns an id for a new session.
    pub(crate) fn draw(&self) -> ThreadId {
        ThreadId::session(self.runtime.random())
    }

    /// Returns the fault with which the pump refuses pushes now. None if it accepts pushes.
    pub(crate) fn closed(&self) -> Option<Fault> {
        if *self.state.stage.borrow() != Stage::Running {
            return Some(Fault::new(Code::Stopping, "the pump is stopping"));
        }
        if self.state.broken.load(Ordering::Relaxed) {
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

    /// Refuses a push: counts the refusal, and tells the push's sender and the pushes that wait for
    /// its client id.
    pub(crate) fn refuse(&self, push: &Push, fault: Fault) {
        let fault = fault.of_client(push.client_id());
        self.counts.refused(&fault);
        if let Some(own) = &push.client_id {
            tell(&*own.claim, push.by.number, PushEvent::Refused(fault.clone()));
        }
        tell(&*push.by.observer, push.by.number, PushEvent::Refused(fault));
    }

    /// Waits until no worker has anything to do. A worker may send mail to another one that was
    /// drained before it, so they are asked until none has read mail since it was last asked.
    pub(crate) async fn drained(&self) {
        let mut before = None;
        loop {
            let mut counts = Vec::new();
            for inbox in &self.workers.inboxes {
                let (done, idle) = oneshot::channel();
                inbox.post(Mail::Drain(done));
                // An error means that the worker has stopped.
                counts.push(idle.await.unwrap_or_default());
            }
            if before.replace(counts.clone()) == Some(counts) {
                return;
            }
        }
    }

    /// Stands in for a worker that panicked: refuses pushes, and answers requests to drain at once.
    pub(crate) async fn refuse_all(&self, worker: usize) {
        let (inbox, mut mail) = (&self.workers.inboxes[worker], Vec::new());
        poll_fn(|context| {
            inbox.wake(context.waker());
            inbox.take(&mut mail);
            for mail in mail.drain(..) {
                match mail {
                    Mail::Push { push, .. } => {
                        self.refuse(&push, Fault::new(Code::Broken, "the pump failed inside"));
                    }
                    Mail::Drain(done) => drop(done.send(0)),
                    Mail::Stop => return Poll::Ready(()),
                    _ => {}
                }
            }
            Poll::Pending
        })
        .await;
    }
}

/// The organism's name and heartbeat.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) name: Arc<str>,
    pub(crate) heartbeat: Option<Duration>,
}
