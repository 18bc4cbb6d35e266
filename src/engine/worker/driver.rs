//! The worker's loop. A worker owns its trees, steps them in turn, and carries out effects once the
//! log has their batch. The loop is one poll function, so that no part of the loop blocks another
//! part.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, StreamExt};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use crate::engine::common::gate::Gate;
use crate::engine::common::inbox::Mail;
use crate::engine::common::lifecycle;
use crate::engine::common::runtime::Sleep;
use crate::engine::common::shared::Shared;
use crate::engine::runtime_port::Port;
use crate::engine::tree::effect::{Effect, Places, Room, World};
use crate::engine::tree::event::{Event, Key, Start};
use crate::engine::tree::observer::{PushEvent, tell};
use crate::engine::tree::step::Tree;
use crate::engine::worker::host::EngineHost;
use crate::engine::worker::load::Loaded;
use crate::engine::worker::log_lanes::Lanes;
use crate::engine::worker::run_queue::RunQueue;
use crate::engine::worker::timers::Waits;
use crate::engine::worker::tree_slot::{AwakeTree, KeyedHash, TreeSlot};
use crate::engine::worker::usage::TypicalUsage;
use crate::engine::worker::window::Window;
use crate::id::ThreadId;
use crate::limits::Limits;
use crate::log;
use crate::wire::Fault;

/// How many rounds of its loop a worker makes before it yields to other tasks.
const ROUNDS: usize = 2;

/// Idle trees per sweep that may be skipped because a client still listens.
const HEARD_AT_ONCE: usize = 16;

/// A worker and all that it owns.
pub(crate) struct Worker<P: Port> {
    pub(crate) port: P,
    pub(crate) number: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) host: Arc<EngineHost>,
    /// The worker's trees, in memory or loading. The hash is keyed, since clients can name any id.
    pub(crate) trees: HashMap<ThreadId, TreeSlot, KeyedHash>,
    /// Trees that have events to handle.
    pub(crate) run_queue: RunQueue,
    /// Trees that had nothing to do when they were last checked. The tree that has rested longest
    /// comes first.
    pub(crate) resting: VecDeque<ThreadId>,
    /// The average usage of trees, by which light trees are found.
    pub(crate) typical_usage: TypicalUsage,
    /// Batches on their way to the log, with their effects.
    pub(crate) lanes: Lanes,
    /// The flow-control window: how many steps may be on their way in the lower lane.
    pub(crate) window: Window,
    /// The capacity for the next batch: the size of the last one.
    pub(crate) room: Room,
    pub(crate) waking: FuturesUnordered<std::pin::Pin<Box<dyn Future<Output = Loaded> + Send>>>,
    pub(crate) tasks: FxHashMap<Key, Task>,
    /// A lower bound of all handlers' deadlines. The handler with this deadline may have ended
    /// already. One needless check costs less than a timer for each handler.
    pub(crate) soonest_us: u64,
    /// For each listener: how many places are promised to handlers of batches on their way to the
    /// log.
    pub(crate) promised: Vec<usize>,
    /// Maps a listener to handlers that wait for a place because another worker took the promised
    /// place.
    crowded: FxHashMap<usize, VecDeque<Box<Start>>>,
    /// Maps a listener to threads that wait for a free place of the listener.
    pub(crate) starving: FxHashMap<usize, VecDeque<ThreadId>>,
    /// Deliveries that wait for a time or an entry, of all trees of this worker, loaded or not.
    pub(crate) waits: Waits,
    pub(crate) timer: Option<(u64, Sleep)>,
    mail: Vec<Mail>,
    /// If the log failed: the fault with which pushes are refused.
    pub(crate) dead: Option<Fault>,
    pub(crate) phase: Phase,
    /// The pushes that wait until the worker handles whatever comes.
    later_pushes: Vec<Mail>,
    stopped: bool,
    drains: Vec<oneshot::Sender<u64>>,
    /// How much mail the worker has read, without requests to drain.
    mail_count: u64,
    pub(crate) now_us: u64,
    /// How many microseconds the wall clock is ahead of `now_us`.
    pub(crate) ahead_us: i64,
}

/// What a worker handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing: unfinished entries are still posted.
    Waiting,
    /// Unfinished entries alone. Pushes and timers wait.
    OnlyUnfinished,
    /// Whatever comes.
    Open,
}

/// A handler that runs as a task.
pub(crate) struct Task {
    pub(crate) deadline_us: u64,
    pub(crate) stage: TaskStage,
}

