//! References in responses and in texts of authors: `$name`, `${name}` and
//! `${name.path[0].field}`. References are replaced by results of actions, contents of feeds,
//! fields of metadata and items of lists. [`parameters`](super::parameters) has the rules for what
//! a model writes as parameters.
//!
//! A reference to an unknown name stays as it is written. Inserted text is never searched for
//! references. `$$` becomes `$`, and `$5` is text. In the Markdown code of a response, every `$` is
//! text.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use pumphouse::reply::Reading;
use serde_json::Value;

use super::super::metadata::METADATA;
pub use super::unresolved::Unresolved;

/// The result of looking up a name.
#[derive(Clone, Debug, PartialEq)]
// The enum is exhaustive, since code that replaces references must handle each variant.
#[expect(clippy::large_enum_variant, reason = "a lookup lives only until its value is used")]
pub enum Lookup<'a> {
    /// A value.
    Value(Cow<'a, KnownValue>),
    /// An action that ended without success. A reference to such an action `fetch` becomes
    /// `[fetch: failed]`.
    Failed,
    /// An action that didn't run because of its condition, or that failed with `on_error` `skip`. A
    /// reference to it becomes null, with any path.
    Skipped,
    /// A feed of which the turn's prompt showed nothing. A reference to such a feed `weather`
    /// becomes `[weather: unavailable]`.
    Unavailable,
    /// Nothing has the name, or the action with this name isn't done. The reference stays as it is
    /// written.
    Unknown,
}

impl Lookup<'_> {
    /// The same result, with a borrowed value.
    #[must_use]
    pub fn borrowed(&self) -> Lookup<'_> {
        match self {
            Lookup::Value(it) => Lookup::Value(Cow::Borrowed(it)),
            Lookup::Failed => Lookup::Failed,
            Lookup::Skipped => Lookup::Skipped,
            Lookup::Unavailable => Lookup::Unavailable,
            Lookup::Unknown => Lookup::Unknown,
        }
    }
}

/// A text whose references were replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved {
    /// The text.
    pub text: String,
    /// The references that were not replaced, and why.
    pub unresolved: Vec<Unresolved>,
}

/// The value of a name, and the payload that the value was taken from.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct KnownValue {
    /// The value that replaces a reference without a path.
    pub value: Value,
    /// The whole payload as JSON. `${name.field}` refers to a field of this payload, if there is
    /// such a field. None if the value is the whole payload.
    pub fields: Option<Value>,
    /// The data for which the value stands, if the payload has such data.
    pub body: Option<Value>,
    /// The names of the fields that the payload may have and lacks. No path leads into the data by
    /// such a name, so that nothing in the data passes for a field of the payload.
    pub missing: Vec<String>,
}

/// The step that leads into what a server said, and past the fields of the payload.
const BODY: &str = "body";

impl From<Value> for KnownValue {
    fn from(value: Value) -> KnownValue {
        KnownValue { value, ..KnownValue::default() }
    }
}

impl KnownValue {
    /// The steps with which a path into this value may begin.
    fn steps(&self) -> Vec<String> {
        let besides = self.fields.iter().chain(&self.body).flat_map(steps_of);
        let all: BTreeSet<String> = steps_of(&self.value).into_iter().chain(besides).collect();
        all.into_iter().collect()
    }

    /// The part to which a path leads. A path that begins with a field of the payload leads into
    /// the payload. Any other path leads into the value, or into the data for which it stands, and
    /// so does a path that begins with `body`.
    ///
    /// # Errors
    /// If there is no such part. The error is the first step that leads nowhere.
    pub fn at<'s>(&self, path: &[&'s str]) -> Result<&Value, &'s str> {
        let (Some(fields), Some((first, behind))) = (&self.fields, path.split_first()) else {
            return along(&self.value, path);
        };
        if step_into(fields, first).is_some() {
            return along(fields, path);
        }
        if self.missing.iter().any(|it| it == first) {
            return Err(first);
        }
        let body = self.body.as_ref().unwrap_or(&self.value);
        match (*first, behind) {
            (BODY, []) => Ok(step_into(body, BODY).unwrap_or(body)),
            (BODY, behind) => {
                along(body, behind).or_else(|step| along(body, path).map_err(|_| step))
            }
            _ => along(body, path).or_else(|_| along(&self.value, path)),
        }
    }
}

/// Replaces the references in a text. A string is inserted as it is, any other value as JSON.
pub fn resolve<'a>(text: &str, lookup: impl Fn(&str) -> Lookup<'a>) -> Resolved {
    fill(&pieces(text), lookup)
}

