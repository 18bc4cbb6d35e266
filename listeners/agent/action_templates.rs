//! The templates of an agent's actions. A template is an action with placeholders, such as
//! `{{url}}`. The agent calls the template by its name, with values for the placeholders.
//!
//! The author of a template may write references within its texts. A value that is nothing but a
//! reference stays one where it is filled into a longer text. The action marks the places of all
//! these references, because anywhere else only a whole text is one.

use std::collections::{BTreeMap, BTreeSet};

use pumphouse::reply::{Body, Element, Kind};
use pumphouse::schema::{json, nearest};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::action::parameters::{counts, push_step};
use super::super::action::variables::{Piece, pieces, whole};
use super::super::action::words::{References, TemplateText};

/// The field of an action's body that names a template.
const FIELD: &str = "template";

/// The body of an action that a template made.
#[derive(Debug, PartialEq)]
pub(super) struct Filled {
    /// The body as JSON.
    pub(super) body: String,
    /// The texts that the template made.
    pub(super) texts: Vec<TemplateText>,
}

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

    /// Fills in the template that an action names, and returns the action's body. `references` says
    /// which of the agent's values are references. None if the action names no template, or if the
    /// agent has no templates.
    pub(super) fn filled(
        &self,
        element: &Element<'_>,
        references: References,
    ) -> Result<Option<Filled>, String> {
        // Only an action's body can name a template. The body of a tool call has the parameters.
        let Body::Json(text) = element.body else { return Ok(None) };
        if self.is_empty() || element.kind != Kind::Action || !text.contains(FIELD) {
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
        let mut filling = Filling { values, references, at: String::new(), texts: Vec::new() };
        let Value::Object(mut body) = filling.fill(&Value::Object(template.clone())) else {
            return Ok(None);
        };
        // What the agent wrote in place of a field of the template has no place of a template.
        let is_said = |at: &str| said.contains_key(at.split('/').nth(1).unwrap_or_default());
        filling.texts.retain(|it| !is_said(&it.at));
        body.extend(said);
        Ok(Some(Filled { body: Value::Object(body).to_string(), texts: filling.texts }))
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

/// A template while its placeholders are filled in.
struct Filling {
    values: Map<String, Value>,
    /// Which of the values are references.
    references: References,
    /// The JSON pointer of the current place.
    at: String,
    /// The texts so far that have a `$`, and the references in them.
    texts: Vec<TemplateText>,
}

impl Filling {
    /// Replaces the placeholders. A text that consists of one placeholder alone becomes the
    /// placeholder's value, which may have any type.
    fn fill(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill_text(text),
            Value::Array(items) => {
                let each = items.iter().enumerate();
                each.map(|(number, it)| self.within(&number.to_string(), it)).collect()
            }
            Value::Object(fields) => {
                let each = fields.iter();
                Value::Object(
                    each.map(|(name, it)| (name.clone(), self.within(name, it))).collect(),
                )
            }
            it => it.clone(),
        }
    }

    fn within(&mut self, step: &str, value: &Value) -> Value {
        let before = self.at.len();
        push_step(&mut self.at, step);
        let filled = self.fill(value);
        self.at.truncate(before);
        filled
    }

    fn fill_text(&mut self, text: &str) -> Value {
        let parts = split(text);
        if let [("", Some(name)), ("", None)] = parts[..] {
            return self.values.get(name).cloned().unwrap_or_default();
        }
        let (mut filled, mut places) = (String::new(), Vec::new());
        let mut refer = |reference: &str, filled: &mut String| {
            let from = filled.len();
            *filled += reference;
            places.extend([from as u64, filled.len() as u64]);
        };
        for (before, name) in parts {
            for piece in pieces(before) {
                match piece {
                    Piece::Text(it) => filled += it,
                    Piece::Reference(it) => refer(it.whole, &mut filled),
                }
            }
            match name.and_then(|it| self.values.get(it)) {
                Some(Value::String(it)) => {
                    let counts = |(reference, _)| counts(self.references, &reference);
                    match whole(it).is_some_and(counts) {
                        true => refer(it, &mut filled),
                        false => filled += it,
                    }
                }
                Some(it) => filled += &it.to_string(),
                None => {}
            }
        }
        if filled.contains('$') {
            let references = Some(places).filter(|it| !it.is_empty());
            self.texts.push(TemplateText { at: self.at.clone(), references });
        }
        Value::String(filled)
    }
}

#[cfg(test)]
mod tests {
    use pumphouse::reply::{Config, Parser, What};
    use serde_json::json;

    use super::*;

    fn filled(action: &str) -> Result<Option<Filled>, String> {
        let mut templates = Templates::default();
        let mut add = |name: &str, body: Value| {
            let Value::Object(body) = body else { panic!("no object") };
            templates.add(name, body);
        };
        let parameters = json!({"url": "{{url}}", "text": "{{n}} of 3"});
        add("fetch_page", json!({"name": "fetch", "parameters": parameters, "retry": 2}));
        let texts = json!({"a": ["$$5 of ${sum.x}, {{n}}: $$"], "b": "$n", "c": "{{n}}"});
        add(
            "tell",
            json!({"name": "tell", "parameters": texts, "compensate": {"parameters": {"d": "no {{n}}"}}}),
        );
        let mut found = Vec::new();
        Parser::new(Config::default()).feed(action, &mut |event| {
            if let What::Closed(it) = event.what {
                found.push(templates.filled(&it, References::All));
            }
        });
        found.remove(0)
    }

    #[track_caller]
    fn check(body: &str, expected: &str) {
        let text = match filled(&format!("<action id=\"a\">{body}</action>")) {
            Ok(it) => it.map(|it| it.body).unwrap_or_default(),
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
    fn a_template_marks_its_references_and_those_that_are_whole_values() {
        #[track_caller]
        fn check(n: &str, expected: &[(&str, Option<&[u64]>)]) {
            let call = json!({"template": "tell", "parameters": {"n": n}});
            let it = filled(&format!("<action id=\"a\">{call}</action>")).unwrap().unwrap();
            let texts = it.texts.iter().map(|it| (&*it.at, it.references.as_deref()));
            assert_eq!(texts.collect::<Vec<_>>(), expected, "{}", it.body);
        }
        let own: (&str, Option<&[u64]>) = ("/parameters/b", Some(&[0, 2]));
        check(
            "$x",
            &[
                ("/compensate/parameters/d", Some(&[3, 5])),
                ("/parameters/a/0", Some(&[6, 14, 16, 18])),
                own,
            ],
        );
        check(
            "a $x",
            &[("/compensate/parameters/d", None), ("/parameters/a/0", Some(&[6, 14])), own],
        );
        check("x", &[("/parameters/a/0", Some(&[6, 14])), own]);
    }

    #[test]
    fn mistakes_name_what_is_right() {
        check(
            r#"{"template": "fetch_pag"}"#,
            "there is no template \"fetch_pag\"; there are fetch_page, tell; did you mean \
             fetch_page?",
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