/// How far a handler's task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskStage {
    /// The handler's time isn't up.
    InTime,
    /// The handler exceeded its deadline and was told to stop.
    Late,
    /// The handler was told to stop and goes on, so it blocks a thread. Its place is free again.
    Stuck,
}

/// If `ahead_us` differs by less than this from the value that was noted last, the difference is
/// drift. Otherwise the wall clock was set.
const SET_US_MIN: u64 = 100_000;

/// If the wall clock is set back by at least this, deliveries that wait for a time of the wall
/// clock are due at once.
const SET_BACK_US: i64 = 1_000_000;

impl<P: Port> Worker<P> {
    pub(crate) fn new(port: P, number: usize, shared: Arc<Shared>) -> Worker<P> {
        Worker {
            host: Arc::new(EngineHost(shared.clone())),
            now_us: port.now_us(),
            ahead_us: set_by(&port),
            waits: Waits::since(set_by(&port)),
            trees: HashMap::with_hasher(KeyedHash::new(port.random())),
            window: window(&shared.limits),
            promised: vec![0; shared.routes.listeners.len()],
            port,
            number,
            shared,
            run_queue: RunQueue::default(),
            resting: VecDeque::new(),
            typical_usage: TypicalUsage::default(),
            lanes: Lanes::default(),
            room: Room::default(),
            waking: FuturesUnordered::new(),
            tasks: FxHashMap::default(),
            soonest_us: u64::MAX,
            crowded: FxHashMap::default(),
            starving: FxHashMap::default(),
            timer: None,
            mail: Vec::new(),
            dead: None,
            phase: Phase::Waiting,
            later_pushes: Vec::new(),
            stopped: false,
            drains: Vec::new(),
            mail_count: 0,
        }
    }

