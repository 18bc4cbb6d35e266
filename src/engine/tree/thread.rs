//! The state of one thread: the next entry's number, deliveries, running handlers, pushes and
//! folds.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use rustc_hash::{FxHashMap, FxHashSet};
use tokio_util::sync::CancellationToken;

use crate::engine::tree::event::{Key, Push, Start};
use crate::engine::tree::folds::Folds;
use crate::engine::tree::lineage::Lineage;
use crate::engine::tree::loop_guard::{Chain, Guard};
use crate::engine::tree::observer::PushObserver;
use crate::engine::tree::reserved_amounts::ReservedAmounts;
use crate::engine::tree::route::{Receiver, Routes};
use crate::id::{EntryId, ThreadId};
use crate::listener::{ArrivalSignal, Entry, FoldId, FoldOf, Park, StopCharge};
use crate::log;
use crate::log::State;
use crate::wire::{Code, Fault};

/// How many of a thread's first entries stay in memory while the thread has something to do. A fold
/// that begins meanwhile reads nothing from the log. Few threads have more entries before an
/// agent's first action, at which the fold of the listener `action` begins.
const FIRST_AT_HAND_MAX: usize = 32;

/// How many bytes the bodies of these first entries may have in total.
const FIRST_BYTES_MAX: usize = 64 * 1024;

/// A thread in memory.
pub(crate) struct Thread {
    pub(crate) id: ThreadId,
    /// The identity that opened the thread's session.
    pub(crate) owner: Arc<str>,
    pub(crate) next_seq: u64,
    /// The record that opens the thread in the log.
    pub(crate) record: log::NewThread,
    /// If the thread is a fork: the entries that it shares with other threads.
    pub(crate) lineage: Lineage,
    /// Whether `record` is in the log or in a batch for the log.
    pub(crate) kept: bool,
    /// Deliveries that are not consumed yet.
    pub(crate) unconsumed: usize,
    /// How many unconsumed deliveries are parked.
    pub(crate) parked: usize,
    pub(crate) deliveries: FxHashMap<usize, Deliveries>,
    pub(crate) running: FxHashMap<(u64, usize), Running>,
    /// Pushes that wait until the thread has fewer unconsumed deliveries.
    pub(crate) held: VecDeque<Box<Push>>,
    /// Maps the number of a push's entry to the push, until the push is settled.
    pub(crate) origins: FxHashMap<u64, Origin>,
    /// Maps a push to an older push with which it is answered together. Each push is given by the
    /// number of its entry.
    pub(crate) joined: FxHashMap<u64, u64>,
    /// Maps the number of a push's entry to the push's sender, for the newest push and for pushes
    /// that were unfinished at the last stop.
    pub(crate) askers: BTreeMap<u64, Arc<str>>,
    pub(crate) newest_push: u64,
    /// The newest push that was unfinished at the last stop. 0 if there was none.
    pub(crate) resumed_push: u64,
    /// Maps a listener with `takes_queue` to the number of its last emission, and to the push that
    /// led to this emission.
    pub(crate) last_emissions: FxHashMap<usize, (u64, u64)>,
    /// For each identity: the observer of its last push, and the sender's own number for that push.
    pub(crate) observers: Vec<(Arc<str>, Weak<dyn PushObserver>, u64)>,
    pub(crate) folds: Folds,
    /// Entries that some fold hasn't seen yet, and the first entries of a young thread.
    pub(crate) recent: VecDeque<Entry>,
    pub(crate) state: State,
    /// How many ancestors the thread has.
    pub(crate) depth: usize,
    /// The live child threads.
    pub(crate) children: FxHashSet<ThreadId>,
    /// The opener of the thread, if it is a child.
    pub(crate) spawner: Option<Spawner>,
    /// If the thread is a child: the push in the parent thread that the child belongs to, or 0 if
    /// that push is unknown.
    pub(crate) root_above: u64,
    /// Deliveries that wait for a time or an entry. The key is the number of the delivery's own
    /// entry, and the listener.
    pub(crate) later: FxHashMap<(u64, usize), Later>,
    /// Deliveries that became due while the budget was spent. Each has the id of the entry that it
    /// waited for, or None if it waited for a time.
    pub(crate) overdue: Vec<(Key, Option<EntryId>)>,
    pub(crate) guard: Guard,
}

