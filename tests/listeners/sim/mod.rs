//! The engine on virtual time: a world of listeners and clients that a seed decides, with faults
//! and crashes. The same rules hold in every run.

mod check;
mod clients;
mod found;
mod poison;
mod world;

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use pumphouse::engine::{Identity, Port};
use pumphouse::log::{Entry, Head};
use pumphouse::prelude::{Limits, Pump};
use pumphouse::sim::{Sim, Stuck};

use clients::{Client, Ear};
use world::World;

/// How many steps a life may take before it counts as one that never rests.
const STEPS_MAX: u64 = 200_000;

/// How many seeds are played, unless said.
const SEEDS: u64 = 1_000;

#[test]
fn whatever_happens_every_rule_holds() {
    if let Some(seed) = number("PUMPHOUSE_SEED") {
        let played = play(seed);
        println!("{}", played.story());
        return played.judged(seed).unwrap();
    }
    let (mut entries, mut wrong) = (0, Vec::new());
    for seed in 0..number("PUMPHOUSE_SEEDS").unwrap_or(SEEDS) {
        let played = play(seed);
        entries += played.entries().len();
        wrong.extend(played.judged(seed).err());
    }
    println!("{entries} entries");
    let first = &wrong[..wrong.len().min(5)];
    assert!(wrong.is_empty(), "{} seeds: {}", wrong.len(), first.join("\n"));
}

#[test]
fn one_seed_twice_gives_the_same_log() {
    for seed in 0..50 {
        let (first, second) = (play(seed), play(seed));
        assert_eq!(first.story(), second.story(), "seed {seed}");
        assert_eq!(first.head(), second.head(), "seed {seed}");
        assert_ne!(first.head(), play(seed + 50).head(), "seed {seed}");
    }
}

fn number(variable: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "`just sim` says which seed, or how many")]
    std::env::var(variable).ok()?.parse().ok()
}

/// What came of a seed.
struct Played {
    world: World,
    ear: Arc<Ear>,
}

impl Played {
    fn judged(&self, seed: u64) -> Result<(), String> {
        let wrong = &self.world.ledger().wrong;
        let text = || format!("seed {seed}: {wrong:#?}; `just sim {seed}` tells its story");
        if wrong.is_empty() { Ok(()) } else { Err(text()) }
    }

    fn entries(&self) -> Vec<Arc<Entry>> {
        self.world.disk.kept().tail(0, usize::MAX).now_or_never().unwrap().unwrap()
    }

    /// Every batch, entry and mark is in it.
    fn head(&self) -> Head {
        self.world.disk.kept().head().now_or_never().unwrap().unwrap()
    }

    /// What happened and what the log has, by time.
    fn story(&self) -> String {
        let mut lines = self.world.ledger().story.clone();
        lines.extend(self.entries().iter().map(|it| {
            let (to, flags) = (it.to.as_deref().unwrap_or("*"), it.flags);
            let cause = it.cause.as_ref().map_or("nothing".into(), ToString::to_string);
            let body = String::from_utf8_lossy(&it.body);
            let text = format!("{} > {to} because of {cause} [{flags}] {body}", it.from);
            (it.at_us, format!("    #{} {} {text}", it.position, it.id))
        }));
        lines.sort_by_key(|(at_us, _)| *at_us);
        lines.iter().fold(String::new(), |mut story, (at_us, line)| {
            let at = (at_us - Sim::BEGINS_US) as f64 / 1e6;
            writeln!(story, "{at:11.6} {line}").unwrap();
            story
        })
    }
}

/// Plays a seed: some lives that end in whatever way, then one that may rest.
fn play(seed: u64) -> Played {
    let world = World::new(seed);
    world.sim.allow_steps(STEPS_MAX);
    let ear = Ear::new(&world);
    let lives = world.sim.below(4);
    let mut played = Played { world, ear };
    for _ in 0..lives {
        let done = played.live();
        played.after_life(done);
    }
    let done = played.last_life();
    played.after_life(done);
    check::all(&played.world, &played.ear.heard());
    played
}

impl Played {
    fn start(&self) -> Pump {
        let (world, sim) = (&self.world, &self.world.sim);
        let up_to = |max: u64| usize::try_from(1 + sim.below(max)).unwrap();
        let limits = Limits {
            trees_awake_max: up_to(4),
            handlers_max: up_to(4),
            unconsumed_max: up_to(10),
            entries_at_hand_max: up_to(10),
            steps_in_turn_max: up_to(4),
            steps_in_batch_max: up_to(8),
            batches_in_flight_max: up_to(4),
            thread_depth_max: up_to(4),
            ..Limits::default()
        };
        let workers = up_to(3);
        {
            let mut ledger = world.ledger();
            ledger.life += 1;
            ledger.busy = 0;
        }
        world.tell(format!("THE PUMP STARTS, {workers} workers"));
        let plan = pumphouse::builder().with(world.listeners()).with(World::staff());
        let plan = plan.with(world.disk.log()).limits(limits).workers(workers);
        let pump = plan.build().unwrap().start_on(sim);
        for name in ["alice", "bob", "root"] {
            let (world, pump, ear) = (world.clone(), pump.clone(), self.ear.clone());
            let identity = Identity { name: name.into(), operator: name == "root" };
            let pump = pump.speaking_as(identity);
            let client = Client { world, pump, ear, name };
            sim.spawn(client.live(sim.below(9)));
        }
        pump
    }

    /// A life with faults, and its end.
    fn live(&mut self) -> Result<(), Stuck> {
        let pump = self.start();
        let sim = &self.world.sim;
        let nap = |max_us| sim.run(sim.sleep(Duration::from_micros(sim.below(max_us))));
        nap(40_000)?;
        match sim.below(6) {
            0 => {
                let time = Duration::from_micros(sim.below(100_000));
                self.world.tell(format!("THE DISK IS FULL for {time:?}"));
                self.world.disk.fill(time);
                nap(150_000)?;
            }
            1 => {
                self.world.tell("THE DISK FAILS");
                self.world.disk.fail();
                nap(20_000)?;
            }
            2 => nap(5_000_000)?,
            3 => {
                self.world.tell("THE PUMP SHUTS DOWN");
                // A disk that failed can't be closed.
                let _ = sim.run(pump.shutdown())?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The machine is off.
    fn after_life(&self, done: Result<(), Stuck>) {
        if let Err(stuck) = done {
            self.world.wrong(format!("{stuck}"));
        }
        self.world.tell("THE MACHINE CRASHES");
        self.world.sim.crash();
    }

    /// A life in which everything comes to rest.
    fn last_life(&mut self) -> Result<(), Stuck> {
        let pump = self.start();
        let (world, sim) = (self.world.clone(), self.world.sim.clone());
        let identity = Identity { name: "root".into(), operator: true };
        let (ear, name) = (self.ear.clone(), "root");
        let root = Client { world, pump: pump.speaking_as(identity), ear, name };
        sim.rest()?;
        while sim.run(root.resume_all())? {
            sim.rest()?;
        }
        if self.world.ledger().busy > 0 {
            self.world.wrong("a client still waits");
        }
        check::rest(&self.world);
        let closed = sim.run(pump.shutdown())?;
        if let Err(error) = closed {
            self.world.wrong(format!("the log can't be closed: {error}"));
        }
        Ok(())
    }
}