/// Replaces the references among a text's pieces.
pub fn fill<'a>(pieces: &[Piece<'_>], lookup: impl Fn(&str) -> Lookup<'a>) -> Resolved {
    let mut resolved = Resolved::default();
    for piece in pieces {
        match piece {
            Piece::Text(it) => resolved.text.push_str(it),
            Piece::Reference(reference) => match reference.value(&lookup) {
                Ok(value) => put(&value, &mut resolved.text),
                Err(unresolved) => {
                    resolved.text.push_str(reference.whole);
                    resolved.unresolved.push(unresolved);
                }
            },
        }
    }
    resolved
}

/// Replaces the references in the strings of a JSON value. A string that is nothing but one
/// reference becomes the reference's value, of any type. The names of properties stay as they are.
pub fn resolve_json<'a>(
    value: &Value,
    lookup: &impl Fn(&str) -> Lookup<'a>,
    unresolved: &mut Vec<Unresolved>,
) -> Value {
    match value {
        Value::String(text) => {
            if let [Piece::Reference(reference)] = pieces(text)[..] {
                return reference.value(lookup).unwrap_or_else(|error| {
                    unresolved.push(error);
                    value.clone()
                });
            }
            let resolved = resolve(text, lookup);
            unresolved.extend(resolved.unresolved);
            Value::String(resolved.text)
        }
        Value::Array(items) => {
            items.iter().map(|it| resolve_json(it, lookup, unresolved)).collect()
        }
        Value::Object(properties) => {
            let each = properties.iter();
            let each = each.map(|(key, it)| (key.clone(), resolve_json(it, lookup, unresolved)));
            Value::Object(each.collect())
        }
        it => it.clone(),
    }
}

/// The names that a text refers to.
#[must_use]
pub fn names(text: &str) -> Vec<&str> {
    names_among(&pieces(text))
}

/// The names that a response refers to.
#[must_use]
pub fn names_in_prose(text: &str, reading: Reading) -> Vec<&str> {
    names_among(&in_prose(text, reading))
}

fn names_among<'a>(pieces: &[Piece<'a>]) -> Vec<&'a str> {
    references(pieces).map(|it| it.name).collect()
}

/// The names that the texts of a JSON value refer to.
pub fn names_in<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    let mut references = Vec::new();
    references_in(value, &mut references);
    found.extend(references.iter().map(|it| it.name));
}

/// The references in the texts of a JSON value.
pub fn references_in<'a>(value: &'a Value, found: &mut Vec<Reference<'a>>) {
    match value {
        Value::String(text) => found.extend(references(&pieces(text))),
        Value::Array(items) => items.iter().for_each(|it| references_in(it, found)),
        Value::Object(properties) => properties.values().for_each(|it| references_in(it, found)),
        _ => {}
    }
}

/// The references among a text's pieces.
pub fn references<'p, 'a: 'p>(pieces: &'p [Piece<'a>]) -> impl Iterator<Item = Reference<'a>> + 'p {
    pieces.iter().filter_map(|it| match it {
        Piece::Reference(it) => Some(*it),
        Piece::Text(_) => None,
    })
}

/// A piece of a text. Concatenated, the pieces give the text, with each escaped `$$` as `$`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// The enum is exhaustive, since code that replaces references must handle each variant.
pub enum Piece<'a> {
    /// Text.
    Text(&'a str),
    /// A reference. If nothing has its name, the reference stays in the text.
    Reference(Reference<'a>),
}

/// A reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference<'a> {
    /// The position of the reference in the text, in bytes.
    pub at: usize,
    /// The whole reference as it is written.
    pub whole: &'a str,
    /// The name in the reference.
    pub name: &'a str,
    /// The path after the name, such as `.title`. May be empty.
    pub path: &'a str,
}

/// Splits a response into pieces. In fences and code spans of its Markdown, nothing is a reference.
/// `reading` has the rules by which code is recognised.
#[must_use]
pub fn in_prose(text: &str, reading: Reading) -> Vec<Piece<'_>> {
    let code = if text.contains('$') { reading.code_ranges(text) } else { Vec::new() };
    split(text, &code)
}

/// Splits a text that isn't Markdown into pieces.
#[must_use]
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    split(text, &[])
}

