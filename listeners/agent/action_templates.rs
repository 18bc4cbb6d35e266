//! The templates of an agent's actions. A template is an action with placeholders, such as
//! `{{url}}`. The agent calls the template by its name, with values for the placeholders.

use std::collections::{BTreeMap, BTreeSet};

use pumphouse::reply::{Body, Element};
use pumphouse::schema::{json, nearest};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The field of an action's body that names a template.
const FIELD: &str = "template";

/// The templates of an agent's actions, by their names.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Templates(BTreeMap<String, Map<String, Value>>);

impl Templates {
    /// Adds a template: the body of an action, with placeholders in its texts.
    pub fn add(&mut self, name: impl Into<String>, body: Map<String, Value>) {
        self.0.insert(name.into(), body);
    }

    /// Whether there are no templates.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the templates, each with the names of its placeholders.
    pub fn all(&self) -> impl Iterator<Item = (&str, BTreeSet<&str>)> {
        self.0.iter().map(|(name, body)| (name.as_str(), placeholders(body)))
    }

    /// Fills in the template that an action names, and returns the action's body. None if the
    /// action names no template, or if the agent has no templates.
    pub(super) fn filled(&self, element: &Element<'_>) -> Result<Option<String>, String> {
        let Body::Json(text) = element.body else { return Ok(None) };
        if self.is_empty() || !text.contains(FIELD) {
            return Ok(None);
        }
        let Ok(Value::Object(mut said)) = json::read(text) else { return Ok(None) };
        let Some(name) = said.remove(FIELD) else { return Ok(None) };
        let names = || self.0.keys().map(String::as_str);
        let found = name.as_str().and_then(|it| self.0.get(it).map(|body| (it, body)));
        let Some((name, template)) = found else {
            let right = nearest(name.as_str().unwrap_or_default(), names());
            let right = right.map(|it| format!("; did you mean {it}?")).unwrap_or_default();
            let all = names().collect::<Vec<_>>().join(", ");
            return Err(format!("there is no template {name}; there are {all}{right}"));
        };
        if said.contains_key("name") {
            return Err(format!("name is that of the template {name}; leave it out"));
        }
        let values = match said.remove("parameters") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(it)) => it,
            Some(it) => return Err(format!("parameters takes a JSON object, not {it}")),
        };
        let wanted = placeholders(template);
        let wrong = misfits(&wanted, &values);
        if !wrong.is_empty() {
            return Err(format!("the template {name} {}", wrong.join(", and ")));
        }
        let Value::Object(mut body) = fill(&Value::Object(template.clone()), &values) else {
            return Ok(None);
        };
        body.extend(said);
        Ok(Some(Value::Object(body).to_string()))
    }
}

/// Describes missing parameters, and parameters that the template doesn't have. Each description
/// completes a sentence that begins with the template's name.
fn misfits(wanted: &BTreeSet<&str>, values: &Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    let missing: Vec<&str> =
        wanted.iter().copied().filter(|it| !values.contains_key(*it)).collect();
    if !missing.is_empty() {
        let word = if missing.len() == 1 { "parameter" } else { "parameters" };
        found.push(format!("needs the {word} {}", missing.join(", ")));
    }
    // While parameters are missing, only these are suggested: an unknown name can't be meant for a
    // parameter that is already present.
    for unknown in values.keys().filter(|it| !wanted.contains(it.as_str())) {
        let open =
            if missing.is_empty() { wanted.iter().copied().collect() } else { missing.clone() };
        let right = nearest(unknown, open.into_iter());
        let right = right.map(|it| format!("; did you mean {it}?")).unwrap_or_default();
        found.push(format!("has no parameter {unknown}{right}"));
    }
    found
}

/// The names of the placeholders in a template.
fn placeholders(body: &Map<String, Value>) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    body.values().for_each(|it| collect(it, &mut found));
    found
}

