//! A workflow of fifty steps on virtual time. Wherever the machine crashes, a run ends the same: in
//! its answer, in the effects of its steps, and in the order in which effects are undone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use pumphouse::engine::Port as _;
use pumphouse::listeners::action::words::{ActionResult, Status};
use pumphouse::listeners::workflow::Workflow;
use pumphouse::listeners::workflow::words::{WorkflowFailed, WorkflowResult};
use pumphouse::listeners::{agent_support, core};
use pumphouse::prelude::*;
use pumphouse::sim::{Disk, Sim};
use serde_json::{Value, json};

#[path = "../../programs/fifty.rs"]
mod fifty;

use fifty::{Broke, Work, Worked};

/// At how many of a run's entries the machine crashes, unless `just crash-workflow` has it crash at
/// each.
const CRASHES: u64 = 20;
/// How many are played side by side.
const AT_ONCE: usize = 2;
/// How often the disk is looked at.
const LOOK: Duration = Duration::from_micros(300);
/// After which time without an entry a run counts as ended.
const QUIET_US: u64 = 5_000_000;

/// What stays when the machine crashes: its disk, and what the tool did outside.
#[derive(Clone)]
struct World {
    sim: Sim,
    disk: Disk,
    outside: Arc<Mutex<Outside>>,
}

/// What the tool has done outside of the pump.
#[derive(Default)]
struct Outside {
    /// How often each key was tried.
    tries: BTreeMap<String, u64>,
    /// What was done, each with its key, in the order in which it was first done.
    effects: Vec<(String, String)>,
}

/// How a run ended.
#[derive(Debug, PartialEq)]
struct End {
    answer: String,
    effects: Vec<String>,
    /// The calls that undid a step, in their order.
    undone: Vec<String>,
}

async fn work(State(world): State<World>, message: Message, it: Work) -> Result<Worked, Broke> {
    let key = message.key().unwrap_or_default();
    let tries = {
        let mut outside = world.outside.lock().unwrap();
        let tries = outside.tries.entry(key.clone()).or_default();
        *tries += 1;
        *tries
    };
    world.sim.sleep(Duration::from_millis(it.ms)).await;
    if tries <= it.fails.unwrap_or(0) {
        return Err(Broke);
    }
    let effects = &mut world.outside.lock().unwrap().effects;
    if effects.iter().all(|(other, _)| *other != key) {
        effects.push((key, it.what.clone()));
    }
    Ok(Worked(it.what))
}

impl World {
    fn new(seed: u64) -> World {
        let sim = Sim::new(seed);
        World { disk: Disk::new(&sim), sim, outside: Arc::default() }
    }

    fn start(&self) -> Pump {
        let workflow = |it: Value| Workflow::from_json(it).unwrap().listener();
        let tool = Listener::with_state("tool", self.clone()).on(work).idempotent().stateless();
        let all =
            (core(), agent_support(), tool, workflow(fifty::order()), workflow(fifty::pack()));
        let plan = pumphouse::builder().with((all, self.disk.log())).workers(2).build();
        plan.unwrap().start_on(&self.sim)
    }

    /// How many entries the disk has, which are more than so many or as many.
    fn kept(&self, before: u64) -> u64 {
        let new = self.disk.kept().tail(before, usize::MAX).now_or_never().unwrap().unwrap();
        new.last().map_or(before, |it| it.position)
    }

    /// Lets everything go on until the disk has more entries than so many. None if nothing is left
    /// to do before that.
    fn has_more_than(&self, count: u64) -> Option<u64> {
        let more = async {
            let until_us = self.sim.now_us() + QUIET_US;
            while self.kept(count) <= count && self.sim.now_us() < until_us {
                self.sim.sleep(LOOK).await;
            }
            Some(self.kept(count)).filter(|it| *it > count)
        };
        self.sim.run(more).unwrap()
    }

    fn entries(&self) -> Vec<Entry> {
        let all = self.disk.kept().tail(0, usize::MAX).now_or_never().unwrap().unwrap();
        all.iter().map(|it| (&**it).into()).collect()
    }

