//! Valid manifests, and what their keys mean.

use std::path::Path;
use std::time::Duration;

use pumphouse::limits::{Limits, XmlLimits};
use pumphouse::listeners::describe::Who;
use pumphouse::log::Durability;
use pumphouse::manifest::{Door, json_schema};

use super::{Greet, Greeting, builder, read, read_in};

#[tokio::test]
async fn a_manifest_is_builder_calls() {
    let text = "
        listeners:
          - use: calculate
          - use: greeter
            name: host
            describe: Greets whoever comes.
            settings: {word: \"${WORD}\", tone: loud, places: [{x: '1', y: 2}]}
    ";
    // A number in quotes is a text.
    assert!(read(text).is_err());
    let text = text.replace("'1'", "1");
    let manifest = read(&text).unwrap();
    let plan = builder().with(manifest).build().unwrap();
    let described = plan.listeners();
    let names: Vec<&str> = described.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["calculate", "host"]);
    assert_eq!(described[1].text.as_deref(), Some("Greets whoever comes."));
    let pump = plan.start();
    let Greeting { text } = pump.ask(Greet { name: "Ann".into() }).await.unwrap();
    assert_eq!(text, "Hello: [world] # again Ann! 3");
    pump.shutdown().await.unwrap();
}

#[test]
fn every_key_is_understood() {
    let text = "
        name: trial
        data: ../log
        durability: normal
        tokens: {env: LINES}
        doors:
          - tcp: \"${HOST}:1\"
          - tcp: localhost:0
          - unix: p.sock
          - metrics: \"${HOST}:9\"
          - metrics_to_anyone: 0.0.0.0:9
        meta: {prompt: admin}
        workers: 3
        listeners: [{use: echo, peers: [], grants: [emit:core], timeout: 1m}]
        limits:
          handlers_max: ${MANY}
          drain_time_max: 1m 30s
          push_bytes_in_flight_max: 64 KiB
          inside: {depth_max: 7}
    ";
    let it = read_in("conf/organism.yaml", text).unwrap();
    assert_eq!(it.name.as_deref(), Some("trial"));
    assert_eq!(it.data.as_deref(), Some(Path::new("conf/../log")));
    assert_eq!(it.durability, Some(Durability::Normal));
    assert_eq!(it.tokens.unwrap().names().collect::<Vec<_>>(), ["feeder", "ops"]);
    let doors = it.doors.unwrap();
    let shown = |it: &Door| match it {
        Door::Tcp { address, tls: None } => address.clone(),
        Door::Unix(path) => path.display().to_string(),
        Door::Metrics(address) => format!("metrics {address}"),
        Door::MetricsToAnyone(address) => format!("for anyone {address}"),
        other => format!("{other:?}"),
    };
    let doors: Vec<String> = doors.iter().map(shown).collect();
    assert_eq!(
        doors,
        [
            "127.0.0.1:1",
            "localhost:0",
            "conf/p.sock",
            "metrics 127.0.0.1:9",
            "for anyone 0.0.0.0:9",
        ]
    );
    assert_eq!(it.workers, Some(3));
    let meta = it.meta.unwrap();
    assert_eq!((meta.list, meta.prompt), (Who::Anyone, Who::Admin));
    assert_eq!(it.listeners.unwrap().len(), 1);
    let limits = Limits {
        inside: XmlLimits { depth_max: 7, ..XmlLimits::INSIDE },
        handlers_max: 40,
        drain_time_max: Duration::from_secs(90),
        push_bytes_in_flight_max: 65_536,
        ..Limits::default()
    };
    assert_eq!(it.limits, limits);
}

#[test]
fn a_manifest_that_says_nothing_changes_nothing() {
    for text in ["", "# nothing\n", "---\n", "{}", "listeners:\n", "\u{FEFF}name: x"] {
        let it = read(text).unwrap();
        assert!(it.listeners.is_none() && it.doors.is_none() && it.data.is_none(), "{text}");
        assert_eq!(it.limits, Limits::default());
    }
    assert_eq!(read("listeners: []").unwrap().listeners.unwrap().len(), 0);
}

