//! Converts payloads that answer actions: to JSON for references and results, and to a sentence for
//! an error.

use pumphouse::prelude::*;
use pumphouse::schema::{self, Schema};
use pumphouse::xml::View;
use serde_json::{Map, Value};

use super::variables::KnownValue;

/// The value of a payload as JSON: the first field that its type marks with `#[payload(value)]` and
/// that it has. Without such a field, a payload that consists of one scalar has this scalar as its
/// value. The scalar is the payload's text or its only element. The value of any other payload is
/// the whole payload. If the schema is unknown, the value is a string with the payload's XML.
#[must_use]
pub fn value(all: &Capabilities, payload: &Element) -> Value {
    known(all, payload).value
}

/// The value of a payload, as [`value`] computes it. If the value is only a part of the payload,
/// `fields` holds the whole payload.
#[must_use]
pub fn known(all: &Capabilities, payload: &Element) -> KnownValue {
    let Some((schema, json)) = all.schema(&payload.name()).and_then(|it| with_json(it, payload))
    else {
        return Value::String(xml(payload)).into();
    };
    let Some(value) = schema::value(schema, &json) else { return json.into() };
    // The value may stand for data that the payload has, too, or be data as a text. Paths lead into
    // the data.
    let body = schema::values(schema, &json).into_iter().nth(1).or_else(|| data(&value));
    let missing = schema::missing(schema, &json);
    KnownValue { value, fields: Some(json), body, missing }
}

/// A value without its payload. A path into a text that is JSON leads into the data.
#[must_use]
pub fn alone(value: Value) -> KnownValue {
    let body = data(&value);
    let fields = body.as_ref().map(|_| Value::Object(Map::new()));
    KnownValue { value, fields, body, ..KnownValue::default() }
}

/// The data that a text is, if it is a JSON object or array.
fn data(value: &Value) -> Option<Value> {
    let text = value.as_str()?.trim_start();
    let is_data = text.starts_with(['{', '[']);
    let data = is_data.then(|| schema::json::read(text).ok()).flatten();
    data.filter(|it| it.is_object() || it.is_array())
}

/// What a prompt shows beside the value of a payload: a line such as `[next: 201]` for each field
/// that the payload has and that its type marks with `#[payload(note)]`. A text of several lines
/// stands below such a line.
#[must_use]
pub fn notes(all: &Capabilities, payload: &Element) -> Vec<String> {
    let json = all.schema(&payload.name()).and_then(|it| with_json(it, payload));
    let notes = json.iter().flat_map(|(schema, json)| schema::notes(schema, json));
    notes.map(|(name, value)| note(name, &value)).collect()
}

fn note(name: &str, value: &Value) -> String {
    match words(value).trim_end_matches('\n') {
        text if text.contains('\n') => format!("[{name}:]\n{text}"),
        text => format!("[{name}: {text}]"),
    }
}

/// A value in words: the items of a list and the fields of an object stand one after another.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let each = fields.iter().map(|(name, value)| format!("{name}: {}", words(value)));
            each.collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    }
}

/// Describes an error's payload in words. If the payload's value is a text, the words are this
/// text, and then the payload's [`notes`]. If the payload has one attribute and nothing else, the
/// words are the attribute's value. Otherwise they list the fields in their order, as in
/// `reason: it is closed; at: 3`. The text of an element comes before its attributes.
#[must_use]
pub fn sentence(all: &Capabilities, payload: &Element) -> String {
    let json = all.schema(&payload.name()).and_then(|it| with_json(it, payload));
    if let Some(Value::String(text)) = json.and_then(|(schema, json)| schema::value(schema, &json))
    {
        return [vec![text], notes(all, payload)].concat().join("\n");
    }
    let mut attributes = payload.attributes();
    match (attributes.next(), attributes.next(), payload.children().next()) {
        (Some(one), None, None) => one.value.to_owned(),
        _ => fields(payload.view()).join("; "),
    }
}

fn with_json<'a>(schema: &'a Schema, payload: &Element) -> Option<(&'a Schema, Value)> {
    Some((schema, schema::to_json(schema, payload.view()).ok()?))
}

fn xml(payload: &Element) -> String {
    String::from_utf8_lossy(&payload.canonical()).into_owned()
}

/// The fields of an element, each with its name. The element's own text has no name. If a child
/// element has several fields and isn't the element's only field, its fields stand in parentheses.
fn fields(element: View<'_>) -> Vec<String> {
    let named = |name: &str, value: &str| match value {
        "" => name.to_owned(),
        value => format!("{name}: {value}"),
    };
    let own = element.attributes().filter(|it| it.namespace.is_empty());
    let attributes: Vec<String> = own.map(|it| named(it.local, it.value)).collect();
    let elements: Vec<View<'_>> = element.elements().collect();
    if elements.is_empty() {
        let text = Some(element.text().into_owned()).filter(|it| !it.is_empty());
        return text.into_iter().chain(attributes).collect();
    }
    let is_alone = attributes.is_empty() && elements.len() == 1;
    let within = elements.into_iter().map(|field| match fields(field) {
        all if all.len() > 1 && !is_alone => format!("{}: ({})", field.local(), all.join("; ")),
        all => named(field.local(), &all.join("; ")),
    });
    attributes.into_iter().chain(within).collect()
}

#[cfg(test)]
mod tests {
    use pumphouse::limits::XmlLimits;
    use pumphouse::wire::Json;
    use pumphouse::xml::{Profile, read};
    use serde_json::json;

    use super::*;

    /// Wants one of the others.
    #[derive(Payload)]
    #[payload(ns = "urn:test")]
    struct Want;

