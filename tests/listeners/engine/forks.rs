//! Forks: threads that continue from an entry of another thread.

use std::sync::Arc;
use std::time::Duration;

use pumphouse::engine::{Followed, Identity};
use pumphouse::listeners::echo::Echo;
use pumphouse::listeners::thread::fork::{ForkThread, ThreadForked};
use pumphouse::listeners::thread::wait::{AwaitThreads, ThreadsAwaited};
use pumphouse::listeners::thread::{InitialPayload, PauseThread, SpawnThread};
use pumphouse::listeners::timer::{ClearTimer, SetTimer, TimerCleared};
use pumphouse::log::{Durability, Log, MemoryLog, SqliteLog};
use pumphouse::prelude::*;
use pumphouse::wire::Code;
use pumphouse::wire::core::ThreadSpawned;

use super::{Answer, Question, start, story};

/// The sum of all questions so far.
#[derive(Clone, Debug, Default)]
struct Total(u64);

impl Apply for Total {
    fn apply(&mut self, entry: &Entry) {
        if let Ok(Question { n }) = entry.decode() {
            self.0 += n;
        }
    }
}

/// Answers with the sum of all questions, and with how many entries it sees.
fn adder() -> Listener {
    let add = async |total: Fold<Total>, history: History, _: Question| -> Result<_, Fault> {
        let seen = history.all().await?.len() as u64;
        let Total(sum) = &*total.0;
        Ok(Answer { n: sum * 1_000 + seen })
    };
    Listener::new("adder").on(add).fold::<Total>()
}

/// Something to do that never ends.
#[derive(Debug, Payload)]
#[payload(ns = "urn:test")]
struct Nap {}

fn with_threads() -> impl Plugin {
    (crate::usual(), adder())
}

async fn ask(pump: &Pump, n: u64) -> u64 {
    pump.ask::<Answer>(Question { n }).await.unwrap().n
}

/// A question whose answer is in the log.
async fn answered(pump: &Pump, n: u64) -> EntryId {
    let id = pump.tell(Question { n }).await.unwrap();
    let mut follow = pump.follow_log(&id.thread, id.seq);
    while let Followed::Entry(it) = follow.next().await.unwrap() {
        if it.reply_to() == Some(&id) {
            break;
        }
    }
    id
}

/// The last entry of a thread.
async fn last(pump: &Pump, thread: &ThreadId) -> EntryId {
    let record = pump.log().thread(thread).await.unwrap().unwrap();
    EntryId::new(thread, record.last_seq)
}

async fn ids(pump: &Pump, thread: &ThreadId) -> Vec<String> {
    let entries = pump.log().read(thread, 0, u64::MAX, 100).await.unwrap();
    entries.iter().map(|it| it.id.to_string()).collect()
}

