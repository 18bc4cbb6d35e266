//! A worker: owns its trees outright, steps them in turn, and lets effects happen once the log
//! has them. One poll function, so that nothing in it ever waits for something else in it.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
use crate::engine::port::Port;
use crate::engine::tree::effect::{Effect, Places, Room, World};
use crate::engine::tree::event::{Event, Key, Ready, Start};
use crate::engine::tree::observer::{PushEvent, PushObserver};
use crate::engine::tree::step::Tree;
use crate::engine::worker::host::Host;
use crate::engine::worker::lanes::Lanes;
use crate::engine::worker::load::Woken;
use crate::engine::worker::run_queue::Turns;
use crate::engine::worker::slot::{Held, Keyed, Slot};
use crate::engine::worker::timers::Waits;
use crate::engine::worker::usage::Usual;
use crate::engine::worker::window::Pace;
use crate::id::ThreadId;
use crate::limits::Limits;
use crate::log;
use crate::wire::Fault;

/// How often a worker goes round before it lets other tasks run.
const ROUNDS: usize = 2;

/// Resting trees that are looked at in vain, somebody still being there for them, before others
/// have a turn.
const HEARD_AT_ONCE: usize = 16;

/// A worker and all it owns.
pub(crate) struct Worker<P: Port> {
    pub(crate) port: P,
    pub(crate) number: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) host: Arc<Host>,
    /// By ids that strangers may name, so the hash is keyed.
    pub(crate) trees: HashMap<ThreadId, Slot, Keyed>,
    /// Trees that have events to take.
    pub(crate) turns: Turns,
    /// Trees that had nothing to do when they were last looked at, the longest first.
    pub(crate) resting: VecDeque<ThreadId>,
    /// What of it others had of late.
    pub(crate) usual: Usual,
    /// Batches on their way to the log, with what happens then.
    pub(crate) lanes: Lanes,
    /// How much may be on its way.
    pub(crate) pace: Pace,
    /// What the last batch came to.
    pub(crate) room: Room,
    pub(crate) waking: FuturesUnordered<std::pin::Pin<Box<dyn Future<Output = Woken> + Send>>>,
    pub(crate) tasks: FxHashMap<Key, Task>,
    /// Before this, no handler's time is up. While there are any it may be that of one which is
    /// over: to set a timer anew for each would cost more than to look once in vain.
    pub(crate) soonest_us: u64,
    /// Places that batches on their way to the log promise to handlers, by listener.
    pub(crate) promised: Vec<usize>,
    /// Handlers that wait for a place: other workers took the one that was promised.
    crowded: FxHashMap<usize, VecDeque<Box<Start>>>,
    /// Threads that wait for a listener to have room.
    pub(crate) starving: FxHashMap<usize, VecDeque<ThreadId>>,
    /// Deliveries that wait for a time, in trees that are awake and in those that sleep.
    pub(crate) waits: Waits,
    timer: Option<(u64, Sleep)>,
    mail: Vec<Mail>,
    /// Why the log takes nothing more.
    pub(crate) dead: Option<Fault>,
    pub(crate) begun: bool,
    stopped: bool,
    drains: Vec<oneshot::Sender<()>>,
    pub(crate) now_us: u64,
    /// By how much the wall clock is ahead of that.
    pub(crate) ahead_us: i64,
}

/// A handler that runs as a task.
pub(crate) struct Task {
    pub(crate) deadline_us: u64,
    /// Whether its time was up already, and it was told to stop.
    pub(crate) late: bool,
}

/// How often the wall clock is looked at while something waits for a time of it.
const LOOK_AT_CLOCK_US: u64 = 500_000;

/// By how much the wall clock must differ from what it was to have been set: less is its drift.
const SET_US_MIN: u64 = 100_000;

/// By how much it is set back where listeners that go by it look again.
const SET_BACK_US: i64 = 1_000_000;

/// How long a handler whose time is up may take to stop before it is reported.
const GRACE_US: u64 = 1_000_000;

impl<P: Port> Worker<P> {
    pub(crate) fn new(port: P, number: usize, shared: Arc<Shared>) -> Worker<P> {
        Worker {
            host: Arc::new(Host(shared.clone())),
            now_us: port.now_us(),
            ahead_us: set_by(&port),
            waits: Waits::since(set_by(&port)),
            trees: HashMap::with_hasher(Keyed::new(port.random())),
            pace: pace(&shared.limits),
            promised: vec![0; shared.routes.listeners.len()],
            port,
            number,
            shared,
            turns: Turns::default(),
            resting: VecDeque::new(),
            usual: Usual::default(),
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
            begun: false,
            stopped: false,
            drains: Vec::new(),
        }
    }