/// The opener of a child thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spawner {
    pub(crate) name: Arc<str>,
    pub(crate) is_identity: bool,
    /// The message whose handling opened the child.
    pub(crate) asked: Option<EntryId>,
    /// The receiver of the child's first message, if there is only one.
    pub(crate) to: Option<Arc<str>>,
    /// The chain of messages that the child's result continues in the parent thread.
    pub(crate) chain: Chain,
}

impl Spawner {
    fn new(name: Arc<str>, is_identity: bool) -> Spawner {
        Spawner { name, is_identity, asked: None, to: None, chain: Chain::default() }
    }

    /// Returns the sender of a message, as the opener of a child.
    pub(super) fn of(message: &Entry) -> Spawner {
        Spawner::new(message.sender().clone(), message.is_from_identity())
    }

    /// Returns a listener, as the opener of a child.
    pub(super) fn listener(name: &Arc<str>) -> Spawner {
        Spawner::new(name.clone(), false)
    }
}

/// A delivery that waits for a time or an entry.
pub(crate) struct Later {
    pub(crate) entry: Entry,
    pub(crate) receiver: Receiver,
    /// The push that isn't settled before this delivery is done, or [`Later::FOR_NONE`].
    pub(crate) root: u64,
    /// The chain of messages that led to the delivery.
    pub(crate) chain: Chain,
}

impl Later {
    /// The value of `root` if no push waits for the delivery.
    pub(crate) const FOR_NONE: u64 = u64::MAX;

    /// Creates a delivery from an entry of the log, after a restart or after its tree was unloaded.
    pub(crate) fn kept(entry: Entry, receiver: Receiver) -> Later {
        Later { entry, receiver, root: Later::FOR_NONE, chain: Chain::default() }
    }
}

/// The deliveries of one listener in a thread.
#[derive(Default)]
pub(crate) struct Deliveries {
    pub(crate) running: usize,
    pub(crate) waiting: VecDeque<Delivery>,
    /// Whether the deliveries in `waiting` can't start because no place of the listener is free.
    pub(crate) starving: bool,
    /// Whether a fold of the listener panicked. No handler starts until the listener is tried
    /// again.
    pub(crate) stopped: bool,
    pub(crate) parked: Parked,
}

/// Messages that a serial listener has parked.
#[derive(Default)]
pub(crate) struct Parked {
    pub(crate) all: Vec<Delivery>,
    /// The push that the work on the parked messages belongs to, if it is known.
    pub(crate) root: Option<u64>,
    /// Whether the listener wants `nothing-under-way` once only parked messages are left in the
    /// thread.
    pub(crate) quiet: bool,
    /// The listener's last `Park`. None after a restart.
    pub(crate) park: Option<Park>,
    /// Whether the listener continues in a thread that is over budget.
    pub(crate) settles: bool,
    /// Whether the listener was sent `nothing-under-way`, and has had no other message since.
    pub(crate) is_told: bool,
}

impl Deliveries {
    /// Returns whether the listener has neither a running handler nor messages.
    pub(crate) fn is_empty(&self) -> bool {
        self.running == 0 && self.waiting.is_empty() && self.parked.all.is_empty()
    }
}

/// A delivery that waits for its handler, is being handled, or is parked.
pub(crate) struct Delivery {
    pub(crate) entry: Entry,
    pub(crate) handler: usize,
    pub(crate) attempt: u32,
    /// The number of the push that the delivery belongs to, or 0 if it belongs to none.
    pub(crate) root: u64,
    pub(crate) chain: Chain,
    /// The emissions of an earlier attempt.
    pub(crate) sent: VecDeque<Entry>,
    /// The number of the last entry that an earlier attempt saw, if this attempt sees the same.
    pub(crate) as_of: Option<u64>,
    /// If the message is parked: the time in its `Mark::Waits`. This time never comes. Its value
    /// says how the message is parked.
    pub(crate) parked: Option<u64>,
    /// Whether the delivery waits until it is let go: see `tree/trial.rs`.
    pub(crate) is_held: bool,
}

