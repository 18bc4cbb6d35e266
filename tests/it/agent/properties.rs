//! Property tests of an agent. Each seed is a run of the real agent on the real engine in virtual
//! time, with a scripted model. In each run, clients ask and interrupt the agent, and the pump
//! stops and starts again. The test then checks the run's log against the promises of
//! `docs/agents.md`.

mod audit;
mod book;
mod found;
mod run;
mod script;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pumphouse::prelude::Entry;

use audit::Audit;
use run::Run;

/// How many seeds are played, unless said.
const SEEDS: u64 = 150;
/// After how many seeds the test says how far it is.
const TOLD_EACH: u64 = 1_000;
/// Of how many seeds one is replayed.
const REPLAYED: u64 = 10;
/// From how many seeds on each named event must have come up, and in how many of 10,000.
const ENOUGH: (u64, u64) = (2_000, 500);

/// What has to come up in enough of the seeds.
const EVENTS: [&str; 19] = [
    "message of another identity waits",
    "late result",
    "restart",
    "restart in a turn",
    "interrupt in a turn",
    "final delivered after a hold",
    "withdrawn: a message",
    "withdrawn: failed",
    "held back: a reference",
    "stop or interrupt while held",
    "partial response that waits",
    "nothing-under-way",
    "timer tick begins work",
    "peer that asks back",
    "turn after a quiet one",
    "turn after a failure or a cut",
    "stopped: turns",
    "stopped: model",
    "stopped: idle",
];

#[test]
fn whatever_an_agent_does_every_rule_holds() {
    if let Some(seed) = number("PUMPHOUSE_AGENT_SEED") {
        let run = Run::play(seed);
        println!("{}", run.story());
        let judged = judged(seed, &run, &mut BTreeMap::new());
        return judged.map_err(|it| it.told()).unwrap();
    }
    let first = number("PUMPHOUSE_AGENT_FIRST").unwrap_or(0);
    let seeds = number("PUMPHOUSE_AGENT_SEEDS").unwrap_or(SEEDS);
    let Tally { counts, kinds, wrong } = played(first..first + seeds);
    println!("{seeds} seeds");
    for (event, count) in &counts {
        println!("{count:>8} {event}");
    }
    for (kind, (count, seed)) in &kinds {
        println!("{count:>8} wrong, first in seed {seed}: {kind}");
    }
    let shown = &wrong[..wrong.len().min(5)];
    assert!(wrong.is_empty(), "{} seeds: {}", wrong.len(), shown.join("\n"));
    let (from, of) = ENOUGH;
    for event in EVENTS.iter().filter(|_| seeds >= from) {
        let count = counts.get(*event).copied().unwrap_or(0);
        assert!(count * 10_000 >= seeds * of, "{event}: {count} of {seeds} seeds");
    }
}

/// What came up in seeds.
#[derive(Default)]
struct Tally {
    counts: BTreeMap<String, u64>,
    /// How often each kind of mistake was made, and the first seed with it.
    kinds: BTreeMap<String, (u64, u64)>,
    wrong: Vec<String>,
}

/// Plays seeds, on as many threads as there are processors.
fn played(seeds: Range<u64>) -> Tally {
    let (total, next) = (seeds.end - seeds.start, AtomicU64::new(seeds.start));
    let tally = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        let play = || loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !seeds.contains(&seed) {
                return;
            }
            let mut counts = BTreeMap::new();
            let judged = judged(seed, &Run::play(seed), &mut counts);
            tally.lock().unwrap().add(counts, judged);
            let done = seed - seeds.start + 1;
            if done.is_multiple_of(TOLD_EACH) {
                println!("{done} of {total} seeds");
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        (0..threads).for_each(|_| drop(scope.spawn(play)));
    });
    tally.into_inner().unwrap()
}

impl Tally {
    fn add(&mut self, counts: BTreeMap<String, u64>, judged: Result<(), Found>) {
        for (event, count) in counts {
            *self.counts.entry(event).or_default() += count;
        }
        let Err(found) = judged else { return };
        for it in &found.wrong {
            let (count, first) = self.kinds.entry(kind(it)).or_insert((0, found.seed));
            (*count, *first) = (*count + 1, (*first).min(found.seed));
        }
        self.wrong.push(found.told());
    }
}

/// What is wrong with a seed's run.
struct Found {
    seed: u64,
    wrong: Vec<String>,
}

impl Found {
    fn told(&self) -> String {
        let Found { seed, wrong } = self;
        let shown = &wrong[..wrong.len().min(4)];
        format!("seed {seed}: {shown:#?}; `just agent-seed {seed}` tells its story")
    }
}

/// What is wrong, without its numbers and names.
fn kind(wrong: &str) -> String {
    let wrong = wrong.split(", entry:").next().unwrap_or(wrong);
    let text: String = wrong.chars().filter(|it| !it.is_ascii_digit()).take(110).collect();
    let words = text.split(' ').map(|it| match it {
        "a" | "b" | "c" | "d" => "x",
        it if it.contains(['$', '#']) || it.starts_with("sess-") => "…",
        it => it,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// What is wrong with a seed's run, and what came up in it.
fn judged(seed: u64, run: &Run, counts: &mut BTreeMap<String, u64>) -> Result<(), Found> {
    let audit = Audit::of(run);
    let mut wrong = audit.wrong;
    let mut named = audit.book.named;
    named.extend((run.restarts > 0).then(|| "restart".to_owned()));
    named.extend((run.restarts_in_turns > 0).then(|| "restart in a turn".to_owned()));
    let asks_back = |it: &Entry| it.from() == "friend" && it.name().local() == "action";
    let asked_back = run.all.iter().any(asks_back);
    named.extend(asked_back.then(|| "peer that asks back".to_owned()));
    named.into_iter().for_each(|it| *counts.entry(it).or_default() += 1);
    *counts.entry("turns in all".into()).or_default() += audit.book.turns.len() as u64;
    *counts.entry("entries in all".into()).or_default() += run.all.len() as u64;
    if seed.is_multiple_of(REPLAYED) {
        wrong.extend(run.replayed().difference.map(|it| format!("replayed it differs: {it:?}")));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Found { seed, wrong })
}

fn number(variable: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "`just agent-seeds` says how many")]
    std::env::var(variable).ok()?.parse().ok()
}
