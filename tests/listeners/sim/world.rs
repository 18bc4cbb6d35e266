//! The simulated world: listeners of every kind, which act at random, and a ledger outside, which
//! no crash reaches.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::FutureExt;
use pumphouse::listeners::thread::thread;
use pumphouse::log;
use pumphouse::prelude::*;
use pumphouse::sim::{Disk, Sim};

macro_rules! jobs {
    ($($(#[$doc:meta])* $Job:ident)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Payload)]
        #[payload(ns = "urn:sim")]
        pub(super) struct $Job {
            /// How much more may come of it.
            #[payload(attribute)]
            pub(super) fuel: u32,
            /// When it is to be, in microseconds since the epoch.
            #[payload(attribute)]
            pub(super) due: Option<u64>,
        }

        impl From<$Job> for Element {
            fn from(it: $Job) -> Element {
                it.encode().unwrap()
            }
        }
    )* };
}

jobs! {
    /// For one that is inline and pure.
    Quick
    /// For one that runs at once, and must not run twice.
    Plain
    /// For one that is serial, and may run again.
    Row
    /// For one that is serial, takes what waits along, and must not run twice.
    Line
    /// For one that wants threads of its own.
    Apart
    /// For two that share it.
    Both
}

/// What somebody has to say.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:sim")]
pub(super) struct Said {
    /// What.
    #[payload(attribute)]
    pub(super) n: u64,
}

/// A job of some kind.
pub(super) fn job(kind: u64, fuel: u32, due: Option<u64>) -> Element {
    match kind % 6 {
        0 => Quick { fuel, due }.into(),
        1 => Plain { fuel, due }.into(),
        2 => Row { fuel, due }.into(),
        3 => Line { fuel, due }.into(),
        4 => Apart { fuel, due }.into(),
        _ => Both { fuel, due }.into(),
    }
}

/// Who takes the jobs of each kind.
pub(super) const TAKERS: [&str; 6] = ["quick", "plain", "row", "line", "apart", "left"];

/// The one whose folds reach as far as its thread.
pub(super) const UP_TO_DATE: &str = "right";

/// Those of them that must not handle a message twice.
const ONCE: [&str; 3] = ["plain", "line", "apart"];

/// Gives a listener its jobs, and has it take any reply.
macro_rules! takes {
    ($listener:expr, $by:literal, $Job:ident) => {
        $listener
            .on(
                |State(world): State<World>,
                 Message(message): Message,
                 Attempt(attempt): Attempt,
                 random: Random,
                 clock: Clock,
                 seen: Fold<Seen>,
                 out: Outbox<Said>,
                 it: $Job| {
                    world.begin($by, &message, attempt, it.due);
                    world.sees($by, &message, attempt, seen.0.0);
                    let fuel = it.fuel;
                    Doing { by: $by, world, message, random, clock, out, fuel }.work()
                },
            )
            .on_any_reply(
                |State(world): State<World>,
                 Message(message): Message,
                 Attempt(attempt): Attempt,
                 _: Element| {
                    world.begin($by, &message, attempt, None);
                    async move { world.end($by, &message) }
                },
            )
            .fold::<Seen>()
            .grant::<Threads>()
            .grant::<Timers>()
    };
}

/// What stands outside of the machine.
#[derive(Clone)]
pub(super) struct World {
    pub(super) sim: Sim,
    pub(super) disk: Disk,
    ledger: Arc<Mutex<Ledger>>,
}

/// What happened, whatever the log says.
#[derive(Default)]
pub(super) struct Ledger {
    /// How often the machine was started.
    pub(super) life: u32,
    /// How many clients haven't come to their end in this life.
    pub(super) busy: u32,
    /// By message and listener.
    pub(super) runs: BTreeMap<(EntryId, &'static str), Vec<Run>>,
    /// What was sent before its handler's end, and is kept: by which message, and what.
    pub(super) sent: Vec<(EntryId, u64)>,
    /// How far the one that is up to date saw, by message.
    pub(super) seen: BTreeMap<EntryId, u64>,
    pub(super) story: Vec<(u64, String)>,
    pub(super) wrong: Vec<String>,
}

/// A handler's run.
pub(super) struct Run {
    pub(super) life: u32,
    attempt: u32,
    /// Whether it came to its end by itself.
    pub(super) ended: bool,
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        let sim = Sim::new(seed);
        World { disk: Disk::new(&sim), sim, ledger: Arc::default() }
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap()
    }

    pub(super) fn tell(&self, what: impl Into<String>) {
        let now_us = self.sim.now_us();
        self.ledger().story.push((now_us, what.into()));
    }

    pub(super) fn wrong(&self, what: impl Into<String>) {
        let what = what.into();
        self.tell(format!("WRONG: {what}"));
        self.ledger().wrong.push(what);
    }

    pub(super) fn listeners(&self) -> Vec<Listener<World>> {
        let new = |name| Listener::with_state(name, self.clone()).timeout(Duration::from_secs(2));
        vec![
            takes!(new("quick"), "quick", Quick).inline().pure(),
            takes!(new("plain"), "plain", Plain),
            takes!(new("row"), "row", Row).serial().idempotent(),
            line(new("line")),
            takes!(new("apart"), "apart", Apart).own_thread(),
            takes!(new("left"), "left", Both).shared().idempotent(),
            takes!(new("right"), "right", Both).shared().idempotent().serial().up_to_date(),
        ]
    }

    pub(super) fn staff() -> Listener {
        thread()
    }

    /// Notes that a handler begins, and looks whether it may.
    fn begin(&self, by: &'static str, it: &Entry, attempt: u32, due: Option<u64>) {
        let (id, now_us) = (it.id(), self.sim.now_us());
        self.tell(format!("{by} begins with {id}, attempt {attempt}"));
        let kept = self.disk.kept();
        let there = kept.read(&id.thread, id.seq - 1, id.seq, 1).now_or_never().unwrap();
        // What is pure and done at once may be ahead of the log, the first time.
        let may_be_early = by == "quick" && attempt == 1;
        if there.is_ok_and(|it| it.is_empty()) && !may_be_early {
            self.wrong(format!("{by} begins with {id}, which isn't in the log"));
        }
        let record = kept.thread(&id.thread).now_or_never().unwrap().unwrap();
        if let Some(record) = record.filter(|it| !it.state.is_live()) {
            self.wrong(format!("{by} begins with {id} in a thread that is {}", record.state));
        }
        if let Some(due) = due.filter(|it| *it > now_us) {
            self.wrong(format!("{by} begins with {id} at {now_us}, before {due}"));
        }
        let mut ledger = self.ledger();
        let life = ledger.life;
        let runs = ledger.runs.entry((id.clone(), by)).or_default();
        let again = runs.iter().any(|it| it.life == life || it.attempt >= attempt && by != "quick");
        let twice = again || !runs.is_empty() && ONCE.contains(&by);
        runs.push(Run { life, attempt, ended: false });
        drop(ledger);
        if twice {
            self.wrong(format!("{by} handles {id} twice"));
        }
    }

    /// Looks how far a handler's fold reaches: up to its message, or, where the listener is up to
    /// date, as far as its thread did when it was started, and at a later attempt as far as at the
    /// first one.
    fn sees(&self, by: &'static str, it: &Entry, attempt: u32, seen: u64) {
        let id = it.id();
        if by != UP_TO_DATE {
            if seen != it.seq() {
                self.wrong(format!("a fold of {by} has {seen} entries at {id}"));
            }
            return;
        }
        let kept = self.disk.kept().read(&id.thread, 0, u64::MAX, usize::MAX);
        let kept = kept.now_or_never().unwrap().unwrap();
        // What was for later is sent again by the pump, when its time comes.
        let is_timed = |it: &log::Entry| String::from_utf8_lossy(&it.body).contains(" due=\"");
        let own = |it: &&Arc<log::Entry>| *it.from == *by && !is_timed(it);
        let sent = kept.iter().rfind(own).map_or(0, |it| it.id.seq);
        let last = kept.last().map_or(0, |it| it.id.seq);
        let first = *self.ledger().seen.entry(id.clone()).or_insert(seen);
        let wrong = match () {
            () if seen < it.seq() => "doesn't reach its message",
            () if seen > last => "reaches further than the log",
            () if attempt == 1 && sent > seen => "doesn't have what its handling before sent",
            () if first != seen => "reaches another entry than at the first attempt",
            () => return,
        };
        self.wrong(format!("a fold of {by} with {seen} entries at {id} {wrong}: {first}, {sent}"));
    }

    fn end(&self, by: &'static str, it: &Entry) {
        self.tell(format!("{by} is done with {}", it.id()));
        let mut ledger = self.ledger();
        let runs = ledger.runs.get_mut(&(it.id().clone(), by));
        runs.and_then(|it| it.last_mut()).unwrap().ended = true;
    }
}

/// The entries of a thread, counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(u64);

impl Apply for Seen {
    fn apply(&mut self, _: &Entry) {
        self.0 += 1;
    }
}

/// All that a job may come to.
pub(super) type Moves = (
    Option<Said>,
    Option<Element>,
    Option<To<Element>>,
    Option<Again<Element>>,
    Vec<Spawn<Element>>,
    Option<Later<Element>>,
);

/// A handler's run, and all it needs.
pub(super) struct Doing {
    by: &'static str,
    world: World,
    message: Entry,
    random: Random,
    clock: Clock,
    out: Outbox<Said>,
    fuel: u32,
}

impl Doing {
    fn below(&mut self, end: u64) -> u64 {
        self.random.next_u64() % end
    }

    async fn sleep(&mut self, max_us: u64) {
        let time = Duration::from_micros(self.below(max_us));
        self.world.sim.sleep(time).await;
    }

    async fn work(mut self) -> Moves {
        let moves = self.moves().await;
        self.world.end(self.by, &self.message);
        moves
    }

    async fn moves(&mut self) -> Moves {
        let mut moves: Moves = (None, None, None, None, Vec::new(), None);
        let said = Said { n: self.random.next_u64() >> 1 };
        let Some(fuel) = self.fuel.checked_sub(1) else {
            moves.0 = Some(said).filter(|_| self.below(3) > 0);
            return moves;
        };
        let own = TAKERS.iter().position(|it| *it == self.by).unwrap_or(5) as u64;
        let other = self.below(6);
        match self.below(16) {
            0..=2 => moves.0 = Some(said),
            3 => {}
            4 | 5 => moves.3 = Some(Again(job(own, fuel, None))),
            6 => moves.2 = Some(To(taker(other), job(other, fuel, None))),
            7 | 8 => {
                for _ in 0..=self.below(2) {
                    let label = ["x", "y"][usize::try_from(self.below(2)).unwrap()];
                    let first = job(self.below(6), fuel / 2, None);
                    moves.4.push(Spawn::new(first).label(label));
                }
                moves.0 = Some(said).filter(|_| self.below(3) == 0);
            }
            9 => {
                let due = self.clock.now_us() + self.below(3_000_000);
                moves.5 = Some(Later::at(due, job(own, fuel, Some(due))));
            }
            10 => {
                if self.out.send(said.clone()).await.is_ok() {
                    let sent = (self.message.id().clone(), said.n);
                    self.world.ledger().sent.push(sent);
                }
                self.sleep(10_000).await;
                moves.3 = Some(Again(job(own, fuel, None)));
            }
            11 => {
                self.sleep(50_000).await;
                moves.0 = Some(said);
            }
            // Without the hook, which would print each.
            12 => std::panic::resume_unwind(Box::new("over its own feet")),
            13 => std::future::pending().await,
            14 => moves.2 = Some(To("nobody", job(other, fuel, None))),
            _ => {
                moves.0 = Some(said);
                moves.1 = Some(Done {}.encode().unwrap()).filter(|_| self.by == "plain");
                moves.2 = Some(To(taker(other), job(other, fuel / 2, None)));
            }
        }
        moves
    }
}

fn taker(kind: u64) -> &'static str {
    TAKERS[usize::try_from(kind).unwrap() % TAKERS.len()]
}

/// The one that takes what waits along.
fn line(listener: Listener<World>) -> Listener<World> {
    let work = |State(world): State<World>,
                Message(message): Message,
                Attempt(attempt): Attempt,
                random: Random,
                clock: Clock,
                Queue(queue): Queue,
                out: Outbox<Said>,
                it: Line| {
        world.begin("line", &message, attempt, it.due);
        for it in &queue {
            world.begin("line", it, attempt, None);
            world.end("line", it);
        }
        let fuel = it.fuel;
        Doing { by: "line", world, message, random, clock, out, fuel }.work()
    };
    let reply = |State(world): State<World>,
                 Message(message): Message,
                 Attempt(attempt): Attempt,
                 _: Element| {
        world.begin("line", &message, attempt, None);
        async move { world.end("line", &message) }
    };
    listener.serial().on(work).on_any_reply(reply).grant::<Threads>().grant::<Timers>()
}
