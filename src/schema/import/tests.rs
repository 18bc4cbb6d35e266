//! Tests of converting JSON Schemas: the resulting schemas, conversions of values in both
//! directions, and the limits.

mod both_ways;

use serde_json::{Value, json};

use super::super::{Schema, example, from_json, json_schema, outline, to_json};
use super::{Error, Loose};
use crate::limits::XmlLimits;
use crate::name::Name;
use crate::xml::{self, Profile};

fn made(original: &Value) -> Result<Schema, Error> {
    Schema::from_json_schema(Name::new("urn:x", "s"), original)
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required,
        "additionalProperties": false })
}

/// Checks that a value becomes the XML `expected`, and that this XML becomes the same value again.
/// `expected` has no namespace.
fn check(original: &Value, value: &Value, expected: &str) {
    let schema = made(original).expect("a schema");
    let element = from_json(&schema, value).unwrap_or_else(|it| panic!("{it}\n{value}"));
    let text = String::from_utf8_lossy(&element.canonical()).replace(" xmlns=\"urn:x\"", "");
    assert_eq!(text, expected);
    assert_eq!(to_json(&schema, element.view()).as_ref(), Ok(value), "{text}");
    assert_eq!(json_schema(&schema), *original);
}

fn refused(original: &Value, value: &Value, expected: &str) {
    let schema = made(original).expect("a schema");
    let errors = from_json(&schema, value).expect_err("a mistake");
    assert_eq!(errors.to_string(), expected);
}

fn unfit(original: &Value, expected: &str) {
    assert_eq!(made(original).expect_err("an error").to_string(), expected);
}

#[test]
fn fields_are_as_a_derive_writes_them() {
    let all = object(
        &json!({
            "city": { "type": "string", "minLength": 2 },
            "days": { "type": "integer", "minimum": 1, "maximum": 7 },
            "wind": { "type": "number" },
            "wet": { "type": "boolean" },
            "unit": { "enum": ["metric", "imperial"] },
            "tags": { "type": "array", "items": { "type": "string" } },
            "place": object(&json!({ "lat": { "type": "number" } }), &["lat"]),
            "notes": { "type": "object", "additionalProperties": { "type": "string" } },
        }),
        &["city", "tags"],
    );
    check(
        &all,
        &json!({ "city": "Oslo", "days": 2, "wind": 1.5, "wet": true, "unit": "metric",
            "tags": ["a", "b"], "place": { "lat": 59 }, "notes": { "x y": "z" } }),
        "<s><city>Oslo</city><days>2</days><wind>1.5</wind><wet>true</wet><unit>metric</unit>\
         <tags>a</tags><tags>b</tags><place><lat>59</lat></place>\
         <notes><entry key=\"x y\">z</entry></notes></s>",
    );
    check(&all, &json!({ "city": "Oslo", "tags": [] }), "<s><city>Oslo</city></s>");
    let schema = made(&all).expect("a schema");
    assert_eq!(schema.loose(), &[]);
    let element = xml::read(example(&schema), Profile::Wire, &XmlLimits::INSIDE).expect("XML");
    assert_eq!(schema.check(element.view()), Ok(()));
    assert!(outline(&schema).contains("from 1 to 7"), "{}", outline(&schema));
}

#[test]
fn null_and_nothing_stay_what_they_are() {
    let all = object(
        &json!({
            "a": { "type": ["string", "null"] },
            "b": { "anyOf": [{ "type": "integer" }, { "type": "null" }], "default": null },
            "c": { "type": ["array", "null"], "items": { "type": "integer" } },
            "d": { "type": "array", "items": {} },
        }),
        &["a"],
    );
    check(&all, &json!({ "a": null }), "<s></s>");
    check(&all, &json!({ "a": "", "b": null }), "<s null=\"b\"><a></a></s>");
    check(&all, &json!({ "a": null, "b": 3, "c": null }), "<s null=\"c\"><b>3</b></s>");
    check(&all, &json!({ "a": null, "c": [], "d": [] }), "<s empty=\"c d\"></s>");
    check(&all, &json!({ "a": null, "c": [1], "d": [null] }), "<s><c>1</c><d>null</d></s>");
    let schema = made(&all).expect("a schema");
    let twofold =
        xml::read("<s xmlns='urn:x' null='b'><a/><b>1</b></s>", Profile::Wire, &XmlLimits::INSIDE);
    let error = schema.check(twofold.expect("XML").view()).expect_err("two things");
    assert_eq!(error.message, "<s> says two things of b");
}

