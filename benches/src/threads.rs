//! Measures what threads cost: children, a busy neighbour, a listener's messages to itself, and a
//! long thread.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pumphouse::clock;
use pumphouse::engine::{AskError, Builder, Port as _, Pump, Tokio};
use pumphouse::id::ThreadId;
use pumphouse::limits::{Limits, UNLIMITED};
use pumphouse::listener::{Again, Listener, Spawn, State, Threads};
use pumphouse::log::{Durability, Log, Pages};
use pumphouse::wire::core::{Done, ThreadResult};
use pumphouse::wire::{Fault, Payload};

use crate::measure::{Waits, number, rate};
use crate::output::Failure;
use crate::pump::{log, started};
use crate::row::{Figure, Row};
use crate::sitting::{DURABILITIES, Sitting};

const CHILDREN: &str = "threads: children of one, spawn to result";
const NEIGHBOUR: &str = "threads: one beside messages that wait";
const ONESELF: &str = "threads: messages to oneself in one";
const LONG: &str = "threads: a long one, one entry more";
const LONG_READ: &str = "threads: a long one, read";
const LONG_FILE: &str = "threads: a long one, its file";

/// How many children one message opens.
const BRANCH: u64 = 200;
/// How many rounds of waits are measured. Each round measures a thread alone, and then beside the
/// busy neighbour.
const TURNS: u64 = 4;
/// How long the busy neighbour takes for a message, in microseconds.
const CROWD_US: u64 = 1_000;
/// Opens `n` threads below this one.
#[derive(Debug, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/bench/v1")]
struct Open {
    n: u64,
}

/// Asks for a small piece of work.
#[derive(Debug, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/bench/v1")]
struct Work {
    n: u64,
}

/// The answer to `Work` or `Crowd`.
#[derive(Debug, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/bench/v1")]
struct Worked {
    n: u64,
}

/// Counts down by one with each message of the listener to itself.
#[derive(Debug, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/bench/v1")]
struct Down {
    n: u64,
    text: String,
}

/// Takes 1 ms to handle while the neighbour is busy.
#[derive(Debug, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/bench/v1")]
struct Crowd {}

pub(crate) async fn rows(sitting: &mut Sitting) -> Result<(), Failure> {
    let memory = Some(Durability::Memory);
    if sitting.wants(CHILDREN, memory) {
        let count = sitting.times(40_000.0);
        let fewer = children(sitting.folder(), (count / 4).max(1)).await?;
        let per_second = children(sitting.folder(), count).await?;
        let row = Row::new(CHILDREN, memory).figure(Figure::PerSecond(per_second));
        let (row, ratio) = (row.figure(Figure::Of(count)), per_second / fewer);
        let row = row.beside("a fourth of them", Figure::PerSecond(fewer), ratio);
        sitting.show(&row.goal("≥ 50,000/s", per_second >= 50_000.0))?;
    }
    if sitting.wants(NEIGHBOUR, memory) {
        let waiting = sitting.times(10_000.0);
        let (alone, beside) = neighbour(sitting, waiting).await?;
        let ratio = beside.at(99) / alone.at(99).max(1.0);
        let row = Row::new(NEIGHBOUR, memory).waits(&beside).figure(Figure::Of(waiting));
        let row = row.beside("alone", Figure::P99(alone.at(99)), ratio);
        sitting.show(&row.goal("p99 < 2×", ratio < 2.0))?;
    }
    for durability in DURABILITIES {
        if sitting.wants(ONESELF, Some(durability)) {
            let per_second = oneself(sitting, durability).await?;
            let row = Row::new(ONESELF, Some(durability)).figure(Figure::PerSecond(per_second));
            sitting.show(&row)?;
        }
    }
    let normal = Some(Durability::Normal);
    if [LONG, LONG_READ, LONG_FILE].map(|it| sitting.wants(it, normal)).contains(&true) {
        for row in long(sitting).await? {
            if sitting.wants(row.what(), normal) {
                sitting.show(&row)?;
            }
        }
    }
    Ok(())
}

