//! Checks JSON and reads calls from it. Broken JSON is never repaired.

use std::fmt;

use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::reply::config::Shape;
use crate::schema::json::{deserialize, mended};

/// An error in a JSON text, and the offset of the wrong byte.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) at: usize,
    pub(super) reason: String,
}

/// Checks that a text is one JSON value, and that all its strings can be decoded.
pub(super) fn check(text: &str) -> Result<(), Wrong> {
    match deserialize::<Sound>(&mended(text)) {
        Ok(Sound) => Ok(()),
        Err(error) => Err(wrong(text, &error)),
    }
}

/// A call that is written as JSON, and the part of the text that it covers.
pub(super) struct JsonCall<'a> {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The call's properties, or the error in them.
    pub(super) fields: Result<Fields<'a>, Wrong>,
}

pub(super) struct Fields<'a> {
    pub(super) strings: Vec<(String, String)>,
    pub(super) input: Option<&'a str>,
}

/// The calls in a JSON object, or in an array of objects. If at least one object declares itself a
/// call, every item is returned as a call, with its fields or an error. Otherwise the list is
/// empty. Together the calls cover the whole text.
pub(super) fn calls<'a>(text: &'a str, shape: &Shape) -> Vec<JsonCall<'a>> {
    let items: Vec<&'a RawValue> = match text.trim_start().starts_with('[') {
        true => serde_json::from_str(text).unwrap_or_default(),
        false => serde_json::from_str(text).map(|it| vec![it]).unwrap_or_default(),
    };
    let mut calls: Vec<JsonCall<'a>> = Vec::new();
    let mut ours = false;
    for item in items {
        // The value is a part of `text`, so its address gives its position.
        let at = item.get().as_ptr() as usize - text.as_ptr() as usize;
        let from = calls.last().map_or(0, |it| it.to);
        let (fields, is_ours) = fields(item.get(), at, shape);
        ours |= is_ours;
        calls.push(JsonCall { from, to: at + item.get().len(), fields });
    }
    if !ours {
        return Vec::new();
    }
    if let Some(last) = calls.last_mut() {
        last.to = text.len();
    }
    calls
}

/// The properties of an object, and whether it declares itself a call.
fn fields<'a>(text: &'a str, at: usize, shape: &Shape) -> (Result<Fields<'a>, Wrong>, bool) {
    let wrong = |reason: String| Err(Wrong { at, reason });
    let Ok(Object(pairs)) = serde_json::from_str::<Object<'a>>(text) else {
        return (wrong("a call is an object".to_owned()), false);
    };
    let find = |name: &str| pairs.iter().rev().find(|it| it.0 == name).map(|it| it.1.get());
    let string = |raw: &str| serde_json::from_str::<String>(&mended(raw)).ok();
    let is_ours = find("type").and_then(string).is_some_and(|it| it == shape.mark);
    if !is_ours {
        return (wrong(format!("its type isn't {:?}", shape.mark)), false);
    }
    for name in &shape.required {
        if find(name).is_none() {
            return (wrong(format!("a {} has no {name:?}", shape.mark)), true);
        }
    }
    let mut strings = Vec::new();
    for (name, kind) in &shape.properties {
        let Some(raw) = find(name) else { continue };
        if !is(raw, kind) {
            return (wrong(format!("{name:?} must be of the type {kind}")), true);
        }
        if name != "type"
            && let Some(value) = string(raw)
        {
            strings.push((name.clone(), value));
        }
    }
    (Ok(Fields { strings, input: find("input") }), true)
}

/// Whether a value has this type of JSON Schema.
fn is(raw: &str, kind: &str) -> bool {
    let first = raw.bytes().next().unwrap_or(b' ');
    match kind {
        "object" => first == b'{',
        "array" => first == b'[',
        "string" => first == b'"',
        "boolean" => matches!(first, b't' | b'f'),
        "null" => first == b'n',
        "number" => first == b'-' || first.is_ascii_digit(),
        "integer" => raw.parse::<i128>().is_ok(),
        _ => true,
    }
}

fn wrong(text: &str, error: &serde_json::Error) -> Wrong {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let reason = match message.strip_suffix(&place).unwrap_or(&message) {
        "expected ident" => "expected a value; outside quotes there are true, false and null",
        reason => reason,
    };
    let reason = reason.to_owned();
    let mut at = offset(text, error.line(), error.column());
    // The column that serde_json gives includes the wrong byte. At the end of the text there is no
    // wrong byte.
    if error.classify() == Category::Eof {
        at = text.len();
    }
    Wrong { at: text.floor_char_boundary(at.min(text.len())), reason }
}

fn offset(text: &str, line: usize, column: usize) -> usize {
    let mut from = 0;
    for _ in 1..line {
        let Some(next) = memchr::memchr(b'\n', &text.as_bytes()[from..]) else { break };
        from += next + 1;
    }
    // serde_json counts a line end as column 0 of the next line.
    (from + column).saturating_sub(1)
}

/// Stands for any JSON value. Deserializing it checks that all parts of the value can be decoded.
struct Sound;

impl<'de> serde::Deserialize<'de> for Sound {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Sound, D::Error> {
        from.deserialize_any(Sound)
    }
}

impl<'de> serde::de::Visitor<'de> for Sound {
    type Value = Sound;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_bool<E>(self, _: bool) -> Result<Sound, E> {
        Ok(Sound)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Sound, E> {
        Ok(Sound)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Sound, E> {
        Ok(Sound)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Sound, E> {
        Ok(Sound)
    }
    fn visit_str<E>(self, _: &str) -> Result<Sound, E> {
        Ok(Sound)
    }
    fn visit_unit<E>(self) -> Result<Sound, E> {
        Ok(Sound)
    }
    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Sound, A::Error> {
        while items.next_element::<Sound>()?.is_some() {}
        Ok(Sound)
    }
    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut pairs: A) -> Result<Sound, A::Error> {
        while pairs.next_entry::<Sound, Sound>()?.is_some() {}
        Ok(Sound)
    }
}

/// The properties of an object in their order, with the values as they are written.
struct Object<'a>(Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Object<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Object<'de>, D::Error> {
        struct Pairs;
        impl<'de> serde::de::Visitor<'de> for Pairs {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Object<'de>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Object(pairs))
            }
        }
        from.deserialize_map(Pairs)
    }
}
