//! `use: command` with `takes` and `answers`: fields as arguments, and JSON and XML as input and
//! output.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::{asked, in_order, organism};
use crate::program::{Ran, Scene, Server};

const PLACE: &str = r#"{
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}}
    },
    "required": ["city"],
    "additionalProperties": false
}"#;
const FORECAST: &str = r#"{
    "type": "object",
    "properties": {"text": {"type": "string"}, "degrees": {"type": "number"}},
    "required": ["text"],
    "additionalProperties": false
}"#;

fn program(scene: &Scene, name: &str, script: &str) {
    let path = scene.write(name, format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A pump with the listener `weather`, whose program is a script.
#[track_caller]
fn serve(settings: &str, script: &str) -> (Scene, Server) {
    let scene = Scene::new();
    scene.write("place.schema.json", PLACE);
    scene.write("forecast.schema.json", FORECAST);
    program(&scene, "weather.sh", script);
    let manifest = format!(
        "schemas: [place.schema.json, forecast.schema.json]\nlisteners:\n  - {{use: command, \
         name: weather, settings: {{{settings}}}}}\n"
    );
    scene.write("organism.yaml", manifest);
    let server = scene.serve(&[]);
    (scene, server)
}

#[track_caller]
fn send(pump: &(Scene, Server), inside: &str) -> Ran {
    let payload =
        format!("<place xmlns=\"https://xml-pipeline.org/ns/place/v1\">{inside}</place>\n");
    let ran = pump.0.pipe(&["send", "--connect", &pump.1.address], &payload);
    Ran { out: ran.out.replace("\n│ ", "\n"), ..ran }
}

/// What comes of `<city>Oslo</city>` and the like.
#[track_caller]
fn check(settings: &str, script: &str, inside: &str, expected: &str) {
    let ran = send(&serve(settings, script), inside);
    let ran = Ran { out: ran.out.replace("\n    <", "<").replace("\n  </", "</"), ..ran };
    assert!(ran.out.contains(expected), "no {expected:?} in {ran:#?}");
}

#[test]
fn what_is_taken_stands_in_standard_input() {
    let settings = "run: [./weather.sh], takes: place";
    check(settings, "cat", "<city>Oslo</city><days>2</days>", r#"{"city":"Oslo","days":2}"#);
    let settings = "run: [./weather.sh], takes: place, input: xml";
    let xml = "&lt;place xmlns=\"https://xml-pipeline.org/ns/place/v1\"&gt;&lt;city&gt;Oslo&lt;";
    check(settings, "cat", "<city>Oslo</city>", xml);
}

#[test]
fn a_field_is_an_argument_and_no_shell_reads_it() {
    let settings = r#"run: [./weather.sh, "{city}", --, "{days}", "{tags}", end], takes: place"#;
    let script = "for it in \"$@\"; do echo \"[$it]\"; done; cat";
    let city = "<city>$(touch x); 'a' * b</city><days>3</days><tags>u v</tags><tags>w</tags>";
    let lines = "[$(touch x); 'a' * b]\n[--]\n[3]\n[u v]\n[w]\n[end]</text>";
    check(settings, script, city, lines);
    // A field that isn't there is no argument.
    check(settings, script, "<city>Oslo</city>", "[Oslo]\n[--]\n[end]</text>");
    let settings = r#"run: [./weather.sh, "{city}"], takes: place, input: json"#;
    check(settings, "echo $1; cat", "<city>Oslo</city>", "Oslo\n{\"city\":\"Oslo\"}");
}

#[test]
fn what_a_program_writes_is_the_payload_that_it_answers() {
    let settings = "run: [./weather.sh], takes: place, answers: forecast";
    let ns = "https://xml-pipeline.org/ns/forecast/v1";
    let sun =
        format!("<forecast xmlns=\"{ns}\"><text>sun</text><degrees>21.5</degrees></forecast>");
    let place = "<city>Oslo</city>";
    let json = r#"echo '{"text": "sun", "degrees": 21.5}'"#;
    check(settings, json, place, &sun);
    let xml = "echo '<forecast><text>sun</text><degrees>21.5</degrees></forecast>'";
    check(settings, xml, place, &sun);
    check(settings, &xml.replace("<forecast>", &format!("<forecast xmlns=\"{ns}\">")), place, &sun);
    for (script, why) in [
        ("echo sun", "reason=\"unknown\""),
        ("true", "reason=\"unknown\""),
        (r#"echo '{"degrees": 1}'"#, "\"text\""),
        (r#"echo '{"text": 1}'"#, "text"),
        ("echo '<forecast><text>sun</text><no/></forecast>'", "no"),
        ("echo '<other/>'", "other"),
        (
            "echo '<!DOCTYPE a [<!ENTITY b SYSTEM \"/etc/passwd\">]><a>&b;</a>'",
            "reason=\"unknown\"",
        ),
        ("head -c 100000 /dev/zero | tr '\\0' a", "output_bytes_max"),
        ("echo '{\"text\": \"sun\"}'; exit 3", "exit-code"),
    ] {
        let ran = send(&serve(settings, script), place).code(1);
        assert!(ran.out.contains(why), "{script}: no {why:?} in {ran:#?}");
    }
}

#[test]
fn a_listener_may_declare_its_own_payloads_and_an_agent_calls_it() {
    let settings = r#"use: command, settings: {run: [./price.sh, "{item}"],
        takes: {type: object, properties: {item: {type: string}, count: {type: integer}},
        required: [item]},
        answers: {type: object, properties: {item: {type: string}, price: {type: number}},
        required: [item, price]}}"#;
    let replies = r#"%% reply
<action id="tea">{"name": "price", "parameters": {"item": "green tea", "count": 2}}</action>
<action id="no">{"name": "price", "parameters": {"items": "tea"}}</action>
%% reply
<response>It is ${tea.price}.</response>
"#;
    let scene = organism(&[("price", settings)], replies);
    program(&scene, "price.sh", r#"echo "{\"item\": \"$1\", \"price\": 2.5}""#);
    let log = asked(&scene, "What is tea?");
    in_order(&log, &["https://xml-pipeline.org/ns/price/v1", "green tea"]);
    in_order(&log, &["<action-refused", "code=\\\"parameters\\\""]);
    in_order(&log, &["It is 2.5."]);
    scene.run(&["describe", "price"]).code(0).says(&["price", "item", "count"]);
}

#[test]
fn check_finds_what_cant_be() {
    let scene = Scene::new();
    scene.write("place.schema.json", PLACE);
    let wrong = |settings: &str, text: &str| {
        let listener = format!("{{use: command, name: x, settings: {{run: [cat{settings}}}}}");
        let manifest = format!("schemas: [place.schema.json]\nlisteners: [{listener}]\n");
        scene.write("wrong.yaml", manifest);
        scene.run(&["check", "wrong.yaml"]).code(1).says(&[text]);
    };
    wrong("], takes: plaice", "`plaice` is no payload of the manifest's `schemas`; there is place");
    wrong("], answers: [a]", "the JSON Schema of a payload is expected");
    wrong("], takes: {type: string}", "`takes` is of no object");
    wrong("], takes: {type: object, properties: 1}", "run: #");
    let there = "`{town}` is no field of what comes in; there is {city}, {days}, {tags}";
    wrong(", \"{town}\"], takes: place", there);
    wrong("], takes: place, input: text", "`takes` says what comes in");
    wrong("], input: json", "`input` wants a `takes`");
}