/// Opens `n` children of one parent, and returns how many of them give a result per second.
async fn children(folder: &Path, n: u64) -> Result<f64, Failure> {
    let pump = start(log(folder, "children", Durability::Memory)?)?;
    let since = clock::now_us();
    let _: Done = pump.ask(Open { n }).await.map_err(|it| unanswered(&it))?;
    let per_second = rate(n, since);
    pump.shutdown().await?;
    Ok(per_second)
}

/// Measures how long a thread waits for answers: alone, and beside a thread in which many messages
/// wait. The two measurements alternate, so a temporary slowdown of the machine affects both.
async fn neighbour(sitting: &Sitting, waiting: u64) -> Result<(Waits, Waits), Failure> {
    let busy = Arc::new(AtomicBool::new(false));
    let log = log(sitting.folder(), "neighbour", Durability::Memory)?;
    let pump = started(organism(log).with(crowd(&busy)))?;
    let quiet = pump.in_thread(&opened(&pump, Work { n: 0 }).await?);
    let crowded = pump.in_thread(&opened(&pump, Crowd {}).await?);
    // Even with a small scale, each round measures at least one wait.
    let times = (sitting.times(2_000.0) / TURNS).max(1);
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    asked(&quiet, times).await?;
    for _ in 0..TURNS {
        alone.extend(asked(&quiet, times).await?);
        busy.store(true, Ordering::Relaxed);
        for _ in 0..waiting {
            opened(&crowded, Crowd {}).await?;
        }
        beside.extend(asked(&quiet, times).await?);
        busy.store(false, Ordering::Relaxed);
        let _: Worked = crowded.ask(Crowd {}).await.map_err(|it| unanswered(&it))?;
    }
    pump.shutdown().await?;
    Ok((Waits::of(alone), Waits::of(beside)))
}

/// Makes a listener that takes `CROWD_US` for each message while `busy` is set.
fn crowd(busy: &Arc<AtomicBool>) -> Listener<Arc<AtomicBool>> {
    let crowd = async |State(busy): State<Arc<AtomicBool>>, _: Crowd| {
        if busy.load(Ordering::Relaxed) {
            let port = Tokio::current();
            port.sleep_until(port.now_us() + CROWD_US).await;
        }
        Worked { n: 0 }
    };
    Listener::with_state("crowd", busy.clone()).on(crowd)
}

async fn asked(pump: &Pump, times: u64) -> Result<Vec<u64>, Failure> {
    let mut waits = Vec::new();
    for _ in 0..times {
        let since = clock::now_us();
        let _: Worked = pump.ask(Work { n: 1 }).await.map_err(|it| unanswered(&it))?;
        waits.push(clock::now_us().saturating_sub(since));
    }
    Ok(waits)
}

/// Measures messages of a listener to itself, such as an agent's thoughts. Returns the rate per
/// second.
async fn oneself(sitting: &Sitting, durability: Durability) -> Result<f64, Failure> {
    let pump = start(log(sitting.folder(), "oneself", durability)?)?;
    let per_second = down(&pump, sitting.times(2_000.0), "<thought>1000</thought>").await?;
    pump.shutdown().await?;
    Ok(per_second)
}

