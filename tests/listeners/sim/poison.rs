//! Messages whose handling ends the process, and processes that are killed for other reasons.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use pumphouse::prelude::*;
use pumphouse::sim::{Disk, Sim};

use super::world::{Plain, Said};

/// What the handlers of a test share.
struct Shared {
    sim: Sim,
    /// Whether the handling that ends the process has come to its end.
    is_over: AtomicBool,
    /// How often the process was started.
    starts: AtomicU64,
}

/// Ends the process after two seconds if the fuel is 0. Otherwise answers after so many seconds.
async fn work(State(it): State<Arc<Shared>>, Plain { fuel, .. }: Plain) -> Said {
    if fuel == 0 {
        it.sim.sleep(Duration::from_secs(2)).await;
        it.is_over.store(true, Relaxed);
        std::future::pending::<()>().await;
    }
    it.sim.sleep(Duration::from_secs(fuel.into())).await;
    Said { n: fuel.into() }
}

struct Scene {
    sim: Sim,
    disk: Disk,
    shared: Arc<Shared>,
    is_pure: bool,
}

impl Scene {
    fn new(seed: u64, is_pure: bool) -> Scene {
        let sim = Sim::new(seed);
        let (is_over, starts) = Default::default();
        let shared = Arc::new(Shared { sim: sim.clone(), is_over, starts });
        Scene { disk: Disk::new(&sim), sim, shared, is_pure }
    }

    fn start(&self) -> Pump {
        self.shared.starts.fetch_add(1, Relaxed);
        self.shared.is_over.store(false, Relaxed);
        let it = Listener::with_state("a", self.shared.clone()).on(work);
        let it = it.timeout(Duration::from_secs(100_000));
        let it = if self.is_pure { it.pure() } else { it.idempotent() };
        let plan = pumphouse::builder().name("sim").with(it).with(self.disk.log()).workers(2);
        plan.build().unwrap().start_on(&self.sim)
    }

    fn ask(&self, pump: &Pump, fuel: u32) -> ThreadId {
        self.sim.run(pump.tell(Plain { fuel, due: None })).unwrap().unwrap().thread
    }

    /// Runs until the handling that ends the process is over, or until `time` has passed. Returns
    /// whether it is over.
    fn run(&self, time: Duration) -> bool {
        let until_us = self.sim.now_us() + u64::try_from(time.as_micros()).unwrap();
        let over = async {
            while !self.shared.is_over.load(Relaxed) && self.sim.now_us() < until_us {
                self.sim.sleep(Duration::from_millis(50)).await;
            }
        };
        self.sim.run(over).unwrap();
        self.shared.is_over.load(Relaxed)
    }

    /// The answers in a thread.
    fn told(&self, pump: &Pump, thread: &ThreadId) -> Vec<String> {
        let told = self.sim.run(pump.log().read(thread, 1, u64::MAX, 100)).unwrap().unwrap();
        told.iter().map(|it| String::from_utf8_lossy(&it.body).into_owned()).collect()
    }
}

#[track_caller]
fn check_poison(seed: u64, is_pure: bool, ends: u64) {
    let scene = Scene::new(seed, is_pure);
    let pump = scene.start();
    // The others are under way whenever the process ends, or at its first ends.
    let good = [scene.ask(&pump, 4), scene.ask(&pump, 5)];
    let bad = scene.ask(&pump, 0);
    let mut pump = pump;
    while scene.run(Duration::from_secs(60)) {
        scene.sim.crash();
        pump = scene.start();
        assert!(scene.shared.starts.load(Relaxed) < 20, "it goes on for ever");
    }
    assert_eq!(scene.shared.starts.load(Relaxed) - 1, ends, "seed {seed}");
    let told = scene.told(&pump, &bad);
    assert!(told.len() == 1 && told[0].contains("code=\"P0033\""), "{told:?}");
    for (thread, answer) in good.iter().zip(["4", "5"]) {
        let told = scene.told(&pump, thread);
        assert!(told.len() == 1 && told[0].contains(answer), "{told:?}");
    }
    // It works as before.
    let more: Said = scene.sim.run(pump.ask(Plain { fuel: 1, due: None })).unwrap().unwrap();
    assert_eq!(more.n, 1);
}

#[test]
fn what_ends_the_process_alone_is_poisonous_and_its_sender_is_told() {
    (0..10).for_each(|seed| check_poison(seed, false, 6));
}

/// The first start of a pure handler isn't recorded, so it counts once the pump has started again.
#[test]
fn a_pure_handler_that_ends_the_process_is_poisonous_too() {
    (0..10).for_each(|seed| check_poison(seed, true, 6));
}

#[test]
fn kills_of_the_process_poison_nothing() {
    // Kills at regular times, most of them while a message is handled alone.
    for seconds in (1..=40).chain([60, 100]) {
        let scene = Scene::new(seconds, false);
        let mut pump = scene.start();
        let threads = [1_000, 1_001, 1_002].map(|it| scene.ask(&pump, it));
        for _ in 0..12 {
            scene.run(Duration::from_secs(seconds));
            scene.sim.crash();
            pump = scene.start();
        }
        scene.run(Duration::from_secs(2_500));
        for thread in &threads {
            let told = scene.told(&pump, thread);
            assert!(told.len() == 1 && told[0].contains("100"), "{seconds}: {told:?}");
        }
    }
}

#[test]
fn a_stop_counts_for_nothing() {
    let scene = Scene::new(1, false);
    let mut pump = scene.start();
    scene.ask(&pump, 1_000);
    for _ in 0..4 {
        scene.run(Duration::from_secs(1));
        scene.sim.run(pump.shutdown()).unwrap().unwrap();
        scene.sim.crash();
        pump = scene.start();
    }
    let before = scene.sim.now_us();
    let said: Said = scene.sim.run(pump.ask(Plain { fuel: 1, due: None })).unwrap().unwrap();
    assert_eq!(said.n, 1);
    assert!(scene.sim.now_us() - before < 3_000_000);
}

#[test]
fn a_stop_ends_the_time_in_which_messages_are_handled_alone() {
    let scene = Scene::new(1, false);
    let mut pump = scene.start();
    scene.ask(&pump, 1_000);
    for _ in 0..3 {
        scene.run(Duration::from_secs(1));
        scene.sim.crash();
        pump = scene.start();
    }
    let before = scene.sim.now_us();
    scene.sim.run(pump.shutdown()).unwrap().unwrap();
    // What is under way has its `drain_time_max`, and no more.
    assert!(scene.sim.now_us() - before < 40_000_000);
}

#[test]
fn a_push_waits_while_messages_are_handled_alone() {
    let scene = Scene::new(1, false);
    let mut pump = scene.start();
    scene.ask(&pump, 30);
    for _ in 0..3 {
        scene.run(Duration::from_secs(1));
        scene.sim.crash();
        pump = scene.start();
    }
    let before = scene.sim.now_us();
    let said: Said = scene.sim.run(pump.ask(Plain { fuel: 1, due: None })).unwrap().unwrap();
    let passed = scene.sim.now_us() - before;
    assert_eq!(said.n, 1);
    assert!((10_000_000..13_000_000).contains(&passed), "{passed}");
}
