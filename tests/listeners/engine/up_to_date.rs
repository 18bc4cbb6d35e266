//! Folds and history of a listener that is up to date reach as far as its thread when a handler
//! starts, and the log says how far that was.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use pumphouse::engine::{Followed, Tokio};
use pumphouse::log::{Durability, SqliteLog};
use pumphouse::prelude::*;

use super::crash::{again, crash};
use super::{Answer, Question, start};

/// Puts money in.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:wallet")]
struct Deposit {
    cents: u64,
}

/// Takes money out.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:wallet")]
struct Withdraw {
    cents: u64,
}

/// Money was taken out.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:wallet")]
struct Taken {
    cents: u64,
}

/// There isn't so much.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:wallet")]
struct Short;

#[derive(Clone, Debug, Default)]
struct Balance(u64);

impl Apply for Balance {
    fn apply(&mut self, entry: &Entry) {
        self.0 += entry.decode_if().map_or(0, |Deposit { cents }| cents);
        self.0 -= entry.decode_if().map_or(0, |Taken { cents }| cents);
    }
}

fn decide(balance: u64, cents: u64) -> Result<Taken, Short> {
    if balance < cents { Err(Short) } else { Ok(Taken { cents }) }
}

async fn by_fold(Fold(balance): Fold<Balance>, it: Withdraw) -> Result<Taken, Short> {
    tokio::time::sleep(Duration::from_millis(1)).await;
    decide(balance.0, it.cents)
}

async fn at_once(Fold(balance): Fold<Balance>, it: Withdraw) -> Result<Taken, Short> {
    decide(balance.0, it.cents)
}

async fn by_history(history: History, it: Withdraw) -> Result<Result<Taken, Short>, Fault> {
    let mut balance = Balance::default();
    history.all().await?.iter().for_each(|it| balance.apply(it));
    Ok(decide(balance.0, it.cents))
}

async fn by_outbox(
    Fold(balance): Fold<Balance>,
    out: Outbox<Result<Taken, Short>>,
    it: Withdraw,
) -> Result<(), Fault> {
    out.send(decide(balance.0, it.cents)).await
}

fn wallet() -> Listener {
    Listener::new("wallet").on(async |_: Deposit| {}).fold::<Balance>()
}

/// How much twenty who ask at once get of a hundred.
async fn paid(wallet: Listener) -> u64 {
    // The folds are also computed from the log.
    let limits = Limits { entries_at_hand_max: 3, ..Limits::default() };
    let plan = pumphouse::builder().with(wallet).limits(limits).workers(2).build().unwrap();
    let pump = plan.start();
    let first = pump.tell(Deposit { cents: 100 }).await.unwrap();
    let here = pump.in_thread(&first.thread);
    let mut asks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let here = here.clone();
        asks.spawn(async move { here.ask::<Taken>(Withdraw { cents: 10 }).await });
    }
    let all = asks.join_all().await;
    let refused =
        all.iter().filter(|it| matches!(it, Err(AskError::Other(it)) if it.name() == Short::NAME));
    assert_eq!(refused.count(), 10);
    all.iter().flatten().map(|it| it.cents).sum()
}

#[tokio::test]
async fn twenty_at_once_take_no_more_than_there_is() {
    for wallet in [
        wallet().on(by_fold).serial().up_to_date(),
        wallet().on(at_once).serial().up_to_date(),
        wallet().on(at_once).serial().up_to_date().inline(),
        wallet().on(by_history).serial().up_to_date(),
        wallet().on(by_outbox).serial().up_to_date(),
    ] {
        assert_eq!(paid(wallet).await, 100);
    }
}

/// Answers all of its queue, by one fold.
async fn all_of(
    Message(first): Message,
    Queue(rest): Queue,
    Fold(balance): Fold<Balance>,
    _: Withdraw,
) -> Vec<Result<Reply<Taken>, Reply<Short>>> {
    let mut left = balance.0;
    let asked = std::iter::once(first).chain(rest).filter(|it| it.is::<Withdraw>());
    let answer = |entry: Entry| {
        let cents = entry.decode_if().map_or(0, |Withdraw { cents }| cents);
        let decided = decide(left, cents);
        left -= decided.as_ref().map_or(0, |it| it.cents);
        decided.map(|it| Reply(entry.clone(), it)).map_err(|it| Reply(entry, it))
    };
    asked.map(answer).collect()
}

