//! The state of threads, at present or at an earlier entry, computed from the log alone.
#![expect(clippy::disallowed_methods, reason = "a test's own environment")]

use std::sync::Arc;

use pumphouse::engine::{FoldState, TreeState};
use pumphouse::listeners::thread::{InitialPayload, PauseThread, ResumeThread, SpawnThread};
use pumphouse::listeners::timer::SetTimer;
use pumphouse::log::{Durability, Log, SqliteLog, State};
use pumphouse::prelude::*;
use pumphouse::wire::budget::BudgetKey;

use super::{Answer, Question};

/// The questions so far, and how many entries there were.
#[derive(Clone, Debug, Default)]
struct Asked {
    numbers: Vec<u64>,
    entries: u64,
}

impl Apply for Asked {
    fn apply(&mut self, entry: &Entry) {
        self.entries += 1;
        self.numbers.extend(entry.decode().map(|Question { n }| n));
    }
}

/// Stumbles over a thirteen.
#[derive(Clone, Debug, Default)]
struct Fragile;

impl Apply for Fragile {
    fn apply(&mut self, entry: &Entry) {
        assert!(entry.decode() != Ok(Question { n: 13 }), "thirteen");
    }
}

fn cast() -> Vec<Listener> {
    let adder = async |it: Fold<Asked>, _: Question| Answer { n: it.numbers.iter().sum() };
    let mut all = crate::usual();
    all.push(Listener::new("adder").on(adder).fold::<Asked>());
    all
}

fn spawn(payload: &impl Payload, name: &str) -> SpawnThread {
    let initial_payload = InitialPayload { payload: payload.encode().unwrap() };
    SpawnThread { metadata: None, suggested_sub_id: Some(name.into()), initial_payload }
}

fn hour() -> SetTimer {
    let after = Some("PT1H".parse().unwrap());
    SetTimer { after, at: None, every: None, cron: None, note: None }
}

async fn at(log: &Arc<dyn Log>, thread: &ThreadId, upto: Option<u64>) -> TreeState {
    let plan = pumphouse::builder().with(cast()).build().unwrap();
    plan.state(&**log, thread, upto).await.unwrap().unwrap()
}

/// The fold of a listener in the first of some threads.
fn fold<'a>(state: &'a TreeState, listener: &str) -> &'a FoldState {
    state.threads[0].folds.iter().find(|it| &*it.listener == listener).unwrap()
}