    /// A page.
    #[derive(Payload)]
    #[payload(ns = "urn:test")]
    struct Page {
        #[payload(attribute)]
        title: String,
        #[payload(attribute, value)]
        size: Option<u32>,
        #[payload(attribute, note)]
        next: Option<u32>,
        #[payload(attribute, note)]
        more: bool,
        #[payload(note)]
        link: Vec<String>,
    }

    /// What a server said, as a text and as data.
    #[derive(Payload)]
    #[payload(ns = "urn:test")]
    struct Said {
        #[payload(attribute)]
        name: String,
        #[payload(value)]
        text: Option<String>,
        #[payload(value)]
        data: Json,
    }

    /// A program failed.
    #[derive(Payload)]
    #[payload(ns = "urn:test")]
    struct Failed {
        #[payload(value)]
        text: String,
        #[payload(note)]
        err: Option<String>,
    }

    /// One text.
    #[derive(Payload)]
    #[payload(ns = "urn:test")]
    struct Text(String);

    /// Something went wrong.
    #[derive(Payload)]
    #[payload(ns = "urn:test")]
    struct Wrong {
        #[payload(attribute)]
        at: u32,
        reason: String,
        place: Option<Place>,
    }

    /// Where.
    #[derive(Payload)]
    struct Place {
        line: u32,
        column: u32,
    }

    /// One of these.
    #[derive(Payload)]
    #[payload(ns = "urn:test")]
    enum Either {
        /// Nothing more.
        Late,
        /// Here.
        Here(Place),
    }

    fn all() -> Capabilities {
        type Answers = (Page, Text, Wrong, Either, Said, Failed);
        let handler = async |_: Want| -> Option<Answers> { None };
        let plan = pumphouse::builder().with(Listener::new("it").on(handler)).build().unwrap();
        plan.capabilities().clone()
    }

    #[test]
    fn a_value_is_the_marked_field_else_the_one_text_else_all_of_it() {
        let all = all();
        let of = |it: Element| value(&all, &it);
        let page = |size| {
            Page { title: "T".into(), size, next: Some(7), more: true, link: vec!["a".into()] }
                .encode()
                .unwrap()
        };
        assert_eq!(of(page(Some(7))), json!(7));
        assert_eq!(of(page(None)), Value::Null);
        assert_eq!(of(Text(" x ".into()).encode().unwrap()), json!(" x "));
        let wrong = Wrong { at: 3, reason: "closed".into(), place: None }.encode().unwrap();
        assert_eq!(of(wrong), json!({ "at": 3, "reason": "closed" }));
        let fields = json!({ "title": "T", "size": 7, "next": 7, "more": true, "link": ["a"] });
        assert_eq!(known(&all, &page(Some(7))).fields, Some(fields));
    }

    #[test]
    fn what_a_server_said_has_the_second_word() {
        let data = json!({ "name": "theirs", "price": 2, "body": { "name": "inner", "x": 1 } });
        let check = |text: Option<&str>, path: &[&str], expected: Result<Value, &str>| {
            let said =
                Said { name: "ours".into(), text: text.map(Into::into), data: Json(data.clone()) };
            let known = known(&all(), &said.encode().unwrap());
            assert_eq!(known.at(path).cloned(), expected, "{path:?}");
        };
        for text in [None, Some("In words.")] {
            let value = text.map_or(data.clone(), |it| json!(it));
            check(text, &[], Ok(value));
            check(text, &["name"], Ok(json!("ours")));
            check(text, &["price"], Ok(json!(2)));
            check(text, &["data", "name"], Ok(json!("theirs")));
            check(text, &["body", "name"], Ok(json!("theirs")));
            check(text, &["body", "x"], Ok(json!(1)));
            check(text, &["body", "body", "name"], Ok(json!("inner")));
            check(text, &["body"], Ok(data["body"].clone()));
            check(text, &["prise"], Err("prise"));
            check(text, &["body", "prise"], Err("prise"));
        }
    }

    #[test]
    fn notes_stand_beside_the_value_where_they_say_something() {
        let all = all();
        let of = |it: Result<Element, Fault>| notes(&all, &it.unwrap());
        let page = |next, more, link| Page { title: "T".into(), size: None, next, more, link };
        assert_eq!(of(page(None, false, vec![]).encode()), [""; 0]);
        let link = vec!["a".into(), "b".into()];
        let notes = of(page(Some(7), true, link).encode());
        assert_eq!(notes, ["[next: 7]", "[more: true]", "[link: a, b]"]);
        let err = Some("one\ntwo\n".into());
        assert_eq!(of(Failed { text: "no".into(), err }.encode()), ["[err:]\none\ntwo"]);
    }

    #[test]
    fn a_sentence_has_what_an_error_holds_in_its_order() {
        let all = all();
        let check = |result: Result<Element, Fault>, expected: &str| {
            assert_eq!(sentence(&all, &result.unwrap()), expected);
        };
        check(Text("disk <full> & sad".into()).encode(), "disk <full> & sad");
        check(Failed { text: "no".into(), err: Some("e".into()) }.encode(), "no\n[err: e]");
        let wrong = |place| Wrong { at: 3, reason: "it is closed".into(), place }.encode();
        check(wrong(None), "at: 3; reason: it is closed");
        let place = || Place { line: 1, column: 2 };
        let said = "at: 3; reason: it is closed; place: (line: 1; column: 2)";
        check(wrong(Some(place())), said);
        check(Either::Here(place()).encode(), "here: line: 1; column: 2");
        check(Either::Late.encode(), "late");
        check(Want.encode(), "");
        let unknown = |text: &'static str| -> Result<Element, Fault> {
            Ok(read(text, Profile::Wire, &XmlLimits::INSIDE)?)
        };
        check(unknown("<e xmlns='urn:o' message='no'/>"), "no");
        check(unknown("<e xmlns='urn:o' code='7'>no</e>"), "no; code: 7");
    }
}