#[test]
fn names_that_xml_does_not_have_are_mapped() {
    let all = object(
        &json!({
            "in days": { "type": "integer" }, "in_days": { "type": "integer" },
            "$top": { "type": "string" }, "1st": { "type": "string" },
            "xmlns": { "type": "string" },
            "": { "type": "string" }, "null": { "type": ["string", "null"] },
        }),
        &[],
    );
    check(
        &all,
        &json!({ "in days": 1, "in_days": 2, "$top": "t", "1st": "f", "xmlns": "x", "": "e",
            "null": null }),
        "<s null-2=\"null\"><in_days-2>1</in_days-2><in_days>2</in_days><_top>t</_top>\
         <_1st>f</_1st><_xmlns>x</_xmlns><_>e</_></s>",
    );
}

#[test]
fn other_properties_stand_together() {
    let open = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    let more = "<s><a>1</a><more><entry key=\"b\">{\"c\":null}</entry></more></s>";
    check(&open, &json!({ "a": 1, "b": { "c": null } }), more);
    let schema = made(&open).expect("a schema");
    let text = "<s xmlns='urn:x'><a>1</a><more><entry key='a'>2</entry></more></s>";
    let twofold = xml::read(text, Profile::Wire, &XmlLimits::INSIDE).expect("XML");
    assert!(schema.check(twofold.view()).is_err());
    let any = json!({ "type": "object" });
    check(&any, &json!({ "b": [1] }), "<s><more><entry key=\"b\">[1]</entry></more></s>");
}

#[test]
fn a_root_may_be_anything() {
    check(&json!({ "type": "string" }), &json!("x"), "<s>x</s>");
    check(&json!(true), &json!([1, null]), "<s>[1,null]</s>");
    let lists =
        json!({ "type": "array", "items": { "type": "array", "items": { "type": "integer" } } });
    let text = "<s><item><item>1</item><item>2</item></item><item></item></s>";
    check(&lists, &json!([[1, 2], []]), text);
}

#[test]
fn references_are_followed_and_recursion_is_json() {
    let tree = json!({
        "type": "object",
        "properties": {
            "root": { "$ref": "#/$defs/node" },
            "same": { "$ref": "#/$defs/word" },
        },
        "additionalProperties": false,
        "$defs": {
            "word": { "type": "string" },
            "node": object(&json!({
                "name": { "$ref": "#/$defs/word" },
                "next": { "$ref": "#/$defs/node" },
            }), &["name"]),
        },
    });
    check(
        &tree,
        &json!({ "root": { "name": "a", "next": { "name": "b" } }, "same": "c" }),
        "<s><root><name>a</name><next>{\"name\":\"b\"}</next></root><same>c</same></s>",
    );
    let loose = made(&tree).expect("a schema").loose().to_vec();
    let next = Loose { path: "$.root.next".into(), why: "it holds itself".into(), is_open: true };
    assert_eq!(loose, [next]);
    let inside = json!({ "root": { "name": "a", "next": { "nme": "b" } } });
    let schema = made(&tree).expect("a schema");
    let told = from_json(&schema, &inside).expect_err("a mistake").to_string();
    assert!(told.starts_with("$.root.next isn't what its schema says: "), "{told}");
}