fn split<'a>(text: &'a str, code: &[Range<usize>]) -> Vec<Piece<'a>> {
    let (mut all, mut from, mut at) = (Vec::new(), 0, 0);
    while let Some(found) = text[at..].find('$') {
        let dollar = at + found;
        let rest = &text[dollar + 1..];
        at = dollar + 1;
        if code.iter().any(|it| it.contains(&dollar)) {
            continue;
        }
        if rest.starts_with('$') {
            all.push(Piece::Text(&text[from..at]));
            at += 1;
            from = at;
        } else if let Some(reference) = reference(text, dollar) {
            all.push(Piece::Text(&text[from..dollar]));
            all.push(Piece::Reference(reference));
            at = dollar + reference.whole.len();
            from = at;
        }
    }
    all.push(Piece::Text(&text[from..]));
    all.retain(|it| !matches!(it, Piece::Text("")));
    all
}

/// The reference that begins with the `$` at `at`. None if no reference begins there.
fn reference(text: &str, at: usize) -> Option<Reference<'_>> {
    let text = &text[at..];
    let rest = &text[1..];
    let Some(braced) = rest.strip_prefix('{') else {
        let word = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let name = &rest[..rest.find(|it| !word(it)).unwrap_or(rest.len())];
        let begins = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
        return begins.then(|| Reference { at, whole: &text[..=name.len()], name, path: "" });
    };
    let inner = &braced[..braced.find('}')?];
    let (name, path) = inner.split_at(inner.find(['.', '[']).unwrap_or(inner.len()));
    let word = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | ':');
    let begins = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    (begins && name.chars().all(word) && steps(path).is_some()).then(|| Reference {
        at,
        whole: &text[..inner.len() + 3],
        name,
        path,
    })
}

/// The steps of a path such as `.title` or `[0]`. `.0` means the same as `[0]`. None if the text
/// isn't a path.
#[must_use]
pub fn steps(path: &str) -> Option<Vec<&str>> {
    let (mut all, mut rest) = (Vec::new(), path);
    while !rest.is_empty() {
        let (step, behind) = if let Some(dotted) = rest.strip_prefix('.') {
            dotted.split_at(dotted.find(['.', '[']).unwrap_or(dotted.len()))
        } else {
            let (number, behind) = rest.strip_prefix('[')?.split_once(']')?;
            number.bytes().all(|it| it.is_ascii_digit()).then_some((number, behind))?
        };
        if step.is_empty() {
            return None;
        }
        all.push(step);
        rest = behind;
    }
    Some(all)
}

impl<'t> Reference<'t> {
    /// The field of the agent's metadata to which the reference leads, such as `status` for
    /// `${metadata.status}`. None for any other reference.
    #[must_use]
    pub fn metadata_field(&self) -> Option<&'t str> {
        let path = steps(self.path).filter(|_| self.name == METADATA)?;
        path.first().copied()
    }

    /// The value of the reference.
    pub(super) fn value<'a>(
        &self,
        lookup: &impl Fn(&str) -> Lookup<'a>,
    ) -> Result<Value, Unresolved> {
        let missing = |missing: Option<String>, steps: Vec<String>| Unresolved {
            reference: self.whole.to_owned(),
            name: self.name.to_owned(),
            missing,
            steps,
        };
        let says = |it: &str| Ok(Value::String(format!("[{}: {it}]", self.name)));
        let known = match lookup(self.name) {
            Lookup::Value(it) => it,
            Lookup::Failed => return says("failed"),
            Lookup::Skipped => return Ok(Value::Null),
            Lookup::Unavailable => return says("unavailable"),
            Lookup::Unknown => return Err(missing(None, Vec::new())),
        };
        let steps = steps(self.path).unwrap_or_default();
        let is_unset = |path: &[&str]| known.at(path).is_ok_and(Value::is_null);
        // A declared field of metadata without a value is null.
        if self.name == METADATA && (1..=steps.len()).any(|it| is_unset(&steps[..it])) {
            return Ok(Value::String(format!("[{METADATA}{}: not set]", self.path)));
        }
        known.at(&steps).cloned().map_err(|step| {
            let number = steps.iter().position(|it| *it == step).unwrap_or(0);
            let around = if number == 0 { None } else { known.at(&steps[..number]).ok() };
            missing(Some(step.to_owned()), around.map_or_else(|| known.steps(), steps_of))
        })
    }
}

/// The part of a value that a path leads to. An error is the first step that leads nowhere.
fn along<'v, 's>(value: &'v Value, path: &[&'s str]) -> Result<&'v Value, &'s str> {
    path.iter().try_fold(value, |value, step| step_into(value, step).ok_or(*step))
}

/// The steps that lead into a value.
fn steps_of(value: &Value) -> Vec<String> {
    match value {
        Value::Object(properties) => properties.keys().cloned().collect(),
        Value::Array(items) => match items.len() {
            0 => Vec::new(),
            1 => vec!["[0]".to_owned()],
            count => vec![format!("[0] to [{}]", count - 1)],
        },
        _ => Vec::new(),
    }
}