/// Measures a growing thread, and returns three rows:
///
/// - the rate of entries at the thread's end, compared with the rate at its start;
/// - the rate at which the thread is read;
/// - the size of the log's file, compared with 1.3 times the payloads' bytes plus 150 bytes for
///   each entry.
async fn long(sitting: &Sitting) -> Result<[Row; 3], Failure> {
    let durability = Durability::Normal;
    let log = log(sitting.folder(), "long", durability)?;
    let pump = start(log.clone())?;
    let (n, text) = (sitting.times(3_000.0), "x".repeat(200));
    let thread = opened(&pump, Down { n: 1, text: text.clone() }).await?;
    let here = pump.in_thread(&thread);
    let first = down(&here, n, &text).await?;
    for _ in 0..8 {
        down(&here, n, &text).await?;
    }
    let last = down(&here, n, &text).await?;
    let since = clock::now_us();
    let (entries, bytes) = read(&*log, &thread).await?;
    let reading = rate(entries, since);
    pump.shutdown().await?;
    drop((pump, here, log));
    let size = std::fs::metadata(sitting.folder().join("long-normal.db"))?.len();
    let (size, bound) = (number(size), number(bytes) * 1.3 + number(entries) * 150.0);
    let row = |what| Row::new(what, Some(durability));
    let one = row(LONG).figure(Figure::PerSecond(last)).figure(Figure::Of(entries));
    let one = one.beside("at its start", Figure::PerSecond(first), last / first);
    let file = row(LONG_FILE).figure(Figure::Size(size));
    let file = file.beside("1.3× payloads + 150 each", Figure::Size(bound), size / bound);
    Ok([
        one.goal("≥ 0.8×", last >= 0.8 * first),
        row(LONG_READ).figure(Figure::PerSecond(reading)).goal("≥ 500,000/s", reading >= 500_000.0),
        file.goal("≤ 1×", size <= bound),
    ])
}

/// Returns a thread's number of entries, and the bytes of their payloads.
async fn read(log: &dyn Log, thread: &ThreadId) -> Result<(u64, u64), Failure> {
    let (mut entries, mut bytes) = (0, 0);
    let mut pages = Pages::of(log, thread);
    while let Some(page) = pages.next().await? {
        entries += page.len() as u64;
        bytes += page.iter().map(|it| it.body.len() as u64).sum::<u64>();
    }
    Ok((entries, bytes))
}

/// Has a listener send itself `n` messages, and returns the rate per second.
async fn down(pump: &Pump, n: u64, text: &str) -> Result<f64, Failure> {
    let since = clock::now_us();
    let asked = pump.ask(Down { n, text: text.to_owned() }).await;
    let _: Done = asked.map_err(|it| unanswered(&it))?;
    Ok(rate(n, since))
}

async fn opened(pump: &Pump, payload: impl Payload) -> Result<ThreadId, Failure> {
    let told = pump.tell(payload).await;
    Ok(told.map_err(|fault: Fault| Failure::Wrong(fault.to_string()))?.thread)
}

fn unanswered(error: &AskError) -> Failure {
    Failure::Wrong(error.to_string())
}

fn start(log: Arc<dyn Log>) -> Result<Pump, Failure> {
    started(organism(log))
}

fn organism(log: Arc<dyn Log>) -> Builder {
    let open = async |Open { n }: Open| {
        let now = n.min(BRANCH);
        let rest = (n > now).then(|| Again(Open { n: n - now }));
        ((0..now).map(|n| Spawn::new(Work { n }).label("w")).collect::<Vec<_>>(), rest)
    };
    let down = async |Down { n, text }: Down| (n > 1).then(|| Again(Down { n: n - 1, text }));
    let boss = Listener::new("boss").on(open).on_reply(async |_: ThreadResult| ()).inline();
    let worker = Listener::new("worker").on(async |Work { n }: Work| Worked { n }).inline();
    Builder::default()
        .with(move |it: &mut Builder| it.log(log))
        .with((boss.grant::<Threads>(), worker))
        .with(Listener::new("chain").on(down).inline())
        .limits(limits())
}

/// Lifts the limits that these rows would exceed.
fn limits() -> Limits {
    Limits {
        tree_messages_max: UNLIMITED,
        tree_children_max: UNLIMITED,
        tree_seconds_max: UNLIMITED,
        chain_max: usize::MAX,
        repeats_max: usize::MAX,
        unconsumed_max: usize::MAX,
        ..Limits::default()
    }
}
