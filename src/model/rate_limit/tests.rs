//! Tests which turns wait for a model with limits, and for how long.

use futures_util::FutureExt as _;

use super::*;
use crate::model::router::{Policy, Router};
use crate::model::script::Script;
use crate::model::scripted::Scripted;
use crate::model::usage::Usage;

/// Replies under way, turns that wait, and turns that have had to wait.
fn load(model: &Bounded) -> (u64, u64, u64) {
    let load = model.load().unwrap();
    (load.under_way, load.waiting, load.held_up)
}

fn replies() -> Arc<Scripted> {
    Arc::new(Scripted::replies(["a", "b", "c", "d", "e"]))
}

#[tokio::test]
async fn who_asks_beyond_the_limit_waits_for_the_end_of_a_reply() {
    let model = Bounded::new("m", replies()).at_once(2);
    let ask = || model.turn(Prompt::new("Go."));
    let (one, _two) = (ask().await.unwrap(), ask().await.unwrap());
    let mut third = ask();
    assert!((&mut third).now_or_never().is_none());
    assert_eq!((load(&model), model.has_room()), ((2, 1, 1), false));
    drop(one);
    let third = third.await.unwrap();
    assert_eq!(load(&model), (2, 0, 1));
    drop(third);
    assert_eq!((load(&model), model.has_room()), ((1, 0, 1), true));
}

#[tokio::test]
async fn a_router_with_limits_says_how_often_its_models_were_asked() {
    let router = Router::new("both", Policy::Failover).model("first", replies());
    let model = Bounded::new("both", Arc::new(router)).at_once(2);
    model.turn(Prompt::new("Go.")).await.unwrap();
    assert_eq!(model.asking().iter().map(|it| it.answered).collect::<Vec<_>>(), [1]);
}

#[tokio::test]
async fn who_gives_up_waiting_takes_no_place() {
    let model = Bounded::new("m", replies()).at_once(1);
    let one = model.turn(Prompt::new("Go.")).await.unwrap();
    drop(model.turn(Prompt::new("Go.")).now_or_never());
    assert_eq!(load(&model), (1, 0, 1));
    drop(one);
    assert!(model.turn(Prompt::new("Go.")).await.is_ok());
    assert_eq!(load(&model), (0, 0, 1));
}

#[tokio::test]
async fn agents_that_wait_are_served_in_turn() {
    let model = Bounded::new("m", replies()).at_once(1);
    let ask = |agent: &str| {
        let mut prompt = Prompt::new("Go.");
        prompt.agent = Some(agent.into());
        model.turn(prompt)
    };
    let first = ask("many").await.unwrap();
    let mut turns = [ask("many"), ask("many"), ask("one")];
    for turn in &mut turns {
        assert!(turn.now_or_never().is_none());
    }
    drop(first);
    let [mut second, mut third, mut other] = turns;
    drop((&mut second).now_or_never().unwrap());
    assert!((&mut third).now_or_never().is_none(), "the other agent is next");
    drop((&mut other).now_or_never().unwrap());
    assert!((&mut third).now_or_never().is_some());
}

#[tokio::test]
async fn so_many_requests_begin_in_a_minute() {
    let model = Bounded::new("m", replies()).requests_per_minute(2);
    for _ in 0..2 {
        assert!(model.turn(Prompt::new("Go.")).now_or_never().is_some());
    }
    assert!(!model.has_room());
    let mut third = model.turn(Prompt::new("Go."));
    assert!((&mut third).now_or_never().is_none());
    assert_eq!(load(&model), (0, 1, 1));
}

#[tokio::test]
async fn a_turn_begins_when_its_minute_allows_it() {
    let model = Bounded::new("m", replies()).requests_per_minute(6_000);
    for _ in 0..6_000 {
        model.gate.state().requests.iter_mut().for_each(|it| it.take(1, clock::now_us()));
    }
    // A hundredth of a second later there is room for one turn.
    assert!(model.turn(Prompt::new("Go.")).await.is_ok());
}

#[tokio::test]
async fn the_tokens_that_a_provider_counts_are_taken_from_the_minute() {
    let reply = |_: &Prompt, _| Script::text("42").usage(Usage::new(300, 300));
    let model = Bounded::new("m", Arc::new(Scripted::new(reply))).tokens_per_minute(500);
    let mut one = model.turn(Prompt::new("Go.")).await.unwrap();
    assert!(model.has_room());
    while one.next().await.unwrap().is_some() {}
    assert!(!model.has_room(), "600 of 500 are used");
    assert!(model.turn(Prompt::new("Go.")).now_or_never().is_none());
}

#[tokio::test]
async fn a_count_of_tokens_that_cannot_be_closes_a_model_for_minutes_only() {
    let reply = |_: &Prompt, _| Script::text("42").usage(Usage::new(u64::MAX, 1));
    let model = Bounded::new("m", Arc::new(Scripted::new(reply))).tokens_per_minute(500);
    let mut one = model.turn(Prompt::new("Go.")).await.unwrap();
    while one.next().await.unwrap().is_some() {}
    drop(one);
    let wait = model.gate.state().wait(500, clock::now_us()).unwrap().unwrap();
    assert!(wait < Duration::from_secs(11 * 60), "{wait:?}");
}

#[tokio::test]
async fn a_turn_behind_one_that_gave_up_begins_at_once() {
    let model = Bounded::new("m", replies()).tokens_per_minute(1_000);
    let ask = |bytes: usize| model.turn(Prompt::new("a".repeat(bytes)));
    let _first = ask(2_000).await.unwrap();
    let (mut large, mut small) = (ask(3_600), ask(40));
    assert!((&mut large).now_or_never().is_none());
    assert!((&mut small).now_or_never().is_none());
    drop(large);
    assert!(small.now_or_never().is_some(), "it waits for what nobody asks for any more");
}
