//! Tests with random schemas and values: a value that is valid against a JSON Schema becomes XML,
//! and the XML becomes the same value again.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::made;
use crate::limits::XmlLimits;
use crate::schema::{from_json, json, to_json};
use crate::xml::{self, Profile};

/// A JSON Schema, with values that are valid against it.
#[derive(Clone, Debug)]
struct Pair {
    schema: Value,
    values: Vec<Value>,
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,4}",
        Just(" \n<&>]]>\r\t ".to_owned()),
        Just("null".to_owned()),
        Just("\u{1F41F}".to_owned()),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(names(), inner, 0..3)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

fn names() -> impl Strategy<Value = String> {
    const ODD: &[&str] = &[
        "null", "empty", "more", "item", "entry", "in days", "in_days", "1", "", "ä", "xml", "$x",
    ];
    prop_oneof![3 => "[a-c]{1,2}", 1 => prop::sample::select(ODD).prop_map(str::to_owned)]
}

fn leaf() -> impl Strategy<Value = Pair> {
    let pair = |schema: Value, values: Vec<Value>| Pair { schema, values };
    prop_oneof![
        prop::collection::vec(texts(), 3).prop_map(move |values| pair(
            json!({ "type": "string", "description": "Said." }),
            values.into_iter().map(Value::from).collect(),
        )),
        prop::collection::vec("[a-z]{2,5}", 3).prop_map(move |values| pair(
            json!({ "type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$" }),
            values.into_iter().map(Value::from).collect(),
        )),
        prop::collection::vec(any::<i64>(), 3).prop_map(move |values| pair(
            json!({ "type": "integer" }),
            values.into_iter().map(Value::from).collect(),
        )),
        prop::collection::vec(any::<u64>(), 3).prop_map(move |values| pair(
            json!({ "type": "integer", "minimum": 0 }),
            values.into_iter().map(Value::from).collect(),
        )),
        prop::collection::vec(-1e9..1e9, 3).prop_map(move |values| pair(
            json!({ "type": "number" }),
            values.into_iter().map(Value::from).collect(),
        )),
        Just(pair(json!({ "type": "number" }), vec![json!(1), json!(-3), json!(0.5)])),
        Just(pair(json!({ "type": "boolean" }), vec![json!(true), json!(false)])),
        Just(pair(json!({ "enum": ["a b", "c", ""] }), vec![json!("c"), json!(""), json!("a b")])),
        Just(pair(json!({ "enum": ["a", null] }), vec![json!("a"), Value::Null])),
        Just(pair(json!({ "enum": [" a", "a"] }), vec![json!("a"), json!(" a")])),
        Just(pair(json!({ "const": 1 }), vec![json!(1)])),
        Just(pair(json!({ "type": "null" }), vec![Value::Null])),
        prop::collection::vec(any_json(), 3).prop_map(move |it| pair(json!(true), it)),
    ]
}

fn all() -> impl Strategy<Value = Pair> {
    leaf().prop_recursive(3, 24, 4, |inner| {
        let array = prop::collection::vec(inner.clone(), 1..2).prop_map(|item| {
            let Pair { schema, values } = item[0].clone();
            let some: Vec<Value> = values.iter().take(2).cloned().collect();
            let values = vec![json!([]), Value::from(some), Value::from(values)];
            Pair { schema: json!({ "type": "array", "items": schema }), values }
        });
        let map = (inner.clone(), names()).prop_map(|(Pair { schema, values }, name)| {
            let values = values.iter().map(|it| json!({ name.clone(): it, "k": it }));
            let values = values.chain([json!({})]).collect();
            Pair { schema: json!({ "type": "object", "additionalProperties": schema }), values }
        });
        let nullable = inner.clone().prop_map(|Pair { schema, mut values }| {
            values.insert(0, Value::Null);
            Pair { schema: json!({ "anyOf": [schema, { "type": "null" }] }), values }
        });
        let property = (names(), prop_oneof![3 => inner.clone(), 1 => nullable.clone()]);
        let object = (
            prop::collection::vec((property, any::<bool>(), any::<bool>()), 0..4),
            prop::option::of((names(), any_json())),
        )
            .prop_map(|(all, more)| object(&all, more));
        prop_oneof![1 => array, 1 => map, 1 => nullable, 3 => object]
    })
}

type Given = ((String, Pair), bool, bool);

fn object(all: &[Given], more: Option<(String, Value)>) -> Pair {
    let mut properties = Map::new();
    let mut required: Vec<&str> = Vec::new();
    let mut values = vec![Map::new(); 3];
    for ((name, pair), is_required, is_there) in all {
        if properties.contains_key(name) {
            continue;
        }
        properties.insert(name.clone(), pair.schema.clone());
        if *is_required {
            required.push(name);
        }
        for (at, value) in values.iter_mut().enumerate() {
            if *is_required || (*is_there && at > 0) {
                value.insert(name.clone(), pair.values[at % pair.values.len()].clone());
            }
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties, "required": required });
    match more.filter(|(name, _)| !properties.contains_key(name)) {
        Some((name, member)) => {
            values.iter_mut().for_each(|all| drop(all.insert(name.clone(), member.clone())));
        }
        None => schema["additionalProperties"] = false.into(),
    }
    Pair { schema, values: values.into_iter().map(Value::Object).collect() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn what_is_valid_by_theirs_goes_into_xml_and_comes_back(Pair { schema, values } in all()) {
        let ours = made(&schema);
        let ours = ours.map_err(|it| TestCaseError::fail(format!("{it}\n{schema:#}")))?;
        for value in values {
            let element = from_json(&ours, &value);
            let element =
                element.map_err(|it| TestCaseError::fail(format!("{it}\n{value}\n{schema:#}")))?;
            let back = to_json(&ours, element.view());
            let back = same(back.as_ref().ok());
            prop_assert_eq!(back, same(Some(&value)), "{:?}\n{}", element, schema);
            let read = xml::read(element.canonical(), Profile::Wire, &XmlLimits::INSIDE);
            let read = read.expect("it was written");
            prop_assert_eq!(ours.check(read.view()), Ok(()));
            prop_assert_eq!(json::read(&value.to_string()), Ok(value));
        }
    }
}

/// Turns the numbers without a fraction into whole numbers, so that `1.0` equals `1`.
fn same(value: Option<&Value>) -> Value {
    match value {
        None => "nothing".into(),
        Some(Value::Number(number)) if number.is_f64() => match number.as_f64() {
            Some(number) if number.fract() == 0.0 => {
                format!("{number}").parse().map_or(number.into(), Value::Number)
            }
            _ => Value::Number(number.clone()),
        },
        Some(Value::Array(all)) => all.iter().map(|it| same(Some(it))).collect(),
        Some(Value::Object(all)) => {
            all.iter().map(|(key, it)| (key.clone(), same(Some(it)))).collect()
        }
        Some(it) => it.clone(),
    }
}