impl Delivery {
    /// Creates a delivery for the first attempt.
    pub(crate) fn new(receiver: Receiver, entry: Entry, root: u64) -> Delivery {
        let (chain, sent) = (Chain::default(), VecDeque::new());
        let handler = receiver.handler;
        Delivery {
            entry,
            handler,
            attempt: 1,
            root,
            chain,
            sent,
            as_of: None,
            parked: None,
            is_held: false,
        }
    }

    /// Returns the record that a handler of this listener begins with the delivery. `as_of` is the
    /// number of the last entry that the handler sees, if the record is to have it.
    pub(crate) fn started(&self, listener: Arc<str>, as_of: Option<u64>) -> log::Mark {
        let (entry, attempt) = (self.entry.id().clone(), self.attempt);
        log::Mark::Started { entry, listener, attempt, as_of }
    }
}

/// A running handler and the messages that it handles.
pub(crate) struct Running {
    /// The message that started the handler, with the emissions of an earlier attempt that this
    /// attempt hasn't repeated yet.
    pub(crate) first: Delivery,
    /// The other messages that the handler handles: those that a serial listener took from its
    /// queue, and those that it had parked.
    pub(crate) more: Vec<Delivery>,
    /// The number of the last entry that the handler sees, if the record of its start has it.
    pub(crate) as_of: Option<u64>,
    /// The number of the push that the emissions belong to, or 0 if they belong to none.
    pub(crate) root: u64,
    pub(crate) emitted: usize,
    /// How many of the emissions are silent: notes, charges, raises of a budget, and emissions
    /// without a receiver.
    pub(crate) silent: usize,
    /// The parts of the budget that the handler has reserved and not settled.
    pub(crate) reserved: ReservedAmounts,
    /// The fault of the first emission that had no receiver.
    pub(crate) undelivered: Option<Box<Fault>>,
    /// The token that tells the handler to stop. An inline handler has none until it becomes a
    /// task.
    pub(crate) cancel: Option<CancellationToken>,
    /// Tells the handler of messages that come while it runs.
    pub(crate) arrivals: Option<ArrivalSignal>,
    /// The settlement that is booked if the handler is stopped.
    pub(crate) stop_charge: Option<StopCharge>,
}

impl Running {
    /// Creates the state of a handler that is about to start, with its messages.
    pub(crate) fn new(first: Delivery, more: Vec<Delivery>, root: u64, start: &Start) -> Running {
        let reserved = ReservedAmounts::kept(&first.sent);
        Running {
            first,
            more,
            as_of: None,
            root,
            emitted: 0,
            silent: 0,
            reserved,
            undelivered: None,
            cancel: start.cancel.clone(),
            arrivals: start.arrivals.clone(),
            stop_charge: start.stop_charge.clone(),
        }
    }
}

/// An accepted push that isn't settled.
pub(crate) struct Origin {
    pub(crate) identity: Arc<str>,
    pub(crate) observer: Arc<dyn PushObserver>,
    pub(crate) push: u64,
    /// How many things that the push caused aren't done: deliveries, child threads and requests to
    /// the tree.
    pub(crate) open: usize,
    pub(crate) wants_answer: bool,
    pub(crate) answered: bool,
    /// Whether the sender may know why no listener takes a payload.
    pub(crate) may_know_why: bool,
    /// The first fault of an emission that the push caused and that had no receiver.
    pub(crate) undelivered: Option<Box<Fault>>,
}