#[tokio::test]
async fn a_queue_reaches_as_far() {
    assert_eq!(paid(wallet().on(all_of).serial().up_to_date()).await, 100);
}

#[tokio::test]
async fn without_it_a_fold_still_ends_at_the_message() {
    let pump = start(wallet().on(by_fold).serial());
    let first = pump.tell(Deposit { cents: 10 }).await.unwrap();
    let here = pump.in_thread(&first.thread);
    let ask = || here.ask::<Taken>(Withdraw { cents: 10 });
    let (one, two) = tokio::join!(ask(), ask());
    assert!(one.is_ok() && two.is_ok(), "the page says so: {one:?} {two:?}");
}

/// Answers with the number of entries in its fold, then with that in its history, and hangs at its
/// first attempt.
#[derive(Clone, Debug, Default)]
struct Seen(u64);

impl Apply for Seen {
    fn apply(&mut self, _: &Entry) {
        self.0 += 1;
    }
}

async fn count(
    State(runs): State<Arc<AtomicU64>>,
    Attempt(attempt): Attempt,
    Fold(seen): Fold<Seen>,
    history: History,
    out: Outbox<Answer>,
    _: Question,
) -> Result<Answer, Fault> {
    runs.fetch_add(1, SeqCst);
    out.send(Answer { n: seen.0 }).await?;
    if attempt == 1 {
        std::future::pending::<()>().await;
    }
    Ok(Answer { n: 100 + history.all().await?.len() as u64 })
}

fn counter(runs: &Arc<AtomicU64>) -> Listener {
    let it = Listener::with_state("counter", runs.clone()).on(count).fold::<Seen>();
    it.serial().up_to_date().idempotent().stateless()
}

#[test]
fn a_later_attempt_sees_what_the_first_one_saw() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pumphouse.db");
    let runs = Arc::new(AtomicU64::new(0));
    let other = || Listener::new("other").on(async |_: Deposit| {});
    let thread = crash(&file, (counter(&runs), other()), async |pump| {
        let first = pump.tell(Deposit { cents: 1 }).await.unwrap();
        let here = pump.in_thread(&first.thread);
        here.tell(Deposit { cents: 1 }).await.unwrap();
        here.tell(Question { n: 1 }).await.unwrap();
        let mut follow = pump.follow(&first.thread, 0);
        for _ in 0..4 {
            follow.next().await.unwrap();
        }
        // What comes now is behind what the first attempt saw, as its own answer is.
        here.tell(Deposit { cents: 1 }).await.unwrap();
        let plan = pumphouse::builder().with((counter(&Arc::default()), other())).build().unwrap();
        let state = plan.state(&**pump.log(), &first.thread, None).await.unwrap().unwrap();
        let waits = state.threads[0].waiting.iter().find(|it| &*it.listener == "counter");
        assert_eq!(waits.map(|it| (it.entry.seq, it.as_of)), Some((3, Some(3))));
        first.thread
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let pump = again(&file, (counter(&runs), other())).await;
        let mut follow = pump.follow(&thread, 5);
        let last = tokio::time::timeout(Duration::from_secs(5), follow.next()).await;
        let Ok(Followed::Entry(last)) = last.unwrap() else { panic!("no entry follows") };
        assert_eq!(last.decode(), Ok(Answer { n: 103 }));
        assert_eq!(runs.load(SeqCst), 2);
        let entries = pump.log().read(&thread, 0, u64::MAX, 10).await.unwrap();
        let answers = entries.iter().filter(|it| &*it.from == "counter").count();
        assert_eq!(answers, 2, "the first answer is there once: the fold was the same");
        pump.shutdown().await.unwrap();
    });
}

