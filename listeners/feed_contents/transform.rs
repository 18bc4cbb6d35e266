//! Transforms: they select and format the part of a source's answer that a feed shows.
//!
//! ```
//! # extern crate pumphouse_listeners as pumphouse;
//! use pumphouse::listeners::feed::{Definition, Source};
//! use pumphouse::listeners::feed::definition::Transform;
//!
//! let last = Transform::jsonpath("$.quotes[0].last").template("Last price: {{ $ }}");
//! let price = Definition::on_demand("price", Source::service("trading-api")).transform(last);
//! assert!(price.check().is_ok());
//! ```

use pumphouse::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use serde_json_path::JsonPath;

/// What a feed shows of its source's answer: a part of it, or a text with parts of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Transform {
    /// The part, as a JSONPath of RFC 9535; several matches become a JSON array.
    #[payload(example = "$.quotes[0].last")]
    #[serde(default)]
    pub jsonpath: Option<String>,
    /// A text in which `{{ PATH }}` stands for a part, and `{{ $ }}` for the whole.
    #[payload(example = "Last price: {{ $ }}")]
    #[serde(default)]
    pub template: Option<String>,
}

/// A piece of a template.
enum TemplatePiece<'a> {
    Text(&'a str),
    Path(&'a str),
}

impl Transform {
    /// Shows the part of the answer to which a JSONPath leads.
    #[must_use]
    pub fn jsonpath(path: impl Into<String>) -> Transform {
        Transform { jsonpath: Some(path.into()), template: None }
    }

    /// Shows a text in which `{{ PATH }}` stands for a part of the answer. If `jsonpath` is set,
    /// the template's paths begin at the part that `jsonpath` selects.
    #[must_use]
    pub fn template(self, text: impl Into<String>) -> Transform {
        Transform { template: Some(text.into()), ..self }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.jsonpath.is_none() && self.template.is_none() {
            return Err("transform: it needs a jsonpath, a template or both".to_owned());
        }
        self.each_path(|path| parsed(path).map(drop))
    }

    /// Checks a transform that an agent set. Each of its paths must lead to at most one place. A
    /// path to several places may take a long time on a large answer. The agent's reply may be
    /// under the influence of an attacker.
    ///
    /// # Errors
    /// Fails if a path may lead to several places, or if the template is malformed.
    pub(in super::super) fn check_of_agent(&self) -> Result<(), String> {
        self.each_path(|path| match leads_to_one(path) {
            true => Ok(()),
            false => Err(format!("{path} may lead to several places; an agent names one")),
        })
    }

    /// Checks each path. An error begins with the key of the path, such as `transform.jsonpath`.
    fn each_path(&self, check: impl Fn(&str) -> Result<(), String>) -> Result<(), String> {
        if let Some(path) = &self.jsonpath {
            check(path).map_err(|it| format!("transform.jsonpath: {it}"))?;
        }
        let all = pieces(self.template.as_deref().unwrap_or_default());
        let all = all.map_err(|it| format!("transform.template: {it}"))?;
        for piece in all {
            if let TemplatePiece::Path(path) = piece {
                check(path).map_err(|it| format!("transform.template: {it}"))?;
            }
        }
        Ok(())
    }

    /// The text that the feed shows of an answer. The answer may be JSON, JSON in a fenced block,
    /// or any other text. Paths other than `$` need JSON.
    ///
    /// # Errors
    /// Fails if a path leads to nothing in the answer. The text also says if the answer isn't JSON.
    pub(in super::super) fn apply(&self, answer: &str) -> Result<String, String> {
        let whole = read(answer);
        let whole = match &self.jsonpath {
            Some(path) => part(&whole, path)?,
            None => whole,
        };
        let Some(template) = &self.template else { return Ok(text(&whole)) };
        let shown = pieces(template)?.into_iter().map(|piece| match piece {
            TemplatePiece::Text(it) => Ok(it.to_owned()),
            TemplatePiece::Path(path) => part(&whole, path).map(|it| text(&it)),
        });
        shown.collect()
    }
}

/// Reads an answer as JSON. An answer that isn't JSON becomes a JSON string.
fn read(answer: &str) -> Value {
    let bare = answer.trim();
    let fenced = bare.strip_prefix("```json").and_then(|it| it.strip_suffix("```"));
    let json = serde_json::from_str(fenced.unwrap_or(bare));
    json.unwrap_or_else(|_| Value::String(answer.to_owned()))
}

/// A value as a feed shows it: a string as its text, and anything else as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => format!("{value:#}"),
        _ => value.to_string(),
    }
}

fn parsed(path: &str) -> Result<JsonPath, String> {
    JsonPath::parse(path).map_err(|error| format!("{path:?} is no JSONPath: {error}"))
}

