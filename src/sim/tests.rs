//! Tests of the simulator itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::*;
use crate::log::conformance::{batch, entry};
use crate::log::{Error, Health, Log};

#[test]
fn time_goes_to_where_somebody_sleeps_until() {
    let sim = Sim::new(1);
    let hour = Duration::from_secs(3_600);
    sim.run(sim.sleep(hour)).unwrap();
    let passed = sim.now_us() - Sim::BEGINS_US;
    assert!((3_600_000_000..3_600_001_000).contains(&passed), "{passed}");
}

/// Returns the order in which ten tasks take their turns, as the numbers of the tasks.
fn turns(seed: u64) -> Vec<u64> {
    let (sim, told) = (Sim::new(seed), Arc::new(Mutex::new(Vec::new())));
    for task in 0..10 {
        let (own, told) = (sim.clone(), told.clone());
        sim.spawn(async move {
            for _ in 0..3 {
                told.lock().unwrap().push(task);
                own.sleep(Duration::from_micros(own.below(100))).await;
            }
        });
    }
    sim.rest().unwrap();
    let told = told.lock().unwrap();
    told.clone()
}

#[test]
fn one_seed_gives_one_order() {
    assert_eq!(turns(5), turns(5));
    assert_ne!(turns(5), turns(6));
}

#[test]
fn whoever_waits_in_vain_is_told() {
    let sim = Sim::new(1);
    assert_eq!(sim.run(pending::<()>()), Err(Stuck::Idle));
    sim.allow_steps(100);
    let circle = sim.clone();
    let round = async move {
        loop {
            circle.sleep(Duration::from_micros(1)).await;
        }
    };
    sim.spawn(round);
    assert_eq!(sim.rest(), Err(Stuck::Endless(100)));
}

#[test]
fn a_crash_ends_every_task() {
    let (sim, ended) = (Sim::new(1), Arc::new(AtomicU64::new(0)));
    for _ in 0..5 {
        let (own, ended) = (sim.clone(), ended.clone());
        sim.spawn(async move {
            own.sleep(Duration::from_millis(10)).await;
            ended.fetch_add(1, Relaxed);
        });
    }
    sim.run(sim.sleep(Duration::from_millis(5))).unwrap();
    sim.crash();
    sim.rest().unwrap();
    assert_eq!((ended.load(Relaxed), Arc::strong_count(&ended)), (0, 1));
}

#[test]
fn what_a_disk_acknowledged_survives_and_the_rest_may() {
    let mut kept = [0; 4];
    for seed in 0..200 {
        let sim = Sim::new(seed);
        let disk = Disk::new(&sim);
        let log = disk.log();
        sim.run(log.append(batch(&["a"], &["a/1"]))).unwrap().unwrap();
        for id in ["a/2", "a/3", "a/4"] {
            drop(log.append(batch(&[], &[id])));
        }
        let log = disk.log();
        let last = sim.run(log.thread(&entry("a/1").thread)).unwrap().unwrap().unwrap().last_seq;
        kept[usize::try_from(last).unwrap() - 1] += 1;
        let next = format!("a/{}", last + 1);
        sim.run(log.append(batch(&[], &[&next]))).unwrap().unwrap();
        assert!(sim.run(log.verify(None)).unwrap().unwrap().is_sound());
    }
    assert!(kept.iter().all(|it| *it > 20), "{kept:?}");
}

#[test]
fn a_full_disk_keeps_everything_later_and_a_broken_one_nothing() {
    let sim = Sim::new(3);
    let disk = Disk::new(&sim);
    let log = disk.log();
    disk.fill(Duration::from_secs(60));
    assert_eq!(log.health(), Health::Full);
    sim.run(log.append(batch(&["a"], &["a/1"]))).unwrap().unwrap();
    assert!(sim.now_us() >= Sim::BEGINS_US + 60_000_000);
    assert_eq!(log.health(), Health::Well);
    disk.fail();
    let failed = sim.run(log.append(batch(&[], &["a/2"]))).unwrap().unwrap_err();
    assert!(matches!(failed, Error::Poisoned(_)), "{failed}");
    assert!(matches!(log.health(), Health::Poisoned(_)));
    assert_eq!(disk.log().health(), Health::Well, "until it is opened again");
}

#[test]
fn an_earlier_opening_closes_only_itself() {
    let sim = Sim::new(1);
    let disk = Disk::new(&sim);
    let (earlier, log) = (disk.log(), disk.log());
    sim.run(earlier.close()).unwrap().unwrap();
    sim.run(log.append(batch(&["a"], &["a/1"]))).unwrap().unwrap();
    sim.run(log.close()).unwrap().unwrap();
    assert_eq!(sim.run(log.append(batch(&[], &["a/2"]))).unwrap().err(), Some(Error::Closed));
}