/// Returns a text that is nothing but a reference, or nothing but an escaped one such as `$$name`.
/// The flag says whether it is escaped.
#[must_use]
pub fn whole(text: &str) -> Option<(Reference<'_>, bool)> {
    let is_escaped = text.starts_with("$$");
    let text = &text[usize::from(is_escaped)..];
    let found = text.starts_with('$').then(|| reference(text, 0)).flatten();
    found.filter(|it| it.whole.len() == text.len()).map(|it| (it, is_escaped))
}

/// The part of a value that one step leads to.
#[must_use]
pub fn step_into<'a>(value: &'a Value, step: &str) -> Option<&'a Value> {
    match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        it => it.get(step),
    }
}

/// Returns the list of a `foreach` block as a reference. A list without `$` is a bare name, and
/// gets `${` and `}` around it. None if the list is written as JSON.
#[must_use]
pub fn list_reference(list: &str) -> Option<String> {
    let list = list.trim();
    match () {
        () if list.starts_with('[') => None,
        () if list.starts_with('$') => Some(list.to_owned()),
        () => Some(format!("${{{list}}}")),
    }
}

/// Appends a value to a text.
pub(super) fn put(value: &Value, text: &mut String) {
    match value {
        Value::String(it) => text.push_str(it),
        it => text.push_str(&it.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lookup(name: &str) -> Lookup<'static> {
        let value = match name {
            "x" => json!("$y <b> ${y}"),
            "y" => json!(7),
            "page" => json!({"title": "T", "links": [{"href": "a"}, "b"], "n": null}),
            "my-id" => json!(true),
            "sum" => {
                let fields = Some(json!({"value": "42"}));
                let value = json!("42");
                let known = KnownValue { value, fields, ..KnownValue::default() };
                return Lookup::Value(Cow::Owned(known));
            }
            "found" => {
                let value = json!({"hits": ["a"], "took": "inside", "next": 5});
                let fields = Some(json!({"took": 7, "by": {"name": "ada"}, "all": value}));
                let missing = vec!["next".to_owned()];
                let known = KnownValue { value, fields, missing, ..KnownValue::default() };
                return Lookup::Value(Cow::Owned(known));
            }
            "fetch" => return Lookup::Failed,
            "weather" => return Lookup::Unavailable,
            _ => return Lookup::Unknown,
        };
        Lookup::Value(Cow::Owned(value.into()))
    }

    #[track_caller]
    fn check(text: &str, expected: &str, unresolved: &[&str]) {
        let resolved = resolve(text, lookup);
        assert_eq!(resolved.text, expected);
        let told: Vec<&str> = resolved.unresolved.iter().map(|it| &*it.reference).collect();
        assert_eq!(told, unresolved, "{text}");
    }

    #[test]
    fn a_text_has_its_values_put_in_once() {
        check("", "", &[]);
        check("none", "none", &[]);
        check("**$y**.", "**7**.", &[]);
        check("${y}th", "7th", &[]);
        check("$x!", "$y <b> ${y}!", &[]);
        check("$page", r#"{"title":"T","links":[{"href":"a"},"b"],"n":null}"#, &[]);
        check("${page.title} ${page.links[0].href} ${page.links.1}", "T a b", &[]);
        check("${my-id} $y-id $y.z", "true 7-id 7.z", &[]);
    }

    #[test]
    fn a_name_is_the_value_and_a_path_leads_into_it_or_else_into_its_payload() {
        check("$sum ${sum} ${sum.value}", "42 42 42", &[]);
        check("${sum.turn}", "${sum.turn}", &["${sum.turn}"]);
        check("${found.hits[0]} ${found.by.name} ${found.all.hits}", "a ada [\"a\"]", &[]);
        check("${found.took}", "7", &[]);
        check("${found.body.took}", "inside", &[]);
        // What a server says passes for no field of the answer, also for one that isn't there.
        check("${found.next} ${found.body.next}", "${found.next} 5", &["${found.next}"]);
    }

    #[test]
    fn what_is_no_reference_stays() {
        check("$5 and $ and 5$", "$5 and $ and 5$", &[]);
        check("$$y $$$y $$$$", "$y $7 $$", &[]);
        check("${} ${5} ${a b} ${y ${y}", "${} ${5} ${a b} ${y 7", &[]);
        check("${y[x]} ${y.} ${y[0}", "${y[x]} ${y.} ${y[0}", &[]);
        check("£$é", "£$é", &[]);
    }

    #[test]
    fn what_nothing_is_called_stays_and_is_told() {
        check("$nope ${nope.a} $y", "$nope ${nope.a} 7", &["$nope", "${nope.a}"]);
        check(
            "${page.links[9]} ${page.title.x}",
            "${page.links[9]} ${page.title.x}",
            &["${page.links[9]}", "${page.title.x}"],
        );
        let told = resolve("$pgae", lookup).unresolved.remove(0);
        let advised = told.advised(["page", "y"].into_iter());
        let text = "$pgae stays as it is: nothing is called pgae; did you mean page?";
        assert_eq!(advised, text);
    }

    #[test]
    fn a_whole_reference_keeps_its_type() {
        let value = json!({"a": "$y", "b": ["${page.links}", "n: $y"], "$y": "$$y", "c": "$x"});
        let mut unresolved = Vec::new();
        let expected = json!({
            "a": 7, "b": [[{"href": "a"}, "b"], "n: 7"], "$y": "$y", "c": "$y <b> ${y}"
        });
        assert_eq!(resolve_json(&value, &lookup, &mut unresolved), expected);
        assert!(unresolved.is_empty());
        let mut found = Vec::new();
        names_in(&value, &mut found);
        assert_eq!(found, ["y", "page", "y", "x"]);
    }

    #[test]
    fn what_failed_or_is_unavailable_says_so() {
        check(
            "$fetch ${fetch.title}; $weather.",
            "[fetch: failed] [fetch: failed]; [weather: unavailable].",
            &[],
        );
        let mut unresolved = Vec::new();
        let json = resolve_json(&json!(["$fetch", "$weather"]), &lookup, &mut unresolved);
        assert_eq!(json, json!(["[fetch: failed]", "[weather: unavailable]"]));
        assert!(unresolved.is_empty());
    }

    /// Checks the text that a response becomes, and the names that it refers to.
    #[track_caller]
    fn check_prose(text: &str, expected: &str, names: &[&str]) {
        assert_eq!(fill(&in_prose(text, Reading::default()), lookup).text, expected);
        assert_eq!(names_in_prose(text, Reading::default()), names, "{text}");
        for piece in in_prose(text, Reading::default()) {
            let Piece::Reference(reference) = piece else { continue };
            assert!(text[reference.at..].starts_with(reference.whole), "{text}");
        }
    }

    #[test]
    fn in_the_code_of_a_response_nothing_refers() {
        check_prose("$y `$y ${y} $` $y", "7 `$y ${y} $` 7", &["y", "y"]);
        check_prose("```sh\n$y ${y}\n```\n$y", "```sh\n$y ${y}\n```\n7", &["y"]);
        check_prose("$$y `$$y $$ $${y}`", "$y `$$y $$ $${y}`", &[]);
        check_prose("`$nope ${nope}` $nope", "`$nope ${nope}` $nope", &["nope"]);
        check_prose("~~~\n$5 $y", "~~~\n$5 $y", &[]);
        // The texts of feeds and workflows are not Markdown, so they have no code.
        check("`$y`", "`7`", &[]);
    }

    #[test]
    fn a_field_of_metadata_without_a_value_says_so() {
        let fields = json!({"mood": null, "place": {"city": "Rome"}});
        let known =
            KnownValue { value: fields.clone(), fields: Some(fields), ..KnownValue::default() };
        let lookup = |name: &str| match name {
            METADATA => Lookup::Value(Cow::Borrowed(&known)),
            "off" => Lookup::Skipped,
            _ => Lookup::Unknown,
        };
        let text = "${metadata.mood} ${metadata.mood.x} ${metadata.place.city} ${off.a} $off";
        let resolved = resolve(text, lookup);
        let expected = "[metadata.mood: not set] [metadata.mood.x: not set] Rome null null";
        assert_eq!(resolved.text, expected);
        assert_eq!(resolved.unresolved, []);
        let lost = resolve("${metadata.moo} ${metadata.place.town}", lookup).unresolved;
        let told: Vec<String> = lost.iter().map(Unresolved::lost).collect();
        let expected = [
            "${metadata.moo} leads to nothing: your metadata has no moo; it has mood, place; did \
             you mean mood?",
            "${metadata.place.town} leads to nothing: your metadata has no town; it has city",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_path_that_leads_to_nothing_names_the_paths_that_exist() {
        let check = |reference: &str, why: &str| {
            let said = resolve(reference, lookup).unresolved.remove(0).lost();
            assert_eq!(said, format!("{reference} leads to nothing: the result of {why}"));
        };
        check("${sum.valu}", "sum has no valu; it has value; did you mean value?");
        check("${page.links[2]}", "page has no 2; it has [0] to [1]");
        check("${y.size}", "y has no size, nor any other part");
    }
}