#[tokio::test]
async fn a_fork_sees_what_it_shares_and_the_original_sees_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let sqlite = SqliteLog::open(&path, Durability::Normal).unwrap();
    for log in [Arc::new(MemoryLog::new()) as Arc<dyn Log>, Arc::new(sqlite)] {
        let given = log.clone();
        let pump = start((with_threads(), |it: &mut Builder| it.log(given)));
        let first = answered(&pump, 1).await;
        let here = pump.in_thread(&first.thread);
        assert_eq!(ask(&here, 2).await, 3_003);
        let before = ids(&pump, &first.thread).await;
        assert_eq!(before.len(), 4);
        // After the first question and its answer; after the first question alone.
        for (seq, sum) in [(2, 11), (1, 11)] {
            let at = EntryId::new(&first.thread, seq);
            let fork = pump.fork_at(&at);
            assert_eq!(ask(&fork, 10).await, sum * 1_000 + seq + 1);
            let opened = answered(&fork, 100).await;
            assert_eq!(opened.seq, seq + 1);
            let forked = ids(&pump, &opened.thread).await;
            assert_eq!(forked[..seq as usize], before[..seq as usize]);
            assert_eq!(ask(&pump.in_thread(&opened.thread), 7).await, 108_000 + seq + 3);
        }
        assert_eq!(ids(&pump, &first.thread).await, before, "the original is as it was");
        assert_eq!(ask(&here, 3).await, 6_005, "and goes on as if there were no fork");
        let report = log.verify(None).await.unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        pump.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_fork_of_a_fork_shares_with_both_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let open = || start((with_threads(), SqliteLog::open(&path, Durability::Normal).unwrap()));
    let pump = open();
    let a = answered(&pump, 1).await;
    let b = answered(&pump.fork_at(&a), 10).await;
    ask(&pump.in_thread(&b.thread), 100).await;
    let c = answered(&pump.fork_at(&EntryId::new(&b.thread, 3)), 1_000).await;
    pump.shutdown().await.unwrap();

    let pump = open();
    assert_eq!(ask(&pump.in_thread(&c.thread), 0).await, 1_011 * 1_000 + 6);
    // An entry that the fork itself shares is one to fork at like any other.
    let d = answered(&pump.fork_at(&EntryId::new(&c.thread, 1)), 5).await;
    assert_eq!(ask(&pump.in_thread(&d.thread), 0).await, 6_000 + 4);
    assert_eq!(ids(&pump, &d.thread).await[..2], [a.to_string(), d.to_string()]);
    let own = pump.log().thread(&c.thread).await.unwrap().unwrap();
    assert_eq!((own.parent, own.fork), (None, Some(EntryId::new(&b.thread, 3))));
    assert!(pump.log().verify(None).await.unwrap().is_sound());
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn where_there_is_nothing_to_fork_at_there_is_no_fork() {
    let pump = start(with_threads());
    let first = answered(&pump, 1).await;
    ask(&pump.in_thread(&first.thread), 1).await;
    let end = last(&pump, &first.thread).await;
    let before = EntryId::new(&first.thread, 0);
    let fault = pump.fork_at(&before).tell(Question { n: 1 }).await.unwrap_err();
    assert_eq!(fault.code, Code::Envelope);
    let beyond = EntryId::new(&first.thread, end.seq + 1);
    let fault = pump.fork_at(&beyond).tell(Question { n: 1 }).await.unwrap_err();
    assert_eq!(fault.code, Code::Envelope);
    let text = format!("there is no entry {beyond} to fork at: its thread ends with {end}");
    assert_eq!(
        (fault.message, fault.advice.unwrap()),
        (text, format!("Name an entry that the thread has, such as {end}."),)
    );
    let nowhere: EntryId = "sess-nobodys/1".parse().unwrap();
    let fault = pump.fork_at(&nowhere).tell(Question { n: 1 }).await.unwrap_err();
    assert_eq!(fault.code, Code::UnknownThread);
    assert_eq!(pump.log().threads(None, 10).await.unwrap().len(), 1, "nothing was opened");
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_fork_is_whose_who_made_it() {
    let pump = start(with_threads());
    let who = |name: &str, operator| pump.speaking_as(Identity { name: name.into(), operator });
    let (alice, bob, ada) = (who("alice", false), who("bob", false), who("ada", true));
    let first = alice.tell(Question { n: 1 }).await.unwrap();
    let fault = bob.fork_at(&first).tell(Question { n: 1 }).await.unwrap_err();
    assert_eq!(fault.code, Code::UnknownThread);
    let reason = Some("what if".to_owned());
    let forked: ThreadForked = ada.fork_at(&first).ask(ForkThread { reason }).await.unwrap();
    assert_eq!((&*forked.by, &*forked.after), ("ada", &*first.to_string()));
    assert_eq!(forked.reason.as_deref(), Some("what if"));
    let fork = ThreadId::new(&forked.thread);
    let told = story(pump.log(), &fork).await;
    assert_eq!(told[1..], ["ada > thread: fork-thread", "thread > ada: thread-forked"]);
    // Who opened the original has no business in the fork, but for operators.
    let fault = alice.in_thread(&fork).tell(Question { n: 1 }).await.unwrap_err();
    assert_eq!(fault.code, Code::UnknownThread);
    let alice_is = Identity { name: "alice".into(), operator: false };
    assert!(pump.may_follow(&alice_is, &fork).await.is_err());
    assert_eq!(ask(&ada.in_thread(&fork), 1).await, 2_004);
    let own = alice.fork_at(&first).tell(Question { n: 1 }).await.unwrap();
    assert_eq!(pump.may_follow(&alice_is, &own.thread).await, Ok(own.seq + 1));
    // What begins no fork says so.
    let there = alice.in_thread(&first.thread);
    let other = there.ask::<ThreadForked>(ForkThread { reason: None });
    let refused = other.await.unwrap_err().to_string();
    assert!(refused.contains("push it into THREAD/SEQ"), "{refused}");
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_child_can_be_forked_and_what_has_ended_too() {
    let pump = start(with_threads());
    let payload = Question { n: 4 }.encode().unwrap();
    let spawn = SpawnThread {
        metadata: None,
        suggested_sub_id: Some("sub".into()),
        initial_payload: InitialPayload { payload },
    };
    let first = pump.tell(spawn).await.unwrap();
    let child = first.thread.child("sub", 0);
    let closed = async || {
        let record = pump.log().thread(&child).await.unwrap();
        record.is_some_and(|it| it.state == pumphouse::log::State::Closed)
    };
    crate::eventually(closed).await;
    let end = last(&pump, &child).await;
    let fork = pump.fork_at(&end);
    let opened = fork.tell(Question { n: 5 }).await.unwrap();
    assert_eq!(opened.thread.tree(), opened.thread, "it is a session of its own");
    assert_eq!(ask(&pump.in_thread(&opened.thread), 6).await, 15_000 + 5);
    let before = story(pump.log(), &first.thread).await;
    assert_eq!(story(pump.log(), &first.thread).await, before);
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_waits_in_the_original_waits_there_alone() {
    let pump = start(with_threads());
    let hour = Duration::from_secs(3_600).try_into().unwrap();
    let timer = SetTimer { after: Some(hour), at: None, every: None, cron: None, note: None };
    let first = pump.tell(timer).await.unwrap();
    let here = pump.in_thread(&first.thread);
    here.tell(PauseThread { thread: None, reason: None }).await.unwrap();
    let held = here.tell(Echo { text: "held".into() }).await.unwrap();
    let fork = pump.fork_at(&held).tell(Question { n: 1 }).await.unwrap();
    ask(&pump.in_thread(&fork.thread), 1).await;
    let open = pump.log().open_entries().await.unwrap();
    let threads: Vec<_> = open.iter().map(|it| it.entry.id.thread.clone()).collect();
    assert_eq!(threads, [first.thread.clone(), first.thread.clone()], "a timer and an echo");
    let own = story(pump.log(), &fork.thread).await.split_off(held.seq as usize);
    assert_eq!(own[0], "console > adder: question");
    assert!(own.iter().all(|it| !it.contains("echo")), "{own:?}");
    let state = pump.log().thread(&fork.thread).await.unwrap().unwrap().state;
    assert_eq!(state, pumphouse::log::State::Open, "the fork doesn't pause");
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_earlier_message_that_is_shared_can_be_answered() {
    /// Answers the thread's first message.
    async fn late(history: History, out: Outbox<Answer>, it: Question) -> Result<(), Fault> {
        let first = history.read(0, 1).await?;
        if it.n > 0 {
            out.reply_to(&first[0], Answer { n: it.n }).await?;
        }
        Ok(())
    }
    let pump = start(Listener::new("late").on(late));
    let first = pump.tell(Question { n: 0 }).await.unwrap();
    let Answer { n } = pump.fork_at(&first).ask(Question { n: 9 }).await.unwrap();
    assert_eq!(n, 9);
    let forks = pump.log().threads(Some(&first.thread), 10).await.unwrap();
    let entries = pump.log().read(&forks[0].id, 2, u64::MAX, 10).await.unwrap();
    assert_eq!(entries[0].reply_to.as_ref(), Some(&first));
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_follower_of_a_fork_sees_one_thread() {
    let pump = start(with_threads());
    let first = pump.tell(Question { n: 1 }).await.unwrap();
    let fork = pump.fork_at(&first).tell(Question { n: 2 }).await.unwrap();
    let mut follow = pump.follow_log(&fork.thread, 0);
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let Followed::Entry(it) = follow.next().await.unwrap() else { continue };
        seen.push((it.id().thread == first.thread, it.seq()));
    }
    assert_eq!(seen, [(true, 1), (false, 2), (false, 3)]);
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_fork_has_a_budget_of_its_own() {
    let limits = Limits { tree_messages_max: 2, ..Limits::default() };
    let plan = pumphouse::builder().with(with_threads()).limits(limits).build().unwrap();
    let pump = plan.start();
    let first = pump.tell(Question { n: 1 }).await.unwrap();
    let here = pump.in_thread(&first.thread);
    ask(&here, 1).await;
    assert_eq!(here.tell(Question { n: 1 }).await.unwrap_err().code, Code::OverBudget);
    let fork = pump.fork_at(&last(&pump, &first.thread).await);
    assert_eq!(ask(&fork, 1).await / 1_000, 3);
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_fork_neither_has_the_timers_of_its_original_nor_waits_for_its_children() {
    let nap = Listener::new("napper").on(async |_: Nap| std::future::pending::<Nap>().await);
    let pump = start((with_threads(), nap));
    let hour = SetTimer {
        after: Some("PT1H".parse().unwrap()),
        at: None,
        every: None,
        cron: None,
        note: None,
    };
    let set = pump.tell(hour).await.unwrap();
    let here = pump.in_thread(&set.thread);
    let payload = Nap {}.encode().unwrap();
    let spawn = SpawnThread {
        metadata: None,
        suggested_sub_id: Some("sub".into()),
        initial_payload: InitialPayload { payload },
    };
    here.ask::<ThreadSpawned>(spawn).await.unwrap();
    let fork = pump.fork_at(&last(&pump, &set.thread).await);
    let cleared: TimerCleared = fork.ask(ClearTimer { timer: set.seq }).await.unwrap();
    assert!(!cleared.was_set, "the timer ticks in the original alone");
    let (mode, count, timeout) = (None, None, None);
    let all = AwaitThreads { mode, count, timeout, thread: Vec::new() };
    let fork = pump.fork_at(&last(&pump, &set.thread).await);
    let awaited: ThreadsAwaited = fork.ask(all).await.unwrap();
    assert!(awaited.complete && awaited.thread.is_empty(), "{awaited:?}");
    let cleared: TimerCleared = here.ask(ClearTimer { timer: set.seq }).await.unwrap();
    assert!(cleared.was_set);
}
