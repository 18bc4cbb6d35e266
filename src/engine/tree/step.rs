//! The state machine of a tree: an event in, a batch for the log and effects out.
//!
//! A step has no clock, no task and no disk. The caller gives the time, and carries out the effects
//! only after the log has the batch.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use tokio_util::sync::CancellationToken;

use crate::engine::tree::budget_ledger::Ledger;
use crate::engine::tree::effect::{Effect, Step, Timing, World};
use crate::engine::tree::event::{Event, Key, Push, Words};
use crate::engine::tree::loop_guard::Chain;
use crate::engine::tree::reserved_amounts::PendingReservation;
use crate::engine::tree::resume;
use crate::engine::tree::route::Routes;
use crate::engine::tree::thread::{Spawner, Thread, ended};
use crate::id::{EntryId, ThreadId};
use crate::listener::Entry;
use crate::log::{Flags, NewThread, State, ThreadRecord};
use crate::name::CORE_NAME;
use crate::wire::Fault;
use crate::wire::budget::BudgetKey;

/// A message that a listener with `wakes` hasn't handled yet.
struct UnhandledMessage {
    /// After a restart: the entries that came after the message and before the stop.
    before: Vec<Entry>,
    /// The first entry after the message, as an index into `Tree::since`. The index also counts the
    /// entries that were dropped from `since`.
    from: usize,
}

/// A session and all threads below it.
pub(crate) struct Tree {
    /// The live threads.
    // Boxes keep the free slots of the table small. The table has at least three slots, and most
    // trees have one thread.
    pub(crate) threads: FxHashMap<ThreadId, Box<Thread>>,
    /// The threads that have ended, with their final states.
    pub(crate) over: FxHashMap<ThreadId, State>,
    /// Maps a child's id to the last number that was appended to the id to make it unique.
    pub(crate) suffixes: FxHashMap<ThreadId, u32>,
    /// The deliveries in `Thread::later` whose listeners have `wakes`. An entry may end their wait.
    pub(crate) wakeable: FxHashSet<Key>,
    /// The messages that listeners with `wakes` still have to handle. The handling of such a
    /// message may send a delivery that waits for an entry, and this entry may come before the
    /// delivery is sent.
    unhandled: FxHashMap<Key, UnhandledMessage>,
    /// The entries that came while `unhandled` wasn't empty. `let_go` is the number of entries that
    /// were dropped from `since`.
    since: VecDeque<Entry>,
    let_go: usize,
    /// The tree's budget. During a step it is moved into `Step::ledger`.
    pub(crate) ledger: Ledger,
    /// Reservations that wait until other handlers settle theirs.
    pub(crate) pending: VecDeque<PendingReservation>,
    /// The identity that opened the session.
    owner: Arc<str>,
}

impl Tree {
    pub(crate) fn new(thread: Thread, ledger: Ledger) -> Tree {
        let mut tree = Tree::empty(thread.owner.clone(), ledger);
        tree.threads.insert(thread.id.clone(), Box::new(thread));
        tree
    }

    fn empty(owner: Arc<str>, ledger: Ledger) -> Tree {
        Tree {
            owner,
            threads: FxHashMap::default(),
            over: FxHashMap::default(),
            suffixes: FxHashMap::default(),
            wakeable: FxHashSet::default(),
            unhandled: FxHashMap::default(),
            since: VecDeque::new(),
            let_go: 0,
            ledger,
            pending: VecDeque::new(),
        }
    }

