//! A running pump sends its spans, whatever its collector does.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::AggregationTemporality;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use pumphouse::clock::now_us;
use serde_json::Value;

use super::collector::{Collector, decoded};
use super::{ASK, team};
use crate::program::{Scene, Server};

/// A port where nobody listens.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn otel(port: u16) -> String {
    format!("otel: {{endpoint: \"http://127.0.0.1:{port}\", headers: {{x-key: \"k\"}}}}\n")
}

fn ask(scene: &Scene, server: &Server) {
    scene.pipe(&["send", "--connect", &server.address], ASK).code(0);
}

/// So many spans, by their ids.
#[track_caller]
fn spans(collector: &Collector, count: usize) -> BTreeMap<Vec<u8>, Span> {
    let mut all = BTreeMap::new();
    while all.len() < count {
        all.extend(decoded(&collector.next()).into_iter().map(|it| (it.span_id.clone(), it)));
    }
    all
}

/// The spans that an export of the log has.
fn exported(scene: &Scene) -> BTreeMap<Vec<u8>, Span> {
    scene.run(&["otel", "export", "--to", "all.pb", "--force"]).code(0);
    let all = decoded(&std::fs::read(scene.path("all.pb")).unwrap());
    all.into_iter().map(|it| (it.span_id.clone(), it)).collect()
}

/// How many entries the follower is behind.
fn lag(server: &Server) -> u64 {
    server.metric("pumphouse_otel_lag_entries ")
}

fn position(scene: &Scene) -> u64 {
    let text = std::fs::read(scene.path("data/pumphouse.db-otel.json")).unwrap();
    let kept: Value = serde_json::from_slice(&text).unwrap();
    kept["position"].as_u64().unwrap()
}

#[test]
fn spans_wait_in_the_log_while_the_collector_is_away() {
    let port = free_port();
    let scene = team(&otel(port));
    let traces = std::fs::File::create(scene.path("traces.txt")).unwrap();
    let mut server = scene.serve_traced(&["--metrics", "127.0.0.1:0"], traces.into());
    ask(&scene, &server);
    let until = now_us() + 60_000_000;
    while lag(&server) == 0 {
        assert!(now_us() < until, "the follower is behind");
    }
    let collector = Collector::at(port);
    let all = spans(&collector, 7);
    while lag(&server) > 0 {
        assert!(now_us() < until, "the follower has caught up");
    }
    ask(&scene, &server);
    let more = spans(&collector, 7);
    assert!(more.keys().all(|it| !all.contains_key(it)), "each span is sent once");
    let (code, _) = server.stop("-INT");
    assert_eq!(code, Some(0));
    assert_eq!(exported(&scene), all.into_iter().chain(more).collect());
    let traces = std::fs::read_to_string(scene.path("traces.txt")).unwrap();
    assert_eq!(traces.matches("the collector is away").count(), 1, "{traces}");
}

#[test]
fn a_start_goes_on_where_the_last_one_stopped() {
    let port = free_port();
    let scene = team(&otel(port));
    let collector = Collector::at(port);
    let mut server = scene.serve(&[]);
    ask(&scene, &server);
    // A stop sends what is left.
    server.stop("-INT");
    let first = spans(&collector, 7);
    let kept = position(&scene);
    let mut server = scene.serve(&[]);
    ask(&scene, &server);
    let second = spans(&collector, 7);
    server.stop("-INT");
    assert!(second.keys().all(|it| !first.contains_key(it)), "no span is sent again");
    assert!(position(&scene) > kept);
    assert_eq!(collector.within(Duration::from_millis(100)), None);
}

/// How many requests the metrics count, and how many tokens of prompts.
fn measured(request: ExportMetricsServiceRequest) -> (u64, f64) {
    let scopes = request.resource_metrics.into_iter().flat_map(|it| it.scope_metrics);
    let mut all = (0, 0.0);
    for metric in scopes.flat_map(|it| it.metrics) {
        let Some(Data::Histogram(it)) = metric.data else { panic!("{}", metric.name) };
        assert_eq!(it.aggregation_temporality, AggregationTemporality::Cumulative as i32);
        for point in it.data_points {
            match &*metric.name {
                "gen_ai.client.inference.duration" => all.0 += point.count,
                "gen_ai.client.inference.operation.input_tokens" => all.1 += point.sum.unwrap(),
                _ => {}
            }
        }
    }
    all
}

#[test]
fn metrics_sum_what_a_run_sent_and_a_stop_counts_nothing_twice() {
    let port = free_port();
    let scene = team(&otel(port));
    let collector = Collector::at(port);
    for _ in 0..2 {
        let mut server = scene.serve(&[]);
        ask(&scene, &server);
        spans(&collector, 7);
        let mut sums = measured(collector.next_metrics());
        while sums.0 < 3 {
            sums = measured(collector.next_metrics());
        }
        assert_eq!(sums, (3, 1_730.0), "two turns of the lead, and one of the helper");
        server.stop("-INT");
    }
}

#[test]
fn a_kill_loses_no_span_and_changes_none() {
    let port = free_port();
    let scene = team(&otel(port));
    let server = scene.serve(&[]);
    ask(&scene, &server);
    server.signal("-KILL");
    drop(server);
    let collector = Collector::at(port);
    let mut server = scene.serve(&[]);
    let all = spans(&collector, 7);
    server.signal("-KILL");
    drop(server);
    // The position may be older than what was sent: then it is sent again, and is the same.
    server = scene.serve(&[]);
    ask(&scene, &server);
    let more = spans(&collector, 7);
    server.stop("-INT");
    let expected = exported(&scene);
    for (id, span) in all.iter().chain(&more) {
        assert_eq!(expected.get(id), Some(span));
    }
    assert!(all.keys().all(|it| expected.contains_key(it)));
}

#[test]
fn a_position_that_cant_be_read_says_what_to_do() {
    let scene = team(&otel(free_port()));
    scene.serve(&[]).stop("-INT");
    scene.write("data/pumphouse.db-otel.json", "nonsense");
    let ran = scene.run(&["run", "--listen", "127.0.0.1:0"]);
    ran.code(2).says(&["pumphouse.db-otel.json holds no position", "remove it"]);
    // One of another log says nothing of this one.
    let uuid = "00000000-0000-7000-8000-000000000000";
    let other = format!("{{\"log\":\"{uuid}\",\"position\":1000}}");
    scene.write("data/pumphouse.db-otel.json", other);
    scene.serve(&[]).stop("-INT");
}

#[test]
fn a_wrong_endpoint_is_a_mistake_with_its_place() {
    for (text, place) in [
        ("otel: {endpoint: \"collector:4318\"}\n", "organism.yaml:1:18: otel.endpoint"),
        ("otel: {endpoint: \"ftp://x\"}\n", "organism.yaml:1:18"),
        ("otel: {}\n", "organism.yaml:1:7"),
        ("otel: {endpoint: \"http://x\", headers: {\"a b\": c}}\n", "organism.yaml:1:"),
    ] {
        let scene = Scene::new();
        scene.write("organism.yaml", text);
        let place = place.split(": otel").next().unwrap();
        scene.run(&["check"]).code(1).says(&[place]);
    }
}
