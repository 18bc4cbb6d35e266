//! What threads cost: children, sleepers, long ones, crowded ones, and chains of messages to
//! oneself. `just threads`, or `just threads WHAT` for one of `children`, `live`, `sleeping`,
//! `long`, `neighbour` and `chain`.
#![expect(clippy::print_stdout, reason = "that is what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]
#![expect(clippy::expect_used, reason = "what fails here measures nothing")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pumphouse::limits::UNLIMITED;
use pumphouse::log::{Durability, Log, MemoryLog, SqliteLog};
use pumphouse::prelude::*;
use pumphouse::wire::core::ThreadResult;

/// The server's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many children one message opens.
const BRANCH: u64 = 200;

/// Opens so many threads below this one.
#[derive(Debug, Payload)]
#[payload(ns = "urn:bench")]
struct Open {
    n: u64,
}

/// Something to do.
#[derive(Debug, Payload)]
#[payload(ns = "urn:bench")]
struct Work {
    n: u64,
}

/// What came of it.
#[derive(Debug, Payload)]
#[payload(ns = "urn:bench")]
struct Worked {
    n: u64,
}

/// Nothing to do.
#[derive(Debug, Payload)]
#[payload(ns = "urn:bench")]
struct Sit {}

/// Counts down, one message to oneself a step.
#[derive(Debug, Payload)]
#[payload(ns = "urn:bench")]
struct Down {
    n: u64,
    text: String,
}

/// Takes a millisecond.
#[derive(Debug, Payload)]
#[payload(ns = "urn:bench")]
struct Crowd {}

type Opened = (Vec<Spawn<Work>>, Option<Again<Open>>);

async fn open(Open { n }: Open) -> Opened {
    let now = n.min(BRANCH);
    let rest = (n > now).then(|| Again(Open { n: n - now }));
    ((0..now).map(|n| Spawn::new(Work { n }).label("w")).collect(), rest)
}

async fn down(Down { n, text }: Down) -> Option<Again<Down>> {
    (n > 1).then(|| Again(Down { n: n - 1, text }))
}

async fn crowd(_: Crowd) -> Worked {
    tokio::time::sleep(Duration::from_millis(1)).await;
    Worked { n: 0 }
}

/// Whatever the house has no bound for here.
fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.tree_messages_max = UNLIMITED;
    limits.tree_children_max = UNLIMITED;
    limits.tree_seconds_max = UNLIMITED;
    limits.chain_max = usize::MAX;
    limits.repeats_max = usize::MAX;
    limits
}

fn start(log: Arc<dyn Log>, limits: Limits) -> Pump {
    let boss = Listener::new("boss").on(open).on_reply(async |_: ThreadResult| ()).inline();
    let worker = Listener::new("worker").on(async |Work { n }: Work| Worked { n }).inline();
    let builder = pumphouse::builder()
        .with(move |it: &mut Builder| it.log(log))
        .with((boss.grant::<Threads>(), worker))
        .with(Listener::new("sitter").on(async |_: Sit| ()).inline())
        .with(Listener::new("chain").on(down).inline())
        .with(Listener::new("crowded").on(crowd))
        .limits(limits);
    builder.build().expect("it is sound").start()
}

fn memory() -> Arc<dyn Log> {
    Arc::new(MemoryLog::new())
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let is_wanted = |it: &str| wanted.is_empty() || wanted.iter().any(|other| other == it);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        if is_wanted("children") {
            children().await;
        }
        if is_wanted("live") {
            live().await;
        }
        if is_wanted("long") {
            long().await;
        }
        if is_wanted("neighbour") {
            neighbour().await;
        }
        if is_wanted("chain") {
            chain().await;
        }
        if is_wanted("sleeping") {
            sleeping().await;
        }
    });
}

/// Children of one parent, from their opening to their result.
async fn children() {
    for n in [12_500, 25_000, 50_000, 100_000] {
        let pump = start(memory(), limits());
        let begun = Instant::now();
        let _: Done = pump.ask(Open { n }).await.expect("all are done");
        let secs = begun.elapsed().as_secs_f64();
        println!(
            "children: {n:7} of one parent  {:9.0} spawns to results a second",
            n as f64 / secs
        );
    }
}

/// Threads that are all awake.
async fn live() {
    for (n, below) in [(10_000_u64, false), (10_000, true)] {
        let before = resident();
        let mut limits = limits();
        limits.trees_awake_max = 20_000;
        let pump = start(memory(), limits);
        if below {
            let _: Done = pump.ask(Open { n }).await.expect("all are done");
        } else {
            for _ in 0..n {
                pump.tell(Sit {}).await.expect("it is taken");
            }
        }
        let what = if below { "children of one, ended" } else { "sessions, awake" };
        println!("live: {n} {what}: {} MiB more", (resident() - before) >> 20);
    }
}

