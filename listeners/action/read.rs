//! Reads an action that an agent wrote. Unknown fields and values are mistakes. All mistakes of an
//! action are reported together. The text about a wrong value names the field and the values that
//! the field takes.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;

use pumphouse::Element;
use pumphouse::limits::{ActionLimits, XmlLimits};
use pumphouse::reply::{self, Body, Kind};
use pumphouse::schema::{json, nearest};
use pumphouse::wire::SignedDuration;
use pumphouse::xml::{self, Profile, View, Writer};
use serde_json::Value;

use super::super::metadata::words::Handed;
use super::words::{Action, ActionKind, Dialect, Elements, Mode, OnError};

/// The attributes of an action's tag.
const ATTRIBUTES: [&str; 11] = [
    "type",
    "mode",
    "id",
    "show",
    "depends_on",
    "name",
    "output_key",
    "timeout",
    "retry",
    "on_error",
    "metadata",
];
/// The fields of an action's body.
const FIELDS: [&str; 8] =
    ["name", "parameters", "output_key", "depends_on", "timeout", "retry", "on_error", "metadata"];
const KINDS: [(&str, ActionKind); 7] = [
    ("tool", ActionKind::Tool),
    ("agent", ActionKind::Agent),
    ("relic", ActionKind::Relic),
    ("workflow", ActionKind::Workflow),
    ("llm", ActionKind::Llm),
    ("internal", ActionKind::Internal),
    ("context_feed", ActionKind::ContextFeed),
];
const MODES: [(&str, Mode); 3] =
    [("sync", Mode::Sync), ("async", Mode::Async), ("fire_and_forget", Mode::FireAndForget)];
const ON_ERROR: [(&str, OnError); 3] =
    [("fail", OnError::Fail), ("skip", OnError::Skip), ("retry", OnError::Retry)];
const HANDED: [(&str, Handed); 3] =
    [("none", Handed::None), ("inherit", Handed::Inherit), ("share", Handed::Share)];
const TRUTHS: [(&str, bool); 2] = [("true", true), ("false", false)];

/// An action that can't be read, with all its mistakes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mistakes {
    /// The action's id, even if it isn't valid. Empty if there is none.
    pub id: String,
    /// The name that the action calls, if it could be read.
    pub name: Option<String>,
    /// One text for each mistake: the field, what is wrong, and what would be right.
    pub all: Vec<String>,
}

impl Mistakes {
    /// Returns the mistakes of an action that has only this one mistake.
    #[must_use]
    pub fn one(id: &str, why: String) -> Mistakes {
        Mistakes { id: id.to_owned(), name: None, all: vec![why] }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.all.join("\n"))
    }
}

impl Error for Mistakes {}

/// Reads an action from an element that the reply's parser found: an `<action>`, a `<tool_use>` or
/// a `<tool_call>`. If `dialect` is None, the tag decides the dialect.
///
/// # Errors
/// Fails with all [`Mistakes`] in the action.
///
/// ```
/// # extern crate pumphouse_listeners as pumphouse;
/// use pumphouse::listeners::action::{read, words::Mode};
/// use pumphouse::reply::{Config, Parser, What};
///
/// let mut parser = Parser::new(Config::default());
/// let mut found = Vec::new();
/// let text = r#"<action mode="async" id="a">{"name": "add", "parameters": {"a": 1}}</action>"#;
/// parser.feed(text, &mut |event| {
///     if let What::Closed(element) = event.what {
///         found.push(read::action(&element, Some(1), None));
///     }
/// });
/// let action = found.remove(0)?;
/// assert_eq!((&*action.id, action.mode, &*action.name), ("a", Mode::Async, "add"));
/// # Ok::<(), pumphouse::listeners::action::read::Mistakes>(())
/// ```
pub fn action(
    element: &reply::Element<'_>,
    turn: Option<u64>,
    dialect: Option<Dialect>,
) -> Result<Action, Mistakes> {
    action_within(element, turn, dialect, &ActionLimits::default())
}

