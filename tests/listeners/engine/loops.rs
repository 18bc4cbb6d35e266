//! Messages that go round in a circle are stopped with a warning and a reason. Messages that make
//! progress are never stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pumphouse::listeners::thread::{InitialPayload, SpawnThread, thread};
use pumphouse::prelude::*;
use pumphouse::wire::core::{ThreadResult, ThreadSpawned};

use super::{Answer, Down, Question, story};

/// Begins a shape of so many rounds.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "urn:test")]
struct Begin {
    n: u64,
}

/// The same, however often it is said.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "urn:test")]
struct Same {}

/// The same, at each tick.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "urn:test")]
struct Poll {}

type Rounds = State<Arc<AtomicU64>>;

/// Whether there is a round left.
fn one_more(rounds: &Rounds) -> bool {
    let less = |it: u64| it.checked_sub(1);
    rounds.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
}

/// Answers: with the same number, and the same with the same.
fn wall() -> Listener {
    Listener::new("wall")
        .on(async |Question { n }: Question| Answer { n })
        .on(async |_: Same| Same {})
}

fn player() -> Listener {
    let serve = async |Begin { n }: Begin| To("wall", Question { n });
    let again = async |Answer { n }: Answer| (n > 0).then(|| To("wall", Question { n: n - 1 }));
    Listener::new("player").on(serve).on_reply(again)
}

fn counter() -> Listener {
    let down = async |Down { n }: Down| (n > 0).then(|| Again(Down { n: n - 1 }));
    Listener::new("counter").on(async |Begin { n }: Begin| Again(Down { n })).on(down)
}

fn crowd() -> Listener {
    let all = async |Begin { n }: Begin| (0..n).map(|_| To("wall", Same {})).collect::<Vec<_>>();
    Listener::new("crowd").on(all)
}

fn waves() -> Listener {
    let wave = async |Begin { n }: Begin| -> Vec<_> {
        (0..n.min(9)).map(|_| To("wall", Question { n })).collect()
    };
    let next = async |Answer { n }: Answer| (n > 1).then(|| To("wall", Question { n: n - 1 }));
    Listener::new("waves").on(wave).on_reply(next)
}

fn poller() -> Listener<Arc<AtomicU64>> {
    let begin = async |rounds: Rounds, Begin { n }: Begin| {
        rounds.0.store(n, Ordering::SeqCst);
        Later::at(0, Poll {})
    };
    let poll = async |rounds: Rounds, clock: Clock, _: Poll| {
        let next = one_more(&rounds).then(|| Later::at(clock.now_us() + 100, Poll {}));
        (To("wall", Question { n: 7 }), next)
    };
    Listener::with_state("poller", Arc::default()).on(begin).on(poll).grant::<Timers>()
}

fn relay() -> Listener {
    Listener::new("relay").on(async |_: Begin| To("wall", Same {}))
}

fn parents() -> Listener {
    let open = async |Begin { n }: Begin| {
        (0..n).map(|_| Spawn::new(Question { n: 1 })).collect::<Vec<_>>()
    };
    Listener::new("parent").on(open).grant::<Threads>()
}

fn cell() -> Listener {
    let split = async |Begin { n }: Begin| match n {
        0 => Vec::new(),
        n => vec![Again(Begin { n: n / 2 }), Again(Begin { n: n / 3 })],
    };
    Listener::new("cell").on(split)
}

fn retrier() -> Listener<Arc<AtomicU64>> {
    let begin = async |rounds: Rounds, Begin { n }: Begin| {
        rounds.0.store(n, Ordering::SeqCst);
        To("wall", Same {})
    };
    let again = async |rounds: Rounds, _: Same| one_more(&rounds).then_some(To("wall", Same {}));
    Listener::with_state("retrier", Arc::default()).on(begin).on_reply(again)
}

