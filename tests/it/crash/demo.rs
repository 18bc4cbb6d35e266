//! The demo's agent in a process that is killed at each entry of its threads. An asker that asks
//! again gets the same last message, and the agent's library was asked under the same keys.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pumphouse::clock;
use pumphouse::listeners::agent::words::Response;
use pumphouse::listeners::demo::QUESTION;
use pumphouse::log::{Entry as Logged, Log as _, SqliteLog};
use pumphouse::prelude::*;

use super::check::wait;
use super::effects::{Place, Process};
use super::load::accepted;
use crate::agent::demo::came;
use crate::examples::example;

/// How many times as quick it is, unless `just crash-demo` has it take its time.
const SPEED: u64 = 20;
/// At how many of its entries it is killed then.
const KILLS: usize = 6;
/// How many are killed side by side.
const AT_ONCE: usize = 4;
/// How long it may take, quick or not.
const TIME_US_MAX: u64 = 60_000_000;
/// How often its log is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// What a run came to.
#[derive(Debug)]
struct Run {
    /// The last word, and what each action came to.
    came: (String, Vec<String>),
    /// What isn't consumed in the end, by name.
    open: Vec<String>,
    /// How many entries its threads have.
    entries: usize,
    /// How many there were at each kill.
    had: Vec<usize>,
    /// How often the library was asked beyond the first time, under the same keys.
    again: usize,
}

#[test]
fn the_demo_killed_at_any_entry_comes_to_the_same() {
    #[expect(clippy::disallowed_methods, reason = "the justfile's recipe says how quick it is")]
    let asked = std::env::var("PUMPHOUSE_CRASH_DEMO").ok();
    let speed = asked.as_ref().map_or(SPEED, |it| it.parse().expect("how many times as quick"));
    let clean = run(speed, &[]);
    assert_eq!((clean.again, &clean.open), (0, &vec!["todo-open".to_owned()]));
    let step = if asked.is_some() { 1 } else { clean.entries.div_ceil(KILLS) };
    let kills: Vec<usize> = (1..=clean.entries).step_by(step).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut runs = Vec::new();
        while let Some(at) = kills.get(next.fetch_add(1, Ordering::Relaxed)) {
            // Each second one is killed once more, as soon as it has gone on.
            let stops = [*at; 2];
            let run = run(speed, &stops[..1 + at % 2]);
            assert_eq!((&run.came, &run.open), (&clean.came, &clean.open), "at {stops:?}");
            runs.push(run);
        }
        runs
    };
    let runs: Vec<Run> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|it| it.join().expect("each comes to the same")).collect()
    });
    let had: Vec<usize> = runs.iter().flat_map(|it| it.had.iter().copied()).collect();
    println!(
        "{} entries; {} runs with {} kills, at {} different numbers of entries; \
         0 last words that differ; 3 visits each, {} of them tried again under the same key",
        clean.entries,
        runs.len(),
        had.len(),
        had.iter().collect::<BTreeSet<_>>().len(),
        runs.iter().map(|it| it.again).sum::<usize>(),
    );
}

/// Asks, kills it as soon as the log has so many entries, and more than at the last kill, asks
/// again, and so on; then lets it come to its end.
fn run(speed: u64, kills: &[usize]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(folder.path(), folder.path());
    let mut had = Vec::new();
    for at in kills {
        let (mut process, client) = ask(&place, speed);
        let enough = had.last().map_or(*at, |it| (*at).max(it + 1));
        watch(&place.log(), |story| story.len() >= enough);
        process.kill();
        drop(client);
        had.push(story(&place.log(), 0).len());
    }
    let (process, client) = ask(&place, speed);
    let accepted = accepted(&mut BufReader::new(&client)).expect("it is acknowledged");
    watch(&place.log(), |_| false);
    drop(client);
    process.stop();
    let log = place.log();
    assert!(wait(log.verify(None)).is_sound(), "after kills at {had:?}");
    let all = story(&log, 0);
    // However often it was said, it is there once, and what is below it is there once.
    assert_eq!((&*accepted.seq, &*accepted.thread), ("1", all[0].id.thread.as_str()));
    let threads: BTreeSet<&str> = all.iter().map(|it| it.id.thread.as_str()).collect();
    let below = format!("{}.numbers", accepted.thread);
    assert_eq!(threads, BTreeSet::from([&*accepted.thread, &*below]), "after kills at {had:?}");
    let own = all.iter().filter(|it| it.id.thread.as_str() == accepted.thread);
    let own: Vec<Entry> = own.map(|it| (&**it).into()).collect();
    let open = wait(log.open_entries());
    Run {
        came: came(&own),
        open: open.iter().map(|it| it.entry.name.local().to_owned()).collect(),
        entries: all.len(),
        had,
        again: again(&std::fs::read_to_string(&place.ledger).unwrap()),
    }
}

/// Starts it, and asks under an id, so that it is the same question each time.
fn ask(place: &Place, speed: u64) -> (Process, TcpStream) {
    let mut command = Command::new(example("demo"));
    command.args([&place.log, &place.ledger]).arg(speed.to_string());
    let mut process = Process::spawn(&mut command);
    let (address, _) = process.ready().expect("it starts");
    let mut client = TcpStream::connect(address).unwrap();
    let question = format!(
        "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><id>question</id></meta>\
         <researcher xmlns=\"https://xml-pipeline.org/ns/researcher/v1\">{QUESTION}</researcher>\
         </message>\n"
    );
    client.write_all(question.as_bytes()).unwrap();
    (process, client)
}

/// Looks at the log until it has enough, or the last word.
fn watch(log: &SqliteLog, is_enough: impl Fn(&[Arc<Logged>]) -> bool) {
    let until_us = clock::now_us() + TIME_US_MAX;
    let mut all: Vec<Arc<Logged>> = Vec::new();
    loop {
        let new = story(log, all.last().map_or(0, |it| it.position));
        let is_over = new.iter().any(|it| is_last(it));
        all.extend(new);
        if is_over || is_enough(&all) {
            return;
        }
        assert!(clock::now_us() < until_us, "it isn't over: {:#?}", all.last());
        std::thread::park_timeout(LOOK);
    }
}

/// The entries after a position, but those of the organism's own life.
fn story(log: &SqliteLog, after: u64) -> Vec<Arc<Logged>> {
    let mut all = wait(log.tail(after, usize::MAX));
    all.retain(|it| it.id.thread.as_str() != "organism");
    all
}

/// Whether it is what the session comes to, and not a thread below it.
fn is_last(entry: &Logged) -> bool {
    let thread = &entry.id.thread;
    if *thread != thread.tree() || entry.name.local() != "response" {
        return false;
    }
    let entry: Entry = entry.into();
    entry.decode::<Response>().unwrap().is_final
}

/// How often the library was asked again; it was asked under one key for each of its shelves.
fn again(ledger: &str) -> usize {
    let visits: Vec<(&str, &str)> =
        ledger.lines().map(|it| it.split_once('\t').expect("a whole line")).collect();
    let keys: BTreeMap<&str, &str> = visits.iter().copied().collect();
    let shelves: BTreeSet<&str> = visits.iter().map(|it| it.1).collect();
    let expected = BTreeSet::from(["Encyclopedia", "News", "Papers"]);
    assert_eq!((keys.len(), &shelves), (3, &expected), "{ledger}");
    visits.len() - keys.len()
}
