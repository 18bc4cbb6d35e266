//! Tests all examples in the specification of metadata, and cases that the specification leaves
//! open.

use pumphouse::reply::{Config, Parser, What};
use serde_json::json;

use super::show::{current, declared};
use super::words::Metadata;
use super::*;

/// The fields of the specification's example.
fn coding() -> Fields {
    let modes = ["AUTONOMOUS", "ASSISTED", "SUPERVISED"];
    let all = ["IDLE", "CODING", "PLANNING", "DEBUGGING", "TESTING", "TALKING"];
    Fields::new([
        Field::choice("status", all).default("IDLE").describe("Current operational mode"),
        Field::choice("priority", ["HIGH", "MEDIUM", "LOW"]).default("MEDIUM"),
        Field::choice("mode", modes).default("AUTONOMOUS"),
        Field::new("context", Kind::Object),
    ])
    .unwrap()
}

/// A field of each type.
fn each() -> Fields {
    Fields::new([
        Field::choice("status", ["IDLE", "CODING"]),
        Field::new("title", Kind::String),
        Field::new("count", Kind::Number),
        Field::new("done", Kind::Boolean),
        Field::new("context", Kind::Object),
        Field::new("tags", Kind::Array),
    ])
    .unwrap()
}

/// Reads the `<metadata>` elements of a reply.
fn made(fields: &Fields, reply: &str) -> Vec<Metadata> {
    let (mut parser, mut found) = (Parser::new(Config::default()), Vec::new());
    parser.feed(reply, &mut |event| {
        if let What::Closed(closed) = event.what
            && closed.name == "metadata"
        {
            found.push(MetadataUpdate::read(&closed).unwrap().held_against(fields, 1));
        }
    });
    found
}

#[track_caller]
fn check(fields: &Fields, reply: &str, kept: Option<&str>, errors: &[&str]) {
    let all = made(fields, reply);
    let [made] = &all[..] else { panic!("{} of {reply}", all.len()) };
    assert_eq!(made.fields.as_deref(), kept, "{reply}");
    let said: Vec<&str> = made.error.iter().map(|it| &*it.message).collect();
    assert_eq!(said, errors, "{reply}");
}