/// A thread of 100,000 entries: what one more costs, and how fast they are read.
async fn long() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.db");
    let log = sqlite(&path, Durability::Normal);
    let pump = start(log.clone(), limits());
    let (n, text) = (10_000, "x".repeat(200));
    let first = pump.tell(Down { n: 1, text: text.clone() }).await.expect("it is taken");
    let pump = pump.in_thread(&first.thread);
    for round in 0..10 {
        let begun = Instant::now();
        let _: Done = pump.ask(Down { n, text: text.clone() }).await.expect("it is done");
        if round == 0 || round == 9 {
            let rate = n as f64 / begun.elapsed().as_secs_f64();
            println!("long: entries {:6} and on  {rate:9.0} a second", round * n);
        }
    }
    let (mut after, mut bytes) = (0, 0);
    let begun = Instant::now();
    loop {
        let page = log.read(&first.thread, after, u64::MAX, 4_096).await.expect("it is read");
        let Some(last) = page.last() else { break };
        after = last.id.seq;
        bytes += page.iter().map(|it| it.body.len() as u64).sum::<u64>();
    }
    let rate = after as f64 / begun.elapsed().as_secs_f64();
    println!("long: {after} entries read, {rate:9.0} a second");
    pump.shutdown().await.expect("it stops");
    drop((pump, log));
    let size = size(&path);
    let bound = bytes as f64 * 1.3 + after as f64 * 150.0;
    println!(
        "long: file {size} bytes; payloads {bytes}; {:.2} of 1.3 x payloads + 150 an entry",
        size as f64 / bound
    );
}

/// What a thread with 10,000 messages that wait does to another.
async fn neighbour() {
    let mut limits = limits();
    limits.unconsumed_max = 20_000;
    let pump = start(memory(), limits);
    let first = pump.tell(Work { n: 0 }).await.expect("it is taken");
    let quiet = pump.in_thread(&first.thread);
    let alone = percentile(&quiet, 2_000).await;
    let crowded = pump.tell(Crowd {}).await.expect("it is taken");
    let crowded = pump.in_thread(&crowded.thread);
    for _ in 0..10_000 {
        crowded.tell(Crowd {}).await.expect("it is taken");
    }
    let beside = percentile(&quiet, 2_000).await;
    println!("neighbour: p99 {alone:?} alone, {beside:?} beside 10,000 that wait");
}

async fn percentile(pump: &Pump, times: usize) -> Duration {
    let mut took = Vec::with_capacity(times);
    for _ in 0..times {
        let begun = Instant::now();
        let _: Worked = pump.ask(Work { n: 1 }).await.expect("it answers");
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    took[times * 99 / 100]
}

/// 2,000 messages to oneself in one thread, as an agent thinks on.
async fn chain() {
    let folder = tempfile::tempdir().expect("a folder");
    let n = 2_000;
    for durability in [Durability::Memory, Durability::Normal, Durability::Full] {
        let path = folder.path().join(format!("{durability:?}.db"));
        let log = match durability {
            Durability::Memory => memory(),
            _ => sqlite(&path, durability),
        };
        let pump = start(log, limits());
        let begun = Instant::now();
        let text = "<thought>1000</thought>".to_owned();
        let _: Done = pump.ask(Down { n, text }).await.expect("it is done");
        let rate = n as f64 / begun.elapsed().as_secs_f64();
        pump.shutdown().await.expect("it stops");
        drop(pump);
        println!(
            "chain: {n} to oneself, {durability:?}  {rate:9.0} a second, file {} bytes",
            size(&path)
        );
    }
}

/// A million threads that nobody speaks in: what they cost, and how fast one wakes.
async fn sleeping() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.db");
    let n: u64 = std::env::var("PUMPHOUSE_SLEEPERS")
        .ok()
        .and_then(|it| it.parse().ok())
        .unwrap_or(1_000_000);
    let mut threads = Vec::new();
    let pump = start(sqlite(&path, Durability::Normal), limits());
    let begun = Instant::now();
    let mut tasks = Vec::new();
    for task in 0..64 {
        let pump = pump.clone();
        tasks.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            for at in (task..n).step_by(64) {
                let id = pump.tell(Work { n: at }).await.expect("it is taken");
                if at % (n / 2_000).max(1) == 0 {
                    ids.push(id.thread);
                }
            }
            ids
        }));
    }
    for task in tasks {
        threads.extend(task.await.expect("it ends"));
    }
    println!("sleeping: {n} threads opened in {:.1?}", begun.elapsed());
    pump.shutdown().await.expect("it stops");
    drop(pump);
    let before = resident();
    let begun = Instant::now();
    let pump = start(sqlite(&path, Durability::Normal), limits());
    pump.ready().await.expect("it is ready");
    let more = resident().saturating_sub(before) >> 20;
    println!("sleeping: ready in {:.1?}, {more} MiB more than before the start", begun.elapsed());
    let mut took = Vec::new();
    for thread in &threads {
        let begun = Instant::now();
        let _: Worked = pump.in_thread(thread).ask(Work { n: 1 }).await.expect("it answers");
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    let (p50, p99) = (took[took.len() / 2], took[took.len() * 99 / 100]);
    println!("sleeping: {} of them wake and answer: p50 {p50:?}, p99 {p99:?}", took.len());
}

fn sqlite(path: &Path, durability: Durability) -> Arc<dyn Log> {
    Arc::new(SqliteLog::open(path, durability).expect("it opens"))
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |it| it.len())
}

/// The process's memory, in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    let kib = line.and_then(|it| it.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
