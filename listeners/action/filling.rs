//! Replaces references by their values, and bounds how much the values may be together: a text of
//! a model may refer to one large value many times.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::metadata::METADATA;
use super::unresolved::{FILLED_BYTES_MAX, Unresolved};
use super::variables::{Lookup, Piece, Reference, pieces, references, steps, steps_of};

/// A text whose references were replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved {
    /// The text.
    pub text: String,
    /// The references that were not replaced, and why.
    pub unresolved: Vec<Unresolved>,
}

/// What replacing the references of a response or of parameters has come to so far.
#[derive(Debug)]
#[non_exhaustive]
pub struct Filling {
    /// The references that were not replaced, and why.
    pub unresolved: Vec<Unresolved>,
    /// How many bytes of values may still come. 0 once a value was too large.
    room: usize,
}

impl Default for Filling {
    fn default() -> Filling {
        Filling { unresolved: Vec::new(), room: FILLED_BYTES_MAX }
    }
}

impl Filling {
    /// The value that replaces a reference. None if there is none, or if the values would be more
    /// than [`FILLED_BYTES_MAX`] with it. The reference is unresolved then.
    pub fn value<'a>(
        &mut self,
        reference: &Reference<'_>,
        lookup: &impl Fn(&str) -> Lookup<'a>,
    ) -> Option<Value> {
        match value_of(reference, lookup, self.room) {
            Ok(value) => {
                self.room = left(self.room, &value).unwrap_or_default();
                Some(value)
            }
            Err(unresolved) => {
                if unresolved.is_too_large {
                    self.room = 0;
                }
                self.unresolved.push(unresolved);
                None
            }
        }
    }
}

/// How many more bytes a character has once it is escaped.
const ESCAPE_BYTES: usize = 4;

/// How many characters of a text are escaped in XML.
fn escaped(text: &str) -> usize {
    text.bytes().filter(|it| matches!(it, b'<' | b'>' | b'&' | b'\r')).count()
}

/// What is left of so many bytes once a value is written as a text, about. None if the value has
/// more bytes.
pub fn left(room: usize, value: &Value) -> Option<usize> {
    match value {
        // A text that is too long in any case isn't searched.
        Value::String(it) => {
            room.checked_sub(it.len() + 2)?.checked_sub(ESCAPE_BYTES * escaped(it))
        }
        Value::Array(items) => {
            items.iter().try_fold(room.checked_sub(2)?, |room, it| left(room.checked_sub(1)?, it))
        }
        Value::Object(properties) => {
            properties.iter().try_fold(room.checked_sub(2)?, |room, (key, it)| {
                left(room.checked_sub(key.len() + 4)?, it)
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => room.checked_sub(4),
    }
}

/// Replaces the references in a text. A string is inserted as it is, any other value as JSON.
pub fn resolve<'a>(text: &str, lookup: impl Fn(&str) -> Lookup<'a>) -> Resolved {
    fill(&pieces(text), lookup)
}

/// Replaces the references among a text's pieces. Each name is looked up once.
pub fn fill<'a>(pieces: &[Piece<'_>], lookup: impl Fn(&str) -> Lookup<'a>) -> Resolved {
    let (mut text, mut filling) = (String::new(), Filling::default());
    fill_text(pieces, &lookup, &mut filling, &mut text);
    Resolved { text, unresolved: filling.unresolved }
}

/// Whether each reference among a text's pieces has a value. Each name is looked up once.
pub fn are_known<'a>(pieces: &[Piece<'_>], lookup: impl Fn(&str) -> Lookup<'a>) -> bool {
    let known = looked_up(pieces, &lookup);
    let lookup = |name: &str| known.get(name).map_or(Lookup::Unknown, Lookup::borrowed);
    references(pieces).all(|it| value_of(&it, &lookup, usize::MAX).is_ok())
}

/// What the names among a text's pieces stand for.
fn looked_up<'p, 'a>(
    pieces: &[Piece<'p>],
    lookup: &impl Fn(&str) -> Lookup<'a>,
) -> BTreeMap<&'p str, Lookup<'a>> {
    let mut known = BTreeMap::new();
    for it in references(pieces) {
        known.entry(it.name).or_insert_with(|| lookup(it.name));
    }
    known
}

/// Appends a text's pieces to `text`, with each reference replaced by its value.
fn fill_text<'a>(
    pieces: &[Piece<'_>],
    lookup: &impl Fn(&str) -> Lookup<'a>,
    filling: &mut Filling,
    text: &mut String,
) {
    let known = looked_up(pieces, lookup);
    let lookup = |name: &str| known.get(name).map_or(Lookup::Unknown, Lookup::borrowed);
    for piece in pieces {
        match piece {
            Piece::Text(it) => text.push_str(it),
            Piece::Reference(reference) => match filling.value(reference, &lookup) {
                Some(value) => put(&value, text),
                None => text.push_str(reference.whole),
            },
        }
    }
}

/// Replaces the references in the strings of a JSON value. A string that is nothing but one
/// reference becomes the reference's value, of any type. The names of properties stay as they are.
pub fn resolve_json<'a>(
    value: &Value,
    lookup: &impl Fn(&str) -> Lookup<'a>,
    filling: &mut Filling,
) -> Value {
    match value {
        Value::String(text) => {
            let pieces = pieces(text);
            if let [Piece::Reference(reference)] = &pieces[..] {
                return filling.value(reference, lookup).unwrap_or_else(|| value.clone());
            }
            let mut filled = String::new();
            fill_text(&pieces, lookup, filling, &mut filled);
            Value::String(filled)
        }
        Value::Array(items) => items.iter().map(|it| resolve_json(it, lookup, filling)).collect(),
        Value::Object(properties) => {
            let each = properties.iter();
            let each = each.map(|(key, it)| (key.clone(), resolve_json(it, lookup, filling)));
            Value::Object(each.collect())
        }
        it => it.clone(),
    }
}

