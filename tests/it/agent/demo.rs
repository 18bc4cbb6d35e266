//! The thread of `pumphouse demo agent`, on virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use pumphouse::engine::{Plan, Port as _, Replayed};
use pumphouse::listeners::action::words::{ActionResult, Status};
use pumphouse::listeners::demo::{LookUp, QUESTION, demo};
use pumphouse::sim::{Disk, Sim};

use super::*;
use crate::program::Scene;

/// What the researcher is asked.
#[derive(Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/researcher/v1")]
struct Researcher {
    #[payload(text)]
    text: String,
}

/// What was looked up under which key: what the library knows of it, whatever becomes of the pump.
type Visits = Arc<Mutex<BTreeMap<String, LookUp>>>;

struct World {
    sim: Sim,
    disk: Disk,
    visits: Visits,
}

impl World {
    fn new() -> World {
        let sim = Sim::new(1);
        World { disk: Disk::new(&sim), sim, visits: Visits::default() }
    }

    fn plan(&self) -> Plan {
        let sim = self.sim.clone();
        let sleep = move |time| {
            let sim = sim.clone();
            async move { sim.sleep(time).await }
        };
        let visits = self.visits.clone();
        let note = move |key: &str, it: &LookUp| {
            visits.lock().unwrap().insert(key.to_owned(), it.clone());
        };
        let staff = (core(), agent_support(), tool::calculate::calculate());
        let all = (staff, demo(sleep, note), self.disk.log());
        pumphouse::builder().with(all).workers(2).build().unwrap()
    }

    fn start(&self) -> Pump {
        self.plan().start_on(&self.sim)
    }

    fn replay(&self, thread: &ThreadId) -> Replayed {
        let (log, sim, thread) = (self.disk.log(), self.sim.clone(), thread.clone());
        let (log, plan): (Arc<dyn Log>, Plan) = (Arc::new(log), self.plan());
        let replay = async move { plan.replay(&log, &thread, &sim).await };
        self.sim.run(replay).unwrap().unwrap()
    }

    /// Asks, and stops the machine at these times; what the thread has in the end.
    fn play(&self, stops: &[u64]) -> Vec<Entry> {
        let mut pump = self.start();
        let question = Researcher { text: QUESTION.to_owned() };
        let asked = self.sim.run(pump.tell(question)).unwrap().unwrap();
        for stop in stops {
            self.sim.run(self.sim.sleep_until(*stop)).unwrap();
            self.sim.crash();
            drop(pump);
            pump = self.start();
        }
        self.sim.rest().unwrap();
        drop(pump);
        let log = self.disk.kept();
        let read = log.read(&asked.thread, 0, u64::MAX, 1_000);
        let entries = self.sim.run(read).unwrap().unwrap();
        entries.iter().map(|it| -> Entry { (&**it).into() }).collect()
    }
}

/// The last word, and what each action came to.
pub(crate) fn came(thread: &[Entry]) -> (String, Vec<String>) {
    let finals = thread.iter().filter_map(|it| it.decode::<Response>().ok());
    let mut finals = finals.filter(|it| it.is_final);
    let text = finals.next().expect("there is a last word").text;
    assert!(finals.next().is_none(), "there is one last word");
    let results = thread.iter().filter_map(|it| it.decode::<ActionResult>().ok());
    let mut results: Vec<String> = results
        .map(|it| format!("{} {}", it.id, if it.status == Status::Ok { "ok" } else { "not ok" }))
        .collect();
    results.sort();
    (text, results)
}

#[test]
fn the_demo_comes_to_its_answer() {
    let world = World::new();
    let thread = world.play(&[]);
    let clean = came(&thread);
    assert_eq!(
        clean.0,
        "The tides: the moon pulls at the sea. They come every 12 h 25 min. In narrow bays they \
         reach 16 m.\nThat is what 42 pages come to. In the news: a mill in Brittany runs on them."
    );
    assert_eq!(clean.1, ["basics ok", "news ok", "numbers ok", "pages ok", "papers ok"]);
    assert_eq!(world.visits.lock().unwrap().len(), 3);
}

/// Plays it with a stop so long after each of its entries, in microseconds, and with a second one
/// where that is odd.
fn killed(later: u64) {
    let thread = World::new().play(&[]);
    let clean = came(&thread);
    let times: BTreeSet<u64> = thread.iter().map(Entry::at_us).collect();
    assert!(times.len() > 15, "{times:?}");
    for time in times {
        let first = time + later;
        let stops = [first, first + 900 + later * 7];
        let stops = &stops[..1 + usize::from(later % 2 == 1)];
        let world = World::new();
        let thread = world.play(stops);
        assert_eq!(came(&thread), clean, "at {stops:?}");
        let replayed = world.replay(thread[0].thread());
        assert_eq!(replayed.difference, None, "at {stops:?}");
        let visits = world.visits.lock().unwrap();
        // A key for each of the three, however often it was tried.
        let shelves: BTreeSet<String> =
            visits.values().map(|it| format!("{:?}", it.shelf)).collect();
        assert_eq!((visits.len(), shelves.len()), (3, 3), "at {stops:?}: {visits:?}");
    }
}

#[test]
fn killed_at_any_entry_it_comes_to_the_same() {
    #[expect(clippy::disallowed_methods, reason = "how much is tried is whoever runs it's to say")]
    let kills = std::env::var("PUMPHOUSE_KILLS").ok().and_then(|it| it.parse().ok());
    (0..kills.unwrap_or(2)).for_each(|it| killed(it * 701));
}

#[test]
fn replayed_with_its_recorded_replies_it_comes_to_the_same() {
    let world = World::new();
    let thread = world.play(&[])[0].thread().clone();
    let it = world.replay(&thread);
    assert_eq!((it.difference, it.skipped), (None, Vec::new()));
    let compared: Vec<&str> = it.compared.keys().map(|it| &**it).collect();
    assert_eq!(compared, ["action", "analyst", "calculate", "feed", "researcher"]);
    let taken: Vec<&str> = it.taken.keys().map(|it| &**it).collect();
    assert_eq!(taken, ["library", "thread", "todo"]);
}

#[test]
fn demo_agent_shows_a_thread_and_how_it_came_to_its_answer() {
    let ran = Scene::new().run(&["demo", "agent"]).code(0);
    let parts = [
        "What is known of the tides?",
        "✓ library",
        "✓ calculate",
        "Three shelves are being read",
        "In narrow bays they reach 16 m.",
        "That is what 42 pages come to.",
        "todo /",
        ".numbers  closed",
        "1. From outside, console opened",
        "is gone again",
    ];
    for it in parts {
        assert!(ran.out.contains(it), "no {it:?} in {}", ran.out);
    }
}