    fn end(&self) -> End {
        let all = self.entries();
        let is_answer = |it: &&Entry| it.is::<WorkflowResult>() || it.is::<WorkflowFailed>();
        let answers: Vec<&Entry> =
            all.iter().filter(is_answer).filter(|it| it.from() == "order").collect();
        assert_eq!(answers.len(), 1, "{answers:?}");
        let answer = String::from_utf8_lossy(answers[0].body()).into_owned();
        let effects = self.outside.lock().unwrap().effects.iter().map(|it| it.1.clone()).collect();
        let undone = results(&all).into_iter().filter(|it| it.ends_with("-undo")).collect();
        assert!(self.disk.kept().verify(None).now_or_never().unwrap().unwrap().is_sound());
        End { answer, effects, undone }
    }
}

/// The ids of the actions that ended well, in this order.
fn results(all: &[Entry]) -> Vec<String> {
    let ended = |it: &Entry| it.decode_if::<ActionResult>().filter(|it| it.status == Status::Ok);
    all.iter().filter(|it| it.to() == Some("order")).filter_map(ended).map(|it| it.id).collect()
}

/// A run on a machine that crashes, as often as `crashes` has another number of entries.
fn play(seed: u64, n: u64, mut crashes: impl Iterator<Item = u64>) -> (World, u64) {
    let world = World::new(seed);
    let input = json!({"n": n}).as_object().cloned().unwrap();
    let run = Workflow::from_json(fifty::order()).unwrap().run(&input).unwrap();
    let mut pump = world.start();
    let own = pump.clone();
    world.sim.spawn(async move { drop(own.tell_element(run).await) });
    let mut kept = 0;
    while let Some(more) = crashes.by_ref().find(|it| *it >= kept)
        && let Some(now) = world.has_more_than(more)
    {
        kept = now;
        world.sim.crash();
        drop(pump);
        pump = world.start();
    }
    world.sim.rest().unwrap();
    drop(pump);
    (world, kept)
}

/// How a run ends without a crash, and how many entries it has.
fn clean(n: u64) -> (End, u64) {
    let (world, _) = play(0, n, std::iter::empty());
    (world.end(), world.kept(0))
}

fn is_long() -> bool {
    #[expect(clippy::disallowed_methods, reason = "the justfile's recipe has it crash at each")]
    std::env::var("PUMPHOUSE_CRASH_WORKFLOW").is_ok()
}

fn count(steps: &Value) -> usize {
    let each = steps.as_array().into_iter().flatten();
    each.map(|it| 1 + count(&it["then"]) + count(&it["else"])).sum()
}

#[test]
fn a_run_of_fifty_steps_ends_well_or_undoes_what_was_done_the_newest_first() {
    assert_eq!(count(&fifty::order()["steps"]), 50);
    let (end, _) = clean(2);
    assert!(end.answer.contains("\"copy\":\"copy_4 after copy_3 after copy_2"), "{end:#?}");
    assert_eq!(end.undone, Vec::<String>::new());
    let (world, _) = play(0, 5, std::iter::empty());
    let failed = world.entries().iter().find_map(Entry::decode_if::<WorkflowFailed>).unwrap();
    assert_eq!(
        (failed.step.as_deref(), &*failed.not_undone),
        (Some("ship"), &["truck".to_owned()][..])
    );
    let mut done = results(&world.entries());
    done.retain(|it| failed.undone.contains(it));
    done.reverse();
    assert_eq!(failed.undone, done);
    assert_eq!(done.len(), 28, "{done:?}");
    let calls: Vec<String> = done.iter().map(|it| format!("{it}-undo")).collect();
    assert_eq!(world.end().undone, calls);
}

#[test]
fn a_run_that_a_crash_cuts_off_at_any_entry_ends_the_same() {
    for n in [2, 5] {
        let (end, entries) = clean(n);
        let step = if is_long() { 1 } else { entries / CRASHES };
        let next = AtomicU64::new(0);
        let work = || {
            loop {
                let at = next.fetch_add(step, Ordering::Relaxed);
                if at >= entries {
                    return;
                }
                let (world, _) = play(at, n, std::iter::once(at));
                assert_eq!(world.end(), end, "n {n}, a crash behind entry {at}");
            }
        };
        std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
        println!(
            "n {n}: {} crashes of {entries} entries, 0 ends that differ",
            entries.div_ceil(step)
        );
    }
}

#[test]
fn a_run_that_is_cut_off_again_and_again_ends_the_same() {
    let step = if is_long() { 1 } else { 7 };
    for n in [2, 5] {
        let (end, _) = clean(n);
        let (world, kept) = play(n, n, (0..).step_by(step));
        assert_eq!(world.end(), end, "n {n}");
        println!("n {n}: a crash each {step} entries, {kept} entries");
    }
}
