//! Payloads as JSON, from outside the crate: a payload's JSON form stands for what its type writes,
//! and every mistake in a form is reported with its path.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use pumphouse::prelude::*;
use pumphouse::schema::{self, json};
use pumphouse::wire::Bytes;
use serde_json::{Value, json};

use crate::golden::Goldens;
use crate::shapes;

/// An order of goods.
#[derive(Debug, Payload)]
#[payload(ns = "urn:shop")]
struct Order {
    #[payload(attribute)]
    id: u64,
    #[payload(attribute, list, max = 9, max_length = 2)]
    marks: Option<Vec<u8>>,
    to: Receiver,
    items: Vec<Item>,
    #[payload(max_length = 8)]
    note: Option<String>,
    tint: Option<Tint>,
    sum: Option<i128>,
    seal: Option<Bytes>,
    labels: Option<BTreeMap<String, bool>>,
    more: Option<Element>,
}

/// Who gets it.
#[derive(Debug, Payload)]
enum Receiver {
    Nobody,
    Person { name: String },
    Office(u16),
}

/// What is ordered.
#[derive(Debug, Payload)]
struct Item {
    #[payload(attribute)]
    urgent: bool,
    what: String,
    count: u8,
    weight: f64,
}

/// A tint.
#[derive(Clone, Copy, Debug, Payload)]
enum Tint {
    Red,
    DarkBlue,
}

const RIGHT: &str = r#"{ "id": 18446744073709551615, "marks": [1, 2], "person": { "name": "Ada" },
    "items": [{ "urgent": true, "what": "a < b", "count": 3, "weight": 0.1 }], "note": "",
    "tint": "dark-blue", "sum": "-170141183460469231731687303715884105728", "seal": "aGk=",
    "labels": { "": true, "b c": false }, "more": "<x xmlns=\"urn:x\"></x>" }"#;

#[test]
fn a_json_form_is_what_its_type_writes() {
    let value = json::read(RIGHT).unwrap();
    let element = schema::from_json(Order::schema(), &value).unwrap();
    let order = Order::decode(&element).unwrap();
    assert_eq!(order.encode().unwrap().canonical(), element.canonical());
    assert_eq!(schema::to_json(Order::schema(), element.view()).unwrap(), value);
    let least = json!({ "id": 1, "nobody": {} });
    let element = schema::from_json(Order::schema(), &least).unwrap();
    let text = r#"<order xmlns="urn:shop" id="1"><nobody></nobody></order>"#;
    assert_eq!(element.canonical(), text);
    let told = schema::to_json(Order::schema(), element.view()).unwrap();
    assert_eq!(told, json!({ "id": 1, "nobody": {}, "items": [] }), "what may be many is told");
}

#[test]
fn what_is_wrong_is_told_by_path() {
    let mut page = String::new();
    for text in WRONG {
        let value = match json::read(text) {
            Ok(value) => value,
            Err(broken) => {
                writeln!(page, "{text}\n    {}\n", broken.message).unwrap();
                continue;
            }
        };
        let errors = schema::from_json(Order::schema(), &value).unwrap_err();
        writeln!(page, "{text}").unwrap();
        for error in &errors.all {
            writeln!(page, "    {error}\n        {}", error.advice()).unwrap();
        }
        let more = if errors.is_cut { "    and perhaps more\n" } else { "" };
        writeln!(page, "{more}").unwrap();
    }
    let mut goldens = Goldens::default();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/json/told.txt");
    goldens.check(&path, &page);
    goldens.finish();
}

const WRONG: &[&str] = &[
    "[]",
    "{}",
    r#"{"id": "7", "office": 1}"#,
    r#"{"id": 18446744073709551616, "office": 65536}"#,
    r#"{"id": -1, "office": 1.5}"#,
    r#"{"ID": 1, "offise": 1}"#,
    r#"{"id": 1, "nobody": null}"#,
    r#"{"id": 1, "nobody": {}, "office": 1}"#,
    r#"{"id": 1, "nobody": {}, "note": null, "extra key": 1}"#,
    r#"{"id": 1, "nobody": {}, "note": "123456789", "tint": "darkblue", "sum": 5}"#,
    r#"{"id": 1, "nobody": {}, "marks": "1 2"}"#,
    r#"{"id": 1, "nobody": {}, "marks": [1, 10, "3"]}"#,
    r#"{"id": 1, "nobody": {}, "marks": [1, 2, 3], "seal": "aGk"}"#,
    r#"{"id": 1, "nobody": {}, "items": {"what": "x"}}"#,
    r#"{"id": 1, "nobody": {}, "items": [{"urgent": "yes", "what": 1, "cuont": 1}, 5]}"#,
    r#"{"id": 1, "nobody": {}, "items": [{"urgent": 1, "what": "\u0000", "count": 300,
        "weight": "inf"}]}"#,
    r#"{"id": 1, "person": {"name": "x", "age": 3}}"#,
    r#"{"id": 1, "nobody": {}, "labels": {"a": 1, "b c": "true", "d\u0001": true}}"#,
    r#"{"id": 1, "nobody": {}, "labels": ["a"]}"#,
    r#"{"id": 1, "nobody": {}, "more": "<a>"}"#,
    r#"{"id": 1, "nobody": {}, "more": "<note xmlns='urn:shop'/>"}"#,
    r#"{"id": 1, "nobody": {}, "more": {"a": 1}}"#,
    r#"{"id": 1, "nobody": {}, "items": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]}"#,
];

#[test]
fn a_fault_has_every_mistake() {
    let errors = schema::from_json(Order::schema(), &json!({ "id": -1, "tint": 1 })).unwrap_err();
    let fault = Fault::from(errors);
    let message = "$.id takes a whole number of 64 bits from 0 up, not -1; \
                   $ needs one of \"nobody\", \"person\", \"office\"; \
                   $.tint takes one of red, dark-blue, not 1";
    assert_eq!(fault.message, message);
    assert_eq!((fault.code.to_string().as_str(), fault.path.as_deref()), ("P0007", Some("$.id")));
    assert_eq!(fault.advice.as_deref(), Some("Write it as in 1."));
}

#[test]
fn every_shape_has_an_example_in_json() {
    for (name, schema) in shapes::all() {
        let value = json::example(schema);
        let element = schema::from_json(schema, &value);
        let element = element.unwrap_or_else(|errors| panic!("{name}: {errors}\n{value:#}"));
        assert_eq!(schema.check(element.view()), Ok(()), "{name}");
        assert_eq!(schema::to_json(schema, element.view()), Ok(value), "{name}");
    }
}

#[test]
fn a_payload_of_any_content_is_its_xml() {
    let schema = schema::Schema::any(Name::new("urn:x", "note"), "Anything.");
    let value = json!({ "xml": "<note xmlns=\"urn:x\" a=\"1\">What <b></b> is</note>" });
    let element = schema::from_json(&schema, &value).unwrap();
    assert_eq!(schema::to_json(&schema, element.view()), Ok(value));
    let told = |value: Value| schema::from_json(&schema, &value).unwrap_err().to_string();
    assert_eq!(told(json!({})), "$ needs the property \"xml\"");
    assert_eq!(
        told(json!({ "xml": "<nota xmlns='urn:x'/>" })),
        "$.xml holds <nota>, but takes <note xmlns=\"urn:x\">",
    );
    assert_eq!(
        told(json!({ "text": "x", "xml": 1 })),
        "$ has no property \"text\"; it has \"xml\"\n$.xml takes a string of XML, not 1",
    );
}
