//! Budgets of trees of threads: an amount is reserved before it is spent and settled afterwards,
//! and no limit is exceeded.

use std::sync::Arc;

use proptest::prelude::*;
use pumphouse::engine::Identity;
use pumphouse::listener::{Charge, Charges, Cost};
use pumphouse::listeners::thread::{CancelThread, InitialPayload, SpawnThread, thread};
use pumphouse::listeners::timer::SetTimer;
use pumphouse::log::{Durability, Log, MemoryLog, SqliteLog, State as ThreadState};
use pumphouse::prelude::*;
use pumphouse::wire::budget::{BudgetKey, BudgetRaised, RaiseBudget};
use pumphouse::wire::core::{ThreadCancelled, ThreadSpawned};

use super::{Answer, Down, Question, story};

/// What is charged, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "urn:test")]
struct Spend {
    turns: u64,
    tokens: u64,
    micros: u64,
    settled: Option<u64>,
}

const NOTHING: Spend = Spend { turns: 0, tokens: 0, micros: 0, settled: None };

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "urn:test")]
struct Spent {
    text: String,
}

/// Reserves, takes its time, and settles.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "urn:test")]
struct Hold {
    tokens: u64,
    ms: u64,
    settled: Option<u64>,
}

fn holder() -> Listener {
    let hold = async |out: Outbox<Charge>, it: Hold| {
        let reserved = Cost { tokens: it.tokens, ..Cost::default() };
        let mut ended = out.send(Charge::reserve(reserved)).await;
        if ended.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(it.ms)).await;
            if let Some(tokens) = it.settled {
                ended = out.send(Charge::settle(reserved, Cost { tokens, ..reserved })).await;
            }
        }
        Spent { text: ended.map_or_else(|it| it.to_string(), |()| "spent".to_owned()) }
    };
    Listener::new("holder").on(hold).grant::<Charges>()
}

fn spender() -> Listener {
    let spend = async |out: Outbox<Charge>, it: Spend| {
        let reserved = Cost { turns: it.turns, tokens: it.tokens, micros: it.micros };
        let mut ended = out.send(Charge::reserve(reserved)).await;
        if let (Ok(()), Some(tokens)) = (&ended, it.settled) {
            ended = out.send(Charge::settle(reserved, Cost { tokens, ..reserved })).await;
        }
        Spent { text: ended.map_or_else(|it| it.to_string(), |()| "spent".to_owned()) }
    };
    Listener::new("spender").on(spend).grant::<Charges>()
}

/// Counts down, and answers at the end.
fn counter() -> Listener {
    let count = async |Down { n }: Down| (n > 0).then(|| Again(Down { n: n - 1 }));
    let answer = async |Question { n }: Question| Answer { n };
    Listener::new("counter").on(count).on(answer)
}

fn start(limits: Limits, log: &Arc<dyn Log>) -> Pump {
    let log = log.clone();
    let with = move |it: &mut Builder| it.log(log);
    let plugins = (thread(), spender(), holder(), counter(), with);
    pumphouse::builder().with(plugins).limits(limits).workers(2).build().unwrap().start()
}

fn memory() -> Arc<dyn Log> {
    Arc::new(MemoryLog::new())
}

fn operator(pump: &Pump) -> Pump {
    pump.speaking_as(Identity { name: "ops".into(), operator: true })
}

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

fn spawn(first: &impl Payload) -> SpawnThread {
    let initial_payload = InitialPayload { payload: first.encode().unwrap() };
    SpawnThread { metadata: None, suggested_sub_id: None, initial_payload }
}

async fn spend(pump: &Pump, it: Spend) -> String {
    pump.ask::<Spent>(it).await.unwrap().text
}

async fn state(pump: &Pump, thread: &ThreadId) -> ThreadState {
    pump.log().thread(thread).await.unwrap().unwrap().state
}

/// A session, opened by what costs nothing.
async fn session(pump: &Pump) -> Pump {
    let first = pump.tell(Down { n: 0 }).await.unwrap();
    pump.in_thread(&first.thread)
}

/// Waits until the thread is so.
async fn becomes(pump: &Pump, thread: &ThreadId, wanted: ThreadState) {
    crate::eventually(async || state(pump, thread).await == wanted).await;
}