    /// Runs the worker until it is told to stop.
    pub(crate) async fn run(mut self) {
        poll_fn(|context| self.poll(context)).await;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let shared = self.shared.clone();
        shared.workers.inboxes[self.number].wake(context.waker());
        for _ in 0..ROUNDS {
            self.now_us = self.now_us.max(self.port.now_us());
            self.look_at_clock();
            let mut busy = self.take_mail();
            busy |= self.take_woken(context);
            busy |= self.land(context);
            busy |= self.check_time(context);
            busy |= self.turn();
            if self.stopped {
                return Poll::Ready(());
            }
            if !busy {
                self.drained();
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Notices that the wall clock was set. Deliveries that wait for a time of the wall clock
    /// become due earlier or later.
    fn look_at_clock(&mut self) {
        let ahead_us = set_by(&self.port);
        if ahead_us.abs_diff(self.ahead_us) < SET_US_MIN {
            return;
        }
        let is_back = ahead_us.saturating_add(SET_BACK_US) <= self.ahead_us;
        self.ahead_us = ahead_us;
        self.waits.set_clock(ahead_us, is_back);
        let before_us = self.shared.workers.ahead_us.swap(ahead_us, Ordering::Relaxed);
        if before_us.abs_diff(ahead_us) >= SET_US_MIN {
            lifecycle::clock_set(&self.shared, ahead_us.saturating_sub(before_us));
        }
    }

    fn take_mail(&mut self) -> bool {
        let mut mail = std::mem::take(&mut self.mail);
        self.shared.workers.inboxes[self.number].take(&mut mail);
        let busy = !mail.is_empty();
        for mail in mail.drain(..) {
            self.mail_count += u64::from(!matches!(mail, Mail::Drain(_)));
            self.read(mail);
        }
        self.mail = mail;
        busy
    }

    fn read(&mut self, mail: Mail) {
        match mail {
            Mail::Event(thread, event) => self.give(&thread, event),
            Mail::Push { push, .. } if self.dead.is_some() => {
                let fault = self.dead.clone();
                fault.into_iter().for_each(|it| self.shared.refuse(&push, it));
            }
            push @ Mail::Push { .. } if self.phase != Phase::Open => self.later_pushes.push(push),
            Mail::Push { thread, drawn, push } => match self.trees.get_mut(thread.tree_str()) {
                Some(TreeSlot::Awake(_)) if drawn => self.redraw(push),
                Some(TreeSlot::Awake(slot)) => {
                    let (gates, promised) = (&self.shared.workers.gates, &self.promised);
                    let places = FreePlaces { gates, promised };
                    let world = world(&self.shared, &places, (self.now_us, self.ahead_us));
                    match slot.tree.refuses(&thread, &push, &world) {
                        None => self.give(&thread.clone(), Event::Push(thread, push)),
                        Some(fault) => self.shared.refuse(&push, fault),
                    }
                }
                _ => self.await_tree(thread.tree(), Mail::Push { thread, drawn, push }),
            },
            Mail::Note(thread, words) => match self.trees.get_mut(thread.tree_str()) {
                Some(TreeSlot::Awake(_)) => {
                    self.give(&thread.clone(), Event::Note(thread, words));
                }
                _ => self.await_tree(thread.tree(), Mail::Note(thread, words)),
            },
            Mail::Ended(key, ready) => self.ended(key, ready),
            Mail::Room(listener) => self.feed(listener),
            Mail::Resume(thread, left) => match self.trees.get_mut(thread.tree_str()) {
                Some(TreeSlot::Awake(_)) => {
                    let tree = thread.tree();
                    self.give(&thread.clone(), Event::Resume(thread, left));
                    self.move_newest_to_front(&tree);
                }
                _ => self.await_tree(thread.tree(), Mail::Resume(thread, left)),
            },
            // An error means that the receiver no longer waits.
            Mail::Folds(thread, asked) => drop(asked.send(self.cached(&thread))),
            Mail::BeginUnfinished => self.phase = Phase::OnlyUnfinished,
            Mail::Begin => {
                self.phase = Phase::Open;
                for push in std::mem::take(&mut self.later_pushes) {
                    self.read(push);
                }
            }
            Mail::Drain(done) => self.drains.push(done),
            Mail::Stop => self.stop(),
        }
    }

    /// Keeps mail until its tree is in memory, and loads the tree unless that is under way. Entries
    /// that were unfinished at the last stop go before other mail.
    fn await_tree(&mut self, tree: ThreadId, mail: Mail) {
        match (self.trees.get_mut(&tree), &mail) {
            (Some(TreeSlot::Waking(waiting)), Mail::Resume(..)) => waiting.insert(0, mail),
            (Some(TreeSlot::Waking(waiting)), _) => waiting.push(mail),
            (Some(TreeSlot::Awake(_)), _) => self.read(mail),
            (None, _) => self.wake(tree, mail),
        }
    }

    /// Puts an event into a tree's queue, and the tree into the run queue.
    pub(crate) fn give(&mut self, thread: &ThreadId, event: Event) {
        match self.trees.get_mut(thread.tree_str()) {
            Some(TreeSlot::Awake(slot)) => {
                if !std::mem::replace(&mut slot.is_ready, true) {
                    // Without a push's `is_alone`, the tree's usage decides if the tree is light.
                    let known = if let Event::Push(_, it) = &event { it.by.is_alone } else { None };
                    let typical = || self.typical_usage.is_light(&slot.usage, self.now_us);
                    let is_light = known.unwrap_or_else(typical);
                    self.run_queue.add(thread.tree(), is_light);
                }
                slot.queue.push_back(event);
            }
            // The event comes from a timer, or from a task that outlived its handler.
            Some(TreeSlot::Waking(waiting)) => waiting.push(Mail::Event(thread.clone(), event)),
            None => {}
        }
    }

    /// Moves a tree's newest event to the front of its queue. Entries that were unfinished at the
    /// last stop are handled before later pushes.
    fn move_newest_to_front(&mut self, tree: &ThreadId) {
        if let Some(TreeSlot::Awake(slot)) = self.trees.get_mut(tree.tree_str())
            && let Some(newest) = slot.queue.pop_back()
        {
            slot.queue.push_front(newest);
        }
    }

    /// Keeps a loaded tree in memory, and reads the mail that waited for it.
    pub(crate) fn keep(&mut self, id: &ThreadId, tree: Tree) {
        let awake = TreeSlot::Awake(Box::new(AwakeTree::new(tree)));
        let before = self.trees.insert(id.clone(), awake);
        if let Some(TreeSlot::Waking(waiting)) = before {
            waiting.into_iter().for_each(|it| self.read(it));
        }
        if let Some(TreeSlot::Awake(slot)) = self.trees.get_mut(id)
            && !slot.is_ready
        {
            slot.is_resting = true;
            self.resting.push_back(id.clone());
        }
    }

    /// Refuses the pushes that wait to be accepted. The senders of accepted pushes are told that
    /// entries may be lost.
    pub(crate) fn abandon(&mut self, fault: &Fault) {
        let mut effects = Vec::new();
        let abandon = |slot: &mut TreeSlot| match slot {
            TreeSlot::Awake(slot) => slot.tree.abandon(fault, &mut effects),
            TreeSlot::Waking(_) => {}
        };
        self.trees.values_mut().for_each(abandon);
        drop_effects(effects, fault);
    }

    pub(crate) fn happen(&mut self, receipt: Option<log::Receipt>, effects: Vec<Effect>) {
        if let Some(receipt) = &receipt {
            debug_assert!(receipt.is_in_order(), "the log gives a batch consecutive positions");
            self.shared.counts.landed(receipt);
            let (entries, commit) = (receipt.entries.len(), receipt.head.number);
            tracing::trace!(worker = self.number, entries, commit, "a batch is in the log");
        }
        if let Some(receipt) = receipt.filter(|_| self.shared.clients.followers.are_there()) {
            for entry in &receipt.entries {
                self.shared.clients.followers.grown(&entry.id.thread, entry.id.seq);
            }
            if let Some(last) = receipt.entries.last() {
                self.shared.clients.followers.landed(last.position);
            }
        }
        for effect in effects {
            match effect {
                Effect::Tell(observer, push, news) => tell(&*observer, push, news),
                Effect::Kept(done, fits) => drop(done.send(fits)),
                Effect::Start(start) => self.start(start),
                Effect::Arrived(hears, message) => hears.hear(&message),
                Effect::Cancel(cancel) => cancel.cancel(),
                Effect::Leave(listener) => self.leave(listener),
            }
        }
    }

    /// Takes the place that a handler was promised, and begins the handler. If another worker took
    /// the place, the handler waits.
    fn start(&mut self, start: Box<Start>) {
        let listener = start.receiver.listener;
        if self.shared.routes.listeners[listener].traits.inline {
            return self.begin(start);
        }
        debug_assert!(self.promised[listener] > 0, "a handler has no promised place");
        self.promised[listener] -= 1;
        if !self.is_wanted(&start) {
            self.await_room(listener);
        } else if self.shared.workers.gates[listener].enter(self.number) {
            self.await_room(listener);
            self.begin(start);
        } else {
            self.shared.hold_up(listener);
            self.crowded.entry(listener).or_default().push_back(start);
        }
    }

    /// Subscribes to the next free place of a listener, if a handler or a thread of this worker
    /// waits for one. A waiting thread counts only while no place of the listener is promised to a
    /// handler.
    pub(crate) fn await_room(&self, listener: usize) {
        let is_awaited = self.crowded.contains_key(&listener)
            || self.promised[listener] == 0 && self.starving.contains_key(&listener);
        if is_awaited && self.shared.workers.gates[listener].wait(self.number) {
            self.shared.workers.inboxes[self.number].post(Mail::Room(listener));
        }
    }

    /// Runs a handler, once the folds that it takes are in memory.
    fn begin(&mut self, start: Box<Start>) {
        if !self.is_wanted(&start) {
            self.note_unwanted(&start);
            return self.leave(start.receiver.listener);
        }
        if !self.shared.routes.handler(start.receiver).takes_folds {
            self.launch(*start, Vec::new(), true);
        } else if let Some((start, folds)) = self.fold(start) {
            self.launch(*start, folds, true);
        }
    }

    /// Returns whether a handler is still to begin. Its thread may have ended meanwhile.
    pub(crate) fn is_wanted(&self, start: &Start) -> bool {
        let id = start.entry.id();
        let key = Key { thread: id.thread.clone(), seq: id.seq, listener: start.receiver.listener };
        match self.trees.get(id.thread.tree_str()) {
            Some(TreeSlot::Awake(slot)) => slot.tree.wants(&key),
            _ => false,
        }
    }

    /// Frees a handler's place, and tells the workers that wait for one.
    pub(crate) fn leave(&self, listener: usize) {
        if self.shared.routes.listeners[listener].traits.inline {
            return;
        }
        let waiting = self.shared.workers.gates[listener].leave();
        for (worker, inbox) in self.shared.workers.inboxes.iter().enumerate() {
            if waiting & (1 << worker) != 0 {
                inbox.post(Mail::Room(listener));
            }
        }
    }

    /// Uses a free place: begins a handler that waits for it, or lets a waiting thread try again.
    fn feed(&mut self, listener: usize) {
        if let Some(waiting) = self.crowded.get_mut(&listener) {
            let has_place = self.shared.workers.gates[listener].enter(self.number);
            let first = if has_place { waiting.pop_front() } else { None };
            if waiting.is_empty() {
                self.crowded.remove(&listener);
            }
            self.await_room(listener);
            return first.into_iter().for_each(|it| self.begin(it));
        }
        let Some(waiting) = self.starving.get_mut(&listener) else { return };
        let first = waiting.pop_front();
        if waiting.is_empty() {
            self.starving.remove(&listener);
        } else {
            self.await_room(listener);
        }
        if let Some(thread) = first {
            self.give(&thread.clone(), Event::Room(thread, listener));
        }
    }

    /// Unloads quiet trees while more than `trees_awake_max` are in memory.
    pub(crate) fn forget(&mut self) {
        let mut heard = 0;
        while self.trees.len() > self.shared.limits.trees_awake_max && heard < HEARD_AT_ONCE {
            let Some(id) = self.resting.pop_front() else { return };
            let Some(TreeSlot::Awake(slot)) = self.trees.get_mut(&id) else { continue };
            if slot.is_ready || !slot.tree.is_at_rest() {
                slot.is_resting = false;
            } else if !slot.tree.is_quiet() {
                // A client still listens. The worker isn't told when the client leaves, so a later
                // sweep checks the tree again.
                heard += 1;
                self.resting.push_back(id);
            } else if self.lanes.has(slot.last_batches) {
                self.resting.push_front(id);
                return;
            } else {
                self.trees.remove(&id);
            }
        }
    }

    /// Answers the requests to drain if nothing is left to do.
    fn drained(&mut self) {
        let idle = self.phase != Phase::Waiting
            && self.lanes.is_empty()
            && self.waking.is_empty()
            && self.crowded.is_empty()
            && self.tasks.values().all(|it| it.stage != TaskStage::InTime)
            && self.run_queue.is_empty();
        if idle {
            for drain in self.drains.drain(..) {
                // An error means that the receiver no longer waits.
                let _ = drain.send(self.mail_count);
            }
        }
    }

    fn stop(&mut self) {
        let cancel = |it: &TreeSlot| match it {
            TreeSlot::Awake(slot) => slot.tree.cancel(),
            TreeSlot::Waking(_) => {}
        };
        self.trees.values().for_each(cancel);
        self.stopped = true;
    }

    pub(crate) fn take_woken(&mut self, context: &mut Context<'_>) -> bool {
        let mut busy = false;
        while let Poll::Ready(Some(woken)) = self.waking.poll_next_unpin(context) {
            busy = true;
            self.woken(woken);
        }
        if busy {
            self.forget();
        }
        busy
    }
}

fn window(limits: &Limits) -> Window {
    let target_us = u64::try_from(limits.log_time_target.as_micros()).unwrap_or(u64::MAX);
    let steps_max = limits.steps_in_batch_max.saturating_mul(limits.batches_in_flight_max);
    Window::new(target_us, steps_max)
}

/// The free places of all listeners, less those that this worker has promised.
pub(crate) struct FreePlaces<'a> {
    pub(crate) gates: &'a [Gate],
    pub(crate) promised: &'a [usize],
}

impl Places for FreePlaces<'_> {
    fn free(&self, listener: usize) -> usize {
        self.gates[listener].free().saturating_sub(self.promised[listener])
    }
}

/// Returns the values that steps may read.
pub(crate) fn world<'a>(
    shared: &'a Shared,
    places: &'a FreePlaces<'a>,
    (now_us, ahead_us): (u64, i64),
) -> World<'a> {
    World {
        routes: &shared.routes,
        places,
        limits: &shared.limits,
        core: &shared.core,
        now_us,
        ahead_us,
    }
}