#[test]
fn the_examples_of_updates_are_kept() {
    let reply = r#"<metadata>
{
  "status": "CODING",
  "priority": "HIGH",
  "mode": "AUTONOMOUS",
  "context": {
    "project": "cortex-prime",
    "phase": "implementation",
    "task": "metadata_system"
  }
}
</metadata>

<thought>
I'm now implementing the feature, so I've set status to CODING.
This will automatically trigger documentation and changelog workflows.
</thought>"#;
    let context = r#"{"project":"cortex-prime","phase":"implementation","task":"metadata_system"}"#;
    let kept = format!(
        r#"{{"status":"CODING","priority":"HIGH","mode":"AUTONOMOUS","context":{context}}}"#
    );
    check(&coding(), reply, Some(&kept), &[]);
    let reply = r#"<metadata>{"status": "CODING"}</metadata>
<thought>I'm implementing the new feature...</thought>"#;
    check(&coding(), reply, Some(r#"{"status":"CODING"}"#), &[]);
}

#[test]
fn the_example_of_errors_has_its_text() {
    let mut known = KnownFields::default();
    let before = r#"<metadata>{"status": "CODING", "priority": "HIGH"}</metadata>"#;
    made(&coding(), before).into_iter().for_each(|it| known.take(it));
    let wrong = r#"<metadata>
{
  "status": "COMPILING",
  "priority": "CRITICAL"
}
</metadata>"#;
    let wrong = made(&coding(), wrong).remove(0);
    known.take(Metadata { turn: 2, ..wrong });
    let told = "⚠️ Previous metadata update had errors:
  - status: \"COMPILING\" not in [IDLE, CODING, PLANNING, DEBUGGING, TESTING, TALKING]
  - priority: \"CRITICAL\" not in [HIGH, MEDIUM, LOW]

Current metadata (unchanged):
  - status: CODING
  - priority: HIGH
  - mode: AUTONOMOUS
  - context: not set";
    assert_eq!(current(&coding(), &known, 2), told);
    // Later prompts don't show the errors again.
    let later = told.split_once("\n\n").unwrap().1.replace(" (unchanged)", "");
    assert_eq!(current(&coding(), &known, 3), later);
}

#[test]
fn what_fits_of_an_update_is_kept_and_the_rest_is_told() {
    let reply = r#"<metadata>{"status": "BUSY", "priority": "LOW", "prio": 1}</metadata>"#;
    let all = "[IDLE, CODING, PLANNING, DEBUGGING, TESTING, TALKING]";
    let busy = format!("status: \"BUSY\" not in {all}");
    let errors = [&*busy, "Unknown field: prio"];
    check(&coding(), reply, Some(r#"{"priority":"LOW"}"#), &errors);
    check(&coding().atomic(), reply, None, &errors);
    let mut known = KnownFields::default();
    made(&coding(), reply).into_iter().for_each(|it| known.take(it));
    let told = current(&coding(), &known, 1);
    assert!(told.contains("Current metadata:\n  - status: IDLE (unchanged)\n  - priority: LOW\n"));
}

#[test]
fn every_type_takes_its_own_and_nothing_else() {
    let right = r#"<metadata>{"status": "IDLE", "title": "", "count": -1.5e3, "done": true,
        "context": {}, "tags": [1, null]}</metadata>"#;
    let kept =
        r#"{"status":"IDLE","title":"","count":-1500.0,"done":true,"context":{},"tags":[1,null]}"#;
    check(&each(), right, Some(kept), &[]);
    let wrong = r#"<metadata>{"status": null, "title": 1, "count": "1", "done": "true",
        "context": [], "tags": {}}</metadata>"#;
    check(
        &each(),
        wrong,
        None,
        &[
            "status: null not in [IDLE, CODING]",
            "title: 1 is not a string",
            "count: \"1\" is not a number",
            "done: \"true\" is not a boolean",
            "context: [] is not an object",
            "tags: {} is not an array",
        ],
    );
}

#[test]
fn elements_say_the_same() {
    let reply = "<metadata><status> CODING </status><count>4</count><done>false</done>\
        <tags>[\"a\"]</tags><title>4</title></metadata>";
    let kept = r#"{"status":"CODING","title":"4","count":4,"done":false,"tags":["a"]}"#;
    check(&each(), reply, Some(kept), &[]);
    let wrong = ["count: \"four\" is not a number"];
    check(&each(), "<metadata><count>four</count></metadata>", None, &wrong);
}

#[test]
fn what_is_too_long_is_not_kept_and_what_is_told_of_it_is_short() {
    let long = "x".repeat(20_000);
    let reply = format!(r#"<metadata>{{"title": "{long}", "count": "{long}"}}</metadata>"#);
    let wrong = made(&each(), &reply).remove(0);
    assert_eq!(wrong.fields, None);
    let title = "title: 20002 bytes are too many: at the most 16384 are kept";
    assert_eq!(wrong.error[0].message, title);
    assert!(wrong.error[1].message.len() < 150, "{}", wrong.error[1].message);
}

#[test]
fn what_xml_cannot_hold_is_replaced() {
    let reply = r#"<metadata>{"title": "a\u0000\uffff", "\u0001": 1}</metadata>"#;
    let made = made(&each(), reply).remove(0);
    assert_eq!(made.fields.as_deref(), Some(r#"{"title":"a\u0000\uffff"}"#));
    assert_eq!(made.error[0].message, "Unknown field: \u{FFFD}");
}

#[test]
fn comments_in_json_change_nothing() {
    let title = |reply: &str| made(&each(), reply).remove(0).fields.unwrap_or_default();
    for body in [
        "{\"title\": \"a // b\"} // it's \"so",
        "// The title.\n{\"title\": /* it isn't \" */ \"a // b\"}",
        "{\n// {\n\"title\"/**/:/* ** / */\"a // b\"\n}",
        "{\"title\": \"a // b\" // a < b, it's a <b> of \"c\n} /* <i>\"</i> */",
    ] {
        let reply = format!("<metadata>{body}</metadata>");
        assert_eq!(title(&reply), "{\"title\":\"a // b\"}", "{body}");
    }
    let mut broken = Vec::new();
    let reply = "<metadata>{\"title\": 1 / 2}</metadata><action>{\"a\": 1 // b\n}</action>";
    let mut parser = Parser::new(Config::default());
    parser.feed(reply, &mut |event| {
        if let What::Broken(it) = event.what {
            broken.push(it.name.to_owned());
        }
    });
    assert_eq!(broken, ["metadata"]);
}

#[test]
fn a_body_that_is_no_object_is_refused() {
    let (mut parser, mut found) = (Parser::new(Config::default()), Vec::new());
    parser.feed("<metadata>[1]</metadata>", &mut |event| {
        if let What::Closed(closed) = event.what {
            found.push(MetadataUpdate::read(&closed));
        }
    });
    assert_eq!(found, [Err("the body is a JSON object, not [1]".to_owned())]);
}

#[test]
fn the_fields_are_told_before_all_else_and_their_values_at_the_end() {
    let told = declared(&coding());
    let first = "Available metadata fields (use <metadata> tag to update):
- status: [IDLE, CODING, PLANNING, DEBUGGING, TESTING, TALKING] – Current operational mode
- priority: [HIGH, MEDIUM, LOW]
";
    assert!(told.starts_with(first), "{told}");
    let silent = Injection { method: Method::None, ..Injection::default() };
    let silent = coding().injection(silent);
    assert_eq!(
        (declared(&silent), current(&silent, &KnownFields::default(), 0)),
        Default::default()
    );
}

#[test]
fn a_template_has_the_words_of_the_document() {
    let template = "Available metadata fields (use <metadata> tag to update):
- status: {values} (current: {current_value})
- priority: {values} (current: {current_value})
- mode: {values} (current: {current_value})
- context: any JSON object (current: {current_value})
";
    let injection = Injection { template: Some(template.to_owned()), ..Injection::default() };
    let fields = coding().injection(injection);
    let mut known = KnownFields::default();
    let reply = r#"<metadata>{"context": {"a": 1}}</metadata>"#;
    made(&fields, reply).into_iter().for_each(|it| known.take(it));
    let told = "Available metadata fields (use <metadata> tag to update):
- status: [IDLE, CODING, PLANNING, DEBUGGING, TESTING, TALKING] (current: IDLE)
- priority: [HIGH, MEDIUM, LOW] (current: MEDIUM)
- mode: [AUTONOMOUS, ASSISTED, SUPERVISED] (current: AUTONOMOUS)
- context: any JSON object (current: {\"a\":1})";
    assert_eq!(current(&fields, &known, 7), told);
    assert_eq!(declared(&fields), "");
}

#[test]
fn errors_come_with_what_the_fields_hold_beside_a_template_too() {
    let template = "- status: {values} (current: {current_value})\n";
    let injection = Injection { template: Some(template.to_owned()), ..Injection::default() };
    let (plain, fields) = (coding(), coding().injection(injection));
    let mut known = KnownFields::default();
    let reply = r#"<metadata>{"status": "COMPILING", "priority": "CRITICAL"}</metadata>"#;
    made(&fields, reply).into_iter().for_each(|it| known.take(it));
    let told = current(&fields, &known, known.turn);
    let block = current(&plain, &known, known.turn);
    assert!(block.contains("\n\nCurrent metadata (unchanged):\n  - status: IDLE\n"), "{block}");
    let filled = current(&fields, &known, known.turn + 1);
    assert_eq!(
        filled,
        "- status: [IDLE, CODING, PLANNING, DEBUGGING, TESTING, TALKING] \
        (current: IDLE)"
    );
    assert_eq!(told, format!("{block}\n\n{filled}"));
}

#[test]
fn a_manifest_declares_fields() {
    let written = json!({"fields": {
        "status": {"type": "enum", "values": ["IDLE", "CODING"], "default": "IDLE",
                   "description": "Current operational mode"},
        "mode": {"values": ["RESEARCHING", "ANALYZING", "WRITING"]},
        "context": {"type": "object", "description": "Free-form JSON context data"}},
        "injection": {"method": "auto", "template": "- status: {current_value}"}});
    let fields: Fields = serde_json::from_value(written).unwrap();
    let names: Vec<&str> = fields.all().map(Field::name).collect();
    assert_eq!(names.len(), 3);
    assert_eq!(fields.get("status").unwrap().initial(), Some(&json!("IDLE")));
    assert_eq!(current(&fields, &KnownFields::default(), 0), "- status: IDLE");
}

#[test]
fn fields_that_cannot_be_are_told() {
    let wrong = |field: serde_json::Value| {
        let written = json!({"fields": {"a": field}});
        serde_json::from_value::<Fields>(written).unwrap_err().to_string()
    };
    let needs = "a field needs a type: enum, string, number, boolean, object or array";
    assert_eq!(wrong(json!({})), needs);
    assert_eq!(
        wrong(json!({"type": "enum"})),
        "a: an enum needs values, as in `values: [LOW, HIGH]`"
    );
    let told = "a: the default won't do: \"x\" is not a number";
    assert_eq!(wrong(json!({"type": "number", "default": "x"})), told);
    assert_eq!(wrong(json!({"type": "array", "values": []})), "values are for the type enum only");
    assert!(wrong(json!({"type": "text"})).starts_with("unknown variant `text`"));
    assert!(wrong(json!({"typ": "string"})).starts_with("unknown field `typ`"));
    let twice = Fields::new(["a", "a"].map(|it| Field::new(it, Kind::String)));
    assert_eq!(twice.unwrap_err().to_string(), "the field a stands twice");
    let named = Fields::new([Field::new("a b", Kind::String)]).unwrap_err().to_string();
    let expected = "\"a b\" is no name of a field: it has letters, digits, _ and -, and begins \
        with a letter or _";
    assert_eq!(named, expected);
    let many = Fields::new((0..65).map(|it| Field::new(format!("f{it}"), Kind::String)));
    assert_eq!(many.unwrap_err().to_string(), "65 fields are too many: fields_max is 64");
}