#[test]
fn what_cannot_be_said_is_held_against_the_original() {
    let all = object(
        &json!({
            "filter": { "oneOf": [{ "type": "string" }, { "type": "integer" }] },
            "code": { "type": "string", "pattern": "^(?=.*a)b" },
            "even": { "type": "integer", "multipleOf": 2 },
            "few": { "type": "array", "items": { "type": "integer" }, "maxItems": 2 },
        }),
        &[],
    );
    check(&all, &json!({ "filter": 3 }), "<s><filter>3</filter></s>");
    check(&all, &json!({ "filter": "3" }), "<s><filter>\"3\"</filter></s>");
    refused(
        &all,
        &json!({ "even": 3 }),
        "$.even isn't what its schema says: 3 is not a multiple of 2",
    );
    refused(
        &all,
        &json!({ "few": [1, 2, 3] }),
        "$.few isn't what its schema says: [1,2,3] has more than 2 items",
    );
    refused(
        &all,
        &json!({ "filter": true, "code": "x" }),
        "$.filter isn't what its schema says: true is not valid under any of the schemas \
         listed in the 'oneOf' keyword\n\
         $.code isn't what its schema says: \"x\" does not match \"^(?=.*a)b\"",
    );
    let told: Vec<(String, String, bool)> = made(&all)
        .expect("a schema")
        .loose()
        .iter()
        .map(|it| (it.path.clone(), it.why.clone(), it.is_open))
        .collect();
    let told: Vec<(&str, &str, bool)> =
        told.iter().map(|(path, why, open)| (&**path, &**why, *open)).collect();
    let expected = [
        ("$.filter", "oneOf", true),
        ("$.code", "pattern", false),
        ("$.even", "multipleOf", false),
        ("$.few", "maxItems", false),
    ];
    assert_eq!(told, expected);
    let schema = made(&all).expect("a schema");
    let odd = xml::read("<s xmlns='urn:x'><even>3</even></s>", Profile::Wire, &XmlLimits::INSIDE);
    let error = schema.check(odd.expect("XML").view()).expect_err("odd");
    let text = "<s> isn't what its JSON Schema says at /even: 3 is not a multiple of 2";
    assert_eq!(error.message, text);
}

#[test]
fn only_schemas_of_the_same_original_are_the_same() {
    let one = made(&json!({ "type": "array", "items": {}, "maxItems": 2 })).expect("a schema");
    let other = made(&json!({ "type": "array", "items": {}, "maxItems": 3 })).expect("a schema");
    assert!(one.is_same(&one.clone()) && !one.is_same(&other));
}

#[test]
fn nothing_is_fetched() {
    let remote = json!({ "properties": { "a": { "$ref": "http://127.0.0.1:1/x.json" } } });
    let told = "it refers to \"http://127.0.0.1:1/x.json\", which isn't in it; nothing is fetched";
    unfit(&remote, &format!("#/properties/a: {told}"));
    let file = json!({ "$ref": "file:///etc/passwd" });
    unfit(&file, "#: it refers to \"file:///etc/passwd\", which isn't in it; nothing is fetched");
    assert!(made(&json!({ "$schema": "http://127.0.0.1:1/meta.json" })).is_err());
    assert!(made(&json!({ "type": "strng" })).is_err());
    assert!(made(&json!({ "type": "string", "pattern": "(" })).is_err());
}

#[test]
fn a_reference_is_decoded_before_it_is_followed() {
    let all = json!({
        "type": "object",
        "properties": {
            "share": { "$ref": "#/$defs/percent%25field" },
            "at": { "$ref": "#/$defs/xs%3Adate" },
            "slash": { "$ref": "#/$defs/a~1b%20c" },
        },
        "additionalProperties": false,
        "$defs": {
            "percent%field": { "type": "integer" },
            "xs:date": { "type": "string" },
            "a/b c": { "type": "boolean" },
        },
    });
    let value = json!({ "share": 3, "at": "2026", "slash": true });
    check(&all, &value, "<s><share>3</share><at>2026</at><slash>true</slash></s>");
    let told = "it refers to \"#/$defs/b%FF\", which isn't in it; nothing is fetched";
    unfit(
        &json!({ "properties": { "a": { "$ref": "#/$defs/b%FF" } } }),
        &format!("#/properties/a: {told}"),
    );
}

