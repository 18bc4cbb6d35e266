//! A tree of threads as a state machine: an event in, a batch for the log and effects out.
//!
//! It knows no clock, no task and no disk: the time is given, and an effect happens only after
//! the log has the batch of its step.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use tokio_util::sync::CancellationToken;

use crate::engine::tree::budget::Ledger;
use crate::engine::tree::effect::{Effect, Step, Timing, World};
use crate::engine::tree::event::{Event, Key, Push};
use crate::engine::tree::loop_guard::Chain;
use crate::engine::tree::recover;
use crate::engine::tree::reserved::Pending;
use crate::engine::tree::route::Routes;
use crate::engine::tree::thread::{Spawner, Thread, ended};
use crate::id::{EntryId, ThreadId};
use crate::listener::Entry;
use crate::log::{Flags, NewThread, State, ThreadRecord};
use crate::wire::Fault;

/// Something that a listener which waits for entries has to do.
struct Asked {
    /// What came after it before a stop.
    before: Vec<Entry>,
    /// Where in all that came since begins what came after it.
    from: usize,
}

/// A session and all threads below it.
pub(crate) struct Tree {
    /// The live ones.
    pub(crate) threads: FxHashMap<ThreadId, Thread>,
    /// Those that have ended.
    pub(crate) over: FxHashMap<ThreadId, State>,
    /// The last number that was appended to a child's id.
    pub(crate) suffixes: FxHashMap<ThreadId, u32>,
    /// What waits for its time or for an entry.
    pub(crate) wakeable: FxHashSet<Key>,
    /// What listeners that wait for entries have to do: what they come to wait for may be among
    /// what came since.
    asked: FxHashMap<Key, Asked>,
    /// What came while they had something to do, and how much was let go of before it.
    since: VecDeque<Entry>,
    let_go: usize,
    /// What it may spend and has spent; elsewhere while an event is taken.
    pub(crate) ledger: Ledger,
    /// Reservations that wait for others to be settled.
    pub(crate) pending: VecDeque<Pending>,
    /// The identity that opened the session.
    owner: Arc<str>,
}

impl Tree {
    pub(crate) fn new(thread: Thread, ledger: Ledger) -> Tree {
        let mut tree = Tree::empty(thread.owner.clone(), ledger);
        tree.threads.insert(thread.id.clone(), thread);
        tree
    }

    fn empty(owner: Arc<str>, ledger: Ledger) -> Tree {
        Tree {
            owner,
            threads: FxHashMap::default(),
            over: FxHashMap::default(),
            suffixes: FxHashMap::default(),
            wakeable: FxHashSet::default(),
            asked: FxHashMap::default(),
            since: VecDeque::new(),
            let_go: 0,
            ledger,
            pending: VecDeque::new(),
        }
    }

    /// A tree as the log has it, its threads in the order in which they were opened.
    pub(crate) fn kept(records: Vec<ThreadRecord>, ledger: Ledger) -> Tree {
        let first = records.first().and_then(|it| it.first.as_ref());
        let mut tree = Tree::empty(first.map_or("", |it| &*it.from).into(), ledger);
        for it in records {
            if !it.state.is_live() {
                tree.over.insert(it.id, it.state);
                continue;
            }
            let above = it.parent.as_ref().and_then(|it| tree.threads.get_mut(it));
            let depth = above.map_or(0, |parent| {
                parent.children.insert(it.id.clone());
                parent.depth + 1
            });
            let first = it.first.filter(|_| it.parent.is_some());
            let spawner = first.map(|it| Spawner {
                name: it.from.clone(),
                is_identity: it.flags.contains(Flags::FROM_IDENTITY),
                asked: it.cause.clone(),
                to: it.to.clone(),
                chain: Chain::default(),
            });
            let record = NewThread { id: it.id.clone(), parent: it.parent, fork: it.fork };
            let thread = Thread::new(record, tree.owner.clone(), it.last_seq);
            let thread = Thread { state: it.state, depth, spawner, ..thread };
            tree.threads.insert(it.id, thread);
        }
        tree
    }

