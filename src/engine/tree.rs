//! A tree of threads as a pure state machine: an event in, a batch for the log and effects out.
//!
//! It knows no clock, no task and no disk: the time is given, and an effect happens only after
//! the log has the batch of its step.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::engine::deliver::ended;
use crate::engine::family::Beyond;
use crate::engine::fork::Source;
use crate::engine::gate::Gate;
use crate::engine::guard::Chain;
use crate::engine::inlet::{Inlet, News};
use crate::engine::later::Until;
use crate::engine::ledger::Ledger;
use crate::engine::reserved::{Pending, Reserved};
use crate::engine::route::{Receiver, Routes};
use crate::engine::thread::{Spawner, Thread};
use crate::id::{EntryId, ThreadId};
use crate::limits::Limits;
use crate::listener::{Entry, Hears, Target};
use crate::log::{Batch, Flags, NewThread, Open, State, ThreadRecord};
use crate::name::Name;
use crate::wire::budget::Charge;
use crate::wire::core::{Huh, said};
use crate::wire::{Checked, Fault};

/// The name that the pump speaks under.
pub(crate) const CORE_NAME: &str = "core";

/// What a step may ask of the organism: who is there, what the bounds are, what time it is.
pub(crate) struct World<'a> {
    pub(crate) routes: &'a Routes,
    pub(crate) gates: &'a [Gate],
    pub(crate) limits: &'a Limits,
    pub(crate) core: &'a Arc<str>,
    pub(crate) worker: usize,
    pub(crate) now_us: u64,
    /// By how much the wall clock is ahead of that.
    pub(crate) ahead_us: i64,
}

/// A push, checked and routed, on its way into a thread.
pub(crate) struct Push {
    pub(crate) identity: Arc<str>,
    pub(crate) operator: bool,
    /// Whether its sender is told why exactly nobody takes something.
    pub(crate) tells_why: bool,
    pub(crate) checked: Checked,
    pub(crate) receivers: Vec<Receiver>,
    pub(crate) to: Option<Arc<str>>,
    pub(crate) flags: Flags,
    pub(crate) client_id: Option<Arc<str>>,
    pub(crate) meta: Option<Bytes>,
    pub(crate) inlet: Arc<dyn Inlet>,
    pub(crate) number: u64,
    /// Whether it is its sender's only one without an answer, where that is known.
    pub(crate) is_alone: Option<bool>,
    /// What its session goes on from, where it opens a fork.
    pub(crate) source: Option<Source>,
    /// Who else hears whether it was accepted: the claim on its client id.
    pub(crate) claim: Option<Arc<dyn Inlet>>,
}

impl Push {
    /// Tells all who wait for it that it is refused.
    pub(crate) fn refuse(self, fault: Fault, effects: &mut Vec<Effect>) {
        let fault = fault.of_client(self.client_id.as_deref());
        let inlets = self.claim.into_iter().chain([self.inlet]);
        let refused = |it| Effect::Tell(it, self.number, News::Refused(fault.clone()));
        effects.extend(inlets.map(refused));
    }
}

/// Which handler of which message.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) thread: ThreadId,
    pub(crate) seq: u64,
    pub(crate) listener: usize,
}

/// An entry that a stop left behind, and what was sent while it was being handled.
pub(crate) struct Left {
    pub(crate) open: Open,
    pub(crate) sent: Vec<Entry>,
    /// What came into its thread after it, where its listener may wait for some of that.
    pub(crate) since: Vec<Entry>,
    /// The push that it came of, where its listener may answer that.
    pub(crate) asked: Option<Entry>,
    /// What its listener said last before it came to it, where that is asked for.
    pub(crate) said: u64,
}

/// An emission that was looked at, or why it can't go out.
pub(crate) struct Ready {
    pub(crate) target: Target,
    pub(crate) what: Result<Checked, Fault>,
    pub(crate) flags: Flags,
    /// What its `<meta>` is to hold.
    pub(crate) meta: Option<Bytes>,
    /// What nobody takes, where that is why it can't go out: some are told more of it.
    pub(crate) sought: Option<Name>,
}

impl Ready {
    /// Something that went wrong, for the sender of the message at hand.
    pub(crate) fn fault(fault: Fault) -> Ready {
        let (target, flags) = (Target::Sender, Flags::NONE);
        Ready { target, what: Err(fault), flags, meta: None, sought: None }
    }

    /// Whether an earlier attempt came to the same at this place, of what it came to in order:
    /// then that is taken, and nothing is sent again.
    pub(crate) fn repeats(&self, message: &Entry, sent: &mut VecDeque<Entry>) -> bool {
        let said = match &self.what {
            Ok(checked) => {
                // What the pump told of a refusal stands behind what was refused. A charge that
                // was refused spent nothing, and is looked at anew.
                let unspent = |it: &Entry| it.is_refused() && it.is::<Charge>();
                let aside = |it: &Entry| it.from() == CORE_NAME || unspent(it);
                while sent.front().is_some_and(aside) {
                    sent.pop_front();
                }
                Some(checked.clone())
            }
            Err(fault) => said(fault),
        };
        let (Some(said), Some(first)) = (said, sent.pop_front()) else { return false };
        let to = match &self.target {
            Target::Listener(name) => first.to() == Some(name),
            Target::Oneself | Target::Note(None) => first.to() == Some(first.from()),
            Target::Note(Some(name)) => first.to() == Some(name),
            // Who that is, the log knows.
            Target::Opener | Target::Along | Target::Askers(..) => true,
            it => first.reply_to() == it.answered(message),
        };
        let explained = || self.sought.is_some() && first.decode_if::<Huh>().is_some();
        let is_it = said.name() == first.name() && said.element().canonical() == *first.body();
        to && (is_it || explained())
    }
}

