//! Makes scalars from the parts of a JSON Schema that describe simple values.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::super::scalar::trim;
use super::super::{Bound, Facets, Scalar, Word, Words};
use super::pattern::anchored;
use crate::xml::is_character;

/// A scalar, and the keywords of the original that the scalar doesn't express.
pub(super) struct Made {
    pub(super) scalar: Scalar,
    pub(super) lost: Vec<&'static str>,
}

/// Returns the scalar for a string.
pub(super) fn text(schema: &Map<String, Value>) -> Made {
    let mut lost = Vec::new();
    let count = |key: &str| schema.get(key).and_then(Value::as_u64).map(size);
    let mut facets = Facets {
        length_min: count("minLength").filter(|it| *it > 0),
        length_max: count("maxLength"),
        example: example(schema),
        ..Facets::NONE
    };
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        let theirs = anchored(pattern).map(|it| Cow::Owned(it.to_owned()));
        let with = Facets { pattern: theirs, ..facets.clone() };
        match with.pattern.is_some().then(|| Scalar::String.narrow(with)) {
            Some(Ok(scalar)) => return Made { scalar, lost },
            _ => lost.push("pattern"),
        }
    }
    if facets.example.as_ref().is_some_and(|it| it.chars().any(|it| !is_character(it))) {
        facets.example = None;
    }
    Made { scalar: narrowed(Scalar::String, facets), lost }
}

/// Returns the scalar for a whole number: a signed or unsigned integer of 64 bits.
pub(super) fn whole(schema: &Map<String, Value>) -> Made {
    let bound = |key: &str, to: fn(f64) -> f64| match schema.get(key) {
        Some(found) if found.is_i64() || found.is_u64() => {
            found.as_i64().map(i128::from).or(found.as_u64().map(i128::from))
        }
        Some(it) => it.as_f64().map(to).map(exact),
        None => None,
    };
    let above = bound("exclusiveMinimum", f64::floor).map(|it| it.saturating_add(1));
    let below = bound("exclusiveMaximum", f64::ceil).map(|it| it.saturating_sub(1));
    let min = bound("minimum", f64::ceil).into_iter().chain(above).max();
    let max = bound("maximum", f64::floor).into_iter().chain(below).min();
    let is_large = max.is_none_or(|it| it > i64::MAX.into());
    let base = if min.is_some_and(|it| it >= 0) && is_large { Scalar::U64 } else { Scalar::I64 };
    let facets = Facets {
        min: min.filter(|it| *it != 0 || base != Scalar::U64).map(Bound::Whole),
        max: max.map(Bound::Whole),
        example: example(schema),
        ..Facets::NONE
    };
    Made { scalar: narrowed(base, facets), lost: lost(schema, &["multipleOf"]) }
}

/// Returns the scalar for a number.
pub(super) fn number(schema: &Map<String, Value>) -> Made {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64).map(Bound::Float);
    let facets = Facets {
        min: bound("minimum"),
        max: bound("maximum"),
        example: example(schema),
        ..Facets::NONE
    };
    let lost = lost(schema, &["multipleOf", "exclusiveMinimum", "exclusiveMaximum"]);
    Made { scalar: narrowed(Scalar::F64, facets), lost }
}

/// Returns the scalar that accepts only these texts. Returns `None` for an empty list. Also returns
/// `None` if a text has white space at its ends, or a character that XML doesn't allow.
pub(super) fn words(texts: &[&str]) -> Option<Scalar> {
    let fits = |it: &&str| trim(it) == *it && it.chars().all(is_character);
    if texts.is_empty() || !texts.iter().all(fits) {
        return None;
    }
    let word = |it: &&str| Word { text: Cow::Owned((*it).to_owned()), doc: "".into() };
    let list = texts.iter().map(word).collect();
    Some(Scalar::Words(Cow::Owned(Words { name: "".into(), doc: "".into(), list })))
}

/// Returns the scalar for any JSON value.
pub(super) fn json(schema: &Map<String, Value>) -> Scalar {
    let example = given(schema).map(|it| Cow::Owned(it.to_string()));
    narrowed(Scalar::Json, Facets { example, ..Facets::NONE })
}

fn narrowed(base: Scalar, facets: Facets) -> Scalar {
    // Only an invalid pattern makes `narrow` fail, and these facets have no pattern.
    base.clone().narrow(facets).unwrap_or(base)
}

fn lost(schema: &Map<String, Value>, words: &[&'static str]) -> Vec<&'static str> {
    words.iter().copied().filter(|it| schema.contains_key(*it)).collect()
}

/// Returns the first example in the original, or else the default value. Returns `None` if
/// that value is null.
fn given(schema: &Map<String, Value>) -> Option<&Value> {
    let first = schema.get("examples").and_then(|it| it.get(0));
    first.or_else(|| schema.get("default")).filter(|it| !it.is_null())
}

fn example(schema: &Map<String, Value>) -> Option<Cow<'static, str>> {
    match given(schema)? {
        Value::String(it) => Some(Cow::Owned(it.clone())),
        it @ Value::Number(_) => Some(Cow::Owned(it.to_string())),
        _ => None,
    }
}

fn size(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

#[expect(clippy::cast_possible_truncation, reason = "a bound beyond them all stays beyond them")]
fn exact(number: f64) -> i128 {
    number as i128
}
