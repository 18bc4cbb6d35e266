//! The examples of the documents that define the protocol of agents. Each example is read in the
//! form that is meant. An example that is printed with notes for readers is also read as printed.

use std::fs;
use std::path::{Path, PathBuf};

use pumphouse::reply::{Config, Streaming, What};

use super::tell::{self, is_action};
use crate::golden::Goldens;
use crate::program::Scene;
use serde_json::json;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/reply/protocol")
}

pub(crate) fn examples() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).unwrap().map(|it| it.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|it| it.extension().is_some_and(|it| it == "txt")).collect();
    paths.sort();
    paths
}

/// Reads a reply of the agent that the examples are of.
const READ: [&str; 4] = ["inspect", "reply", "--root", "researcher"];

#[test]
fn every_example_is_understood_as_it_is_meant() {
    let scene = Scene::new();
    let mut goldens = Goldens::default();
    let examples = examples();
    assert!(examples.len() >= 60, "{}", examples.len());
    for path in examples {
        let made = scene.run(&[&READ[..], &[path.to_str().unwrap()]].concat()).code(0);
        let actions = made.objects().iter().filter(|it| is_action(it)).count();
        let text = fs::read_to_string(&path).unwrap();
        let notes = path.to_str().unwrap().contains("annotated");
        let written = text.matches("<action ").count();
        assert!(
            notes
                || text.contains("></action>")
                || !text.contains("</action>")
                || actions >= written,
            "{}: {actions} of {written}",
            path.display()
        );
        goldens.check(&path.with_extension("events"), &made.out);
    }
    goldens.finish();
}

#[test]
fn every_chunking_prints_the_same_lines() {
    let scene = Scene::new();
    let chunks = ["1", "7", "random:1", "random:2", "random:3", "random:4", "random:5"];
    for path in examples() {
        let file = path.to_str().unwrap();
        let read = |more: &[&str]| {
            let verb = [&READ[..], &["--dialect", "tool_use"], more, &[file]].concat();
            scene.run(&verb).code(0).out
        };
        let whole = read(&[]);
        for chunks in chunks {
            assert_eq!(read(&["--chunks", chunks]), whole, "{file} in {chunks}");
        }
    }
}

#[test]
fn the_lines_are_the_reply() {
    let scene = Scene::new();
    for path in examples() {
        let read = [&READ[..], &[path.to_str().unwrap()]].concat();
        let lines = scene.run(&read).code(0).objects();
        let piece = |it: &serde_json::Value| {
            it.get("text").or(it.get("source")).and_then(|it| it.as_str()).unwrap().to_owned()
        };
        let told: String = lines.iter().map(piece).collect();
        assert_eq!(told, fs::read_to_string(&path).unwrap(), "{}", path.display());
    }
}

#[test]
fn inspect_reply_takes_any_input_and_says_how_it_is_used() {
    let scene = Scene::new();
    scene.write("dirty", b"a\xFF\xED\xA0\x80\0<response>b");
    let lines = scene.run(&["inspect", "reply", "dirty"]).code(0).objects();
    assert_eq!(lines[0]["text"], "a\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\0");
    let piped = scene.pipe(&["inspect", "reply", "-", "--peer", "b"], "<b/>").code(0).objects();
    assert_eq!((&piped[0]["event"], &piped[0]["body"]), (&json!("closed"), &json!("<b/>")));
    let told = scene.pipe(&["inspect", "reply", "-", "--root", "b"], "<b>a</b>").code(0).objects();
    assert_eq!((&told[1]["event"], &told[1]["text"]), (&json!("text"), &json!("a")));
    scene.run(&["inspect", "reply", "missing"]).code(2);
    for chunks in ["0", "1.5", "some", "random:x", "whole:1"] {
        let ran = scene.run(&["inspect", "reply", "--chunks", chunks, "dirty"]).code(2);
        assert!(ran.err.contains("--chunks"), "{}", ran.err);
    }
}

#[test]
fn the_streaming_config_loads_as_it_stands() {
    let text = fs::read_to_string(folder().join("streaming.yaml")).unwrap();
    let it = Streaming::from_yaml(&text).unwrap();
    assert_eq!((it.tool_batch_size, it.tool_batch_delay), (5, 0.1));
    assert_eq!((it.tool_parse_buffer_max, it.text_buffer_max), (1_048_576, 10_485_760));
    let tags = it.formats.xml.as_ref().unwrap();
    assert_eq!(
        (tags.name(), &tags.attributes[..]),
        ("tool_use", &["id", "name"].map(String::from)[..])
    );
    let json = it.formats.json.clone().unwrap();
    assert_eq!(json, pumphouse::reply::JsonFormat::default());
    let config = Config::default().streaming(&it);
    assert_eq!(config.limits.action_bytes_max, 1_048_576);
}

#[test]
fn a_streaming_config_says_what_calls_look_like() {
    let text = "streaming_config:
  tool_parse_buffer_max: 2048
  formats:
    xml: {tag_open: <call>, tag_close: </call>, attributes: [id, tool]}
    json: {schema: {type: object, required: [type, tool], properties:
      {type: {const: call}, id: {type: string}, tool: {type: string}, input: {type: array}}}}
";
    let mut config = Config::default().streaming(&Streaming::from_yaml(text).unwrap());
    config.dialect = pumphouse::reply::Dialect::ToolUse;
    tell::check_with(
        &config,
        "<call tool=\"a\">{}</call><call>{}</call>{\"type\":\"call\",\"tool\":\"b\",\"input\":[1]}",
        &[
            "call tool=a id=__auto_1 {}",
            "broken call 1:25 <call> has no attribute tool",
            "call tool=b id=__auto_2 [1]",
        ],
    );
    let large = format!("<call tool=\"a\">\"{}\"</call>", "x".repeat(2_048));
    let told = tell::whole(&config, &large);
    assert_eq!(told[0], "broken call 1:1 too large: action_bytes_max is 2048");
}

#[test]
fn a_streaming_config_that_is_wrong_says_so() {
    let check = |text: &str, expected: &str| {
        let error = Streaming::from_yaml(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("streaming_config: {tool_batch_sise: 5}", "tool_batch_size");
    check("streaming_config: {tool_batch_size: 0}", "1 is no batching");
    check("streaming_config: {tool_batch_delay: -1}", "seconds");
    check("streaming_config: {text_buffer_max: 1}", "1024 are the fewest");
    check("schema_version: \"2.0.0\"\nstreaming_config: {}", "1.0.0 is understood");
    check(
        "streaming_config: {formats: {xml: {tag_open: <a>, tag_close: </b>}}}",
        "tag_open <a> and tag_close </b> are no pair",
    );
    check("streaming_config: [", "line");
}

#[test]
fn a_thought_is_closed_with_its_own_text() {
    let mut bodies = Vec::new();
    let mut parser = pumphouse::reply::Parser::new(tell::config());
    let text = "<thought>a<think>b</think><action id=\"x\">{}</action>c</thought>";
    let mut take = |event: pumphouse::reply::Event<'_>| {
        if let What::Closed(it) = event.what {
            bodies.push((it.name.to_owned(), it.body.as_str().to_owned(), event.place.column));
        }
    };
    parser.feed(text, &mut take);
    parser.finish(&mut take);
    let expected = [("think", "b", 11), ("action", "{}", 27), ("thought", "ac", 1)];
    assert_eq!(bodies, expected.map(|(name, body, at)| (name.to_owned(), body.to_owned(), at)));
}