    /// Why a push can't come in, if that is so.
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
            (Some(it), _) => it.closed_to(push, world),
            (None, Some(state)) => Some(ended(thread, *state)),
            (None, None) => unknown(),
        }
    }

    /// Whether a handler is still wanted: its delivery may be over before it began.
    pub(crate) fn wants(&self, key: &Key) -> bool {
        let thread = self.threads.get(&key.thread);
        thread.is_some_and(|it| it.running.contains_key(&(key.seq, key.listener)))
    }

    pub(crate) fn thread(&mut self, id: &ThreadId) -> Option<&mut Thread> {
        self.threads.get_mut(id)
    }

    /// The thread has ended since the push was let in.
    fn turn_away(&self, thread: &ThreadId, push: Push, out: &mut Step) {
        let state = self.over.get(thread).copied().unwrap_or(State::Closed);
        push.refuse(ended(thread, state), &mut out.effects);
    }

    /// Whether the log has all that matters of it.
    pub(crate) fn is_quiet(&self) -> bool {
        self.threads.values().all(Thread::is_quiet)
    }

    /// Whether it has nothing to do but wait for a time.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.threads.values().all(Thread::is_at_rest)
    }

    /// Lets go of entries that no fold waits for.
    pub(crate) fn trim(&mut self) {
        self.threads.values_mut().for_each(Thread::trim);
    }

    /// Tells every handler at work to stop.
    pub(crate) fn cancel(&self) {
        let running = self.threads.values().flat_map(|it| it.running.values());
        running.filter_map(|it| it.cancel.as_ref()).for_each(CancellationToken::cancel);
    }

    /// Lets go of every push that waits for something: nothing more will happen.
    pub(crate) fn abandon(&mut self, fault: &Fault, effects: &mut Vec<Effect>) {
        self.threads.values_mut().for_each(|it| it.abandon(fault, effects));
    }

    /// Takes one event, and all that comes of it in this tree.
    pub(crate) fn step(&mut self, event: Event, world: &World<'_>, out: &mut Step) {
        let at = event.thread().clone();
        std::mem::swap(&mut self.ledger, &mut out.ledger);
        self.go(event, world, out);
        std::mem::swap(&mut self.ledger, &mut out.ledger);
        debug_assert!(out.beyond.is_empty(), "the tree was asked for something and did nothing");
        debug_assert!(self.threads.get(&at).is_none_or(Thread::counts_agree), "{at} miscounts");
    }

    fn go(&mut self, event: Event, world: &World<'_>, out: &mut Step) {
        let at = event.thread().clone();
        out.undelivered.clear();
        let mut noted = out.later.len();
        out.came = world.routes.any_wakes.then(Vec::new);
        self.look_at_clock(world, out);
        self.go_beyond(world, out);
        self.take(event, world, out);
        self.go_beyond(world, out);
        self.end_if_done(&at, world, out);
        self.look_at_pending(world, out);
        self.go_beyond(world, out);
        self.warn(world, out);
        noted = self.note_timings(noted, world, out);
        while let Some(came) = out.came.take().filter(|it| !it.is_empty()) {
            out.came = Some(Vec::new());
            self.wake_by(&came, world, out);
            self.go_beyond(world, out);
            self.warn(world, out);
            noted = self.note_timings(noted, world, out);
        }
    }

    /// Notes what of a step waits for entries now, and what no longer does. What waits for one
    /// that came while its listener was still at it is due at once.
    fn note_timings(&mut self, from: usize, world: &World<'_>, out: &mut Step) -> usize {
        let came = out.came.as_deref().unwrap_or_default();
        let first = self.let_go + self.since.len();
        self.since.extend(came.iter().cloned());
        let mut due = Vec::new();
        for it in &mut out.later[from..] {
            match it {
                Timing::Until(_, key) => {
                    self.may_wake(key, world.routes);
                    due.extend(self.came_before(key, world).map(|because| (key.clone(), because)));
                }
                Timing::Over(key) => drop(self.wakeable.remove(key)),
                Timing::Asked(key, since) => {
                    let own = |it: &Entry| it.thread() == &key.thread && it.seq() == key.seq;
                    let from = first + came.iter().position(own).map_or(0, |at| at + 1);
                    let asked = Asked { before: std::mem::take(since), from };
                    self.asked.insert(key.clone(), asked);
                }
                Timing::Done(key) => drop(self.asked.remove(key)),
            }
        }
        let noted = out.later.len();
        if self.asked.is_empty() {
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

    /// The entry that something waits for, where it came after what asked for the wait.
    fn came_before(&self, key: &Key, world: &World<'_>) -> Option<EntryId> {
        let wakes = world.routes.listeners[key.listener].wakes?;
        let later = &self.threads.get(&key.thread)?.later;
        let waiting = &later.get(&(key.seq, key.listener))?.entry;
        let cause = waiting.cause()?;
        let asked = Key { thread: cause.thread.clone(), seq: cause.seq, listener: key.listener };
        let asked = self.asked.get(&asked)?;
        let since = self.since.iter().skip(asked.from - self.let_go);
        let mut since = asked.before.iter().chain(since);
        let because = since.find(|it| is_woken(wakes, waiting, it))?;
        Some(because.id().clone())
    }

    /// Notes that something waits, if its listener may want it earlier.
    pub(crate) fn may_wake(&mut self, key: &Key, routes: &Routes) {
        if routes.listeners[key.listener].wakes.is_some() {
            self.wakeable.insert(key.clone());
        }
    }

    /// Whether a thread of this id is in the tree, or was.
    pub(crate) fn has(&self, id: &ThreadId) -> bool {
        self.threads.contains_key(id) || self.over.contains_key(id)
    }

    /// Starts what waits for one of these entries.
    fn wake_by(&mut self, came: &[Entry], world: &World<'_>, out: &mut Step) {
        let woken_by = |key: &Key| {
            let wakes = world.routes.listeners[key.listener].wakes?;
            let later = &self.threads.get(&key.thread)?.later;
            let waiting = &later.get(&(key.seq, key.listener))?.entry;
            let because = came.iter().find(|it| is_woken(wakes, waiting, it))?;
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
            it @ Event::Sent(..) => self.sent(it, world, out),
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
            Event::Recover(thread, left) => match self.threads.get_mut(&thread) {
                Some(thread) => thread.recover(left, world, out),
                // Another thread of the tree was taken up first, and ended this one.
                None => recover::consume_all(left, world, out),
            },
            Event::Note(thread, words) => {
                if let Some(thread) = self.threads.get_mut(&thread) {
                    words.into_iter().for_each(|it| thread.say(it, world, out));
                }
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

/// Whether something that waits is to have its turn because of an entry.
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