#[test]
fn a_tab_may_stand_between_a_key_and_its_value() {
    let text =
        "name:\ttrial\nlisteners:\t# all\n- {use:\techo,\tname: \tloud, describe: 'a:\tb'}\n";
    let manifest = read(text).unwrap();
    assert_eq!(manifest.name.as_deref(), Some("trial"));
    let plan = builder().with(manifest).build().unwrap();
    let listener = &plan.listeners()[0];
    assert_eq!((&*listener.name, listener.text.as_deref()), ("loud", Some("a:\tb")));
    assert!(read("name: trial\nlisteners:\n\t- use: echo\n").is_err(), "no tab indents");
}

#[test]
fn an_alias_stands_for_its_anchor() {
    let text = "doors: [&a {tcp: 127.0.0.1:0}, *a]\nname: &n 'x'\ndata: *n\n";
    let it = read(text).unwrap();
    assert_eq!(it.doors.unwrap().len(), 2);
    assert_eq!(it.data.as_deref(), Some(Path::new("x")));
}

/// Every bound of `src/limits.rs` has a key, for they are one list.
#[test]
fn every_bound_has_a_key() {
    let schema = json_schema();
    let keys = schema["properties"]["limits"]["properties"].as_object().unwrap();
    let mut limits = Limits::default();
    let names: Vec<&str> = limits.bounds().iter().map(|it| it.name).collect();
    assert!(names.len() > 20 && names.iter().all(|it| keys.contains_key(*it)), "{names:?}");
    assert!(names.iter().all(|it| format!("{:?}", Limits::default()).contains(it)));
}

#[test]
fn the_schema_for_editors_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/organism.schema.json");
    let text = format!("{}\n", serde_json::to_string_pretty(&json_schema()).unwrap());
    let mut goldens = crate::golden::Goldens::default();
    goldens.check(&path, &text);
    goldens.finish();
}

#[test]
fn the_schema_for_editors_has_numbers_and_bytes_as_the_reader_has_them() {
    let editor = jsonschema::validator_for(&json_schema()).unwrap();
    let check = |key: &str, value: &str, is_right: bool| {
        let text = format!("limits: {{{key}: {value}}}");
        assert_eq!(read(&text).is_ok(), is_right, "{text}");
        let value: serde_json::Value = serde_yaml::from_str(&text).unwrap();
        assert_eq!(editor.is_valid(&value), is_right, "{text}");
    };
    for (value, is_right) in [("40", true), ("1_000", true), ("many", false)] {
        check("handlers_max", value, is_right);
        check("tree_messages_max", value, is_right);
    }
    for value in ["65536", "65_536", "64 kB", "64 KB", "64KiB", "1 GB", "7 B", "64  KiB"] {
        check("outbound_bytes_max", value, true);
    }
    for value in ["64 kiB", "64 K", "64 TiB"] {
        check("outbound_bytes_max", value, false);
    }
}

/// What the table gives as an example is right by the table itself.
#[test]
fn every_example_is_right() {
    let schema = json_schema();
    let mut count = 0;
    for (key, it) in schema["properties"].as_object().unwrap() {
        let example = &it["examples"][0];
        assert!(!example.is_null(), "{key}");
        // Those files and that model aren't there, and spans are for programs with the feature.
        let is_left_out = key == "otel" && !cfg!(feature = "otel");
        let missing = ["tokens", "schemas", "prices", "pods", "include", "default_model"];
        if !missing.contains(&key.as_str()) && !is_left_out {
            // Who has no name keeps no life.
            let name = if key == "heartbeat" { "name: adder\n" } else { "" };
            read(format!("{name}{key}: {example}")).map(drop).unwrap();
        }
        count += 1;
    }
    for (key, it) in schema["properties"]["limits"]["properties"].as_object().unwrap() {
        read(format!("limits: {{{key}: {}}}", it["examples"][0])).map(drop).unwrap();
        count += 1;
    }
    assert!(count > 30);
}
