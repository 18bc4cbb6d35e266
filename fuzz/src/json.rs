//! JSON texts: what is a payload's form becomes the element that its type writes, and the same
//! form again; what isn't is told where.

use std::collections::BTreeMap;

use pumphouse::prelude::*;
use pumphouse::schema::{self, json};
use pumphouse::wire::{Bytes, SignedDuration, Timestamp, Uuid};
use serde_json::Value;

use crate::check::{Root, Scalars, Tree};

/// What the other payloads have no field for.
#[derive(Debug, Payload)]
#[payload(ns = "urn:f")]
struct Forms {
    #[payload(attribute)]
    id: Option<Uuid>,
    #[payload(list, max_length = 3)]
    list: Option<Vec<i16>>,
    bytes: Option<Bytes>,
    at: Option<Timestamp>,
    span: Option<SignedDuration>,
    #[payload(pattern = "[A-Z]{2}[0-9]*")]
    code: Option<String>,
    #[payload(digits = 6, fraction_digits = 2)]
    price: Option<f64>,
    map: Option<BTreeMap<String, u8>>,
    maps: Vec<BTreeMap<String, Forms>>,
    more: Vec<Element>,
}

/// A JSON text, held against every schema there is here.
pub fn json_to_xml(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let value = match json::read(text) {
        Ok(value) => value,
        Err(broken) => {
            let line = text.split('\n').nth(broken.line as usize - 1);
            let columns = line.map_or(0, |it| it.chars().count()) + 1;
            assert!(broken.column as usize <= columns, "{broken}");
            let around = broken.before.chars().chain(broken.behind.chars());
            assert!(around.count() < 800 && broken.message.len() < 800 + text.len(), "{broken}");
            if broken.kind == json::BrokenKind::Syntax {
                let theirs = serde_json::from_str::<Value>(text);
                assert!(theirs.is_err(), "only we refuse it: {broken}");
            }
            return;
        }
    };
    assert_eq!(json::read(&value.to_string()).as_ref(), Ok(&value), "written and read");
    same::<Scalars>(&value);
    same::<Tree>(&value);
    same::<Root>(&value);
    same::<Forms>(&value);
}

fn same<P: Payload>(value: &Value) {
    let schema = P::schema();
    let element = match schema::from_json(schema, value) {
        Ok(element) => element,
        Err(errors) => {
            assert!((1..=16).contains(&errors.all.len()));
            for it in errors.all {
                assert!(it.path.starts_with(['$', '…']), "{it}");
                assert!(it.message.len() < 2_000 && it.advice().ends_with('.'), "{it}");
            }
            return;
        }
    };
    let checked = schema.check(element.view());
    checked.unwrap_or_else(|error| panic!("what was accepted: {error}\n{element:?}"));
    let typed = P::decode(&element).unwrap_or_else(|fault| panic!("{fault}\n{element:?}"));
    let typed = typed.encode().unwrap_or_else(|fault| panic!("{fault}\n{element:?}"));
    assert_eq!(typed.canonical(), element.canonical(), "as its type writes it");
    let back = schema::to_json(schema, element.view());
    let back = back.unwrap_or_else(|error| panic!("there and not back: {error}\n{element:?}"));
    let again = schema::from_json(schema, &back);
    let again = again.unwrap_or_else(|errors| panic!("back and not there: {errors}\n{back}"));
    assert_eq!(again.canonical(), element.canonical(), "{back}");
    assert_eq!(schema::to_json(schema, again.view()).as_ref(), Ok(&back));
}
