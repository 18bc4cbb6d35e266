//! Joins: a handler continues when all, any or a given number of the threads that it opened have
//! ended.

use std::time::Duration;

use pumphouse::listener::Branch;
use pumphouse::prelude::*;
use pumphouse::sim::Sim;
use pumphouse::wire::core::ThreadCancelled;

use super::crash::{again, crash};
use super::{Answer, Down, Question, beside, pass, start_in};

/// Asks about every number up to this one.
async fn split(Down { n }: Down) -> Vec<Spawn<Question>> {
    (1..=n).map(|n| Spawn::new(Question { n })).collect()
}

/// Answers after so many milliseconds; a hundred it can't.
async fn work(Question { n }: Question) -> Answer {
    assert_ne!(n, 100, "too much");
    tokio::time::sleep(Duration::from_millis(n * 10)).await;
    Answer { n }
}

fn worker() -> Listener {
    Listener::new("worker").on(work)
}

/// What the branches answered, as the digits of a number: a branch without an answer is a 9.
fn digits(branches: &[Branch<Answer>]) -> u64 {
    branches.iter().fold(0, |all, it| all * 10 + it.answer.as_ref().map_or(9, |it| it.n))
}

type Joined = Result<Option<Reply<Answer>>, Fault>;

async fn all(asked: Asked, join: Join<Answer>, _: ThreadResult) -> Joined {
    let all = join.all().await?;
    Ok(all.map(|all| Reply(asked.0, Answer { n: digits(&all) })))
}

fn boss() -> Listener {
    Listener::new("boss").on(split).on_reply(all).grant::<Threads>()
}

#[tokio::test]
async fn all_answers_are_there_once_with_the_last_one() {
    let pump = super::start((boss(), worker()));
    let all: Answer = pump.ask(Down { n: 3 }).await.unwrap();
    assert_eq!(all.n, 123, "in the order in which they ended");
    let thread = pump.log().threads(None, 1).await.unwrap().remove(0).id;
    let answers = super::story(pump.log(), &thread).await;
    let answers = answers.iter().filter(|it| it.ends_with("answer")).count();
    assert_eq!(answers, 1);
}

#[tokio::test]
async fn joins_of_two_requests_in_a_thread_are_two() {
    let pump = super::start((boss(), worker()));
    let first = pump.tell(Question { n: 1 }).await.unwrap();
    let pump = pump.in_thread(&first.thread);
    let (one, two) = (pump.ask::<Answer>(Down { n: 4 }), pump.ask::<Answer>(Down { n: 2 }));
    let (one, two) = tokio::join!(one, two);
    assert_eq!((one.unwrap().n, two.unwrap().n), (1234, 12));
}

#[tokio::test]
async fn the_first_few_are_enough_where_so_many_are_wanted() {
    let first = async |asked: Asked, join: Join<Answer>, _: ThreadResult| -> Joined {
        let few = join.first(2).await?;
        Ok(few.map(|few| Reply(asked.0, Answer { n: digits(&few) })))
    };
    let boss = Listener::new("boss").on(split).on_reply(first).grant::<Threads>();
    let pump = super::start((boss, worker()));
    let few: Answer = pump.ask(Down { n: 4 }).await.unwrap();
    assert_eq!(few.n, 12);
    let one: Answer = pump.ask(Down { n: 1 }).await.unwrap();
    assert_eq!(one.n, 1, "all are enough where fewer were opened");
}

#[tokio::test]
async fn whoever_takes_the_first_may_end_the_others() {
    type Both = Result<Option<(Reply<Answer>, Vec<ThreadControl<ThreadCancelled>>)>, Fault>;
    let any = async |asked: Asked, join: Join<Answer>, _: ThreadResult| -> Both {
        let Some(branch) = join.any().await? else { return Ok(None) };
        let cancel = |thread: ThreadId| {
            let (by, reason) = ("boss".to_owned(), None);
            let why = ThreadCancelled { thread: thread.to_string(), by, reason };
            ThreadControl::cancel(thread, why)
        };
        let others = join.unfinished().into_iter().map(cancel).collect();
        Ok(Some((Reply(asked.0, branch.answer.unwrap()), others)))
    };
    let split = async |_: Down| Vec::from([1, 60_000, 60_001].map(|n| Spawn::new(Question { n })));
    let boss = Listener::new("boss").on(split).on_reply(any).grant::<Threads>();
    let boss = boss.may_emit::<ThreadCancelled>();
    let pump = super::start((boss, worker()));
    let one: Answer = pump.ask(Down { n: 0 }).await.unwrap();
    assert_eq!(one.n, 1);
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_branch_that_failed_has_ended_and_says_how() {
    let split =
        async |_: Down| vec![Spawn::new(Question { n: 100 }), Spawn::new(Question { n: 1 })];
    let told = async |asked: Asked, join: Join<Answer>, _: ThreadResult| {
        let Some(branches) = join.all().await? else { return Ok(None) };
        let failed = branches.iter().filter_map(|it| it.answer.as_ref().err());
        let why: Vec<String> = failed.map(ToString::to_string).collect();
        assert!(why[0].contains(" failed: ") && why[0].contains("panicked"), "{why:?}");
        Ok::<_, Fault>(Some(Reply(asked.0, Answer { n: why.len() as u64 })))
    };
    let boss = Listener::new("boss").on(split).on_reply(told).grant::<Threads>();
    let pump = super::start((boss, worker()));
    let failed: Answer = pump.ask(Down { n: 0 }).await.unwrap();
    assert_eq!(failed.n, 1);
}

#[test]
fn a_join_goes_on_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.db");
    // The second branch hangs, once the first has ended, and the plug is pulled.
    let hangs = async |Attempt(attempt): Attempt, Question { n }: Question| {
        if n == 2 && attempt == 1 {
            std::future::pending::<()>().await;
        }
        Answer { n }
    };
    let plugin = || (boss(), Listener::new("worker").on(hangs).idempotent());
    let thread = crash(&file, plugin(), async |pump: Pump| {
        let thread = pump.tell(Down { n: 2 }).await.unwrap().thread;
        crate::eventually(async || super::story(pump.log(), &thread).await.len() >= 4).await;
        thread
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let pump = again(&file, plugin()).await;
        let answer = loop {
            let entries = pump.log().read(&thread, 0, u64::MAX, 100).await.unwrap();
            if let Some(it) = entries.iter().find(|it| it.name == Answer::NAME) {
                break <Entry as From<&pumphouse::log::Entry>>::from(it)
                    .decode::<Answer>()
                    .unwrap();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert_eq!(answer.n, 12);
        pump.shutdown().await.unwrap();
    });
}

#[test]
fn a_join_waits_for_a_branch_that_is_under_way() {
    let sim = Sim::new(1);
    let hangs = async |Question { n }: Question| {
        if n == 2 {
            std::future::pending::<()>().await;
        }
        Answer { n }
    };
    let pump = start_in(&sim, (boss(), Listener::new("worker").on(hangs)));
    let asks = pump.clone();
    let came = beside(&sim, async move { asks.ask::<Answer>(Down { n: 2 }).await });
    pass(&sim);
    assert!(came.lock().unwrap().is_none());
}