#[tokio::test]
async fn what_does_not_fit_is_refused_with_the_numbers_and_none_of_it_is_spent() {
    let pump = start(limits(|it| it.tree_tokens_max = 100), &memory());
    let here = session(&pump).await;
    assert_eq!(spend(&here, Spend { tokens: 60, ..NOTHING }).await, "spent");
    let refused = spend(&here, Spend { tokens: 41, turns: 1, ..NOTHING }).await;
    assert_eq!(refused, "P0042: tokens: 41 asked for, 60 used, the limit is 100");
    assert_eq!(spend(&here, Spend { tokens: 40, ..NOTHING }).await, "spent", "what is left fits");
}

#[tokio::test]
async fn what_fits_but_beside_others_waits_until_they_settle_or_end() {
    let pump = start(limits(|it| it.tree_tokens_max = 100), &memory());
    let thread = pump.tell(Down { n: 0 }).await.unwrap().thread;
    let here = pump.in_thread(&thread);
    let hold = async |tokens, ms, settled| {
        here.ask::<Spent>(Hold { tokens, ms, settled }).await.unwrap().text
    };
    let (first, second) = tokio::join!(hold(70, 60, Some(20)), hold(80, 0, Some(30)));
    assert_eq!((&*first, &*second), ("spent", "spent"), "the second waits for what is given back");
    let (first, second) = tokio::join!(hold(40, 60, None), hold(50, 0, Some(1)));
    assert_eq!(first, "spent");
    let refused = "P0042: tokens: 50 asked for, 90 used, the limit is 100";
    assert_eq!(second, refused, "a handler that ends without a settlement has spent it");
    assert_eq!(state(&pump, &thread).await, ThreadState::Open);
    assert_eq!(hold(11, 0, None).await, "P0042: tokens: 11 asked for, 90 used, the limit is 100");
    let (first, second) = tokio::join!(hold(10, 60, Some(2)), hold(11, 0, None));
    assert_eq!(first, "spent");
    let refused = "P0042: tokens: 11 asked for, 100 used, the limit is 100";
    assert_eq!(second, refused, "what wouldn't fit alone waits for nobody");
    assert_eq!(state(&pump, &thread).await, ThreadState::Open, "8 come back");
}

#[tokio::test]
async fn what_is_settled_is_given_back_or_counts() {
    let pump = start(limits(|it| it.tree_tokens_max = 100), &memory());
    let here = session(&pump).await;
    let less = Spend { tokens: 90, settled: Some(10), ..NOTHING };
    assert_eq!(spend(&here, less).await, "spent");
    let more = Spend { tokens: 10, settled: Some(150), ..NOTHING };
    assert_eq!(spend(&here, more).await, "spent", "what was spent was spent");
    let refused = spend(&here, Spend { tokens: 1, ..NOTHING }).await;
    assert_eq!(refused, "P0042: tokens: 1 asked for, 160 used, the limit is 100");
}

#[tokio::test]
async fn turns_are_counted_by_thread_and_listener() {
    let pump = start(limits(|it| it.thread_turns_max = 50), &memory());
    let here = session(&pump).await;
    assert_eq!(spend(&here, Spend { turns: 50, ..NOTHING }).await, "spent");
    let child: ThreadSpawned = here.ask(spawn(&Spend { turns: 50, ..NOTHING })).await.unwrap();
    let child = ThreadId::new(&child.assigned_id);
    becomes(&pump, &child, ThreadState::Closed).await;
    let refused = spend(&here, Spend { turns: 1, ..NOTHING }).await;
    assert_eq!(refused, "P0042: turns: 1 asked for, 50 used, the limit is 50");
}

#[tokio::test]
async fn each_warning_is_said_once_and_in_the_session() {
    let pump = start(limits(|it| it.tree_cost_micros_max = 100), &memory());
    let first = pump.tell(Down { n: 0 }).await.unwrap().thread;
    let here = pump.in_thread(&first);
    for micros in [70, 5, 1, 14, 4, 5] {
        assert_eq!(spend(&here, Spend { micros, ..NOTHING }).await, "spent");
    }
    let entries = pump.log().read(&first, 0, u64::MAX, 100).await.unwrap();
    let warnings = entries.iter().filter(|it| it.name.local() == "budget-warning");
    let said: Vec<String> =
        warnings.map(|it| String::from_utf8_lossy(&it.body).into_owned()).collect();
    let percents: Vec<&str> = said
        .iter()
        .map(|it| it.split("percent=\"").nth(1).unwrap().split('"').next().unwrap())
        .collect();
    assert_eq!(percents, ["75", "90", "95"], "{said:?}");
    assert!(entries.iter().all(|it| it.name.local() != "budget-warning" || it.to.is_none()));
}