fn collect<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::String(text) => found.extend(split(text).into_iter().filter_map(|it| it.1)),
        Value::Array(items) => items.iter().for_each(|it| collect(it, found)),
        Value::Object(fields) => fields.values().for_each(|it| collect(it, found)),
        _ => {}
    }
}

/// Splits a text into pieces, each with the name of the placeholder that follows it.
fn split(text: &str) -> Vec<(&str, Option<&str>)> {
    let (mut all, mut rest) = (Vec::new(), text);
    while let Some((before, behind)) = rest.split_once("{{")
        && let Some((name, after)) = behind.split_once("}}")
    {
        all.push((before, Some(name.trim())));
        rest = after;
    }
    all.push((rest, None));
    all
}

/// Replaces the placeholders. A text that consists of one placeholder alone becomes the
/// placeholder's value, which may have any type.
fn fill(value: &Value, values: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) => {
            let pieces = split(text);
            if let [("", Some(name)), ("", None)] = pieces[..] {
                return values.get(name).cloned().unwrap_or_default();
            }
            let mut filled = String::new();
            for (before, name) in pieces {
                filled += before;
                match name.and_then(|it| values.get(it)) {
                    Some(Value::String(it)) => filled += it,
                    Some(it) => filled += &it.to_string(),
                    None => {}
                }
            }
            Value::String(filled)
        }
        Value::Array(items) => items.iter().map(|it| fill(it, values)).collect(),
        Value::Object(fields) => {
            let each = fields.iter().map(|(name, it)| (name.clone(), fill(it, values)));
            Value::Object(each.collect())
        }
        it => it.clone(),
    }
}

#[cfg(test)]
mod tests {
    use pumphouse::reply::{Config, Parser, What};
    use serde_json::json;

    use super::*;

    fn filled(action: &str) -> Result<Option<String>, String> {
        let mut templates = Templates::default();
        let body = json!({"name": "fetch", "parameters": {"url": "{{url}}", "text": "{{n}} of 3"},
            "retry": 2});
        let Value::Object(body) = body else { panic!("no object") };
        templates.add("fetch_page", body);
        let mut found = Vec::new();
        Parser::new(Config::default()).feed(action, &mut |event| {
            if let What::Closed(it) = event.what {
                found.push(templates.filled(&it));
            }
        });
        found.remove(0)
    }

    #[track_caller]
    fn check(body: &str, expected: &str) {
        let text = match filled(&format!("<action id=\"a\">{body}</action>")) {
            Ok(it) => it.unwrap_or_default(),
            Err(why) => why,
        };
        assert_eq!(text, expected, "{body}");
    }

    #[test]
    fn a_template_is_filled_in() {
        check(
            r#"{"template": "fetch_page", "parameters": {"url": [1], "n": 2}, "timeout": 3}"#,
            r#"{"name":"fetch","parameters":{"text":"2 of 3","url":[1]},"retry":2,"timeout":3}"#,
        );
        check(r#"{"name": "echo"}"#, "");
    }

    #[test]
    fn mistakes_name_what_is_right() {
        check(
            r#"{"template": "fetch_pag"}"#,
            "there is no template \"fetch_pag\"; there are fetch_page; did you mean fetch_page?",
        );
        check(
            r#"{"template": "fetch_page", "parameters": {"url": "x"}}"#,
            "the template fetch_page needs the parameter n",
        );
        check(
            r#"{"template": "fetch_page", "parameters": {"url": "x", "n": 1, "ulr": 2}}"#,
            "the template fetch_page has no parameter ulr; did you mean url?",
        );
        check(
            r#"{"template": "fetch_page", "parameters": {"ulr": "x", "n": 1}}"#,
            "the template fetch_page needs the parameter url, and has no parameter ulr; did you \
             mean url?",
        );
        check(
            r#"{"template": "fetch_page", "parameters": {"m": 1}}"#,
            "the template fetch_page needs the parameters n, url, and has no parameter m",
        );
    }
}