/// Whether a path consists of names and indexes only. False if it has a wildcard, a filter, a
/// slice, a list of selectors, or a search at any depth (`..`).
fn leads_to_one(path: &str) -> bool {
    let (mut quote, mut is_escaped, mut last) = (None, false, ' ');
    for it in path.chars() {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some(_) if it == '\\' => is_escaped = true,
            Some(end) if it == end => quote = None,
            Some(_) => {}
            None if it == '\'' || it == '"' => quote = Some(it),
            None if matches!(it, '*' | '?' | ':' | ',') || (it == '.' && last == '.') => {
                return false;
            }
            None => {}
        }
        last = it;
    }
    true
}

fn part(whole: &Value, path: &str) -> Result<Value, String> {
    let found = parsed(path)?.query(whole).all();
    match (&*found, whole) {
        ([one], _) => Ok((*one).clone()),
        ([], Value::String(_)) => Err(format!("the answer isn't JSON, so {path} leads to nothing")),
        ([], _) => Err(format!("{path} leads to nothing in the answer")),
        (several, _) => Ok(Value::Array(several.iter().map(|it| (*it).clone()).collect())),
    }
}

fn pieces(template: &str) -> Result<Vec<TemplatePiece<'_>>, String> {
    let (mut all, mut rest) = (Vec::new(), template);
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((path, behind)) = after.split_once("}}") else {
            return Err("a {{ has no }}".to_owned());
        };
        all.push(TemplatePiece::Text(before));
        all.push(TemplatePiece::Path(path.trim()));
        rest = behind;
    }
    all.push(TemplatePiece::Text(rest));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTES: &str = r#"{"quotes": [{"last": 42.5}, {"last": 7}], "venue": "XETR"}"#;

    #[track_caller]
    fn check(transform: &Transform, answer: &str, shown: &str) {
        assert_eq!(transform.apply(answer).unwrap_or_else(|it| it), shown, "{transform:?}");
    }

    #[test]
    fn a_path_shows_a_part() {
        check(&Transform::jsonpath("$.quotes[0].last"), QUOTES, "42.5");
        check(&Transform::jsonpath("$.venue"), QUOTES, "XETR");
        check(&Transform::jsonpath("$.quotes[*].last"), QUOTES, "[\n  42.5,\n  7\n]");
        let fenced = format!("```json\n{QUOTES}\n```\n");
        check(&Transform::jsonpath("$.venue"), &fenced, "XETR");
    }

    #[test]
    fn a_template_shows_parts_in_a_text() {
        let line = Transform::default().template("{{ $.venue }}: {{$.quotes[0].last}} EUR");
        check(&line, QUOTES, "XETR: 42.5 EUR");
        let within = Transform::jsonpath("$.quotes[1]").template("Last: {{ $.last }}");
        check(&within, QUOTES, "Last: 7");
        check(
            &Transform::default().template("It says: {{ $ }}"),
            "all is well",
            "It says: all is well",
        );
    }

    #[test]
    fn a_path_to_nothing_is_an_error() {
        check(&Transform::jsonpath("$.price"), QUOTES, "$.price leads to nothing in the answer");
        let not_json = "the answer isn't JSON, so $.price leads to nothing";
        check(&Transform::jsonpath("$.price"), "all is well", not_json);
    }

    #[test]
    fn an_agent_names_one_place() {
        let of_agent = |it: Transform| it.check_of_agent();
        for path in ["$", "$.a.b", "$[0][-1]", "$['a*b,c']", "$[\"a..\\\"?\"].b", "$ [ 'it' ]"] {
            assert!(parsed(path).is_ok(), "{path}");
            assert_eq!(of_agent(Transform::jsonpath(path)), Ok(()), "{path}");
        }
        for path in ["$.*", "$[*]", "$..a", "$[0,0]", "$[1:]", "$[?@.a]", "$['a']..['b']"] {
            assert!(parsed(path).is_ok(), "{path}");
            let why = of_agent(Transform::jsonpath(path)).unwrap_err();
            assert!(why.contains("may lead to several places"), "{why}");
            let template = Transform::default().template(format!("a {{{{ {path} }}}}"));
            assert!(of_agent(template).is_err(), "{path}");
        }
    }

    #[test]
    fn a_wrong_transform_is_told_with_its_key() {
        let wrong = |it: Transform| it.check().unwrap_err();
        let none = "transform: it needs a jsonpath, a template or both";
        assert_eq!(wrong(Transform::default()), none);
        assert!(wrong(Transform::jsonpath("quotes")).starts_with("transform.jsonpath: \"quotes\""));
        let open = Transform::default().template("{{ $.a");
        assert_eq!(wrong(open), "transform.template: a {{ has no }}");
        let path = Transform::default().template("{{ a }}");
        assert!(wrong(path).starts_with("transform.template: \"a\" is no JSONPath"));
    }
}