/// Reads an action as [`action`] does, but with these limits.
///
/// # Errors
/// As [`action`].
pub fn action_within(
    element: &reply::Element<'_>,
    turn: Option<u64>,
    dialect: Option<Dialect>,
    limits: &ActionLimits,
) -> Result<Action, Mistakes> {
    let is_tool_use = element.kind == Kind::ToolUse;
    let is_tool_call = element.kind == Kind::ToolCall;
    let dialect = dialect.or_else(|| (is_tool_use || is_tool_call).then_some(Dialect::ToolUse));
    let mut reading = Reading {
        action: Action { turn, dialect, ..Action::default() },
        limits: *limits,
        mistakes: Vec::new(),
    };
    for attribute in element.attributes {
        reading.attribute(&attribute.name, &attribute.value);
    }
    match element.body {
        Body::Json(text) if is_tool_call => reading.tool_call(text),
        Body::Json(text) if is_tool_use => reading.input(text),
        Body::Json(text) => reading.json(text),
        Body::Elements(text) => reading.elements(text, is_tool_use),
        _ => {}
    }
    reading.end()
}

/// Whether a text may be an action's id.
pub(in super::super) fn is_id(text: &str) -> bool {
    let word = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | ':');
    text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_') && text.chars().all(word)
}

struct Reading {
    action: Action,
    limits: ActionLimits,
    mistakes: Vec<String>,
}

impl Reading {
    fn end(mut self) -> Result<Action, Mistakes> {
        if self.action.name.is_empty() && !self.mistakes.iter().any(|it| it.starts_with("name ")) {
            self.wrong("name is missing: whom to call, as in \"name\": \"calculate\"");
        }
        let mut seen = BTreeSet::new();
        self.action.depends_on.retain(|it| seen.insert(it.clone()));
        if self.mistakes.is_empty() {
            return Ok(self.action);
        }
        let Action { id, name, .. } = self.action;
        let name = (!name.is_empty()).then_some(name);
        Err(Mistakes { id, name, all: self.mistakes })
    }

    fn wrong(&mut self, text: impl Into<String>) {
        self.mistakes.push(text.into());
    }

    fn unknown(&mut self, what: &str, name: &str, known: &[&str]) {
        let right = nearest(name, known.iter().copied());
        let right = right.map(|it| format!("; did you mean {it}?")).unwrap_or_default();
        self.wrong(format!("{name} is no {what} of an action; there are {}{right}", listed(known)));
    }

    /// Reads an attribute of the tag.
    fn attribute(&mut self, name: &str, value: &str) {
        match name {
            "type" => self.action.kind = self.word(name, value, &KINDS).unwrap_or_default(),
            "mode" => self.action.mode = self.word(name, value, &MODES).unwrap_or_default(),
            "id" => self.id(value),
            "call" if self.action.dialect == Some(Dialect::Native) => {
                self.action.call = Some(value.to_owned());
            }
            "show" => self.action.show = self.word(name, value, &TRUTHS),
            _ if ATTRIBUTES.contains(&name) => self.field(name, &RawValue::Text(value)),
            _ => self.unknown("attribute", name, &ATTRIBUTES),
        }
    }

    fn id(&mut self, value: &str) {
        value.clone_into(&mut self.action.id);
        if !is_id(value) {
            self.wrong(format!("id is a name of letters, digits, _, - and :, not {value:?}"));
        }
    }