#[test]
fn a_value_that_is_as_its_schema_says_is_not_too_deep() {
    let kind = |name: &str| {
        json!({ "type": "object", "properties": { "is": { "const": name },
            (name): { "type": "array", "items": { "$ref": "#/$defs/part" } } },
            "required": ["is"], "additionalProperties": false })
    };
    let kinds: Vec<Value> = ["a", "b", "c", "d", "e"].into_iter().map(kind).collect();
    let tree = json!({ "type": "object", "properties": { "part": { "$ref": "#/$defs/part" } },
        "$defs": { "part": { "oneOf": kinds } } });
    let schema = made(&tree).expect("a schema");
    let mut part = json!({ "is": "e" });
    for _ in 0..60 {
        part = json!({ "is": "c", "c": [{ "is": "a", "a": [] }, part] });
    }
    let deep = json!({ "part": part });
    let element = from_json(&schema, &deep).expect("it is as the schema says");
    assert_eq!(to_json(&schema, element.view()), Ok(deep));
}

#[test]
fn a_whole_number_under_number_is_exact() {
    let all = json!({ "type": "object", "properties": { "id": { "type": "number" } } });
    for id in [9_007_199_254_740_993_u64, u64::MAX, 3] {
        check(&all, &json!({ "id": id }), &format!("<s><id>{id}</id></s>"));
    }
    check(&all, &json!({ "id": i64::MIN + 1 }), &format!("<s><id>{}</id></s>", i64::MIN + 1));
}

#[test]
fn a_schema_bomb_is_told_and_does_not_go_off() {
    let chain = |inside: fn(&str) -> Value| {
        let mut defined = serde_json::Map::new();
        for case in 0..20 {
            defined.insert(format!("d{case}"), inside(&format!("#/$defs/d{}", case + 1)));
        }
        defined.insert("d20".to_owned(), json!({ "type": "string" }));
        json!({ "$ref": "#/$defs/d0", "$defs": defined })
    };
    let long = |count: usize| {
        if count < 60 {
            json!({ "allOf": [{ "$ref": format!("#/$defs/d{}", count + 1) }] })
        } else {
            json!(true)
        }
    };
    let defined: serde_json::Map<_, _> = (0..61).map(|it| (format!("d{it}"), long(it))).collect();
    let told = made(&json!({ "$ref": "#/$defs/d0", "$defs": defined })).expect_err("a bomb");
    assert_eq!(told.message, "more than 64 references lead to references");
    let wide = chain(|inner| {
        json!({ "type": "object", "properties": {
        "a": { "$ref": inner }, "b": { "$ref": inner } } })
    });
    unfit(&wide, "#: once its references are followed it has more than 2048 places");
    let both = chain(|it| json!({ "allOf": [{ "$ref": it }, { "$ref": it }] }));
    let told = made(&both).expect_err("a bomb").to_string();
    assert!(told.ends_with("it holds one value against more than 1000 schemas"), "{told}");
    let hidden = chain(|inner| {
        let one = json!({ "properties": { "a": { "$ref": inner } } });
        json!({ "anyOf": [one, one] })
    });
    let schema = made(&hidden).expect("small by itself");
    let mut deep = json!("x");
    for _ in 0..30 {
        deep = json!({ "a": deep });
    }
    let told = from_json(&schema, &deep).expect_err("a bomb").to_string();
    let text =
        "takes more checks against its JSON Schema than the limit schema_checks_max, 5000000";
    assert!(told.ends_with(text), "{told}");
    let itself = json!({ "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/a" }] } } });
    let told = made(&itself).expect_err("a bomb").to_string();
    let text = "it refers to itself without an object or an array between";
    assert!(told.ends_with(text), "{told}");
    let words: Vec<String> = (0..1_001).map(|it| it.to_string()).collect();
    unfit(&json!({ "enum": words }), "#: an enum lists more than 1000 values");
    let mut deep = json!({ "type": "string" });
    for _ in 0..40 {
        deep = json!({ "type": "array", "items": { "anyOf": [deep] } });
    }
    unfit(&deep, "#: more than 64 objects and arrays stand in one another");
    let slow = object(&json!({ "a": { "type": "string", "pattern": "^(a+)+(?=b)$" } }), &[]);
    let text = json!({ "a": "a".repeat(60) });
    assert!(from_json(&made(&slow).expect("a schema"), &text).is_err());
}