#[tokio::test]
async fn a_replay_sees_as_far() {
    let folder = tempfile::tempdir().unwrap();
    let cast = || {
        let mut all = crate::usual();
        let sum = async |Queue(queue): Queue, Fold(seen): Fold<Seen>, it: Question| {
            let rest = queue.iter().filter_map(Entry::decode_if).map(|Question { n }| n);
            Answer { n: rest.sum::<u64>() + it.n + 1_000 * seen.0 }
        };
        all.push(wallet().on(at_once).serial().up_to_date().recorded());
        all.push(Listener::new("sum").on(sum).fold::<Seen>().serial().pure());
        all
    };
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Normal).unwrap();
    let plan = pumphouse::builder().with((cast(), log)).build().unwrap();
    let pump = plan.start();
    let first = pump.tell(Deposit { cents: 40 }).await.unwrap();
    let here = pump.in_thread(&first.thread);
    let mut asks = tokio::task::JoinSet::new();
    for n in 0..12 {
        let here = here.clone();
        asks.spawn(async move {
            let _ = here.ask::<Taken>(Withdraw { cents: 10 }).await;
            let _ = here.tell(Question { n }).await;
        });
    }
    asks.join_all().await;
    crate::settled(&pump).await;
    let plan = pumphouse::builder().with(cast()).build().unwrap();
    let replayed = plan.replay(pump.log(), &first.thread, &Tokio::current()).await.unwrap();
    assert_eq!(replayed.difference, None);
    assert_eq!(replayed.skipped, []);
    let compared = |listener: &str| replayed.compared.get(listener).copied().unwrap_or(0);
    assert_eq!(compared("wallet"), 13, "{replayed:?}");
    assert!((1..=12).contains(&compared("sum")), "{replayed:?}");
    // Without the number in its start, the wallet would see its message at most.
    let mut all = cast();
    all[crate::usual().len()] = wallet().on(at_once).serial().recorded();
    let plan = pumphouse::builder().with(all).build().unwrap();
    let replayed = plan.replay(pump.log(), &first.thread, &Tokio::current()).await.unwrap();
    assert_eq!(replayed.difference, None, "the log says how far it saw");
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_fork_goes_on_with_what_it_shares() {
    let pump = start(wallet().on(by_fold).serial().up_to_date());
    let first = pump.tell(Deposit { cents: 30 }).await.unwrap();
    let here = pump.in_thread(&first.thread);
    here.ask::<Taken>(Withdraw { cents: 20 }).await.unwrap();
    let fork = pump.fork_at(&first);
    assert_eq!(fork.ask::<Taken>(Withdraw { cents: 30 }).await.unwrap().cents, 30);
    assert!(here.ask::<Taken>(Withdraw { cents: 20 }).await.is_err());
}

fn warned(listener: Listener) -> Vec<String> {
    let plan = pumphouse::builder().with(listener).build().unwrap();
    plan.warnings().iter().map(|it| it.replace(concat!(module_path!(), "::"), "")).collect()
}

#[test]
fn a_serial_listener_that_misses_its_own_answers_is_warned_of() {
    let warning = "wallet: its fold Balance takes in {urn:wallet}taken, which it answers itself, \
                   but ends at the message at hand: messages that come at once don't see each \
                   other's answers; add .up_to_date(), or .as_of_message() if that is meant";
    assert_eq!(warned(wallet().on(at_once).serial()), [warning]);
    let seen = Listener::new("seen").fold::<Seen>();
    let seen = seen.on(async |_: Fold<Seen>, _: Question| Answer { n: 1 });
    for sound in [
        wallet().on(at_once).serial().up_to_date(),
        wallet().on(at_once).serial().as_of_message(),
        wallet().on(at_once).serial().pure(),
        // It isn't serial, so nobody expects that messages wait for one another.
        wallet().on(at_once),
        wallet().on(all_of).serial(),
        // A fold that counts every entry takes in no answer in particular.
        seen.serial(),
    ] {
        assert_eq!(warned(sound), [""; 0]);
    }
    let house = pumphouse::builder().with(crate::usual()).build().unwrap();
    assert_eq!(house.warnings(), [""; 0]);
}

#[test]
fn what_does_not_go_with_it_is_refused() {
    let built = |it: Listener| {
        let complaints = pumphouse::builder().with(it).build().err();
        complaints.map(|it| it.to_string()).unwrap_or_default()
    };
    let of = |it: Listener| it.on(at_once).up_to_date();
    assert!(built(of(wallet())).contains("isn't serial"));
    assert!(built(of(wallet()).serial().pure()).contains("both pure and up to date"));
    assert!(built(of(wallet()).serial().as_of_message()).contains("keep one of"));
    assert_eq!(built(of(wallet()).serial()), "");
}
