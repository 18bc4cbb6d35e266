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
    /// which of the agent's values are references. `command` returns the field of a called payload
    /// that lists a program and its arguments. None if the action names no template, or if the
    /// agent has no templates.
    pub(super) fn filled(
        &self,
        element: &Element<'_>,
        references: References,
        command: impl Fn(&str) -> Option<&'static str>,
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
        let command = template.get("name").and_then(Value::as_str).and_then(command);
        if let Some(field) = command {
            no_command(template, field, &values)
                .map_err(|why| format!("the template {name} makes no command: {why}"))?;
        }
        let command = command.map(|it| format!("/parameters/{it}/"));
        let (at, texts) = (String::new(), Vec::new());
        let mut filling = Filling { values, references, command, at, texts };
        let Value::Object(mut body) = filling.fill(&Value::Object(template.clone())) else {
            return Ok(None);
        };
        // What the agent wrote in place of a field of the template has no place of a template.
        let is_said = |at: &str| said.contains_key(at.split('/').nth(1).unwrap_or_default());
        filling.texts.retain(|it| !is_said(&it.at));
        body.extend(said);
        Ok(Some(Filled { body: json::text(&Value::Object(body)), texts: filling.texts }))
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

/// Checks the arguments of a program that a template lists in the parameter `field`.
///
/// # Errors
/// If a value would stand within a longer text, other than behind a name and `=`. Such a text may
/// be a shell's command. Also if a value that is an argument of its own begins with `-`, unless the
/// argument `--` comes before it.
fn no_command(
    template: &Map<String, Value>,
    field: &str,
    values: &Map<String, Value>,
) -> Result<(), String> {
    let arguments = template.get("parameters").and_then(|it| it.get(field));
    let mut is_behind_dashes = false;
    for text in arguments.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        is_behind_dashes |= text == "--";
        let Some(name) = argument_of_template(text)? else { continue };
        let value = values.get(name).and_then(Value::as_str).unwrap_or_default();
        if value.starts_with('-') && !is_behind_dashes {
            let why = "begins with `-`, and the program could take it for an option";
            return Err(format!("{name} {why}"));
        }
    }
    Ok(())
}

/// Checks one argument of a program in a template. Returns the name of the placeholder that the
/// argument consists of. None if it is another text.
///
/// # Errors
/// If a value would stand within a longer text, other than behind a name and `=`.
pub fn argument_of_template(text: &str) -> Result<Option<&str>, String> {
    let parts = split(text);
    let is_reference = |it: &Piece<'_>| matches!(it, Piece::Reference(_));
    let references = parts.iter().flat_map(|(before, _)| pieces(before)).filter(is_reference);
    let placeholders: Vec<&str> = parts.iter().filter_map(|it| it.1).collect();
    let count = references.count() + placeholders.len();
    let is_value = |it: &str| it.starts_with("{{") && it.ends_with("}}") || whole(it).is_some();
    let is_option = || {
        let (name, value) = text.split_once('=').unwrap_or_default();
        let is_word = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
        !name.is_empty() && name.chars().all(is_word) && is_value(value)
    };
    match (count, &placeholders[..]) {
        (0, _) => Ok(None),
        (1, [name]) if is_value(text) => Ok(Some(name)),
        (1, _) if is_value(text) || is_option() => Ok(None),
        _ => Err(format!(
            "a value is an argument of its own, or stands behind a name and `=`, and not within \
             `{text}`"
        )),
    }
}

/// A template while its placeholders are filled in.
struct Filling {
    values: Map<String, Value>,
    /// The beginning of the JSON pointers of a program's arguments. None if the template runs no
    /// program.
    command: Option<String>,
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

    /// Marks a value that is an argument of a program and nothing but a reference.
    fn mark_argument(&mut self, value: &Value) {
        let is_argument = self.command.as_ref().is_some_and(|it| self.at.starts_with(it));
        let text = value.as_str().filter(|_| is_argument).unwrap_or_default();
        if whole(text).is_some_and(|(it, _)| counts(self.references, &it)) {
            let references = Some(vec![0, text.len() as u64]);
            self.texts.push(TemplateText { at: self.at.clone(), references });
        }
    }

    fn fill_text(&mut self, text: &str) -> Value {
        let parts = split(text);
        if let [("", Some(name)), ("", None)] = parts[..] {
            let value = self.values.get(name).cloned().unwrap_or_default();
            self.mark_argument(&value);
            return value;
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
        let command = |name: &str| (name == "shell").then_some("command");
        let find = json!(["grep", "{{word}}", "--file={{file}}", "--", "{{path}}"]);
        add("find", json!({"name": "shell", "parameters": {"command": find}}));
        let run = json!(["sh", "-c", "echo {{word}}"]);
        add("run", json!({"name": "shell", "parameters": {"command": run}}));
        add("own", json!({"name": "shell", "parameters": {"command": ["sh", "-c", "echo ${a}"]}}));
        let undo = json!({"parameters": {"d": "no {{n}}"}});
        let texts = json!({"a": ["$$5 of ${sum.x}, {{n}}: $$"], "b": "$n", "c": "{{n}}"});
        add("tell", json!({"name": "tell", "parameters": texts, "compensate": undo}));
        let mut found = Vec::new();
        Parser::new(Config::default()).feed(action, &mut |event| {
            if let What::Closed(it) = event.what {
                found.push(templates.filled(&it, References::All, command));
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
            r#"{"name":"fetch","parameters":{"url":[1],"text":"2 of 3"},"retry":2,"timeout":3}"#,
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
                ("/parameters/a/0", Some(&[6, 14, 16, 18])),
                own,
                ("/compensate/parameters/d", Some(&[3, 5])),
            ],
        );
        check(
            "a $x",
            &[("/parameters/a/0", Some(&[6, 14])), own, ("/compensate/parameters/d", None)],
        );
        check("x", &[("/parameters/a/0", Some(&[6, 14])), own]);
    }

    #[test]
    fn a_value_is_a_whole_argument_of_a_command_and_no_option() {
        let find = |word: &str| {
            json!({"template": "find",
            "parameters": {"word": word, "file": "-f", "path": "-p"}})
        };
        check(
            &find("a $(b)").to_string(),
            r#"{"name":"shell","parameters":{"command":["grep","a $(b)","--file=-f","--","-p"]}}"#,
        );
        check(
            &find("-x").to_string(),
            "the template find makes no command: word begins with `-`, and the program could take \
             it for an option",
        );
        let within = "a value is an argument of its own, or stands behind a name and `=`, and not \
                      within";
        check(
            r#"{"template": "run", "parameters": {"word": "x"}}"#,
            &format!("the template run makes no command: {within} `echo {{{{word}}}}`"),
        );
        check(
            r#"{"template": "own"}"#,
            &format!("the template own makes no command: {within} `echo ${{a}}`"),
        );
    }

    #[test]
    fn mistakes_name_what_is_right() {
        check(
            r#"{"template": "fetch_pag"}"#,
            "there is no template \"fetch_pag\"; there are fetch_page, find, own, run, tell; did \
             you mean fetch_page?",
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
