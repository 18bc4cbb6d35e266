//! The wall clock is set while a pump runs: what goes by the wall clock, and what goes by the time
//! that passes.

use std::time::Duration;

use pumphouse::engine::Identity;
use pumphouse::listeners::timer::{SetTimer, Tick};
use pumphouse::sim::{Disk, Sim};
use pumphouse::wire::SignedDuration;
use pumphouse::wire::core::ClockSet;

use super::*;

const SECOND: u64 = 1_000_000;
const HOUR: i64 = 3_600 * 1_000_000;

struct House {
    sim: Sim,
    disk: Disk,
    pump: Pump,
}

impl House {
    fn new() -> House {
        let sim = Sim::new(1);
        let disk = Disk::new(&sim);
        let pump = House::start(&sim, &disk);
        House { sim, disk, pump }
    }

    fn start(sim: &Sim, disk: &Disk) -> Pump {
        let plugins = (crate::usual(), disk.log());
        pumphouse::builder().with(plugins).build().unwrap().start_on(sim)
    }

    /// Sets a timer in a session of its own.
    fn sets(&self, change: impl FnOnce(&mut SetTimer)) -> ThreadId {
        let mut timer = SetTimer { after: None, at: None, every: None, cron: None, note: None };
        change(&mut timer);
        let ops = self.pump.speaking_as(Identity { name: "ops".into(), operator: true });
        self.sim.run(ops.tell(timer)).unwrap().unwrap().thread
    }

    /// Goes on until so many seconds have passed since the beginning.
    fn until(&self, seconds: u64) {
        let left = (Sim::BEGINS_US + seconds * SECOND).saturating_sub(self.sim.now_us());
        self.sim.run(self.sim.sleep(Duration::from_micros(left))).unwrap();
    }

    fn all<P: Payload>(&self, thread: &ThreadId) -> Vec<(u64, P)> {
        let read = self.disk.kept().read(thread, 0, u64::MAX, 10_000);
        let entries = self.sim.run(read).unwrap().unwrap();
        let all = entries.iter().filter(|it| it.name == P::NAME);
        let seconds = |at_us: u64| (at_us - Sim::BEGINS_US) / SECOND;
        let decode = |it: &Arc<pumphouse::log::Entry>| {
            let element = Element::from_canonical(it.body.clone()).unwrap();
            (seconds(it.at_us), P::decode(&element).unwrap())
        };
        all.map(decode).collect()
    }

    /// How many seconds had passed at each tick.
    fn ticks(&self, thread: &ThreadId) -> Vec<u64> {
        self.all::<Tick>(thread).into_iter().map(|(seconds, _)| seconds).collect()
    }
}

fn seconds(count: i64) -> Option<SignedDuration> {
    Some(SignedDuration::from_secs(count))
}

fn at(seconds: u64) -> Option<pumphouse::wire::Timestamp> {
    let us = i64::try_from(Sim::BEGINS_US + seconds * SECOND).unwrap();
    Some(pumphouse::wire::Timestamp::from_microsecond(us).unwrap())
}

#[test]
fn in_and_every_go_by_the_time_that_passes() {
    for by_us in [HOUR, -HOUR] {
        let house = House::new();
        let once = house.sets(|it| it.after = seconds(10));
        let often = house.sets(|it| it.every = seconds(4));
        house.until(6);
        house.sim.set_clock(by_us);
        house.until(14);
        assert_eq!(house.ticks(&once), [10], "{by_us}");
        assert_eq!(house.ticks(&often), [4, 8, 12], "{by_us}");
        for (_, tick) in house.all::<Tick>(&often) {
            assert_eq!(tick.missed, None);
            assert!(tick.late < SignedDuration::from_secs(1), "{tick:?}");
        }
        // People read when it was by the clock on the wall.
        let due = house.all::<Tick>(&once)[0].1.due.as_microsecond();
        let expected = (Sim::BEGINS_US + 10 * SECOND).checked_add_signed(by_us).unwrap();
        assert!(due.cast_unsigned().abs_diff(expected) < SECOND, "{due}");
    }
}

#[test]
fn at_goes_by_the_wall_clock_forwards_and_back() {
    let house = House::new();
    let timer = house.sets(|it| it.at = at(3_600));
    house.until(5);
    house.sim.set_clock(HOUR);
    house.until(7);
    assert!(matches!(house.ticks(&timer)[..], [5 | 6]), "{:?}", house.ticks(&timer));

    let house = House::new();
    let timer = house.sets(|it| it.at = at(10));
    house.until(5);
    house.sim.set_clock(-HOUR);
    house.until(100);
    assert_eq!(house.ticks(&timer), [0; 0]);
    house.sim.set_clock(HOUR);
    house.until(102);
    assert!(matches!(house.ticks(&timer)[..], [100 | 101]), "{:?}", house.ticks(&timer));
}

#[test]
fn cron_goes_by_the_wall_clock_forwards_and_back() {
    for (by_us, expected) in [(HOUR, vec![5, 300]), (-HOUR, vec![300])] {
        let house = House::new();
        let timer = house.sets(|it| it.cron = Some("*/5 * * * *".to_owned()));
        house.until(5);
        house.sim.set_clock(by_us);
        house.until(310);
        let ticks = house.ticks(&timer);
        assert!(ticks.iter().zip(&expected).all(|(a, b)| a.abs_diff(*b) <= 1), "{ticks:?}");
        assert_eq!(ticks.len(), expected.len(), "{ticks:?}");
    }
}

#[test]
fn across_a_restart_all_timers_go_by_the_wall_clock() {
    for at_all in [false, true] {
        let mut house = House::new();
        let timer = match at_all {
            true => house.sets(|it| it.at = at(3_600)),
            false => house.sets(|it| it.after = seconds(3_600)),
        };
        house.until(5);
        house.sim.crash();
        house.sim.set_clock(HOUR / 2);
        house.pump = House::start(&house.sim, &house.disk);
        house.until(1_790);
        assert_eq!(house.ticks(&timer), [0; 0]);
        house.until(1_805);
        assert!(matches!(house.ticks(&timer)[..], [1_799..=1_801]), "{:?}", house.ticks(&timer));
    }
}

#[test]
fn the_organism_says_that_the_clock_was_set() {
    let house = House::new();
    let timer = house.sets(|it| it.every = seconds(1));
    house.until(3);
    house.sim.set_clock(-HOUR);
    house.until(6);
    let told = house.all::<ClockSet>(&ThreadId::new("organism"));
    let [(_, ClockSet { by, .. })] = &told[..] else { panic!("{told:?}") };
    assert_eq!(by.as_micros(), i128::from(-HOUR));
    assert_eq!(house.ticks(&timer), [1, 2, 3, 4, 5]);
}
