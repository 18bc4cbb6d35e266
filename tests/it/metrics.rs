//! What is shown to those who watch a pump, and what never is: in metrics and in traces.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use pumphouse::client::{Client, Push};
use pumphouse::door::{Error, Metrics, Options, Tcp, Tokens};
use pumphouse::listeners::echo::Echo;
use pumphouse::log::Health;
use pumphouse::model::{Bounded, Model as _, Models, Prompt, Scripted};
use pumphouse::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tracing_subscriber::filter::LevelFilter;

use crate::loopback;
use crate::program::Scene;

/// What no metric and no trace may say.
const RIGHT: &str = "right-t0ken";
const WRONG: &str = "wr0ng-token";
const MARKER: &str = "marker4711";

struct House {
    pump: Pump,
    door: SocketAddr,
    metrics: SocketAddr,
}

async fn house() -> House {
    let tokens = Tokens::parse(&format!("ann:{RIGHT}")).unwrap();
    let door = Tcp::bind("127.0.0.1:0", Options::default().tokens(tokens)).await.unwrap();
    let metrics = Metrics::bind(loopback::own_address()).await.unwrap();
    let (at, shown) = (door.local_addr(), metrics.local_addr());
    let limits =
        Limits { linger_time_max: std::time::Duration::from_millis(200), ..Limits::default() };
    let builder = pumphouse::builder().with(pumphouse::listeners::standard()).limits(limits);
    let pump = builder.with((door, metrics)).build().unwrap().start();
    House { pump, door: at, metrics: shown }
}

