//! Failures that the simulator found, each as the smallest test that shows it.

use std::sync::mpsc;
use std::time::Duration;

use futures_util::FutureExt;
use pumphouse::listeners::thread::wait::{AwaitThreads, ThreadsAwaited};
use pumphouse::listeners::thread::{
    CancelThread, InitialPayload, PauseThread, ResumeThread, SpawnThread, ThreadPaused,
    ThreadResumed, thread,
};
use pumphouse::prelude::*;
use pumphouse::sim::{Disk, Sim};
use pumphouse::wire::core::{ThreadCancelled, ThreadSpawned};

use super::world::{Plain, Quick, Said};

fn start(sim: &Sim, disk: &Disk, plugin: impl Plugin) -> Pump {
    let plan = pumphouse::builder().with(plugin).with(disk.log()).workers(1).build();
    plan.unwrap().start_on(sim)
}

#[test]
fn a_session_that_ended_says_so_after_a_restart_too() {
    let sim = Sim::new(1);
    let disk = Disk::new(&sim);
    let cancel = CancelThread { thread: None, reason: None };
    let pump = start(&sim, &disk, thread());
    let over: ThreadCancelled = sim.run(pump.ask(cancel.clone())).unwrap().unwrap();
    let mut told = Vec::new();
    for _ in 0..2 {
        let pump = start(&sim, &disk, thread()).in_thread(&ThreadId::new(&over.thread));
        let refused = sim.run(pump.tell(cancel.clone())).unwrap().unwrap_err();
        told.push(refused.to_string());
        sim.crash();
    }
    let expected = format!("P0040: {} is cancelled", over.thread);
    assert_eq!(told, [expected.clone(), expected]);
}

#[test]
fn whoever_asks_while_the_log_fails_hears_of_that() {
    let sim = Sim::new(1);
    let disk = Disk::new(&sim);
    let pump = start(&sim, &disk, Listener::new("a").on(async |_: Plain| ()));
    let asks = (0..4).map(|n| {
        let (sim, pump) = (sim.clone(), pump.clone());
        async move {
            sim.sleep(Duration::from_micros(200 * n)).await;
            pump.ask::<Said>(Plain { fuel: 0, due: None }).await
        }
    });
    let fail = async {
        sim.sleep(Duration::from_micros(700)).await;
        disk.fail();
    };
    disk.fill(Duration::from_millis(1));
    let asks = futures_util::future::join_all(asks);
    let (asked, ()) = sim.run(futures_util::future::join(asks, fail)).unwrap();
    for it in asked {
        let it = it.unwrap_err();
        assert!(matches!(&it, AskError::Refused(_)), "{it}");
    }
}

#[test]
fn a_wait_is_over_also_when_its_thread_ended_while_it_began() {
    for seed in 0..50 {
        let sim = Sim::new(seed);
        let disk = Disk::new(&sim);
        let work = async |State(sim): State<Sim>, _: Plain| {
            sim.sleep(Duration::from_micros(sim.below(3_000))).await;
            Quick { fuel: 0, due: None }
        };
        let worker = Listener::with_state("a", sim.clone()).on(work);
        let pump = start(&sim, &disk, (worker, thread()));
        let payload = Plain { fuel: 0, due: None }.into();
        let initial_payload = InitialPayload { payload };
        let spawn = SpawnThread { metadata: None, suggested_sub_id: None, initial_payload };
        let there: ThreadSpawned = sim.run(pump.ask(spawn)).unwrap().unwrap();
        let here = pump.in_thread(&ThreadId::new(&there.parent_id));
        let wait = AwaitThreads { mode: None, count: None, timeout: None, thread: Vec::new() };
        let waited = sim.run(here.ask::<ThreadsAwaited>(wait));
        assert!(waited.is_ok_and(|it| it.unwrap().complete), "seed {seed}");
    }
}

