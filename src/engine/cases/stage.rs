//! The stage of the cases: a few listeners, and one tree that is stepped without a runtime.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::oneshot;

use crate::engine::build::builder::Builder;
use crate::engine::build::plan::Plan;
use crate::engine::build::restart::asked_by;
use crate::engine::tree::budget_ledger::Ledger;
use crate::engine::tree::effect::{Effect, Places, Step, Timing, World};
use crate::engine::tree::event::{Event, Key, Push, Pusher, Ready, Unfinished};
use crate::engine::tree::observer::{PushEvent, PushObserver};
use crate::engine::tree::step::Tree;
use crate::engine::tree::thread::Thread;
use crate::id::{EntryId, ThreadId};
use crate::limits::Limits;
use crate::listener::{
    Arrivals, Charges, EmitCore, Entry, Final, Listener, Park, Queue, Spawn, Threads, Timers,
};
use crate::log::{Batch, Flags, Log, MemoryLog, NewThread};
use crate::name::CORE_NAME;
use crate::wire::core::{NothingUnderWay, ThreadResult};
use crate::wire::{Code, Fault, Payload};
use crate::xml::Element;

/// The time at which every case begins, in microseconds.
pub(super) const BEGIN_US: u64 = 1_000_000;

macro_rules! payloads {
    ($($(#[$doc:meta])* $Name:ident)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Payload)]
        #[payload(ns = "urn:cases")]
        pub(super) struct $Name {
            /// The payload's number.
            pub(super) n: u64,
        }
    )* };
}

payloads! {
    /// A question for `calc`.
    Ask
    /// An answer.
    Sum
    /// A job for `clerk`, which does one at a time.
    Job
    /// An order, which `desk` parks until the work on it is done.
    Order
    /// A load for `pool`, which takes all waiting loads together.
    Load
    /// News that `left` and `right` both take.
    Bulletin
    /// A question that `quick` answers inline.
    Quick
    /// A scheme that `boss` delegates.
    Scheme
    /// A task for `hand`, which works in threads of its own.
    Task
    /// A message that `clock` sends itself later.
    Tick
    /// A payment from `purse`, whose folds reach as far as the thread.
    Pay
    /// A bill for `till`, which also takes its queue.
    Bill
    /// A message that `peer` passes on to its only peer.
    Hop
    /// A payload that no listener takes.
    Lost
    /// News that a branch is paused.
    Paused
    /// News that a paused branch continues.
    Resumed
}

async fn nothing<T>(_: T) {}

/// Returns the listeners of the cases. Their handlers never run: the cases state what the handlers
/// return.
fn listeners() -> Builder {
    let calc = Listener::new("calc").on(nothing::<Ask>).on_reply(nothing::<Sum>);
    let clerk = Listener::new("clerk").on(nothing::<Job>).on_reply(nothing::<Sum>).serial();
    let desk = Listener::new("desk")
        .on(async |_: Queue, _: Arrivals, _: Order| Park::default())
        .on_reply(async |_: Sum| Park::default())
        .on_reply(nothing::<NothingUnderWay>)
        .serial()
        .idempotent();
    let pool = Listener::new("pool").on(async |_: Queue, _: Load| {}).serial();
    let purse = Listener::new("purse").on(nothing::<Pay>).serial().up_to_date().idempotent();
    let till = Listener::new("till").on(async |_: Queue, _: Bill| {}).serial().up_to_date();
    let till = till.idempotent();
    let left = Listener::new("left").on(nothing::<Bulletin>).shared();
    let right = Listener::new("right").on(nothing::<Bulletin>).shared();
    let quick = Listener::new("quick").on(nothing::<Quick>).inline().pure();
    let boss = Listener::new("boss")
        .on(async |it: Scheme| Spawn::new(it))
        .on_reply(nothing::<ThreadResult>)
        .on_reply(nothing::<Sum>)
        .grant::<Threads>()
        .grant::<Charges>()
        .grant::<EmitCore>();
    let hand = Listener::new("hand").on(async |it: Task| Final(Sum { n: it.n })).own_thread();
    let clock = Listener::new("clock").on(nothing::<Tick>).grant::<Timers>();
    let peer = Listener::new("peer").on(nothing::<Hop>).peers(["calc"]);
    Builder::default()
        .with(calc)
        .with(clerk)
        .with(desk)
        .with(pool)
        .with(purse)
        .with(till)
        .with(left)
        .with(right)
        .with(quick)
        .with(boss)
        .with(hand)
        .with(clock)
        .with(peer)
}

/// An observer that ignores all events, since the cases look at the effects themselves.
struct Deaf;

impl PushObserver for Deaf {
    fn hear(&self, _: u64, _: PushEvent) {}
}

/// How many places are free, for each listener whose number of places is limited.
#[derive(Default)]
struct Free(BTreeMap<usize, usize>);

impl Places for Free {
    fn free(&self, listener: usize) -> usize {
        self.0.get(&listener).copied().unwrap_or(usize::MAX)
    }
}

/// The tree of a case, with its running handlers, its timers and its log.
pub(super) struct Stage {
    pub(super) plan: Plan,
    pub(super) limits: Limits,
    core: Arc<str>,
    free: Free,
    /// The observer of each push. A push has its own, as if it came over a connection of its own,
    /// unless it names a push that came over the same connection.
    connections: Vec<Arc<dyn PushObserver>>,
    pub(super) now_us: u64,
    pub(super) tree: Option<Tree>,
    /// Running handlers, in the order of their start.
    pub(super) running: VecDeque<Key>,
    /// The receivers for the results of `sends`. They are kept so that the handlers count as still
    /// waiting.
    sending: Vec<oneshot::Receiver<Result<(), Fault>>>,
    /// Deliveries that wait for their time.
    pub(super) timers: VecDeque<Key>,
    pub(super) log: MemoryLog,
}

impl Stage {
    pub(super) fn new() -> Stage {
        Stage {
            plan: listeners().build().unwrap(),
            limits: Limits::default(),
            core: CORE_NAME.into(),
            free: Free::default(),
            connections: Vec::new(),
            now_us: BEGIN_US,
            tree: None,
            running: VecDeque::new(),
            sending: Vec::new(),
            timers: VecDeque::new(),
            log: MemoryLog::new(),
        }
    }

    pub(super) fn listener(&self, name: &str) -> usize {
        self.plan.routes.find(name).unwrap_or_else(|| panic!("no listener is called {name}"))
    }

    pub(super) fn set_places(&mut self, listener: &str, places: usize) {
        let listener = self.listener(listener);
        self.free.0.insert(listener, places);
    }

    /// Returns the observer of the next push.
    fn connection(&mut self, beside: Option<usize>) -> Arc<dyn PushObserver> {
        let connection = match beside {
            Some(push) => self.connections[push - 1].clone(),
            None => Arc::new(Deaf),
        };
        self.connections.push(connection.clone());
        connection
    }

    /// Pushes a payload as a worker does. If the tree refuses the push, there is no step.
    pub(super) fn push(&mut self, element: Element, how: &Pushed) -> Result<Step, Fault> {
        let routes = &self.plan.routes;
        let checked = routes.check(element, self.limits.inside)?;
        let asks = if how.asks { Flags::ANSWER_WANTED } else { Flags::NONE };
        let rank = if how.operator { Flags::FROM_OPERATOR } else { Flags::NONE };
        let to = how.to.as_deref().map(Arc::from);
        let message = routes.addressed(checked, to, asks.with(rank))?;
        let observer = self.connection(how.beside);
        let by = Pusher {
            identity: (*how.by).into(),
            operator: how.operator,
            may_know_why: how.operator,
            observer,
            number: self.connections.len() as u64,
            is_alone: None,
        };
        let push = Push::new(by, message);
        let thread = ThreadId::new(how.thread.as_deref().unwrap_or("s"));
        if self.tree.is_none() {
            let new = NewThread { id: thread.clone(), parent: None, fork: None };
            let first = Thread::new(new, push.by.identity.clone(), 0);
            self.tree = Some(Tree::new(first, Ledger::new(&self.limits)));
        }
        let world = world(&self.plan, &self.limits, &self.core, &self.free, self.now_us);
        let refused = self.tree.as_ref().and_then(|it| it.refuses(&thread, &push, &world));
        match refused {
            Some(fault) => Err(fault),
            None => Ok(self.step(Event::Push(thread, Box::new(push)))),
        }
    }

    /// Makes one step, appends its batch to the log, and notes the handlers that it starts.
    pub(super) fn step(&mut self, event: Event) -> Step {
        let mut step = Step::default();
        let world = world(&self.plan, &self.limits, &self.core, &self.free, self.now_us);
        if let Some(tree) = &mut self.tree {
            tree.step(event, &world, &mut step);
        }
        for effect in &step.effects {
            if let Effect::Start(start) = effect {
                let id = start.entry.id();
                let (thread, seq) = (id.thread.clone(), id.seq);
                self.running.push_back(Key { thread, seq, listener: start.receiver.listener });
            }
        }
        let tree = self.tree.as_ref();
        self.running.retain(|key| tree.is_some_and(|it| it.wants(key)));
        for timing in &step.later {
            match timing {
                Timing::Until(_, key) => self.timers.push_back(key.clone()),
                Timing::Over(key) => self.timers.retain(|it| it != key),
                Timing::Asked(..) | Timing::Done(_) => {}
            }
        }
        let Batch { threads, entries, marks } = &step.batch;
        let batch =
            Batch { threads: threads.clone(), entries: entries.clone(), marks: marks.clone() };
        if !batch.is_empty() {
            self.log.append(batch).now_or_never().unwrap().unwrap();
        }
        step
    }

    /// Returns the running handler of a listener for the message `of`. Without `of`, returns the
    /// listener's first running handler.
    pub(super) fn at_work(&self, listener: &str, of: Option<&EntryId>) -> Key {
        let listener = self.listener(listener);
        let is_it = |key: &&Key| {
            key.listener == listener
                && of.is_none_or(|id| (&key.thread, key.seq) == (&id.thread, id.seq))
        };
        self.running.iter().find(is_it).unwrap_or_else(|| panic!("it isn't at work")).clone()
    }

    pub(super) fn sends(&mut self, key: Key, ready: Vec<Ready>) -> Step {
        let (done, hears) = oneshot::channel();
        self.sending.push(hears);
        self.step(Event::Sent(key, ready, done))
    }

    /// Returns an entry of the log.
    pub(super) fn entry(&self, id: &EntryId) -> Entry {
        let found = self.log.read(&id.thread, id.seq - 1, id.seq, 1).now_or_never();
        Entry::kept(&found.unwrap().unwrap()[0])
    }

    /// Drops the tree, reads it back from the log, and gives it its unfinished entries.
    pub(super) fn restart(&mut self) -> Vec<Step> {
        let session = ThreadId::new("s");
        let records = self.log.tree(&session).now_or_never().unwrap().unwrap();
        self.tree = Some(Tree::kept(records, Ledger::new(&self.limits)));
        self.running.clear();
        self.timers.clear();
        let open = self.log.open_entries().now_or_never().unwrap().unwrap();
        let mut threads: BTreeMap<ThreadId, Vec<Unfinished>> = BTreeMap::new();
        for open in open {
            let id = open.entry.id.clone();
            let all = self.log.read(&id.thread, id.seq, u64::MAX, 1_000).now_or_never();
            let all = all.unwrap().unwrap();
            let sent = all.iter().filter(|it| it.cause.as_ref() == Some(&id));
            let sent = sent.map(|it| Entry::kept(it)).collect();
            let asked = asked_by(&self.log, &open).now_or_never().unwrap().unwrap();
            let (since, is_held) = (Vec::new(), false);
            let left = Unfinished { open, sent, since, asked, last_emission: 0, is_held };
            threads.entry(id.thread).or_default().push(left);
        }
        threads.into_iter().map(|(id, left)| self.step(Event::Resume(id, left))).collect()
    }
}

/// How a payload is pushed: by which identity, to which listener, into which thread.
#[derive(Default)]
pub(super) struct Pushed {
    pub(super) by: String,
    pub(super) operator: bool,
    pub(super) to: Option<String>,
    pub(super) thread: Option<String>,
    pub(super) asks: bool,
    /// The number of an earlier push that came over the same connection.
    pub(super) beside: Option<usize>,
}

fn world<'a>(
    plan: &'a Plan,
    limits: &'a Limits,
    core: &'a Arc<str>,
    places: &'a Free,
    now_us: u64,
) -> World<'a> {
    World { routes: &plan.routes, places, limits, core, now_us, ahead_us: 0 }
}

/// Returns a fault with which a handler fails.
pub(super) fn fault() -> Fault {
    Fault::new(Code::Panic, "it panicked")
}
