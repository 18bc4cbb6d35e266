//! Checks whether an answer is as expected. This module is pure: verdicts of a judge are obtained
//! by `judge.rs`.

use serde_json::{Map, Value};

use crate::listener::{Capabilities, Entry};
use crate::listeners::agent::transcript::{Event, EventKind};
use crate::listeners::agent::words::{Response, Stopped};
use crate::wire::core::Huh;

use super::file::{Called, Expected};

/// How many characters of a text a complaint quotes at most.
const ECHO_MAX: usize = 200;

/// What an agent answered, and what it did on the way.
pub(super) struct Answer<'a> {
    /// What the agent sent to the asker, in order.
    pub(super) replies: &'a [Entry],
    /// The text of the last reply.
    pub(super) text: &'a str,
    /// The events of the thread.
    pub(super) events: &'a [Event],
    pub(super) agent: &'a str,
    pub(super) organism: &'a Capabilities,
}

/// Returns the text of an agent's reply. An error says why the reply is no answer.
pub(super) fn text(reply: &Entry) -> Result<String, String> {
    if let Ok(it) = reply.decode::<Response>() {
        return Ok(it.text);
    }
    if let Ok(it) = reply.decode::<Stopped>() {
        return Err(format!("the agent stopped without an answer, {}: {}", it.reason, it.text));
    }
    if let Ok(it) = reply.decode::<Huh>() {
        return Err(format!("{}: {}", it.code, it.message));
    }
    Ok(String::from_utf8_lossy(reply.body()).into_owned())
}

/// Says why an answer isn't as expected. Returns None if the answer is as expected, or if a judge
/// has to decide.
pub(super) fn complaint(expected: &Expected, answer: &Answer<'_>) -> Option<String> {
    match expected {
        Expected::Judged(_) => None,
        Expected::Contains(text) if answer.text.contains(text.as_str()) => None,
        Expected::Contains(text) => {
            let said = cut(answer.text);
            Some(format!("the answer doesn't contain {text:?}; it is {said:?}"))
        }
        Expected::Payload(word) => payload(word, answer),
        Expected::Called(called) => call(called, answer),
    }
}

fn payload(word: &str, answer: &Answer<'_>) -> Option<String> {
    let name = match answer.organism.find(word) {
        Ok(schema) => &schema.name,
        Err(unfound) => return Some(unfound.to_string()),
    };
    let named: Vec<&Entry> = answer.replies.iter().filter(|it| it.name() == name).collect();
    let Some(last) = named.last() else {
        let there: Vec<String> = answer.replies.iter().map(|it| it.name().to_string()).collect();
        return Some(format!("the reply is no {name}; it is {}", there.join(", ")));
    };
    let checked = last.element().and_then(|it| answer.organism.understand(it, name));
    checked.err().map(|fault| format!("the reply is no valid {name}: {fault}"))
}

fn call(called: &Called, answer: &Answer<'_>) -> Option<String> {
    let calls = answer.events.iter().filter(|it| it.agent == answer.agent);
    let calls: Vec<(&str, &Value)> = calls
        .filter_map(|it| match &it.what {
            EventKind::ToolCallStart { tool, input, .. } => Some((tool.as_str(), input)),
            _ => None,
        })
        .collect();
    let of_tool: Vec<&Value> =
        calls.iter().filter(|it| it.0 == called.tool).map(|it| it.1).collect();
    if of_tool.is_empty() {
        let others = each_once(calls.iter().map(|it| it.0));
        return Some(format!("{} wasn't called; what was called is {others}", called.tool));
    }
    let with = called.with.as_ref()?;
    if of_tool.iter().any(|it| has(it, with)) {
        return None;
    }
    let wanted = Value::Object(with.clone());
    let there: Vec<String> = of_tool.iter().map(|it| it.to_string()).collect();
    let there = cut(&there.join(", "));
    Some(format!("{} wasn't called with {wanted}, but with {there}", called.tool))
}

/// Lists the names of the called tools, each once, in the order of the first calls.
fn each_once<'a>(called: impl Iterator<Item = &'a str>) -> String {
    let mut others: Vec<&str> = Vec::new();
    for it in called {
        if !others.contains(&it) {
            others.push(it);
        }
    }
    if others.is_empty() { "nothing".to_owned() } else { others.join(", ") }
}

/// Whether a call has these parameters.
fn has(input: &Value, with: &Map<String, Value>) -> bool {
    with.iter().all(|(key, wanted)| input.get(key).is_some_and(|it| is_same(it, wanted)))
}

/// Whether two values are the same. A number or a boolean also equals its own text, because a call
/// that was written as XML elements has only texts.
fn is_same(there: &Value, wanted: &Value) -> bool {
    let is_written = |text: &str, value: &Value| {
        let written = value.to_string();
        text == written
    };
    match (there, wanted) {
        (Value::String(text), it @ (Value::Number(_) | Value::Bool(_)))
        | (it @ (Value::Number(_) | Value::Bool(_)), Value::String(text)) => is_written(text, it),
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64().is_some_and(|it| Some(it) == other.as_f64())
        }
        _ => there == wanted,
    }
}

/// Returns the beginning of a text, in one line.
pub(super) fn cut(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(ECHO_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_listener_that_was_called_is_named_once() {
        assert_eq!(each_once(["a", "b", "a", "b"].into_iter()), "a, b");
        assert_eq!(each_once([].into_iter()), "nothing");
    }

    #[test]
    fn a_call_has_the_values_that_are_given_and_perhaps_others() {
        let check = |input: Value, with: Value, expected: bool| {
            let Value::Object(map) = with.clone() else { panic!("{with}") };
            assert_eq!(has(&input, &map), expected, "{input} {with}");
        };
        check(json!({ "a": 1, "b": 2 }), json!({ "a": 1 }), true);
        check(json!({ "a": 1 }), json!({}), true);
        check(json!({ "a": "6" }), json!({ "a": 6 }), true);
        check(json!({ "a": 6 }), json!({ "a": "6" }), true);
        check(json!({ "a": 6.0 }), json!({ "a": 6 }), true);
        check(json!({ "a": 1 }), json!({ "a": 2 }), false);
        check(json!({ "a": 1 }), json!({ "b": 1 }), false);
        check(json!("a"), json!({ "a": 1 }), false);
    }
}