    /// Creates a tree from its threads in the log. `records` holds the threads in the order in
    /// which they were opened.
    pub(crate) fn kept(records: Vec<ThreadRecord>, ledger: Ledger) -> Tree {
        let first = records.first().and_then(|it| it.first.as_ref());
        let mut tree = Tree::empty(first.map_or("", |it| &*it.from).into(), ledger);
        for kept in records {
            if !kept.state.is_live() {
                tree.over.insert(kept.id, kept.state);
                continue;
            }
            let above = kept.parent.as_ref().and_then(|it| tree.threads.get_mut(it));
            let depth = above.map_or(0, |parent| {
                parent.children.insert(kept.id.clone());
                parent.depth + 1
            });
            let first = kept.first.filter(|_| kept.parent.is_some());
            let spawner = first.map(|first| Spawner {
                name: first.from.clone(),
                is_identity: first.flags.contains(Flags::FROM_IDENTITY),
                asked: first.cause.clone(),
                to: first.to.clone(),
                chain: Chain::default(),
            });
            let record = NewThread { id: kept.id.clone(), parent: kept.parent, fork: kept.fork };
            let thread = Thread::new(record, tree.owner.clone(), kept.last_seq);
            let thread = Thread { state: kept.state, depth, spawner, ..thread };
            tree.threads.insert(kept.id, Box::new(thread));
        }
        tree
    }

    /// Returns the fault if the tree refuses a push.
    pub(crate) fn refuses(
        &self,
        thread: &ThreadId,
        push: &Push,
        world: &World<'_>,
    ) -> Option<Fault> {
        let unknown = || Some(Fault::unknown_thread(thread.as_str()));
        if !push.by.operator && self.owner != push.by.identity {
            return unknown();
        }
        match (self.threads.get(thread), self.over.get(thread)) {
            (Some(thread), _) => thread.closed_to(push, world),
            (None, Some(state)) => Some(ended(thread, *state)),
            (None, None) => unknown(),
        }
    }

    /// Returns whether a handling is still under way. A delivery may end before its handler has
    /// begun.
    pub(crate) fn wants(&self, key: &Key) -> bool {
        let thread = self.threads.get(&key.thread);
        thread.is_some_and(|it| it.running.contains_key(&(key.seq, key.listener)))
    }

    pub(crate) fn thread(&mut self, id: &ThreadId) -> Option<&mut Thread> {
        self.threads.get_mut(id).map(|it| &mut **it)
    }

    /// Refuses a push whose thread has ended since the push was queued.
    fn turn_away(&self, thread: &ThreadId, push: Push, out: &mut Step) {
        let state = self.over.get(thread).copied().unwrap_or(State::Closed);
        push.refuse(ended(thread, state), &mut out.effects);
    }

    /// Returns whether the tree can be unloaded: it has nothing to do now, and no client still
    /// listens for a delivery that waits for a time or an entry.
    pub(crate) fn is_quiet(&self) -> bool {
        self.threads.values().all(|it| it.is_quiet())
    }