#[tokio::test]
async fn a_spent_tree_takes_nothing_until_an_operator_raises_its_budget() {
    let pump = start(limits(|it| it.tree_messages_max = 3), &memory());
    let first = pump.tell(Down { n: 5 }).await.unwrap().thread;
    becomes(&pump, &first, ThreadState::OverBudget).await;
    assert_eq!(pump.log().count(&first, "core").await.unwrap(), 3);
    let here = pump.in_thread(&first);
    let late = here.tell(Question { n: 1 }).await.unwrap_err();
    assert_eq!(late.to_string(), format!("P0042: {first} is over-budget"));
    let advice = format!("`pumphouse budget {first}` shows which budget is spent: ");
    assert!(late.advice.as_ref().unwrap().starts_with(&advice), "{late:?}");
    let raise = RaiseBudget { key: BudgetKey::Messages, by: Some(7), to: None };
    let forbidden = here.ask::<BudgetRaised>(raise.clone()).await.unwrap_err();
    assert!(matches!(forbidden, AskError::Failed(it) if it.code == "P0011"));
    let raised: BudgetRaised = operator(&here).ask(raise).await.unwrap();
    assert_eq!((raised.limit.as_str(), raised.by.as_str()), ("10", "ops"));
    assert_eq!(state(&pump, &first).await, ThreadState::Open);
    assert_eq!(here.ask::<Answer>(Question { n: 1 }).await.unwrap(), Answer { n: 1 });
    let told = story(pump.log(), &first).await;
    assert!(told.contains(&"core > *: over-budget".to_owned()), "{told:?}");
    assert!(told.contains(&"thread > ops: budget-raised".to_owned()), "{told:?}");
}

#[tokio::test]
async fn whoever_opened_a_spent_tree_can_end_it_and_do_nothing_else_in_it() {
    let pump = start(limits(|it| it.tree_messages_max = 3), &memory());
    let first = pump.tell(Down { n: 5 }).await.unwrap().thread;
    becomes(&pump, &first, ThreadState::OverBudget).await;
    let cancel = || CancelThread { thread: None, reason: None };
    let stranger = pump.speaking_as(Identity { name: "eve".into(), operator: false });
    let theirs = stranger.in_thread(&first).tell(cancel()).await.unwrap_err();
    assert!(theirs.unknown_thread.is_some(), "{theirs}");
    let here = pump.in_thread(&first);
    let spawned = here.ask::<ThreadSpawned>(spawn(&Down { n: 0 })).await.unwrap_err();
    assert!(matches!(&spawned, AskError::Failed(it) if it.code == "P0042"), "{spawned}");
    let cancelled: ThreadCancelled = here.ask(cancel()).await.unwrap();
    assert_eq!(cancelled.thread, first.as_str());
    assert_eq!(state(&pump, &first).await, ThreadState::Cancelled);
    let over = here.tell(cancel()).await.unwrap_err();
    assert_eq!(over.to_string(), format!("P0040: {first} is cancelled"));
}