impl Thread {
    pub(crate) fn new(record: log::NewThread, owner: Arc<str>, last_seq: u64) -> Thread {
        Thread {
            id: record.id.clone(),
            owner,
            next_seq: last_seq + 1,
            record,
            lineage: Lineage::default(),
            kept: last_seq > 0,
            unconsumed: 0,
            parked: 0,
            deliveries: FxHashMap::default(),
            running: FxHashMap::default(),
            held: VecDeque::new(),
            origins: FxHashMap::default(),
            joined: FxHashMap::default(),
            askers: BTreeMap::new(),
            newest_push: 0,
            resumed_push: 0,
            last_emissions: FxHashMap::default(),
            observers: Vec::new(),
            folds: Folds::default(),
            recent: VecDeque::new(),
            state: State::Open,
            depth: 0,
            children: FxHashSet::default(),
            spawner: None,
            root_above: 0,
            later: FxHashMap::default(),
            overdue: Vec::new(),
            guard: Guard::default(),
        }
    }

    /// Returns whether the thread can be unloaded: it has nothing to do now, and no client still
    /// listens for a delivery in `later`.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_at_rest() && (self.later.is_empty() || !self.is_heard())
    }

    /// Returns whether the thread has nothing to do now. Deliveries may still wait for a time or an
    /// entry.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.unconsumed == 0
            && self.running.is_empty()
            && self.held.is_empty()
            && self.origins.is_empty()
            && self.overdue.is_empty()
            && !self.folds.is_waking()
    }

    /// Returns whether a client that pushed still listens.
    fn is_heard(&self) -> bool {
        self.observers.iter().any(|(_, it, _)| it.strong_count() > 0)
    }

    /// Returns whether the counts agree with the deliveries and the running handlers.
    pub(crate) fn counts_agree(&self) -> bool {
        let in_hand: usize = self.running.values().map(|it| 1 + it.more.len()).sum();
        let waiting: usize = self.deliveries.values().map(|it| it.waiting.len()).sum();
        let parked: usize = self.deliveries.values().map(|it| it.parked.all.len()).sum();
        let running: usize = self.deliveries.values().map(|it| it.running).sum();
        self.unconsumed == in_hand + waiting + parked
            && self.parked == parked
            && running == self.running.len()
    }

    /// Returns the push `root` and the identity that sent it. If that identity is unknown, this
    /// returns the newest push and its identity.
    pub(crate) fn asked(&self, root: u64) -> Option<(u64, Arc<str>)> {
        let of = |seq: u64| {
            let origin = self.origins.get(&seq).map(|it| &it.identity);
            Some((seq, origin.or_else(|| self.askers.get(&seq))?.clone()))
        };
        of(root).or_else(|| of(self.newest_push))
    }

    /// Notes the newest push and its identity, for results that come after the push is settled.
    pub(crate) fn note_pusher(&mut self, seq: u64, identity: Arc<str>) {
        // A push that was unfinished at the last stop has no origin, so its asker is kept.
        if self.newest_push > self.resumed_push {
            self.askers.remove(&self.newest_push);
        }
        self.askers.insert(seq, identity);
        self.newest_push = seq;
    }

    /// Returns the id of an entry of this thread.
    pub(crate) fn entry(&self, seq: u64) -> EntryId {
        EntryId::new(&self.id, seq)
    }

    /// Returns whether an entry belongs to this thread or is shared by it.
    pub(crate) fn has(&self, id: &EntryId) -> bool {
        id.thread == self.id || self.lineage.has(id)
    }

    /// Notes the observer of an identity's push.
    pub(crate) fn pushed_by(
        &mut self,
        identity: &Arc<str>,
        observer: &Arc<dyn PushObserver>,
        push: u64,
    ) {
        self.observers.retain(|(_, it, _)| it.strong_count() > 0);
        let observer = Arc::downgrade(observer);
        match self.observers.iter_mut().find(|(it, _, _)| it == identity) {
            Some(it) => (it.1, it.2) = (observer, push),
            None => self.observers.push((identity.clone(), observer, push)),
        }
    }

    /// Returns the observer that gets an entry for this identity: the observer of the push
    /// `replied`, or else the observer of the identity's last push, if that observer still exists.
    pub(crate) fn observer(
        &self,
        identity: &str,
        replied: Option<u64>,
    ) -> Option<(Arc<dyn PushObserver>, u64)> {
        if let Some(origin) = replied.and_then(|seq| self.origins.get(&seq)) {
            return Some((origin.observer.clone(), origin.push));
        }
        let (_, observer, push) = self.observers.iter().find(|(it, _, _)| &**it == identity)?;
        Some((observer.upgrade()?, *push))
    }

    /// Queues a delivery.
    pub(crate) fn wait(&mut self, receiver: Receiver, delivery: Delivery) {
        self.unconsumed += 1;
        self.hold(delivery.root);
        let lane = self.deliveries.entry(receiver.listener).or_default();
        lane.parked.is_told = false;
        lane.waiting.push_back(delivery);
    }

    /// Keeps an entry in memory while some fold hasn't seen it. A fold that lags more than
    /// `at_hand_max` entries is dropped. With `begins`, the entry is a thread's first, and its
    /// handler takes folds. In that case the thread's first entries stay in memory, since these
    /// folds will begin with them.
    pub(crate) fn remember(&mut self, entry: &Entry, begins: bool, at_hand_max: usize) {
        if self.folds.is_empty() && self.recent.is_empty() && !begins {
            return;
        }
        let was_young = self.is_young(at_hand_max);
        self.recent.push_back(entry.clone());
        let is_over_full = self.recent.len() > at_hand_max;
        if is_over_full {
            self.folds.drop_before(self.recent.front().map_or(0, Entry::seq));
        }
        // A fold that is being loaded will continue with these entries.
        let is_waking = self.folds.is_waking();
        if is_over_full || was_young && !self.is_young(at_hand_max) && !is_waking {
            self.trim();
        }
    }

    /// Drops the entries that all folds have seen, unless the thread is young. Callers call this
    /// after a fold has seen more entries.
    pub(crate) fn note_seen(&mut self, at_hand_max: usize) {
        if !self.is_young(at_hand_max) {
            self.trim();
        }
    }

    /// Drops the entries that every fold has seen. Folds that are being loaded don't count.
    pub(crate) fn trim(&mut self) {
        let seen = self.folds.seen_by_all().unwrap_or(u64::MAX);
        while self.recent.front().is_some_and(|it| it.seq() <= seen) {
            self.recent.pop_front();
        }
    }

    /// Returns whether the thread is young: all its entries are in memory, and they are few and
    /// small. Entries of a young thread stay in memory even if every fold has seen them.
    fn is_young(&self, at_hand_max: usize) -> bool {
        let bytes = || self.recent.iter().map(|it| it.body().len()).sum::<usize>();
        self.has_all_at_hand()
            && self.recent.len() <= at_hand_max.min(FIRST_AT_HAND_MAX)
            && bytes() <= FIRST_BYTES_MAX
    }

    /// Returns whether the folds with these ids can be brought up to the entry `upto` with entries
    /// in memory, for a listener that takes these folds.
    pub(crate) fn can_fold<'a>(
        &self,
        listener: usize,
        mut ids: impl Iterator<Item = &'a FoldId>,
        upto: u64,
    ) -> bool {
        let first = self.recent.front().map_or(u64::MAX, Entry::seq);
        ids.all(|id| match self.folds.best(listener, id.0, upto) {
            Some(it) => it.seq == upto || first <= it.seq + 1,
            None => first == 1,
        })
    }

    /// Pins the shared states of these folds for each other listener that takes them and has a
    /// message before `upto` left. Callers call this before they bring the shared states up to
    /// `upto`.
    pub(crate) fn pin_folds(&mut self, folds: &[(FoldId, FoldOf)], upto: u64, routes: &Routes) {
        let next = |it: &Deliveries| it.waiting.front().map(|it| it.entry.seq());
        // A listener that is up to date takes states that are newer than its message.
        let lags = self.deliveries.iter().filter(|(listener, lane)| {
            !lane.stopped && !routes.listeners[**listener].traits.up_to_date
        });
        let waiting = lags.filter_map(|(listener, it)| Some((*listener, next(it)?)));
        let behind = waiting.chain(self.folds.starting()).filter(|(_, seq)| *seq < upto);
        for (listener, seq) in behind.collect::<Vec<_>>() {
            let own = &routes.listeners[listener].folds;
            let shared = own.iter().filter(|(id, _)| folds.iter().any(|(it, _)| it == id));
            shared.for_each(|(id, _)| self.folds.pin(listener, id.0, seq));
        }
    }

    /// Returns whether every entry from the first on is in memory.
    pub(crate) fn has_all_at_hand(&self) -> bool {
        self.recent.front().is_some_and(|it| it.seq() == 1)
    }
}