    /// Returns whether the tree has nothing to do now. Deliveries may still wait for a time or an
    /// entry.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.threads.values().all(|it| it.is_at_rest())
    }

    /// Drops from memory the entries that every fold has seen.
    pub(crate) fn trim(&mut self) {
        self.threads.values_mut().for_each(|it| it.trim());
    }

    /// Tells every running handler to stop.
    pub(crate) fn cancel(&self) {
        let running = self.threads.values().flat_map(|it| it.running.values());
        running.filter_map(|it| it.cancel.as_ref()).for_each(CancellationToken::cancel);
    }

    /// Refuses the pushes that wait to be accepted, and settles the accepted ones, since nothing
    /// more will happen in the tree.
    pub(crate) fn abandon(&mut self, fault: &Fault, effects: &mut Vec<Effect>) {
        self.threads.values_mut().for_each(|it| it.abandon(fault, effects));
    }

    /// Handles one event, and everything that follows from it in this tree.
    pub(crate) fn step(&mut self, event: Event, world: &World<'_>, out: &mut Step) {
        let at = event.thread().clone();
        let before = (out.batch.entries.len(), self.ledger.used(BudgetKey::Messages));
        std::mem::swap(&mut self.ledger, &mut out.ledger);
        self.apply(event, world, out);
        std::mem::swap(&mut self.ledger, &mut out.ledger);
        debug_assert!(out.requests.is_empty(), "the tree was asked for something and did nothing");
        debug_assert!(self.threads.get(&at).is_none_or(|it| it.counts_agree()), "{at} miscounts");
        debug_assert!(self.has_counted(before, out), "the ledger counts each message of the batch");
    }

    /// Returns whether the ledger has counted the messages that an event added to the batch.
    /// `before` has the number of the batch's entries before the event, and that of the messages
    /// that were counted by then.
    fn has_counted(&self, (entries, used): (usize, u64), out: &Step) -> bool {
        let added = out.batch.entries.iter().skip(entries);
        let messages = added.filter(|it| it.receivers > 0 && *it.from != *CORE_NAME).count() as u64;
        self.ledger.used(BudgetKey::Messages) == used + messages
    }

    fn apply(&mut self, event: Event, world: &World<'_>, out: &mut Step) {
        let at = event.thread().clone();
        out.undelivered.clear();
        let mut noted = out.later.len();
        out.new_entries = world.routes.any_wakes.then(Vec::new);
        self.look_at_clock(world, out);
        self.carry_out_requests(world, out);
        self.take(event, world, out);
        self.carry_out_requests(world, out);
        self.end_if_done(&at, world, out);
        self.look_at_pending(world, out);
        self.carry_out_requests(world, out);
        self.warn(world, out);
        noted = self.note_timings(noted, world, out);
        while let Some(entries) = out.new_entries.take().filter(|it| !it.is_empty()) {
            out.new_entries = Some(Vec::new());
            self.wake_by(&entries, world, out);
            self.carry_out_requests(world, out);
            self.warn(world, out);
            noted = self.note_timings(noted, world, out);
        }
    }

    /// Applies the timings of this step from index `from` on. The entry that a delivery waits for
    /// may have come while the listener's handler still ran. In that case the delivery is due at
    /// once. Returns the index of the next timing.
    fn note_timings(&mut self, from: usize, world: &World<'_>, out: &mut Step) -> usize {
        let entries = out.new_entries.as_deref().unwrap_or_default();
        let first = self.let_go + self.since.len();
        self.since.extend(entries.iter().cloned());
        let mut due = Vec::new();
        for timing in &mut out.later[from..] {
            match timing {
                Timing::Until(_, key) => {
                    self.note_wakeable(key, world.routes);
                    due.extend(self.came_before(key, world).map(|because| (key.clone(), because)));
                }
                Timing::Over(key) => drop(self.wakeable.remove(key)),
                Timing::Asked(key, since) => {
                    let own = |it: &Entry| it.thread() == &key.thread && it.seq() == key.seq;
                    let from = first + entries.iter().position(own).map_or(0, |at| at + 1);
                    let asked = UnhandledMessage { before: std::mem::take(since), from };
                    self.unhandled.insert(key.clone(), asked);
                }
                Timing::Done(key) => drop(self.unhandled.remove(key)),
            }
        }
        let noted = out.later.len();
        if self.unhandled.is_empty() {
            self.let_go += self.since.len();
            self.since.clear();
        }
        for (key, because) in due {
            if let Some(thread) = self.threads.get_mut(&key.thread) {
                thread.due(&key, Some(&because), world, out);
            }
        }
        noted
    }

    /// Returns the entry that a delivery waits for, if that entry has already come. Entries before
    /// the message whose handling sent the delivery don't count.
    fn came_before(&self, key: &Key, world: &World<'_>) -> Option<EntryId> {
        let wakes = world.routes.listeners[key.listener].wakes?;
        let later = &self.threads.get(&key.thread)?.later;
        let waiting = &later.get(&(key.seq, key.listener))?.entry;
        let cause = waiting.cause()?;
        let asked = Key { thread: cause.thread.clone(), seq: cause.seq, listener: key.listener };
        let asked = self.unhandled.get(&asked)?;
        let since = self.since.iter().skip(asked.from - self.let_go);
        let mut since = asked.before.iter().chain(since);
        let because = since.find(|it| is_woken(wakes, waiting, it))?;
        Some(because.id().clone())
    }

    /// Notes that an entry may end the wait of a delivery, if its listener has `wakes`.
    pub(crate) fn note_wakeable(&mut self, key: &Key, routes: &Routes) {
        if routes.listeners[key.listener].wakes.is_some() {
            self.wakeable.insert(key.clone());
        }
    }

    /// Returns whether the tree has or had a thread of this id.
    pub(crate) fn has(&self, id: &ThreadId) -> bool {
        self.threads.contains_key(id) || self.over.contains_key(id)
    }

    /// Starts the deliveries that wait for one of these entries.
    fn wake_by(&mut self, entries: &[Entry], world: &World<'_>, out: &mut Step) {
        let woken_by = |key: &Key| {
            let wakes = world.routes.listeners[key.listener].wakes?;
            let later = &self.threads.get(&key.thread)?.later;
            let waiting = &later.get(&(key.seq, key.listener))?.entry;
            let because = entries.iter().find(|it| is_woken(wakes, waiting, it))?;
            Some((key.clone(), because.id().clone()))
        };
        let mut due: Vec<(Key, EntryId)> = self.wakeable.iter().filter_map(woken_by).collect();
        due.sort_unstable_by(|(a, _), (b, _)| (&a.thread, a.seq).cmp(&(&b.thread, b.seq)));
        for (key, because) in due {
            if let Some(thread) = self.threads.get_mut(&key.thread) {
                thread.due(&key, Some(&because), world, out);
            }
        }
    }

    fn take(&mut self, event: Event, world: &World<'_>, out: &mut Step) {
        match event {
            Event::Push(thread, push) => match self.threads.get_mut(&thread) {
                Some(thread) => thread.push(push, world, out),
                None => self.turn_away(&thread, *push, out),
            },
            sent @ Event::Sent(..) => self.sent(sent, world, out),
            Event::Return(key, ready) => {
                self.look_at_others(&key, &ready, out);
                if let Some(thread) = self.threads.get_mut(&key.thread) {
                    thread.returned(&key, ready, world, out);
                }
            }
            Event::Overtime(key) => {
                if let Some(thread) = self.threads.get_mut(&key.thread) {
                    thread.overtime(&key, world, out);
                }
            }
            Event::Unfolded(key, panic) => {
                if let Some(thread) = self.threads.get_mut(&key.thread) {
                    thread.stop_listener(&key, &panic, world, out);
                }
            }
            Event::Resume(thread, left) => match self.threads.get_mut(&thread) {
                Some(thread) => thread.resume(left, world, out),
                // Another thread of the tree was resumed first, and ended this one.
                None => resume::consume_all(left, world, out),
            },
            Event::Trial(key, trial) => {
                if let Some(thread) = self.threads.get_mut(&key.thread) {
                    thread.try_alone(&key, trial, world, out);
                }
            }
            Event::LetGo(thread) => {
                if let Some(thread) = self.threads.get_mut(&thread) {
                    thread.let_go_held(world, out);
                }
            }
            Event::Note(thread, Words { all, cause, done }) => {
                if let Some(thread) = self.threads.get_mut(&thread) {
                    all.into_iter().for_each(|it| thread.say(it, cause.clone(), world, out));
                }
                out.effects.extend(done.map(|it| Effect::Kept(it, Ok(()))));
            }
            Event::Due(key) => {
                if let Some(thread) = self.threads.get_mut(&key.thread) {
                    thread.due(&key, None, world, out);
                }
            }
            Event::Room(thread, listener) => {
                if let Some(thread) = self.threads.get_mut(&thread) {
                    thread.room(listener, world, out);
                }
            }
        }
    }
}

/// Returns whether the entry `came` ends the wait of the message `waiting`. If `wakes` panics, the
/// message keeps waiting.
fn is_woken(wakes: fn(&Entry, &Entry) -> bool, waiting: &Entry, came: &Entry) -> bool {
    if came.id() == waiting.id() || came.is_refused() {
        return false;
    }
    let asked = catch_unwind(AssertUnwindSafe(|| wakes(waiting, came)));
    asked.unwrap_or_else(|_| {
        tracing::error!(waiting = %waiting.id(), came = %came.id(), "a wake panicked");
        false
    })
}
