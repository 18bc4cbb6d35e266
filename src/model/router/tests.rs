//! Tests which of its models a router asks, and when it asks failed models again.

use std::time::Duration;

use super::*;
use crate::model::piece::Piece;
use crate::model::script::Script;
use crate::model::scripted::Scripted;
use crate::model::usage::Usage;

fn limits() -> RouterLimits {
    RouterLimits { retry_time_min: Duration::from_millis(4), ..RouterLimits::default() }
}

/// A model that replies with its name.
fn says(name: &'static str) -> Arc<dyn Model> {
    Arc::new(Scripted::new(move |_, _| Script::text(name).usage(Usage::new(1, 1))))
}

/// A model whose first `times` replies fail with this error, and that then replies with `well`.
fn fails(times: u64, error: Error) -> Arc<dyn Model> {
    let count = AtomicUsize::new(0);
    Arc::new(Scripted::new(move |_, _| {
        match (count.fetch_add(1, Ordering::Relaxed) as u64) < times {
            true => Script::text("").fails_with(0, error.clone()),
            false => Script::text("well"),
        }
    }))
}

fn failure(kind: Kind) -> Error {
    Error::new(kind, "it failed")
}

/// The models that failed before, and the answering model's name with its text; or the error.
async fn turn(router: &Router) -> Result<(Vec<String>, String), Error> {
    let mut reply = router.turn(Prompt::new("Go.")).await?;
    let (mut tried, mut said) = (Vec::new(), String::new());
    while let Some(piece) = reply.next().await? {
        match piece {
            Piece::Tried(error) => tried.push(error.model.unwrap().into()),
            Piece::Answering(it) => said += &format!("{}: ", it.name),
            Piece::Text(text) => said += &text,
            _ => {}
        }
    }
    Ok((tried, said))
}

async fn said(router: &Router) -> String {
    turn(router).await.unwrap().1
}

#[tokio::test]
async fn failover_asks_the_first_model_that_can_answer() {
    let down = fails(1, failure(Kind::Unreachable));
    let router = Router::new("best", Policy::Failover).limits(limits());
    let router = router.model("a", down).model("b", says("b"));
    assert_eq!(turn(&router).await.unwrap(), (vec!["a".to_owned()], "b: b".to_owned()));
    // Until its pause is over, the model that failed is asked last.
    assert_eq!(said(&router).await, "b: b");
    retry_pause::sleep(Duration::from_millis(10)).await;
    assert_eq!(said(&router).await, "a: well");
    let counts: Vec<_> =
        router.asking().into_iter().map(|it| (it.answered, it.failed, it.failed_over)).collect();
    assert_eq!(counts, [(1, 1, 1), (2, 0, 0)]);
}

#[tokio::test]
async fn round_robin_asks_each_in_turn_and_shares_what_one_that_fails_leaves() {
    let gone = fails(u64::MAX, failure(Kind::Failed));
    let all = [("a", says("a")), ("b", gone), ("c", says("c"))];
    let router = Router::new("best", Policy::RoundRobin);
    let router = all.into_iter().fold(router, |it, (name, model)| it.model(name, model));
    let mut counts = BTreeMap::new();
    for _ in 0..100 {
        *counts.entry(said(&router).await).or_insert(0) += 1;
    }
    assert!(counts.len() == 2 && counts.values().all(|it| (45..=55).contains(it)), "{counts:?}");
}

#[tokio::test]
async fn least_loaded_asks_the_one_with_the_fewest_replies_under_way() {
    let router = Router::new("best", Policy::LeastLoaded);
    let router = router.model("a", says("a")).model("b", says("b"));
    let mut all = Vec::new();
    for expected in ["a", "b", "a", "b"] {
        let mut reply = router.turn(Prompt::new("Go.")).await.unwrap();
        let first = reply.next().await.unwrap();
        assert!(matches!(first, Some(Piece::Answering(it)) if it.name == expected));
        all.push(reply);
    }
    drop(all.remove(1));
    assert_eq!(said(&router).await, "b: b");
}

#[tokio::test]
async fn a_model_that_refuses_is_not_asked_again_in_the_turn() {
    let refused = Error { status: Some(401), ..failure(Kind::Refused) };
    let router = Router::new("best", Policy::Failover).limits(limits());
    let router = router.model("a", fails(9, refused)).model("b", fails(2, failure(Kind::Failed)));
    let (tried, said) = turn(&router).await.unwrap();
    assert_eq!((tried, &*said), (vec!["a".to_owned(), "b".into(), "b".into()], "b: well"));
}

