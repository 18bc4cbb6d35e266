//! An agent whose model is a router over three servers, one of which fails in every possible way.
//! Every question is answered, no action runs twice, and the other two servers share the work
//! evenly.

use std::collections::BTreeMap;
use std::env;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use pumphouse::limits::{ModelLimits, RouterLimits};
use pumphouse::listeners::agent::words::Response;
use pumphouse::listeners::{agent::Agent, staff};
use pumphouse::log::MemoryLog;
use pumphouse::model::{Model, Policy, Router};
use pumphouse::prelude::*;

use super::fake::{Act, Asked, DONE, STOP, Server, answer, delta, events, head, say};

/// Counts something.
#[derive(Debug, Payload)]
#[payload(ns = "urn:test:router")]
struct Count {
    what: String,
}

/// It is counted.
#[derive(Debug, Payload)]
#[payload(ns = "urn:test:router")]
struct Counted {}

/// How often each thing was counted.
type Counts = Arc<Mutex<BTreeMap<String, u32>>>;

async fn count(State(counts): State<Counts>, Count { what }: Count) -> Counted {
    *counts.lock().unwrap().entry(what).or_default() += 1;
    Counted {}
}

/// What a model says that counts what it is asked, and then answers.
fn words(asked: &Asked) -> String {
    let messages = asked.body["messages"].as_array().unwrap();
    // The system text names results, too.
    let is_done = messages[1..].iter().any(|it| it.to_string().contains("<action-result"));
    let question = messages.iter().find(|it| it["role"] == "user").unwrap();
    // What stands before it says who asks.
    let question = question["content"].as_str().and_then(|it| it.lines().last()).unwrap();
    match is_done {
        true => "<response>It is counted.</response>".to_owned(),
        false => format!(
            r#"<action id="a">{{"name": "count", "parameters": {{"what": "{question}"}}}}</action>"#
        ),
    }
}

fn well(asked: &Asked) -> Vec<Act> {
    answer(&words(asked))
}

/// How a server fails.
type Fails = fn(&Asked) -> Vec<Act>;

const WAYS: [(&str, Fails); 15] = [
    ("429", |_| vec![head("429 Too Many Requests", "")]),
    ("429 with a time", |_| vec![head("429 Too Many Requests", "retry-after: 3600\r\n")]),
    ("500", |_| vec![head("500 Internal Server Error", "")]),
    ("529", |_| vec![head("529 Overloaded", "")]),
    ("a page", |_| vec![head("200 OK", "content-type: text/html\r\n"), say("<html>Hi</html>")]),
    ("half a JSON", |_| {
        vec![head("200 OK", "content-type: application/json\r\n"), say("{\"choices\": [{")]
    }),
    ("a long line", |_| vec![events(), say("x".repeat(2 << 20)), say(DONE)]),
    ("a bomb", |_| {
        // Nothing is unpacked: what is packed is no reply.
        let packed = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xed\xc1".repeat(1_000);
        let headers = "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n";
        vec![head("200 OK", headers), Act::Say(packed)]
    }),
    ("a redirect", |_| vec![head("302 Found", "location: http://127.0.0.1:1/\r\n")]),
    ("silence before", |_| vec![Act::Hang]),
    ("silence within", |asked| vec![events(), delta(&words(asked)), Act::Hang]),
    ("cut before", |_| vec![]),
    ("cut within", |asked| vec![events(), delta(&words(asked))]),
    ("a wrong key", |_| vec![head("401 Unauthorized", "")]),
    ("an error within", |asked| {
        let error = "data: {\"error\": {\"message\": \"overloaded\"}}\n\n";
        vec![events(), delta(&words(asked)), say(error), say(STOP)]
    }),
];

/// A model there, which is silent for at most so many milliseconds.
fn model(server: &Server, silence_ms: u64) -> Arc<dyn Model> {
    let limits = ModelLimits {
        first_byte_time_max: Duration::from_millis(silence_ms),
        silence_time_max: Duration::from_millis(silence_ms),
        ..ModelLimits::default()
    };
    Arc::new(server.model().limits(limits).build().unwrap())
}

/// Asks so many questions, a few at a time: how many requests each of the servers had.
async fn ask(way: &str, fails: Fails, questions: usize) -> [usize; 3] {
    let bad = Server::answering(fails).await;
    let good = [Server::answering(well).await, Server::answering(well).await];
    let limits =
        RouterLimits { retry_time_min: Duration::from_millis(50), ..RouterLimits::default() };
    let router = Router::new("best", Policy::RoundRobin).limits(limits);
    let router = router.model("bad", model(&bad, 200));
    // A busy machine may be late, and that is no failure of these.
    let router = router.model("one", model(&good[0], 30_000)).model("two", model(&good[1], 30_000));
    let agent = Agent::new("oracle", Arc::new(router)).peers(["count"]);
    let asking: Vec<Element> =
        (0..questions).map(|it| agent.ask(&format!("question {it}")).unwrap()).collect();
    let counts = Counts::default();
    let counter = Listener::with_state("count", counts.clone()).on(count);
    let log = |it: &mut Builder| it.log(Arc::new(MemoryLog::default()));
    let builder = pumphouse::builder().with((staff(), counter, agent.listener(), log));
    let pump = builder.build().unwrap().start();
    let ask = async |question| pump.ask_element(question).await.unwrap();
    let answers: Vec<Entry> = stream::iter(asking).map(ask).buffer_unordered(8).collect().await;
    for it in answers {
        let response = it.decode_if::<Response>();
        assert!(response.is_some_and(|it| it.text == "It is counted."), "{way}: {it:?}");
    }
    pump.shutdown().await.unwrap();
    let counts = counts.lock().unwrap().clone();
    assert_eq!((counts.len(), counts.values().max()), (questions, Some(&1)), "{way}");
    [bad.asked().len(), good[0].asked().len(), good[1].asked().len()]
}

/// The long form is `just router`.
#[expect(clippy::disallowed_methods, reason = "a long form asks more")]
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_loses_no_turn_repeats_no_action_and_leaves_even_shares() {
    let questions = env::var("PUMPHOUSE_ROUTER_QUESTIONS").map_or(20, |it| it.parse().unwrap());
    for (way, fails) in WAYS {
        let [bad, one, two] = ask(way, fails, questions).await;
        println!("{way}: {bad} requests failed, {one} and {two} were answered");
        assert!(bad > 0, "{way}: it was never asked");
        let (least, most) = (one.min(two), one.max(two));
        assert!(least * 3 >= most * 2, "{way}: {one} and {two}");
        // A turn that broke off has begun its action, or is asked for again.
        assert!(one + two >= questions && one + two <= 2 * questions, "{way}: {one} and {two}");
    }
}