/// The value of the reference. An error says that there is none, or that it has more bytes as a
/// text than `bytes_max`.
fn value_of<'a>(
    reference: &Reference<'_>,
    lookup: &impl Fn(&str) -> Lookup<'a>,
    bytes_max: usize,
) -> Result<Value, Unresolved> {
    let missing = |missing: Option<String>, steps: Vec<String>| Unresolved {
        reference: reference.whole.to_owned(),
        name: reference.name.to_owned(),
        missing,
        steps,
        is_too_large: false,
    };
    let says = |it: &str| Ok(Value::String(format!("[{}: {it}]", reference.name)));
    let known = match lookup(reference.name) {
        Lookup::Value(it) => it,
        Lookup::Failed => return says("failed"),
        Lookup::Skipped => return Ok(Value::Null),
        Lookup::Unavailable => return says("unavailable"),
        Lookup::Unknown => return Err(missing(None, Vec::new())),
    };
    let steps = steps(reference.path).unwrap_or_default();
    let is_unset = |path: &[&str]| known.at(path).is_ok_and(Value::is_null);
    // A declared field of metadata without a value is null.
    if reference.name == METADATA && (1..=steps.len()).any(|it| is_unset(&steps[..it])) {
        return Ok(Value::String(format!("[{METADATA}{}: not set]", reference.path)));
    }
    let found = known.at(&steps).map_err(|step| {
        let number = steps.iter().position(|it| *it == step).unwrap_or(0);
        let around = if number == 0 { None } else { known.at(&steps[..number]).ok() };
        missing(Some(step.to_owned()), around.map_or_else(|| known.steps(), steps_of))
    })?;
    match left(bytes_max, found) {
        Some(_) => Ok(found.clone()),
        None => Err(Unresolved { is_too_large: true, ..missing(None, Vec::new()) }),
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
    use std::borrow::Cow;

    use serde_json::json;

    use super::super::variables::{KnownValue, in_prose, names_in, names_in_prose};
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
        let mut filling = Filling::default();
        let expected = json!({
            "a": 7, "b": [[{"href": "a"}, "b"], "n: 7"], "$y": "$y", "c": "$y <b> ${y}"
        });
        assert_eq!(resolve_json(&value, &lookup, &mut filling), expected);
        assert!(filling.unresolved.is_empty());
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
        let mut filling = Filling::default();
        let json = resolve_json(&json!(["$fetch", "$weather"]), &lookup, &mut filling);
        assert_eq!(json, json!(["[fetch: failed]", "[weather: unavailable]"]));
        assert!(filling.unresolved.is_empty());
    }

    /// Checks the text that a response becomes, and the names that it refers to.
    #[track_caller]
    fn check_prose(text: &str, expected: &str, names: &[&str]) {
        assert_eq!(fill(&in_prose(text), lookup).text, expected);
        assert_eq!(names_in_prose(text), names, "{text}");
        for piece in in_prose(text) {
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

    #[test]
    fn values_are_filled_in_up_to_a_bound_in_bytes() {
        let large = |name: &str| match name {
            "large" => Lookup::Value(Cow::Owned(Value::String("<".repeat(1 << 18)).into())),
            _ => Lookup::Unknown,
        };
        let text = "${large} ".repeat(10_000);
        let resolved = fill(&pieces(&text), large);
        assert!(resolved.text.len() < FILLED_BYTES_MAX + text.len());
        let first = &resolved.unresolved[0];
        assert!(first.is_too_large && resolved.unresolved.len() > 9_980);
        let why = "${large} isn't filled in: the values are more than 8388608 bytes together";
        assert!(first.lost().starts_with(why), "{}", first.lost());
        // The bound is that of all texts together.
        let each: Vec<Value> = vec!["${large}".into(); 1_000];
        let mut filling = Filling::default();
        let filled = resolve_json(&Value::Array(each), &large, &mut filling);
        assert!(filled.to_string().len() < FILLED_BYTES_MAX + 10_000);
        assert!(filling.unresolved.len() > 900);
    }

    #[test]
    fn a_name_is_looked_up_once() {
        let count = std::cell::Cell::new(0);
        let lookup = |_: &str| {
            count.set(count.get() + 1);
            Lookup::Value(Cow::Owned(Value::from(7).into()))
        };
        assert_eq!(fill(&pieces(&"$y ".repeat(1_000)), lookup).text, "7 ".repeat(1_000));
        assert!(are_known(&pieces("$y ${y}"), lookup));
        assert_eq!(count.get(), 2);
    }

    #[test]
    fn a_reference_ends_within_a_bound() {
        let long = format!("${{y.{}}}", "a".repeat(2_000));
        check(&long, &long, &[]);
        // Megabytes of what may begin a reference are read once.
        let open = "${y".repeat(1 << 20);
        assert_eq!(pieces(&open), [Piece::Text(&open)]);
        let code = "`$y` $y ".repeat(1 << 18);
        assert_eq!(references(&in_prose(&code)).count(), 1 << 18);
    }
}