#[tokio::test]
async fn all_are_asked_again_so_often_and_the_error_has_every_attempt() {
    let router = Router::new("best", Policy::Failover).limits(limits());
    let router = router.model("a", fails(9, failure(Kind::Cut)));
    let router = router.model("b", fails(9, failure(Kind::Failed)));
    let error = turn(&router).await.unwrap_err();
    // In a round, models whose pause is over are asked first, so either model may fail last.
    let times = |name: &str| {
        let all = error.tried.iter().chain([&error]);
        all.filter(|it| it.model.as_deref() == Some(name)).count()
    };
    assert_eq!((error.attempts(), times("a"), times("b")), (8, 4, 4));
    assert!(error.to_string().ends_with(": it failed, tried 8 times"), "{error}");
    let none = Router::new("best", Policy::Failover);
    assert_eq!(turn(&none).await.unwrap_err().to_string(), "the router best has no models");
}

#[tokio::test]
async fn a_model_that_wants_no_request_is_left_out_and_only_all_of_them_make_the_agent_wait() {
    let limited = |seconds| Error {
        retry_after: Some(Duration::from_secs(seconds)),
        ..failure(Kind::RateLimited)
    };
    let router = Router::new("best", Policy::Failover).limits(limits());
    let b = fails(2, limited(10));
    let router = router.model("a", fails(1, limited(20))).model("b", b.clone());
    let error = turn(&router).await.unwrap_err();
    assert_eq!((error.kind, error.retry, error.attempts()), (Kind::RateLimited, true, 2));
    assert!(error.retry_after.is_some_and(|it| (9..=10).contains(&it.as_secs())), "{error:?}");
    // Meanwhile, no model is asked.
    assert_eq!(turn(&router).await.unwrap_err().attempts(), 1);
    assert_eq!(router.asking().iter().map(|it| it.failed).collect::<Vec<_>>(), [1, 1]);
}

#[tokio::test]
async fn one_whose_limits_are_reached_is_passed_over_where_another_has_room() {
    let a = crate::model::rate_limit::Bounded::new("a", says("a")).at_once(1);
    let router = Router::new("best", Policy::Failover);
    let router = router.model("a", Arc::new(a)).model("b", says("b"));
    let first = router.turn(Prompt::new("Go.")).await.unwrap();
    assert_eq!(said(&router).await, "b: b");
    drop(first);
    assert_eq!(said(&router).await, "a: a");
}

#[test]
fn a_router_takes_the_attachments_that_all_of_its_models_take() {
    let check = |all: &[&[&'static str]], expected: &[&str]| {
        let mut router = Router::new("best", Policy::Failover);
        for types in all {
            let model = Scripted::replies([""]).with_attachments(types.iter().copied());
            router = router.model("a", Arc::new(model));
        }
        assert_eq!(router.attachments(), expected, "{all:?}");
    };
    check(&[], &[]);
    check(&[&["image/*"]], &["image/*"]);
    check(&[&["image/*", "application/pdf"], &["image/png"]], &["image/png"]);
    check(
        &[&["image/*", "application/pdf"], &["application/pdf", "image/*"]],
        &["application/pdf", "image/*"],
    );
    check(&[&["image/*"], &[]], &[]);
}

#[tokio::test]
async fn a_router_asks_the_models_of_another_router_once() {
    let inner = Router::new("inner", Policy::Failover).limits(limits());
    let inner = Arc::new(inner.model("a", fails(u64::MAX, failure(Kind::Cut))));
    let outer = Router::new("outer", Policy::Failover).limits(limits());
    let outer = outer.model("inner", inner.clone()).model("b", says("b"));
    assert_eq!(turn(&outer).await.unwrap(), (vec!["inner".to_owned()], "b: b".to_owned()));
    assert_eq!(inner.asking()[0].failed, 1);
}

#[tokio::test]
async fn a_router_that_asks_once_says_that_all_its_models_want_no_request() {
    let rest = Duration::from_secs(5);
    let limited = Error { retry_after: Some(rest), ..failure(Kind::RateLimited) };
    let limits = RouterLimits { retries_max: 0, retry_time_min: rest * 2, ..limits() };
    let router = Router::new("best", Policy::Failover).limits(limits);
    let router = router.model("a", fails(1, limited));
    for attempts in [1, 1] {
        let error = turn(&router).await.unwrap_err();
        assert_eq!(
            (error.kind, error.retry, error.attempts()),
            (Kind::RateLimited, true, attempts)
        );
        assert!(error.retry_after.is_some_and(|it| it <= rest), "{error:?}");
    }
}