/// The whole answer to a request.
async fn ask(at: SocketAddr, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Has what this thread does traced to a subscriber, until the returned value is dropped.
pub(crate) fn traced_to(
    subscriber: impl tracing::Subscriber + Send + Sync + 'static,
) -> (tracing::subscriber::DefaultGuard, tracing::Dispatch) {
    // Beside a single subscriber, `tracing` asks the first thread that comes to a place whether
    // that place is traced, and other tests' threads have no subscriber.
    let second = tracing::Dispatch::new(tracing_subscriber::registry());
    (tracing::subscriber::set_default(subscriber), second)
}

/// A number on the page.
#[track_caller]
fn number(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

#[tokio::test]
async fn a_watcher_sees_what_happened() {
    let house = house().await;
    let mut client = Client::connect(house.door).await.unwrap();
    client.authenticate(RIGHT).await.unwrap();
    let push = Push::of(&Echo { text: "hi".into() }).unwrap();
    client.tell(&push.clone().with_id("one")).await.unwrap();
    client.tell(&push.with_id("one")).await.unwrap();
    let unknown = Push::text("<nobody xmlns=\"urn:nobody\"/>").unwrap();
    client.tell(&unknown).await.unwrap_err();
    // Whoever asks after the answer, asks after it was counted.
    let Echo { text } = house.pump.ask(Echo { text: "ho".into() }).await.unwrap();
    assert_eq!(text, "ho");
    let page = ask(house.metrics, "GET", "/metrics").await;
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("text/plain; version=0.0.4"), "{page}");
    let echoed = "pumphouse_handlers_total{listener=\"echo\",outcome=\"returned\"}";
    for (name, expected) in [
        ("pumphouse_entries_total", 4.0),
        ("pumphouse_pushes_accepted_total", 2.0),
        ("pumphouse_refusals_total{fault=\"P0011\"}", 1.0),
        ("pumphouse_refusals_total{fault=\"P0021\"}", 0.0),
        (echoed, 2.0),
        ("pumphouse_held_up_total{listener=\"echo\"}", 0.0),
        ("pumphouse_connections", 1.0),
        ("pumphouse_owed_bytes", 0.0),
        ("pumphouse_inbox_depth", 0.0),
        ("pumphouse_trees_awake", 2.0),
        ("pumphouse_log_health{state=\"well\"}", 1.0),
        ("pumphouse_log_health{state=\"full\"}", 0.0),
    ] {
        assert!((number(&page, name) - expected).abs() < f64::EPSILON, "{name} in {page}");
    }
    let head = house.pump.log().head().await.unwrap();
    let metrics = house.pump.metrics();
    assert_eq!((metrics.commit, metrics.health), (head.number, Health::Well));
    for line in page.lines().skip_while(|it| !it.is_empty()).skip(1) {
        let name = line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ");
        assert!(name.starts_with("pumphouse_"), "{line}");
    }
    drop(client);
    house.pump.shutdown().await.unwrap();
    assert!(TcpStream::connect(house.metrics).await.is_err());
}

#[tokio::test]
async fn a_watcher_sees_which_model_turns_wait_for() {
    let model = Bounded::new("large", Arc::new(Scripted::replies(["a", "b"]))).at_once(1);
    let model = Arc::new(model);
    let mut models = Models::default();
    models.insert("large", model.clone());
    models.insert("unbounded", Arc::new(Scripted::replies(["c"])));
    let door = Metrics::bind("127.0.0.1:0")
        .await
        .unwrap()
        .source(pumphouse::listeners::model_metrics(models));
    let shown = door.local_addr();
    let pump = pumphouse::builder().with(door).build().unwrap().start();
    let first = model.turn(Prompt::new("Go.")).await.unwrap();
    let mut second = model.turn(Prompt::new("Go."));
    assert!((&mut second).now_or_never().is_none());
    let page = ask(shown, "GET", "/metrics").await;
    for (name, expected) in [
        ("pumphouse_model_replies{model=\"large\"}", 1.0),
        ("pumphouse_model_waiting{model=\"large\"}", 1.0),
        ("pumphouse_model_held_up_total{model=\"large\"}", 1.0),
    ] {
        assert!((number(&page, name) - expected).abs() < f64::EPSILON, "{name} in {page}");
    }
    assert!(!page.contains("unbounded"), "{page}");
    drop((first, second));
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn there_is_one_page_and_it_is_only_read() {
    let house = house().await;
    let check = async |method: &str, path: &str, expected: &str| {
        let answer = ask(house.metrics, method, path).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{method} {path}: {answer}");
    };
    check("GET", "/metrics?x=1", "200").await;
    check("HEAD", "/metrics", "200").await;
    check("GET", "/", "404").await;
    check("GET", "/metrics/", "404").await;
    check("POST", "/metrics", "405").await;
    check("DELETE", "/metrics", "405").await;
    // Whoever says nothing holds up no shutdown, and no other.
    let silent = TcpStream::connect(house.metrics).await.unwrap();
    check("GET", "/metrics", "200").await;
    house.pump.shutdown().await.unwrap();
    drop(silent);
    assert!(matches!(Metrics::bind("0.0.0.0:0").await, Err(Error::Shown(_))));
}

/// What was traced, as text.
#[derive(Clone, Default)]
struct Traced(Arc<Mutex<Vec<u8>>>);

impl Write for Traced {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One thread, so that the subscriber of the test sees all that happens.
#[tokio::test(flavor = "current_thread")]
async fn nothing_secret_is_traced_or_counted() {
    let traced = Traced::default();
    let writer = traced.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::FULL)
        .with_ansi(false)
        .with_writer(move || writer.clone());
    let guard = traced_to(subscriber.finish());
    let house = house().await;
    let namespace = "https://xml-pipeline.org/ns/echo/v1";
    let core = "https://xml-pipeline.org/ns/core/v1";
    let authenticate = |token: &str| format!("<authenticate xmlns='{core}' token='{token}'/>");
    let exchange = async |text: String| {
        let mut stream = TcpStream::connect(house.door).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let echo = format!("<echo xmlns='{namespace}'><text>{MARKER}</text></echo>");
    // Taken, invalid, the pump's own, and no XML at all: each quotes the marker where it may.
    let pushes = [
        echo,
        format!("<echo xmlns='{namespace}'><{MARKER}/></echo>"),
        format!("<echo xmlns='{namespace}' {MARKER}='{MARKER}'>{MARKER}</echo>"),
        format!("<done xmlns='{core}'>{MARKER}</done>"),
        format!("<a xmlns='urn:a'>&{MARKER};</a>"),
    ];
    let answer = exchange(authenticate(RIGHT) + &pushes.concat()).await;
    assert!(answer.contains(&format!("<text>{MARKER}</text>")), "{answer}");
    assert!(answer.contains("P0007") && answer.contains("P0010"), "{answer}");
    let answer = exchange(authenticate(WRONG)).await;
    assert!(answer.contains("P0021"), "{answer}");
    let page = ask(house.metrics, "GET", "/metrics").await;
    house.pump.shutdown().await.unwrap();
    drop(guard);
    let traced = String::from_utf8(traced.0.lock().unwrap().clone()).unwrap();
    // What proves that the traces were on.
    for word in ["connection{number=", "push{number=", "handler{listener=\"echo\"", "P0021"] {
        assert!(traced.contains(word), "no {word} in {traced}");
    }
    for secret in [RIGHT, WRONG, MARKER] {
        let line = traced.lines().chain(page.lines()).find(|it| it.contains(secret));
        assert_eq!(line, None);
    }
}

#[test]
fn the_program_shows_metrics_and_traces_in_json() {
    let scene = Scene::new();
    let server = scene.serve(&["--durability", "memory", "--metrics", "127.0.0.1:0"]);
    let page = server.greeting["metrics"][0].as_str().unwrap();
    let at: SocketAddr = page
        .strip_prefix("http://")
        .and_then(|it| it.strip_suffix("/metrics"))
        .and_then(|it| it.parse().ok())
        .unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let page = runtime.block_on(ask(at, "GET", "/metrics"));
    assert!(number(&page, "pumphouse_uptime_seconds") >= 0.0, "{page}");
    let wrong = ["run", "--listen", "127.0.0.1:0", "--metrics", "0.0.0.0:0"];
    scene.run(&wrong).code(2).says(&["metrics ask nobody who they are"]);
    let traced = scene.command(&["demo", "--log-json"]).env("RUST_LOG", "trace").output().unwrap();
    let traced = String::from_utf8(traced.stderr).unwrap();
    assert!(traced.lines().count() > 1, "{traced}");
    for line in traced.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect(line);
    }
}