#[test]
fn a_child_that_is_done_while_it_pauses_ends_when_it_goes_on() {
    let sim = Sim::new(1);
    let disk = Disk::new(&sim);
    let work = async |State(sim): State<Sim>, _: Plain| sim.sleep(Duration::from_millis(20)).await;
    let worker = Listener::with_state("a", sim.clone()).on(work);
    let pump = start(&sim, &disk, (worker, thread()));
    let payload = Plain { fuel: 0, due: None }.into();
    let initial_payload = InitialPayload { payload };
    let spawn = SpawnThread { metadata: None, suggested_sub_id: None, initial_payload };
    let there: ThreadSpawned = sim.run(pump.ask(spawn)).unwrap().unwrap();
    let here = pump.in_thread(&ThreadId::new(&there.parent_id));
    let pause = PauseThread { thread: None, reason: None };
    let _: ThreadPaused = sim.run(here.ask(pause)).unwrap().unwrap();
    sim.run(sim.sleep(Duration::from_millis(50))).unwrap();
    let resume = ResumeThread { thread: None, reason: None };
    let _: ThreadResumed = sim.run(here.ask(resume)).unwrap().unwrap();
    let wait = AwaitThreads { mode: None, count: None, timeout: None, thread: Vec::new() };
    let waited = sim.run(here.ask::<ThreadsAwaited>(wait)).expect("it has ended");
    assert!(waited.unwrap().complete);
}

#[test]
fn a_handler_that_was_cancelled_before_it_began_never_does() {
    for seed in 0..200 {
        let sim = Sim::new(seed);
        let disk = Disk::new(&sim);
        let (told, begins) = mpsc::sync_channel(1);
        let work = move |State(sim): State<Sim>, _: Plain| {
            told.send(sim.now_us()).unwrap();
            std::future::pending::<()>()
        };
        let worker = Listener::with_state("a", sim.clone()).on(work);
        let pump = start(&sim, &disk, (worker, thread()));
        let first = sim.run(pump.tell(Plain { fuel: 0, due: None })).unwrap().unwrap();
        let cancel = CancelThread { thread: None, reason: None };
        let over = sim.run(pump.in_thread(&first.thread).ask::<ThreadCancelled>(cancel));
        assert!(over.is_ok_and(|it| it.is_ok()));
        let over_us = sim.now_us();
        sim.rest().unwrap();
        let began = begins.try_iter().next();
        assert!(began.is_none_or(|it| it <= over_us), "seed {seed}");
    }
}

/// Sends something and takes its time.
async fn send_and_sleep(State(sim): State<Sim>, out: Outbox<Plain>, it: Plain) -> Option<Plain> {
    out.send(Plain { fuel: it.fuel + 1, due: None }).await.ok()?;
    sim.sleep(Duration::from_millis(50)).await;
    Some(Plain { fuel: it.fuel + 2, due: None })
}

#[test]
fn what_something_pure_sent_before_a_crash_is_sent_once() {
    let sim = Sim::new(1);
    let disk = Disk::new(&sim);
    let listener = || Listener::with_state("a", sim.clone()).on(send_and_sleep).pure();
    let pump = start(&sim, &disk, listener());
    let first = sim.run(pump.tell(Plain { fuel: 1, due: None })).unwrap().unwrap();
    sim.run(sim.sleep(Duration::from_millis(20))).unwrap();
    assert_eq!(entries(&disk, &first.thread), [1, 2]);
    sim.crash();
    let _pump = start(&sim, &disk, listener());
    sim.rest().unwrap();
    assert_eq!(entries(&disk, &first.thread), [1, 2, 3]);
}

/// The fuel in each entry of a thread.
fn entries(disk: &Disk, thread: &ThreadId) -> Vec<u32> {
    let entries = disk.kept().read(thread, 0, u64::MAX, 10).now_or_never().unwrap().unwrap();
    let fuel = |it: &std::sync::Arc<pumphouse::log::Entry>| {
        let body = String::from_utf8_lossy(&it.body).into_owned();
        body.split('"').nth(3).unwrap().parse().unwrap()
    };
    entries.iter().map(fuel).collect()
}