/// What may happen to a tree.
pub(crate) enum Event {
    /// Somebody outside sends something into a thread.
    Push(ThreadId, Box<Push>),
    /// A handler sends something before it returns.
    Sent(Key, Vec<Ready>, oneshot::Sender<Result<(), Fault>>),
    /// A handler came to its end.
    Return(Key, Vec<Ready>),
    /// A handler's time is up.
    Overtime(Key),
    /// A thread was left with these when the pump stopped.
    Recover(ThreadId, Vec<Left>),
    /// A listener that a thread waits for has room for one more handler.
    Room(ThreadId, usize),
    /// The time of a delivery has come.
    Due(Key),
    /// The pump itself says something in a thread of its own.
    Note(ThreadId, Vec<Checked>),
}

impl Event {
    /// The thread it is for.
    fn thread(&self) -> &ThreadId {
        match self {
            Event::Push(it, _)
            | Event::Recover(it, _)
            | Event::Room(it, _)
            | Event::Note(it, _) => it,
            Event::Sent(key, ..)
            | Event::Return(key, _)
            | Event::Overtime(key)
            | Event::Due(key) => &key.thread,
        }
    }
}

/// What becomes of a delivery that waits for its time, or may come to wait.
pub(crate) enum Timing {
    /// A listener that waits for entries has this to do; what came since it was sent.
    Asked(Key, Vec<Entry>),
    /// It has done it.
    Done(Key),
    /// It waits until then.
    Until(Until, Key),
    /// It waits no more.
    Over(Key),
}

/// What a step comes to: one batch, then its effects in order.
#[derive(Default)]
pub(crate) struct Step {
    pub(crate) batch: Batch,
    pub(crate) effects: Vec<Effect>,
    /// Listeners that have no room for one more handler, and the threads that wait for it.
    pub(crate) starving: Vec<(usize, ThreadId)>,
    /// What waits for a time, and what no longer does.
    pub(crate) later: Vec<Timing>,
    /// What a thread asks of its tree; empty between events.
    pub(crate) beyond: VecDeque<Beyond>,
    /// The entries of this event, where something waits for one.
    pub(crate) came: Option<Vec<Entry>>,
    /// The tree's ledger, for as long as an event of the tree is taken.
    pub(crate) ledger: Ledger,
    /// A charge of this event that didn't fit, and why.
    pub(crate) uncharged: Option<(EntryId, Fault)>,
    /// What handlers at work have reserved beside the one that charges something.
    pub(crate) others: Reserved,
    /// Why nobody got what the handling at hand emitted, for each emission that nobody got.
    pub(crate) undelivered: Vec<Fault>,
}

impl Step {
    /// Nothing yet, with room for so much.
    pub(crate) fn with_room(room: Room) -> Step {
        let mut step = Step::default();
        step.batch.entries.reserve(room.entries);
        step.batch.marks.reserve(room.marks);
        step.effects.reserve(room.effects);
        step
    }

    /// The room that it took, for the next one to have: growing into it would move it all,
    /// several times.
    pub(crate) fn room(&self) -> Room {
        let bounded = |len: usize| len.min(Room::MAX);
        Room {
            entries: bounded(self.batch.entries.len()),
            marks: bounded(self.batch.marks.len()),
            effects: bounded(self.effects.len()),
        }
    }
}

/// How much a step has room for.
#[derive(Clone, Copy, Default)]
pub(crate) struct Room {
    entries: usize,
    marks: usize,
    effects: usize,
}

impl Room {
    /// What a step has room for at the most, before it comes to anything.
    const MAX: usize = 4_096;
}

/// What happens once the batch is in the log.
pub(crate) enum Effect {
    /// Tells whoever pushed.
    Tell(Arc<dyn Inlet>, u64, News),
    /// Runs a handler.
    Start(Box<Start>),
    /// Tells a handler that what it sent is kept, or why not.
    Kept(oneshot::Sender<Result<(), Fault>>, Result<(), Fault>),
    /// Tells a handler at work that something came for its listener.
    Came(Hears, Name),
    /// Gives back the place of a handler that never began.
    Leave(usize),
}

/// A handler to run.
pub(crate) struct Start {
    pub(crate) entry: Entry,
    pub(crate) receiver: Receiver,
    pub(crate) attempt: u32,
    pub(crate) queue: Vec<Entry>,
    /// Up to which entry history and folds are.
    pub(crate) as_of: u64,
    pub(crate) cancel: Option<CancellationToken>,
    /// Where it hears of what comes meanwhile.
    pub(crate) arrivals: Option<Hears>,
}

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
        if !push.operator && self.owner != push.identity {
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
        std::mem::swap(&mut self.ledger, &mut out.ledger);
        self.go(event, world, out);
        std::mem::swap(&mut self.ledger, &mut out.ledger);
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
        self.warn(world, out);
        noted = self.note_timings(noted, world, out);
        while let Some(came) = out.came.take().filter(|it| !it.is_empty()) {
            out.came = Some(Vec::new());
            self.wake_by(&came, world, out);
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
            Event::Recover(thread, open) => {
                if let Some(thread) = self.threads.get_mut(&thread) {
                    thread.recover(open, world, out);
                }
            }
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
