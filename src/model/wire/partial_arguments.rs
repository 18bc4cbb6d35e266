//! The arguments of a call that Google's servers send in parts: each part has a path and a value,
//! and a text may come in several parts.

use serde_json::{Map, Value};

use super::Gathered;
use crate::schema::json;
use crate::schema::json::DEPTH_MAX;

/// The largest index of an array in a path. A larger one is ignored, so that a short part can't ask
/// for much memory.
const INDEX_MAX: usize = 9_999;
/// Bytes of a place in an array.
const SLOT_BYTES: usize = size_of::<Value>();
/// Bytes of a place in an object, beside its key's.
const ENTRY_BYTES: usize = size_of::<(String, Value)>();

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
    /// Adds the parts of a `functionCall`: whole arguments, and values with paths. The memory that
    /// they take counts in `gathered` before it is taken. If that is beyond a limit, or a path is
    /// too deep, the reply is refused, and further parts add nothing.
    pub(super) fn add(&mut self, call: &Value, gathered: &mut Gathered) {
        self.is_marked |= gathered.is_marked();
        if let Value::Object(args) = &call["args"] {
            if gathered.reserve(bytes_of_entries(args)).is_none() {
                return;
            }
            self.arguments.extend(args.clone());
        }
        for part in call["partialArgs"].as_array().into_iter().flatten() {
            let Some(path) = part["jsonPath"].as_str() else { continue };
            let goes_on = part["willContinue"] == true;
            let continues = self.open.as_deref() == Some(path);
            self.open = goes_on.then(|| path.to_owned());
            let Some(value) = value(part) else { continue };
            let Some(place) = self.place(path, gathered) else { continue };
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
    /// path that isn't one, and if the reply is refused.
    fn place(&mut self, path: &str, gathered: &mut Gathered) -> Option<&mut Value> {
        let steps = steps(path)?;
        if steps.len() > DEPTH_MAX {
            gathered.refuse(format!("a path of its arguments has more than {DEPTH_MAX} steps"));
        }
        if gathered.refusal().is_some() {
            return None;
        }
        let (first, rest) = steps.split_first()?;
        let Step::Key(first) = first else { return None };
        let mut place = entry(&mut self.arguments, first, gathered)?;
        for step in rest {
            place = match step {
                Step::Key(key) => {
                    if !place.is_object() {
                        *place = Value::Object(Map::new());
                    }
                    entry(place.as_object_mut()?, key, gathered)?
                }
                Step::Index(index) => {
                    if !place.is_array() {
                        *place = Value::Array(Vec::new());
                    }
                    let all = place.as_array_mut()?;
                    if all.len() <= *index {
                        gathered.reserve((index + 1 - all.len()) * SLOT_BYTES)?;
                        all.resize(index + 1, Value::Null);
                    }
                    all.get_mut(*index)?
                }
            };
        }
        Some(place)
    }
}

/// The place of a key in an object. It is made if there is none. None if the reply is refused.
fn entry<'a>(
    of: &'a mut Map<String, Value>,
    key: &str,
    gathered: &mut Gathered,
) -> Option<&'a mut Value> {
    if !of.contains_key(key) {
        gathered.reserve(ENTRY_BYTES + key.len())?;
    }
    Some(of.entry(key).or_insert(Value::Null))
}

/// Bytes of memory that the entries of an object take.
fn bytes_of_entries(of: &Map<String, Value>) -> usize {
    of.iter().map(|(key, value)| ENTRY_BYTES + key.len() + bytes_behind(value)).sum()
}

/// Bytes of memory that a value takes beside its place.
fn bytes_behind(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(all) => all.iter().map(|it| SLOT_BYTES + bytes_behind(it)).sum(),
        Value::Object(all) => bytes_of_entries(all),
        _ => 0,
    }
}

/// The value of a part. None for a part without one.
fn value(part: &Value) -> Option<Value> {
    if part.get("nullValue").is_some() {
        return Some(Value::Null);
    }
    let values = ["stringValue", "boolValue"].into_iter().find_map(|it| part.get(it));
    let values = values.filter(|it| it.is_string() || it.is_boolean());
    values.cloned().or_else(|| number(part.get("numberValue")?))
}

/// A number, without a fraction of zero: the wire's numbers all have one.
fn number(value: &Value) -> Option<Value> {
    let number = value.as_f64()?;
    let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
    Some(if value.is_f64() && is_whole { Value::from(number as i64) } else { value.clone() })
}

/// The steps of a path such as `$.a['b c'][0]`. None for any other text. Of a path that is too
/// deep, only the first steps, one more than [`DEPTH_MAX`].
fn steps(path: &str) -> Option<Vec<Step>> {
    let (mut rest, mut steps) = (path.strip_prefix('$')?, Vec::new());
    while !rest.is_empty() && steps.len() <= DEPTH_MAX {
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

    /// Adds parts, each in an event of its own, and returns why the reply is refused.
    fn refusal(parts: &[Value]) -> Option<String> {
        let (mut all, mut gathered) = (PartialArguments::default(), Gathered::default());
        for part in parts {
            all.add(&json!({ "partialArgs": [part] }), &mut gathered);
        }
        gathered.refusal().map(str::to_owned)
    }

    #[expect(clippy::needless_pass_by_value, reason = "each case writes its values in place")]
    fn check(parts: Value, expected: Value) {
        let (mut all, mut gathered) = (PartialArguments::default(), Gathered::default());
        for part in parts.as_array().unwrap() {
            all.add(&json!({ "partialArgs": [part] }), &mut gathered);
        }
        assert_eq!(gathered.refusal(), None);
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

    #[test]
    fn a_path_is_at_most_as_deep_as_json() {
        let part = |depth: usize| {
            let path = format!("${}", ".a".repeat(depth));
            json!({ "jsonPath": path, "boolValue": true })
        };
        assert_eq!(refusal(&[part(DEPTH_MAX)]), None);
        let expected = format!("a path of its arguments has more than {DEPTH_MAX} steps");
        assert_eq!(refusal(&[part(DEPTH_MAX + 1)]), Some(expected.clone()));
        assert_eq!(refusal(&[part(100_000)]), Some(expected));
    }

    #[test]
    fn the_places_that_paths_make_count_before_they_are_made() {
        let slots = |key: usize| json!({ "jsonPath": format!("$.{key}[9999]"), "nullValue": 0 });
        let (mut all, mut gathered) = (PartialArguments::default(), Gathered::default());
        all.add(&json!({ "partialArgs": [slots(1)] }), &mut gathered);
        assert_eq!(gathered.bytes(), 10_000 * SLOT_BYTES + ENTRY_BYTES + 1);
        all.add(&json!({ "partialArgs": [slots(1)] }), &mut gathered);
        assert_eq!(gathered.bytes(), 10_000 * SLOT_BYTES + ENTRY_BYTES + 1, "they are there");
        let before = gathered.bytes();
        all.add(&json!({ "args": { "ab": ["c", 7] } }), &mut gathered);
        assert_eq!(gathered.bytes() - before, ENTRY_BYTES + 2 + 2 * SLOT_BYTES + 1);
        let many: Vec<Value> = (0..100).map(slots).collect();
        let (mut all, mut gathered) = (PartialArguments::default(), Gathered::default());
        all.add(&json!({ "partialArgs": many }), &mut gathered);
        assert_eq!(gathered.refusal(), Some("its arguments take more than 4194304 bytes"));
        assert!(all.arguments.len() < 20 && gathered.bytes() <= 4 << 20);
    }
}