/// Returns the fault for a message to a thread that takes no more messages.
pub(crate) fn ended(thread: &ThreadId, state: State) -> Fault {
    let text = format!("{thread} is {state}");
    if state != State::OverBudget {
        return Fault::new(Code::ThreadEnded, text);
    }
    let shows = format!("`pumphouse budget {thread}` shows which budget is spent");
    let advice = format!("{shows}: have an operator raise it, or cancel the thread.");
    Fault { advice: Some(advice), ..Fault::new(Code::OverBudget, text) }
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use super::*;
    use crate::engine::tree::folds::FoldVersion;
    use crate::log::conformance::{note, session};
    use crate::xml::Element;

    /// Returns how many of `count` entries stay in memory, in a thread whose next number is `from`.
    /// Each entry has about `bytes` bytes. `most` is `at_hand_max`. `folds` has the number of the
    /// last entry that each fold has seen.
    fn at_hand(from: u64, count: u64, bytes: usize, most: usize, folds: &[u64]) -> usize {
        let mut thread = Thread::new(session("a"), "ada".into(), from - 1);
        let ids = [TypeId::of::<u8>(), TypeId::of::<u16>()];
        for (id, seq) in ids.into_iter().zip(folds) {
            thread.folds.put(0, FoldVersion { id, seq: *seq, state: Arc::new(()) });
        }
        let body = format!("<n xmlns=\"urn:n\">{}</n>", "x".repeat(bytes));
        let element = Element::from_canonical(body.clone().into()).unwrap();
        for seq in from..from + count {
            let draft = log::Draft { body: body.clone().into(), ..note(&format!("a/{seq}")) };
            thread.remember(&Entry::fresh(&draft, element.clone()), seq == 1, most);
        }
        thread.recent.len()
    }

    #[test]
    fn a_fold_that_wakes_finds_what_came_meanwhile() {
        for from in [1, 7] {
            let mut thread = Thread::new(session("a"), "ada".into(), from - 1);
            thread.folds.begin_waking(0, VecDeque::new());
            for seq in from..from + 50 {
                let draft = note(&format!("a/{seq}"));
                let element = Element::from_canonical(draft.body.clone()).unwrap();
                thread.remember(&Entry::fresh(&draft, element), seq == 1, 1_024);
            }
            assert_eq!(thread.recent.len(), 50);
        }
    }

    #[test]
    fn the_first_entries_stay_at_hand_while_they_are_few_and_small() {
        for (from, count, bytes, most, folds, expected) in [
            (1, 32, 9, 1_024, &[][..], 32),
            (1, 32, 9, 1_024, &[32], 32),
            (1, 33, 9, 1_024, &[], 0),
            (1, 5, 30_000, 1_024, &[], 0),
            (1, 6, 9, 5, &[], 0),
            // A thread that was loaded, or is a fork, doesn't have its first entries in memory.
            (2, 3, 9, 1_024, &[], 0),
            // Entries that a fold hasn't seen stay, up to `most`.
            (1, 40, 9, 1_024, &[0], 40),
            (1, 40, 9, 1_024, &[0, 38], 40),
            (1, 40, 9, 1_024, &[30], 10),
            (1, 6, 9, 5, &[0], 0),
            (2, 40, 9, 1_024, &[1], 40),
            (2, 40, 9, 39, &[1], 0),
        ] {
            let case = format!("{count} from {from}, {bytes} B, {most} at the most, {folds:?}");
            assert_eq!(at_hand(from, count, bytes, most, folds), expected, "{case}");
        }
    }
}