    fn word<T: Copy>(&mut self, field: &str, value: &str, words: &[(&str, T)]) -> Option<T> {
        let found = words.iter().find(|(it, _)| *it == value);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(it, _)| *it).collect();
            let right = nearest(value, known.iter().copied());
            let right = right.map(|it| format!("; did you mean {it}?")).unwrap_or_default();
            self.wrong(format!("{field} takes {}, not {value:?}{right}", listed(&known)));
        }
        found.map(|(_, it)| *it)
    }

    /// Reads a field, which may be an attribute of the tag or a part of the body.
    fn field(&mut self, name: &str, said: &RawValue<'_>) {
        if matches!(said, RawValue::Json(Value::Null)) && name != "name" {
            return;
        }
        match name {
            "name" => {
                let Some(said) = self.text(name, said) else { return };
                if !self.action.name.is_empty() && self.action.name != said {
                    let text =
                        format!("name is {:?} in the tag, {said:?} in the body", self.action.name);
                    return self.wrong(text);
                }
                self.action.name = said;
            }
            "output_key" => self.action.output_key = self.text(name, said),
            "depends_on" => self.depends_on(said),
            "timeout" => self.timeout(said),
            "retry" => self.retry(said),
            "on_error" => {
                let Some(text) = self.text(name, said) else { return };
                self.action.on_error = self.word(name, &text, &ON_ERROR);
            }
            "metadata" => {
                let Some(text) = self.text(name, said) else { return };
                self.action.metadata = self.word(name, &text, &HANDED);
            }
            _ => {}
        }
    }

    fn text(&mut self, name: &str, said: &RawValue<'_>) -> Option<String> {
        let text = said.as_text().map(str::trim).filter(|it| !it.is_empty());
        if text.is_none() {
            self.wrong(format!("{name} takes a text that isn't empty, not {said}"));
        }
        text.map(str::to_owned)
    }

    /// Reads `depends_on`: `["a", "b"]`, `a,b` or `a b`.
    fn depends_on(&mut self, said: &RawValue<'_>) {
        let bracketed = said.as_text().filter(|it| it.trim().starts_with('['));
        let from_text = bracketed.and_then(|it| json::read(it).ok());
        let said_json = match (said, &from_text) {
            (_, Some(it)) => Some(it),
            (RawValue::Json(it @ Value::Array(_)), None) => Some(*it),
            _ => None,
        };
        if let Some(Value::Array(items)) = said_json {
            for item in items {
                match item.as_str().map(str::trim).filter(|it| !it.is_empty()) {
                    Some(it) => self.action.depends_on.push(it.to_owned()),
                    None => self.wrong(format!("depends_on takes ids of actions, not {item}")),
                }
            }
            return;
        }
        let Some(text) = said.as_text() else {
            let text = format!("depends_on takes a list of ids as in [\"a\", \"b\"], not {said}");
            return self.wrong(text);
        };
        let ids = text.trim_matches(['[', ']']).split([',', ' ', '\t', '\n', '\r']);
        let ids = ids.map(|it| it.trim_matches(['"', '\''])).filter(|it| !it.is_empty());
        self.action.depends_on.extend(ids.map(str::to_owned));
    }

    fn timeout(&mut self, said: &RawValue<'_>) {
        let most = self.limits.timeout_max.as_secs_f64();
        let seconds = said.number().filter(|it| *it > 0.0 && *it <= most);
        match seconds {
            Some(value) => {
                let micros = (value * 1e6).ceil();
                #[expect(clippy::cast_possible_truncation, reason = "a day has fewer")]
                let micros = micros as i64;
                self.action.timeout = Some(SignedDuration::from_micros(micros));
            }
            None => {
                self.wrong(format!("timeout takes seconds, more than 0 up to {most}, not {said}"));
            }
        }
    }

    fn retry(&mut self, said: &RawValue<'_>) {
        let most = u32::try_from(self.limits.retry_max).unwrap_or(u32::MAX);
        let times = (0..=most).find(|it| said.number() == Some(f64::from(*it)));
        if times.is_none() {
            self.wrong(format!("retry takes a whole number from 0 to {most}, not {said}"));
        }
        self.action.retry = times;
    }

    /// Reads a JSON body.
    fn json(&mut self, text: &str) {
        let properties = match json::read(text) {
            Ok(Value::Object(it)) => it,
            Ok(it) => return self.wrong(format!("the body is a JSON object, not {it}")),
            Err(error) => return self.wrong(error.to_string()),
        };
        for (name, value) in &properties {
            match &**name {
                "parameters" => self.parameters(value),
                name if FIELDS.contains(&name) => self.field(name, &RawValue::Json(value)),
                name => self.unknown("field", name, &FIELDS),
            }
        }
    }

    fn parameters(&mut self, value: &Value) {
        match value {
            Value::Object(_) => self.action.parameters = Some(json::text(value)),
            Value::Null => {}
            it => self.wrong(format!("parameters takes a JSON object, not {it}")),
        }
    }

    /// Reads the body of a `<tool_call>`: a JSON object with the called name and its arguments.
    fn tool_call(&mut self, text: &str) {
        let properties = match json::read(text) {
            Ok(Value::Object(it)) => it,
            Ok(it) => return self.wrong(format!("the body is a JSON object, not {it}")),
            Err(error) => return self.wrong(error.to_string()),
        };
        for (name, value) in &properties {
            match (&**name, value) {
                ("name", _) => self.field(name, &RawValue::Json(value)),
                ("id", Value::String(id)) => self.id(id),
                // Some models write the arguments as JSON within a string.
                ("arguments" | "parameters", Value::String(text)) => self.input(text),
                ("arguments" | "parameters", _) => self.parameters(value),
                (name, _) => self.unknown("field", name, &["name", "arguments", "id"]),
            }
        }
    }

    /// Reads parameters that are JSON in a text.
    fn input(&mut self, text: &str) {
        match json::read(text) {
            Ok(it) => self.parameters(&it),
            Err(error) => self.wrong(error.to_string()),
        }
    }

    /// Reads a body of elements.
    fn elements(&mut self, text: &str, is_tool_use: bool) {
        let element = match xml::read(text, Profile::Wire, &XmlLimits::INSIDE) {
            Ok(it) => it,
            Err(error) => return self.wrong(error.to_string()),
        };
        if is_tool_use {
            return self.given(element.view());
        }
        for element in element.elements() {
            let text = element.text();
            match element.local() {
                "parameters" if text.trim_start().starts_with('{') && element.has_text_only() => {
                    self.input(&text);
                }
                "parameters" => self.given(element),
                name if FIELDS.contains(&name) => self.field(name, &RawValue::Text(&text)),
                name => self.unknown("field", name, &FIELDS),
            }
        }
    }

    /// Takes the child elements of this element as the parameters.
    fn given(&mut self, view: View<'_>) {
        let mut writer = Writer::new(XmlLimits::INSIDE);
        writer.start("", "parameters");
        for element in view.elements() {
            writer.element(element);
        }
        writer.end();
        let written: Result<Element, _> = writer.finish();
        match written {
            Ok(parameters) => self.action.elements = Some(Elements { parameters }),
            Err(error) => self.wrong(error.to_string()),
        }
    }
}