/// Plays a shape, some times in one thread; what its entries are called.
async fn played(plugin: impl Plugin, n: u64, times: u64) -> Vec<String> {
    let plan = pumphouse::builder().with((plugin, wall())).workers(1).build().unwrap();
    let pump = plan.start();
    let _: Done = pump.ask(Begin { n }).await.unwrap();
    let first = pump.log().threads(None, 1).await.unwrap().remove(0).id;
    for _ in 1..times {
        let _: Done = pump.in_thread(&first).ask(Begin { n }).await.unwrap();
    }
    let mut all = Vec::new();
    for it in pump.log().tree(&first).await.unwrap() {
        all.extend(story(pump.log(), &it.id).await);
    }
    all
}

#[tokio::test]
async fn a_hundred_healthy_shapes_pass() {
    let mut shapes = 0;
    let mut healthy = |shape: &str, n: u64, told: Vec<String>| {
        shapes += 1;
        let wrong = |it: &&String| it.contains("loop-warning") || it.contains("refused");
        assert_eq!(told.iter().find(wrong), None, "{shape} {n}: {} entries", told.len());
    };
    for n in [0, 1, 2, 3, 4, 5, 7, 10, 20, 30, 50, 100] {
        healthy("a ball against a wall, counting down", n, played(player(), n, 1).await);
        healthy("one that counts down by itself", n, played(counter(), n, 1).await);
        healthy("the same question to many", n, played(crowd(), n, 1).await);
        healthy("many questions, each with the next", n, played(waves(), n, 1).await);
        healthy("the same question at every tick", n, played(poller(), n.min(20), 1).await);
        healthy(
            "the same message whenever it comes from outside",
            n,
            played(relay(), n, n.max(1)).await,
        );
        healthy("many threads that begin alike", n, played(parents(), n, 1).await);
        healthy("one that divides", n, played(cell(), n, 1).await);
        healthy("a second try", n, played(retrier(), n.min(1), 1).await);
    }
    assert!(shapes >= 100, "{shapes}");
}

#[tokio::test]
async fn what_says_the_same_again_and_again_is_warned_of_once_and_stopped() {
    let plan = pumphouse::builder().with((retrier(), wall())).workers(1).build().unwrap();
    let pump = plan.start();
    let stopped = pump.ask::<Done>(Begin { n: 100 }).await.unwrap_err();
    let AskError::Failed(huh) = stopped else { panic!("{stopped}") };
    assert_eq!(huh.code, "P0043");
    assert_eq!(huh.message, "retrier says the same again and again: repeats_max is 3");
    let thread = super::only_thread(&pump).await;
    let told = story(pump.log(), &thread).await;
    let ball = |it: &str| told.iter().filter(|line| *line == it).count();
    assert_eq!(ball("retrier > wall: same"), 3, "{told:?}");
    assert_eq!(ball("core > *: loop-warning"), 1, "{told:?}");
    assert_eq!(ball("retrier > wall: same refused"), 1, "{told:?}");
    assert_eq!(told.last().unwrap(), "core > console: huh");
    let late = pump.in_thread(&thread).ask::<Answer>(Question { n: 1 }).await.unwrap();
    assert_eq!(late, Answer { n: 1 }, "the session goes on");
}

#[tokio::test]
async fn one_that_only_talks_to_itself_is_stopped_too() {
    let mad = Listener::new("mad").on(async |_: Same| Again(Same {}));
    let pump = super::start(mad);
    let stopped = pump.ask::<Done>(Same {}).await.unwrap_err();
    assert!(matches!(&stopped, AskError::Failed(huh) if huh.code == "P0043"), "{stopped}");
    let told = story(pump.log(), &super::only_thread(&pump).await).await;
    let rounds = told.iter().filter(|it| *it == "mad > mad: same").count();
    assert_eq!(rounds, 3, "{told:?}");
}

/// Plays what never ends, until it is stopped for this reason; what its entries are called.
async fn stopped(plugin: impl Plugin, limits: Limits, why: &str) -> Vec<String> {
    let plan = pumphouse::builder().with(plugin).limits(limits).build().unwrap();
    let pump = plan.start();
    let stopped = pump.ask::<Done>(Begin { n: 1 }).await.unwrap_err();
    let AskError::Failed(huh) = stopped else { panic!("{stopped}") };
    assert_eq!(huh.code, "P0043");
    assert!(huh.message.starts_with(why), "{}", huh.message);
    let first = pump.log().threads(None, 1).await.unwrap().remove(0).id;
    story(pump.log(), &first).await
}