/// Returns how many microseconds a port's wall clock is ahead of its monotonic clock.
pub(crate) fn set_by(port: &impl Port) -> i64 {
    let (wall, now) = (port.wall_us(), port.now_us());
    wall.cast_signed().saturating_sub(now.cast_signed())
}

/// Drops the effects of a batch that the log doesn't have, and tells senders that the log failed.
/// Refusals and cancellations are carried out in any case.
pub(crate) fn drop_effects(effects: Vec<Effect>, fault: &Fault) {
    for effect in effects {
        match effect {
            Effect::Tell(observer, push, PushEvent::Accepted { client_id, .. }) => {
                let fault = fault.clone().of_client(client_id.as_deref());
                tell(&*observer, push, PushEvent::Refused(fault));
            }
            Effect::Tell(observer, push, PushEvent::Settled) => {
                tell(&*observer, push, PushEvent::Lost(fault.clone()));
                tell(&*observer, push, PushEvent::Settled);
            }
            Effect::Tell(observer, push, it @ PushEvent::Refused(_)) => tell(&*observer, push, it),
            Effect::Kept(done, _) => drop(done.send(Err(fault.clone()))),
            Effect::Cancel(cancel) => cancel.cancel(),
            Effect::Tell(..) | Effect::Start(_) | Effect::Arrived(..) | Effect::Leave(_) => {}
        }
    }
}