    /// Works until it is told to stop.
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

    /// Where the wall clock was set, what waits for a time of it is due sooner or later. Where it
    /// was set back, its listeners look again.
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
        for it in mail.drain(..) {
            self.read(it);
        }
        self.mail = mail;
        busy
    }

    fn read(&mut self, mail: Mail) {
        match mail {
            Mail::Event(thread, event) => self.give(&thread, event),
            Mail::Push { push, .. } if self.dead.is_some() => {
                let fault = self.dead.clone();
                fault.into_iter().for_each(|it| self.refuse(&push, it));
            }
            Mail::Push { thread, drawn, push } => match self.trees.get_mut(thread.tree_str()) {
                Some(Slot::Waking(waiting)) => {
                    waiting.push(Mail::Push { thread, drawn, push });
                }
                Some(Slot::Awake(_)) if drawn => self.redraw(push),
                Some(Slot::Awake(held)) => {
                    let (gates, promised) = (&self.shared.workers.gates, &self.promised);
                    let places = FreePlaces { gates, promised };
                    let world = world(&self.shared, &places, (self.now_us, self.ahead_us));
                    match held.tree.refuses(&thread, &push, &world) {
                        None => self.give(&thread.clone(), Event::Push(thread, push)),
                        Some(fault) => self.refuse(&push, fault),
                    }
                }
                None => self.wake(thread.tree(), Mail::Push { thread, drawn, push }),
            },
            Mail::Note(thread, words) => match self.trees.get_mut(thread.tree_str()) {
                Some(Slot::Awake(_)) => self.give(&thread.clone(), Event::Note(thread, words)),
                Some(Slot::Waking(waiting)) => waiting.push(Mail::Note(thread, words)),
                None => self.wake(thread.tree(), Mail::Note(thread, words)),
            },
            Mail::Ended(key, ready) => self.ended(key, ready),
            Mail::Room(listener) => self.feed(listener),
            Mail::Recover(thread, left) => match self.trees.get_mut(thread.tree_str()) {
                Some(Slot::Awake(_)) => {
                    let tree = thread.tree();
                    self.give(&thread.clone(), Event::Recover(thread, left));
                    self.puts_first(&tree);
                }
                Some(Slot::Waking(waiting)) => waiting.insert(0, Mail::Recover(thread, left)),
                None => self.wake(thread.tree(), Mail::Recover(thread, left)),
            },
            // An error says that nobody waits any more.
            Mail::Folds(thread, asked) => drop(asked.send(self.cached(&thread))),
            Mail::Begin => self.begun = true,
            Mail::Drain(done) => self.drains.push(done),
            Mail::Stop => self.stop(),
        }
    }

    /// Puts an event into a tree's queue, and the tree among those that have something to do.
    pub(crate) fn give(&mut self, thread: &ThreadId, event: Event) {
        match self.trees.get_mut(thread.tree_str()) {
            Some(Slot::Awake(held)) => {
                if !std::mem::replace(&mut held.is_ready, true) {
                    // Who waits for one answer at a time takes little, in however many trees the
                    // others push.
                    let known = if let Event::Push(_, it) = &event { it.by.is_alone } else { None };
                    let usual = || self.usual.is_light(&mut held.taken, self.now_us);
                    let is_light = known.unwrap_or_else(usual);
                    self.turns.came(thread.tree(), is_light);
                }
                held.queue.push_back(event);
            }
            // Only what is due comes to a tree that sleeps: its handlers are all at their end.
            Some(Slot::Waking(waiting)) => waiting.push(Mail::Event(thread.clone(), event)),
            None => {}
        }
    }

    /// Has a tree take its newest event before all others: what a stop left behind comes before
    /// what was pushed since.
    fn puts_first(&mut self, tree: &ThreadId) {
        if let Some(Slot::Awake(held)) = self.trees.get_mut(tree.tree_str())
            && let Some(newest) = held.queue.pop_back()
        {
            held.queue.push_front(newest);
        }
    }

    /// Puts a tree among those that are awake, and takes the mail that waited for it.
    pub(crate) fn keep(&mut self, id: &ThreadId, tree: Tree) {
        let held = Held::new(tree);
        let slot = self.trees.insert(id.clone(), Slot::Awake(Box::new(held)));
        if let Some(Slot::Waking(waiting)) = slot {
            waiting.into_iter().for_each(|it| self.read(it));
        }
        if let Some(Slot::Awake(held)) = self.trees.get_mut(id)
            && !held.is_ready
        {
            held.rests = true;
            self.resting.push_back(id.clone());
        }
    }

    /// Nothing of what waits will ever happen: tells everybody who waits for it.
    pub(crate) fn abandon(&mut self, fault: &Fault) {
        let mut effects = Vec::new();
        let awake = |slot: &mut Slot| match slot {
            Slot::Awake(held) => held.tree.abandon(fault, &mut effects),
            Slot::Waking(_) => {}
        };
        self.trees.values_mut().for_each(awake);
        drop_effects(effects, fault);
    }

    pub(crate) fn happen(&mut self, receipt: Option<log::Receipt>, effects: Vec<Effect>) {
        if let Some(receipt) = &receipt {
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
                Effect::Tell(inlet, push, news) => tell(&*inlet, push, news),
                Effect::Kept(done, fits) => drop(done.send(fits)),
                Effect::Start(start) => self.start(start),
                Effect::Came(hears, name) => hears.hear(&name),
                Effect::Cancel(cancel) => cancel.cancel(),
                Effect::Leave(listener) => self.leave(listener),
            }
        }
    }

    /// Takes the place that a handler was promised, and runs the handler.
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

    /// Has this worker told of the next free place of a listener, if something here waits for one.
    /// Threads wait for the places that are promised to others first.
    pub(crate) fn await_room(&self, listener: usize) {
        let is_awaited = self.crowded.contains_key(&listener)
            || self.promised[listener] == 0 && self.starving.contains_key(&listener);
        if is_awaited && self.shared.workers.gates[listener].wait(self.number) {
            self.shared.workers.inboxes[self.number].post(Mail::Room(listener));
        }
    }

    /// Wakes the listener's folds where the handler takes one, then runs the handler.
    fn begin(&mut self, start: Box<Start>) {
        if !self.is_wanted(&start) {
            return self.leave(start.receiver.listener);
        }
        if !self.shared.routes.handler(start.receiver).takes_folds {
            self.launch(*start, Vec::new(), true);
        } else if let Some((start, folds)) = self.fold(start) {
            self.launch(*start, folds, true);
        }
    }

    /// Whether a handler is to begin: its thread may have been ended meanwhile.
    pub(crate) fn is_wanted(&self, start: &Start) -> bool {
        let id = start.entry.id();
        let key = Key { thread: id.thread.clone(), seq: id.seq, listener: start.receiver.listener };
        match self.trees.get(id.thread.tree_str()) {
            Some(Slot::Awake(held)) => held.tree.wants(&key),
            _ => false,
        }
    }

    fn ended(&mut self, key: Key, ready: Option<Vec<Ready>>) {
        let Some(task) = self.tasks.remove(&key) else { return };
        let listener = key.listener;
        if let Some(ready) = ready.filter(|_| !task.late) {
            self.give(&key.thread.clone(), Event::Return(key, ready));
        }
        self.leave(listener);
    }

    /// Gives back the place of a handler, and tells the workers that wait for one.
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

    /// Lets one of the handlers that wait for a place begin, or one of the threads try again.
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

    /// Tells handlers whose time is up, and starts what is due.
    fn check_time(&mut self, context: &mut Context<'_>) -> bool {
        if self.tasks.is_empty() {
            self.soonest_us = u64::MAX;
        }
        let due = self.waits.next_us().filter(|_| self.begun);
        let mut next = self.soonest_us.min(due.unwrap_or(u64::MAX));
        if self.begun && self.waits.go_by_clock() {
            next = next.min(self.now_us.saturating_add(LOOK_AT_CLOCK_US));
        }
        if next == u64::MAX {
            self.timer = None;
            return false;
        }
        if self.timer.as_ref().is_none_or(|(at, _)| *at > next) {
            self.timer = Some((next, Box::pin(self.port.sleep_until(next))));
        }
        let Some((_, timer)) = &mut self.timer else { return false };
        if timer.as_mut().poll(context).is_pending() {
            return false;
        }
        self.timer = None;
        let now = self.now_us.max(self.port.now_us());
        let mut over = Vec::new();
        for (key, task) in self.tasks.iter_mut().filter(|(_, it)| it.deadline_us <= now) {
            let name = &self.shared.routes.listeners[key.listener].name;
            if task.late {
                task.deadline_us = u64::MAX;
                tracing::error!(listener = %name, "a handler never yields; its place is lost");
            } else {
                (task.late, task.deadline_us) = (true, now + GRACE_US);
                over.push(key.clone());
            }
        }
        self.soonest_us = self.tasks.values().map(|it| it.deadline_us).min().unwrap_or(u64::MAX);
        over.sort_unstable_by(|a, b| (&a.thread, a.seq).cmp(&(&b.thread, b.seq)));
        for key in over {
            self.give(&key.thread.clone(), Event::Overtime(key));
        }
        let due = if self.begun { self.waits.due(now) } else { Vec::new() };
        for key in due {
            let (tree, thread) = (key.thread.tree(), key.thread.clone());
            if self.trees.contains_key(&tree) {
                self.give(&thread, Event::Due(key));
            } else {
                self.wake(tree, Mail::Event(thread, Event::Due(key)));
            }
        }
        true
    }

    /// Lets go of quiet trees beyond the number that is kept awake.
    pub(crate) fn forget(&mut self) {
        let mut heard = 0;
        while self.trees.len() > self.shared.limits.trees_awake_max && heard < HEARD_AT_ONCE {
            let Some(id) = self.resting.pop_front() else { return };
            let Some(Slot::Awake(held)) = self.trees.get_mut(&id) else { continue };
            if held.is_ready || !held.tree.is_at_rest() {
                held.rests = false;
            } else if !held.tree.is_quiet() {
                // Nobody says when whoever would hear of it has left.
                heard += 1;
                self.resting.push_back(id);
            } else if self.lanes.has(held.last) {
                self.resting.push_front(id);
                return;
            } else {
                self.trees.remove(&id);
            }
        }
    }

    /// Says that nothing is left to do, if somebody wants to know.
    fn drained(&mut self) {
        let idle = self.begun
            && self.lanes.is_empty()
            && self.waking.is_empty()
            && self.crowded.is_empty()
            && self.tasks.values().all(|it| it.late)
            && self.turns.is_empty();
        if idle {
            for drain in self.drains.drain(..) {
                // An error says that nobody waits any more.
                let _ = drain.send(());
            }
        }
    }

    fn stop(&mut self) {
        let awake = |it: &Slot| match it {
            Slot::Awake(held) => held.tree.cancel(),
            Slot::Waking(_) => {}
        };
        self.trees.values().for_each(awake);
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

fn pace(limits: &Limits) -> Pace {
    let target_us = u64::try_from(limits.log_time_target.as_micros()).unwrap_or(u64::MAX);
    let steps_max = limits.steps_in_batch_max.saturating_mul(limits.batches_in_flight_max);
    Pace::new(target_us, steps_max)
}

/// The free places of all listeners, less those that one worker has promised.
pub(crate) struct FreePlaces<'a> {
    pub(crate) gates: &'a [Gate],
    pub(crate) promised: &'a [usize],
}