#[tokio::test]
async fn a_timer_that_is_due_when_nothing_is_left_ticks_once_there_is_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let start = || {
        let log = SqliteLog::open(&path, Durability::Normal).unwrap();
        let limits = limits(|it| it.tree_messages_max = 2);
        let plan = pumphouse::builder().with((crate::usual(), log)).limits(limits);
        plan.workers(2).build().unwrap().start()
    };
    let ticks = async |pump: &Pump, thread: &ThreadId| {
        let told = story(pump.log(), thread).await;
        told.iter().filter(|it| it.ends_with(": tick")).count()
    };
    for restarts in [0, 1, 2] {
        let mut pump = start();
        let after = Some("PT0.03S".parse().unwrap());
        let timer = SetTimer { after, at: None, every: None, cron: None, note: None };
        // What sets it and what waits for it are all there is.
        let thread = pump.tell(timer).await.unwrap().thread;
        becomes(&pump, &thread, ThreadState::OverBudget).await;
        for _ in 0..restarts {
            pump.shutdown().await.unwrap();
            pump = start();
            pump.ready().await.unwrap();
        }
        assert_eq!(ticks(&pump, &thread).await, 0);
        let ops = operator(&pump).in_thread(&thread);
        let more = RaiseBudget { key: BudgetKey::Messages, by: Some(5), to: None };
        ops.ask::<BudgetRaised>(more.clone()).await.unwrap();
        crate::eventually(async || ticks(&pump, &thread).await > 0).await;
        ops.ask::<BudgetRaised>(more).await.unwrap();
        let told = story(pump.log(), &thread).await;
        assert_eq!(ticks(&pump, &thread).await, 1, "{told:#?}");
        assert!(told.iter().all(|it| !it.ends_with("refused")), "{told:#?}");
        assert!(pump.log().open_entries().await.unwrap().is_empty());
        pump.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn only_an_operator_raises_and_only_upwards() {
    let pump = start(limits(|it| it.tree_tokens_max = 100), &memory());
    let here = session(&pump).await;
    let raise = |by: Option<u64>, to: Option<&str>| RaiseBudget {
        key: BudgetKey::Tokens,
        by,
        to: to.map(str::to_owned),
    };
    let refused = async |pump: &Pump, it: RaiseBudget| -> String {
        match pump.ask::<BudgetRaised>(it).await {
            Ok(raised) => raised.limit,
            Err(AskError::Failed(huh)) => {
                let path = huh.path.unwrap_or_default();
                format!("{}: {} at {path}", huh.code, huh.message)
            }
            Err(other) => other.to_string(),
        }
    };
    let forbidden = refused(&here, raise(Some(1), None)).await;
    assert!(forbidden.starts_with("P0011"), "{forbidden}");
    let ops = operator(&here);
    let both = refused(&ops, raise(Some(1), Some("7"))).await;
    assert_eq!(both, "P0007: it has both by and to at /raise-budget");
    let neither = refused(&ops, raise(None, None)).await;
    assert_eq!(neither, "P0007: it has neither by nor to at /raise-budget");
    let less = refused(&ops, raise(None, Some("99"))).await;
    let lower = "P0007: tokens can't be lowered to";
    assert_eq!(less, format!("{lower} 99: the limit is 100 at /raise-budget/@to"));
    assert_eq!(refused(&ops, raise(None, Some("250"))).await, "250");
    assert_eq!(refused(&ops, raise(Some(50), None)).await, "300");
    assert_eq!(refused(&ops, raise(None, Some("unlimited"))).await, "unlimited");
    let less = refused(&ops, raise(None, Some("50"))).await;
    assert_eq!(less, format!("{lower} 50: the limit is unlimited at /raise-budget/@to"));
    assert_eq!(refused(&ops, raise(Some(50), None)).await, "unlimited", "there is no more");
    assert_eq!(spend(&here, Spend { tokens: 1 << 40, ..NOTHING }).await, "spent");
}

#[tokio::test]
async fn zero_is_zero() {
    let zero = |change: fn(&mut Limits)| start(limits(change), &memory());
    let pump = zero(|it| it.tree_messages_max = 0);
    let refused = pump.ask::<Answer>(Question { n: 1 }).await.unwrap_err().to_string();
    assert_eq!(refused, "refused: P0042: messages: 1 asked for, 0 used, the limit is 0");
    assert!(pump.log().threads(None, 1).await.unwrap().is_empty(), "nothing was kept");
    let pump = zero(|it| it.tree_seconds_max = 0);
    let refused = pump.ask::<Answer>(Question { n: 1 }).await.unwrap_err().to_string();
    assert_eq!(refused, "refused: P0042: seconds: 1 asked for, 0 used, the limit is 0");
    let spawned = async |pump: Pump| match pump.ask::<ThreadSpawned>(spawn(&Down { n: 0 })).await {
        Err(AskError::Failed(huh)) => huh.message,
        other => format!("{other:?}"),
    };
    let depth = spawned(zero(|it| it.thread_depth_max = 0)).await;
    assert_eq!(depth, "depth: 1 asked for, 0 used, the limit is 0");
    let children = spawned(zero(|it| it.tree_children_max = 0)).await;
    assert_eq!(children, "children: 1 asked for, 0 used, the limit is 0");
    let charged = async |pump: Pump| {
        let one = Spend { turns: 1, tokens: 1, micros: 1, settled: None };
        spend(&session(&pump).await, one).await
    };
    let turns = charged(zero(|it| it.thread_turns_max = 0)).await;
    assert_eq!(turns, "P0042: turns: 1 asked for, 0 used, the limit is 0");
    let tokens = charged(zero(|it| it.tree_tokens_max = 0)).await;
    assert_eq!(tokens, "P0042: tokens: 1 asked for, 0 used, the limit is 0");
    let cost = charged(zero(|it| it.tree_cost_micros_max = 0)).await;
    assert_eq!(cost, "P0042: cost-micros: 1 asked for, 0 used, the limit is 0");
}

#[tokio::test]
async fn a_tree_that_woke_has_spent_what_it_had_spent() {
    let log = memory();
    let small = || {
        limits(|it| {
            it.tree_tokens_max = 100;
            it.tree_messages_max = 5;
            it.thread_turns_max = 50;
        })
    };
    let thread = {
        let pump = start(small(), &log);
        let here = session(&pump).await;
        assert_eq!(spend(&here, Spend { tokens: 80, turns: 49, ..NOTHING }).await, "spent");
        let first = pump.log().threads(None, 1).await.unwrap().remove(0).id;
        let raise = RaiseBudget { key: BudgetKey::Tokens, by: Some(20), to: None };
        let _: BudgetRaised = operator(&here).ask(raise).await.unwrap();
        first
    };
    // A memory log that is closed takes no more: the second pump stands beside the first.
    let here = start(small(), &log).in_thread(&thread);
    let tokens = spend(&here, Spend { tokens: 41, ..NOTHING }).await;
    assert_eq!(tokens, "P0042: tokens: 41 asked for, 80 used, the limit is 120");
    let turns = spend(&here, Spend { turns: 2, ..NOTHING }).await;
    assert_eq!(turns, "P0042: turns: 2 asked for, 49 used, the limit is 50");
    let over = here.ask::<Spent>(NOTHING).await.unwrap_err().to_string();
    assert_eq!(over, "refused: P0042: messages: 1 asked for, 5 used, the limit is 5");
}

#[tokio::test]
async fn ten_thousand_spawns_at_once_open_as_many_threads_as_there_may_be() {
    const FULL: &str = "children: 1 asked for, 1000 used";
    let (all, cap) = (10_000, 1_000);
    let never = async |_: Question| std::future::pending::<()>().await;
    let holder = Listener::new("holder").on(never);
    let limits = limits(|it| {
        it.tree_children_max = cap;
        it.unconsumed_max = 20_000;
    });
    let plan = pumphouse::builder().with((thread(), holder)).limits(limits).workers(2).build();
    let pump = plan.unwrap().start();
    let first = pump.tell(spawn(&Question { n: 0 })).await.unwrap().thread;
    let here = pump.in_thread(&first);
    let asks = (1..all).map(|n| here.ask::<ThreadSpawned>(spawn(&Question { n })));
    let ended = futures_util::future::join_all(asks).await;
    let opened = ended.iter().filter(|it| it.is_ok()).count() as u64 + 1;
    let short = ended
        .iter()
        .filter(|it| matches!(it, Err(AskError::Failed(huh)) if huh.message.starts_with(FULL)));
    assert_eq!((opened, short.count() as u64), (cap, all - cap));
    assert_eq!(pump.log().tree(&first).await.unwrap().len() as u64, cap + 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_order_of_messages_exceeds_what_there_may_be(
        cap in 0_u64..40,
        chains in prop::collection::vec(0_u64..8, 1..20),
    ) {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(2).enable_all().build().unwrap().block_on(async {
            let pump = start(limits(|it| it.tree_messages_max = cap), &memory());
            let Ok(first) = pump.tell(Down { n: chains[0] }).await else {
                assert_eq!(cap, 0);
                return;
            };
            let here = pump.in_thread(&first.thread);
            let asks = chains[1..].iter().map(|n| here.ask::<Done>(Down { n: *n }));
            futures_util::future::join_all(asks).await;
            let given = pump.log().count(&first.thread, "core").await.unwrap();
            assert!(given <= cap, "{given} of {cap}");
        });
    }
}