/// The value of a field, as the model wrote it.
enum RawValue<'a> {
    Text(&'a str),
    Json(&'a Value),
}

impl RawValue<'_> {
    fn as_text(&self) -> Option<&str> {
        match self {
            RawValue::Text(it) => Some(it),
            RawValue::Json(it) => it.as_str(),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            RawValue::Text(it) => it.trim().parse().ok(),
            RawValue::Json(it) => it.as_f64(),
        }
    }
}

impl fmt::Display for RawValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RawValue::Text(it) => write!(f, "{it:?}"),
            RawValue::Json(it) => write!(f, "{it}"),
        }
    }
}

/// Lists words as in `a, b or c`.
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use pumphouse::reply::{Config, Parser, What};

    use super::*;

    /// Reads the only action of a reply.
    fn made(text: &str) -> Result<Action, Mistakes> {
        let (mut parser, mut found) = (Parser::new(Config::default()), Vec::new());
        parser.feed(text, &mut |event| match event.what {
            What::Closed(it) => found.push(action(&it, Some(3), None)),
            What::Broken(it) => panic!("{}", it.reason),
            _ => {}
        });
        assert_eq!(found.len(), 1, "{text}");
        found.remove(0)
    }

    #[track_caller]
    fn check(text: &str, mistakes: &[&str]) {
        assert_eq!(made(text).unwrap_err().all, mistakes, "{text}");
    }

    #[test]
    fn all_that_may_be_said_is_understood() {
        let text = r#"<action type="relic" mode="async" id="a" show="false" depends_on="x, y">
{"name": "cache", "parameters": {"k": [1, "$x"]}, "output_key": "out", "depends_on": ["y", "z"],
 "timeout": 1.5, "retry": 3, "on_error": "skip"}</action>"#;
        let action = made(text).unwrap();
        assert_eq!((action.kind, action.mode), (ActionKind::Relic, Mode::Async));
        assert_eq!((action.turn, action.show, action.retry), (Some(3), Some(false), Some(3)));
        assert_eq!(
            (&*action.id, &*action.name, action.output_key.as_deref()),
            ("a", "cache", Some("out"))
        );
        assert_eq!(action.depends_on, ["x", "y", "z"]);
        assert_eq!(action.parameters.as_deref(), Some(r#"{"k":[1,"$x"]}"#));
        assert_eq!(action.timeout, Some(SignedDuration::from_millis(1_500)));
        assert_eq!((action.on_error, action.dialect), (Some(OnError::Skip), None));
    }

    #[test]
    fn what_is_left_out_is_the_usual() {
        let action = made(r#"<action>{"name": "echo", "output_key": null}</action>"#).unwrap();
        assert_eq!(
            (action.kind, action.mode, &*action.id),
            (ActionKind::Tool, Mode::Sync, "__auto_1")
        );
        assert_eq!(
            (action.parameters, action.output_key, action.depends_on),
            (None, None, Vec::new())
        );
        let action = made(r#"<action name="echo" id="e"></action>"#).unwrap();
        assert_eq!(&*action.name, "echo");
    }

    #[test]
    fn both_dialects_and_both_forms_are_read() {
        let action = made(r#"<tool_use id="t" name="add">{"a": 1}</tool_use>"#).unwrap();
        assert_eq!(
            (action.dialect, action.parameters.as_deref()),
            (Some(Dialect::ToolUse), Some(r#"{"a":1}"#))
        );
        let xml = |it: Action| it.elements.unwrap().parameters.canonical();
        let expected = "<parameters><a>1</a></parameters>";
        let action = made(r#"<tool_use id="t" name="add"><a>1</a></tool_use>"#).unwrap();
        assert_eq!(xml(action), expected);
        let read_action = made(
            "<action id='t'><name>add</name><depends_on>x y</depends_on>\
            <parameters> <a>1</a> </parameters><retry>1</retry></action>",
        );
        let action = read_action.unwrap();
        assert_eq!((&*action.name, action.retry), ("add", Some(1)));
        assert_eq!(action.depends_on, ["x", "y"]);
        assert_eq!(xml(action), expected);
        let text = r#"<action><name>add</name><parameters>{"a": 1}</parameters></action>"#;
        assert_eq!(made(text).unwrap().parameters.as_deref(), Some(r#"{"a":1}"#));
    }

    #[test]
    fn every_mistake_is_told_by_its_field() {
        check(
            r#"<action type="tol" mode="asnyc" id="a b" shwo="no">
{"name": "", "parameters": [], "timeout": 0, "retry": 1.5, "on_error": "ignore",
 "depends_on": [1], "outputkey": "x"}</action>"#,
            &[
                "type takes tool, agent, relic, workflow, llm, internal or context_feed, \
                 not \"tol\"; did you mean tool?",
                "mode takes sync, async or fire_and_forget, not \"asnyc\"; did you mean async?",
                "id is a name of letters, digits, _, - and :, not \"a b\"",
                "shwo is no attribute of an action; there are type, mode, id, show, depends_on, \
                 name, output_key, timeout, retry, on_error or \
                 metadata; did you mean show?",
                "name takes a text that isn't empty, not \"\"",
                "parameters takes a JSON object, not []",
                "timeout takes seconds, more than 0 up to 86400, not 0",
                "retry takes a whole number from 0 to 5, not 1.5",
                "on_error takes fail, skip or retry, not \"ignore\"",
                "depends_on takes ids of actions, not 1",
                "outputkey is no field of an action; there are name, parameters, output_key, \
                 depends_on, timeout, retry, on_error or metadata; did you mean output_key?",
            ],
        );
        check(
            "<action>{}</action>",
            &["name is missing: whom to call, as in \"name\": \"calculate\""],
        );
        check(
            "<action>[]</action>",
            &[
                "the body is a JSON object, not []",
                "name is missing: whom to call, as in \"name\": \"calculate\"",
            ],
        );
        check(
            r#"<action name="a">{"name": "b"}</action>"#,
            &["name is \"a\" in the tag, \"b\" in the body"],
        );
    }
}