#[tokio::test]
async fn a_circle_that_always_says_something_new_ends_at_its_bound() {
    let limits = Limits { chain_max: 40, ..Limits::default() };
    let plan = pumphouse::builder().with((player(), wall())).limits(limits).build().unwrap();
    let pump = plan.start();
    let short = pump.ask::<Done>(Begin { n: 19 }).await;
    assert!(short.is_ok(), "forty messages");
    let stopped = pump.ask::<Done>(Begin { n: 1_000 }).await.unwrap_err();
    let AskError::Failed(huh) = stopped else { panic!("{stopped}") };
    assert_eq!(huh.message, "player goes on in a circle of messages: chain_max is 40");
}

#[tokio::test]
async fn a_circle_through_threads_below_is_one_too() {
    let again = async |_: ThreadResult| Spawn::new(Question { n: 1 });
    let mother = Listener::new("mother")
        .on(async |_: Begin| Spawn::new(Question { n: 1 }))
        .on_reply(again)
        .grant::<Threads>();
    let told = stopped((mother, wall()), Limits::default(), "mother says the same again").await;
    let opened = told.iter().filter(|it| *it == "core > mother: thread-spawned").count();
    assert_eq!(opened, 3, "{told:?}");
    assert!(told.contains(&"core > *: loop-warning".to_owned()), "{told:?}");

    let limits = Limits { chain_max: 20, ..Limits::default() };
    let next = async |it: ThreadResult| {
        let n = it.payload.map_or(0, |it| Answer::decode(&it).unwrap().n);
        Spawn::new(Question { n: n + 1 })
    };
    let mother = Listener::new("mother")
        .on(async |_: Begin| Spawn::new(Question { n: 1 }))
        .on_reply(next)
        .grant::<Threads>();
    stopped((mother, wall()), limits, "mother goes on in a circle of messages").await;
}

#[tokio::test]
async fn a_child_that_goes_round_has_failed() {
    let mad = Listener::new("mad").on(async |_: Same| Again(Same {}));
    let pump = super::start((mad, thread()));
    let initial_payload = InitialPayload { payload: Same {}.encode().unwrap() };
    let spawn = SpawnThread { metadata: None, suggested_sub_id: None, initial_payload };
    let it: ThreadSpawned = pump.ask(spawn).await.unwrap();
    let parent = ThreadId::new(&it.parent_id);
    let mut follow = pump.follow(&parent, 2);
    follow.next().await.unwrap();
    let result = pump.log().read(&parent, 2, 3, 1).await.unwrap().remove(0);
    assert_eq!(result.name, ThreadResult::NAME);
    let text = String::from_utf8_lossy(&result.body).into_owned();
    assert!(text.contains(r#"status="failed""#) && text.contains("P0043"), "{text}");
}

#[tokio::test]
async fn what_goes_on_with_itself_ends_at_again_max() {
    let round = async |Down { n }: Down| Again(Down { n: n + 1 });
    assert_eq!(Limits::default().again_max, 100_000);
    let limits = Limits { again_max: 20, ..Limits::default() };
    let plan = pumphouse::builder().with(Listener::new("round").on(round)).limits(limits).build();
    let pump = plan.unwrap().start();
    let stopped = pump.ask::<Answer>(Down { n: 0 }).await.unwrap_err();
    let AskError::Failed(huh) = stopped else { panic!("{stopped}") };
    assert_eq!(huh.code, "P0043");
    assert_eq!(huh.message, "round goes on with itself without an end: again_max is 20");
    let thread = super::only_thread(&pump).await;
    let told = story(pump.log(), &thread).await;
    let all = told.iter().filter(|it| *it == "round > round: down").count();
    assert_eq!(all, 20);
    assert_eq!(
        told[21..],
        ["core > *: loop-warning", "round > round: down refused", "core > console: huh",]
    );
    pump.shutdown().await.unwrap();
}