#[tokio::test]
async fn without_any_cache_folds_are_the_same() {
    let threads = std::env::var("PUMPHOUSE_FOLDS").ok().and_then(|it| it.parse().ok());
    let threads: u64 = threads.unwrap_or(100);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let open = |awake: usize| {
        let limits = Limits { trees_awake_max: awake, ..Limits::default() };
        let log = SqliteLog::open(&path, Durability::Normal).unwrap();
        pumphouse::builder().with((cast(), log)).limits(limits).workers(2).build().unwrap().start()
    };
    let folds = async |pump: &Pump, all: &[ThreadId]| {
        let mut folds = Vec::new();
        for thread in all {
            folds.extend(pump.folds(thread).await.unwrap().into_iter().map(|it| it.digest));
        }
        folds
    };
    let pump = open(1_000_000);
    let mut all = Vec::new();
    for n in 0..threads {
        let first = pump.tell(Question { n }).await.unwrap();
        let here = pump.in_thread(&first.thread);
        for more in 0..n % 5 {
            here.ask::<Answer>(Question { n: n * more }).await.unwrap();
        }
        if n % 3 == 0 {
            here.tell(spawn(&Question { n }, "sub")).await.unwrap();
            here.tell(hour()).await.unwrap();
        }
        here.ask::<Answer>(Question { n: 1 }).await.unwrap();
        if n % 7 == 0 {
            let fork = pump.fork_at(&first).tell(Question { n: 2 }).await.unwrap();
            pump.in_thread(&fork.thread).ask::<Answer>(Question { n: 3 }).await.unwrap();
            all.push(fork.thread);
        }
        all.push(first.thread);
    }
    pump.shutdown().await.unwrap();
    // Kept in memory by whoever was asked last, then by nobody, then by a pump that keeps none.
    let pump = open(1_000_000);
    pump.ready().await.unwrap();
    for thread in &all {
        pump.in_thread(thread).ask::<Answer>(Question { n: 0 }).await.unwrap();
    }
    let cached = folds(&pump, &all).await;
    assert!(cached.len() >= all.len() * 3, "of adder, thread and timer at least");
    let log = pump.log().clone();
    let mut computed = Vec::new();
    for thread in &all {
        computed.extend(at(&log, thread, None).await.threads[0].folds.iter().map(|it| it.digest));
    }
    pump.shutdown().await.unwrap();
    let pump = open(1);
    pump.ready().await.unwrap();
    let woken = folds(&pump, &all).await;
    assert!(cached == computed && computed == woken, "some fold differs");
    let mut different = cached;
    different.sort_unstable();
    different.dedup();
    assert!(different.len() > 10, "they aren't all alike: {}", different.len());
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_state_is_as_of_one_place_of_the_log() {
    let pump = super::start(cast());
    let ada = pump.speaking_as(pumphouse::engine::Identity { name: "ada".into(), operator: true });
    let first = ada.tell(PauseThread { thread: None, reason: None }).await.unwrap();
    let here = ada.in_thread(&first.thread);
    let held = here.tell(spawn(&Question { n: 5 }, "sub")).await.unwrap();
    let timer = here.tell(hour()).await.unwrap();
    let log = pump.log();
    let child = first.thread.child("sub", 0);
    crate::eventually(async || log.thread(&child).await.unwrap().is_some()).await;
    let now = at(log, &first.thread, None).await;
    let states: Vec<_> = now.threads.iter().map(|it| (it.thread.clone(), it.state)).collect();
    assert_eq!(states, [(first.thread.clone(), State::Paused), (child.clone(), State::Paused)]);
    let waits = |of: &TreeState, thread: usize| -> Vec<String> {
        let of = of.threads[thread].waiting.iter();
        of.map(|it| format!("{} {}", it.entry.seq, it.listener)).collect()
    };
    assert_eq!(waits(&now, 0), [format!("{} timer", timer.seq)]);
    assert_eq!(waits(&now, 1), ["1 adder"]);
    assert!(fold(&now, "thread").shown.as_ref().unwrap().contains(child.as_str()));

    // Before the child was there, nothing of it was.
    let before = at(log, &first.thread, Some(held.seq - 1)).await;
    assert_eq!((before.threads.len(), before.threads[0].seq), (1, held.seq - 1));
    assert!(!fold(&before, "thread").shown.as_ref().unwrap().contains(child.as_str()));
    let spent = |of: &TreeState, key| of.budget.iter().find(|it| it.key == key).unwrap().used;
    assert_eq!((spent(&before, BudgetKey::Messages), spent(&before, BudgetKey::Children)), (1, 0));
    assert_eq!((spent(&now, BudgetKey::Messages), spent(&now, BudgetKey::Children)), (4, 1));
    assert_eq!((spent(&before, BudgetKey::Depth), spent(&now, BudgetKey::Depth)), (0, 1));
    let at_first = at(log, &first.thread, Some(1)).await;
    assert_eq!(at_first.threads[0].state, State::Open);

    here.tell(ResumeThread { thread: None, reason: None }).await.unwrap();
    let ended = async || at(log, &first.thread, None).await.threads[1].state == State::Closed;
    crate::eventually(ended).await;
    let after = at(log, &first.thread, None).await;
    assert_eq!(spent(&after, BudgetKey::Children), 0);
    let until = after.threads[0].waiting.iter().map(|it| it.until_us).collect::<Vec<_>>();
    assert!(matches!(until[..], [Some(until)] if until < u64::MAX), "the timer: {until:?}");
    // A cut stays what it was, whatever came later.
    let again = at(log, &first.thread, Some(held.seq - 1)).await;
    assert_eq!(format!("{before:?}"), format!("{again:?}"));
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_fold_that_panics_is_told_and_harms_no_other() {
    let pump = super::start(cast());
    let first = pump.tell(Question { n: 13 }).await.unwrap();
    let answer = async |_: Question| Answer { n: 0 };
    let fragile = Listener::new("fragile").on(answer).fold::<Fragile>().fold::<Asked>();
    let plan = pumphouse::builder().with(fragile).build().unwrap();
    let state = plan.state(&**pump.log(), &first.thread, Some(1)).await.unwrap().unwrap();
    let shown: Vec<_> = state.threads[0].folds.iter().map(|it| it.shown.clone()).collect();
    assert!(shown.contains(&Err(format!("it panicked at {first}"))), "{shown:?}");
    assert!(shown.iter().any(|it| it.as_ref().is_ok_and(|it| it.contains("13"))), "{shown:?}");
    let unknown = ThreadId::new("sess-nobodys");
    assert!(plan.state(&**pump.log(), &unknown, None).await.is_err());
    assert!(plan.state(&**pump.log(), &first.thread, Some(9)).await.unwrap().is_none());
    pump.shutdown().await.unwrap();
}
