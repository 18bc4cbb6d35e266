//! The arguments of a call that Google's servers send in parts: each part has a path and a value,
//! and a text may come in several parts.

use serde_json::{Map, Value};

use crate::schema::json;

/// The largest index of an array in a path. A larger one is ignored, so that a short part can't ask
/// for much memory.
const INDEX_MAX: usize = 9_999;

/// The arguments so far.
#[derive(Default)]
pub(super) struct PartialArguments {
    arguments: Map<String, Value>,
    /// The path of the text that the next part with this path continues.
    open: Option<String>,
    /// Whether an event had marks for halves of surrogate pairs.
    is_marked: bool,
}

/// A step of a path.
enum Step {
    Key(String),
    Index(usize),
}

impl PartialArguments {
    /// Adds the parts of a `functionCall`: whole arguments, and values with paths. `is_marked` says
    /// whether their texts have marks for halves of surrogate pairs.
    pub(super) fn add(&mut self, call: &Value, is_marked: bool) {
        self.is_marked |= is_marked;
        if let Value::Object(args) = &call["args"] {
            self.arguments.extend(args.clone());
        }
        for part in call["partialArgs"].as_array().into_iter().flatten() {
            let Some(path) = part["jsonPath"].as_str() else { continue };
            let goes_on = part["willContinue"] == true;
            let continues = self.open.as_deref() == Some(path);
            self.open = goes_on.then(|| path.to_owned());
            let Some(value) = value(part) else { continue };
            let Some(place) = self.place(path) else { continue };
            match (place, value) {
                (Value::String(text), Value::String(more)) if continues => text.push_str(&more),
                (place, value) => *place = value,
            }
        }
    }

    /// The whole arguments.
    pub(super) fn whole(self) -> String {
        let text = Value::Object(self.arguments).to_string();
        if self.is_marked { json::whole(&text) } else { text }
    }

    /// The place in the arguments that a path leads to. It is made if there is none. None for a
    /// path that isn't one.
    fn place(&mut self, path: &str) -> Option<&mut Value> {
        let steps = steps(path)?;
        let (first, rest) = steps.split_first()?;
        let Step::Key(first) = first else { return None };
        let mut place = self.arguments.entry(first.clone()).or_insert(Value::Null);
        for step in rest {
            place = match step {
                Step::Key(key) => {
                    if !place.is_object() {
                        *place = Value::Object(Map::new());
                    }
                    place.as_object_mut()?.entry(key.clone()).or_insert(Value::Null)
                }
                Step::Index(index) => {
                    if !place.is_array() {
                        *place = Value::Array(Vec::new());
                    }
                    let all = place.as_array_mut()?;
                    if all.len() <= *index {
                        all.resize(index + 1, Value::Null);
                    }
                    all.get_mut(*index)?
                }
            };
        }
        Some(place)
    }
}

/// The value of a part. None for a part without one.
fn value(part: &Value) -> Option<Value> {
    if part.get("nullValue").is_some() {
        return Some(Value::Null);
    }
    let values = ["stringValue", "boolValue"].into_iter().find_map(|it| part.get(it));
    values.cloned().or_else(|| number(part.get("numberValue")?))
}

/// A number, without a fraction of zero: the wire's numbers all have one.
fn number(value: &Value) -> Option<Value> {
    let number = value.as_f64()?;
    let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
    Some(if value.is_f64() && is_whole { Value::from(number as i64) } else { value.clone() })
}

/// The steps of a path such as `$.a['b c'][0]`. None for any other text.
fn steps(path: &str) -> Option<Vec<Step>> {
    let (mut rest, mut steps) = (path.strip_prefix('$')?, Vec::new());
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (key, tail) = after.split_at(end);
            steps.push(Step::Key((!key.is_empty()).then(|| key.to_owned())?));
            rest = tail;
        } else if let Some(quote) = rest.strip_prefix('[')?.chars().next().filter(is_quote) {
            let (key, tail) = quoted(rest.get(2..)?, quote)?;
            steps.push(Step::Key(key));
            rest = tail.strip_prefix(']')?;
        } else {
            let (index, tail) = rest.strip_prefix('[')?.split_once(']')?;
            let index = index.parse().ok().filter(|it| *it <= INDEX_MAX)?;
            steps.push(Step::Index(index));
            rest = tail;
        }
    }
    Some(steps)
}

fn is_quote(it: &char) -> bool {
    matches!(it, '\'' | '"')
}

/// Splits a text behind an opening quote at its closing quote. A backslash escapes a character.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let (mut key, mut chars) = (String::new(), text.char_indices());
    while let Some((at, it)) = chars.next() {
        match it {
            '\\' => key.push(chars.next()?.1),
            it if it == quote => return Some((key, &text[at + 1..])),
            it => key.push(it),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "each case writes its values in place")]
    fn check(parts: Value, expected: Value) {
        let mut all = PartialArguments::default();
        for part in parts.as_array().unwrap() {
            all.add(&json!({ "partialArgs": [part] }), false);
        }
        assert_eq!(serde_json::from_str::<Value>(&all.whole()).unwrap(), expected);
    }

    #[test]
    fn parts_make_the_arguments_that_they_name() {
        check(
            json!([
                { "jsonPath": "$.text", "stringValue": "fn ", "willContinue": true },
                { "jsonPath": "$.text", "stringValue": "main", "willContinue": true },
                { "jsonPath": "$.text", "stringValue": "" },
                { "jsonPath": "$.lines", "numberValue": 50.0 },
                { "jsonPath": "$.ratio", "numberValue": 0.5 },
                { "jsonPath": "$.all[1].name", "stringValue": "b" },
                { "jsonPath": "$['a.b'][\"c d\"]", "boolValue": true },
                { "jsonPath": "$.none", "nullValue": "NULL_VALUE" },
            ]),
            json!({
                "text": "fn main", "lines": 50, "ratio": 0.5, "all": [null, { "name": "b" }],
                "a.b": { "c d": true }, "none": null,
            }),
        );
    }

    #[test]
    fn what_is_no_path_adds_nothing() {
        let wrong = ["", "text", "$", "$.", "$.a[99999]", "$.a[x]", "$['a", "$[0]", "$a"];
        for path in wrong {
            check(json!([{ "jsonPath": path, "stringValue": "x" }]), json!({}));
        }
        // A second whole text replaces the first.
        let twice = json!([
            { "jsonPath": "$.a", "stringValue": "x" }, { "jsonPath": "$.a", "stringValue": "y" },
        ]);
        check(twice, json!({ "a": "y" }));
    }
}