impl Places for FreePlaces<'_> {
    fn free(&self, listener: usize) -> usize {
        self.gates[listener].free().saturating_sub(self.promised[listener])
    }
}

/// What steps may ask of the organism.
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

/// By how much a port's wall clock is ahead of the time that has passed.
pub(crate) fn set_by(port: &impl Port) -> i64 {
    let (wall, now) = (port.wall_us(), port.now_us());
    wall.cast_signed().saturating_sub(now.cast_signed())
}

/// Whoever panics while hearing news harms only itself.
fn tell(inlet: &dyn PushObserver, push: u64, news: PushEvent) {
    if catch_unwind(AssertUnwindSafe(|| inlet.hear(push, news))).is_err() {
        tracing::error!(push, "an inlet panicked");
    }
}

/// Nothing of these happens: the log doesn't have their batch.
pub(crate) fn drop_effects(effects: Vec<Effect>, fault: &Fault) {
    for effect in effects {
        match effect {
            Effect::Tell(inlet, push, PushEvent::Accepted { client_id, .. }) => {
                let fault = fault.clone().of_client(client_id.as_deref());
                tell(&*inlet, push, PushEvent::Refused(fault));
            }
            Effect::Tell(inlet, push, PushEvent::Settled) => {
                tell(&*inlet, push, PushEvent::Lost(fault.clone()));
                tell(&*inlet, push, PushEvent::Settled);
            }
            Effect::Tell(inlet, push, it @ PushEvent::Refused(_)) => tell(&*inlet, push, it),
            Effect::Kept(done, _) => drop(done.send(Err(fault.clone()))),
            Effect::Cancel(cancel) => cancel.cancel(),
            Effect::Tell(..) | Effect::Start(_) | Effect::Came(..) | Effect::Leave(_) => {}
        }
    }
}
