//! The named values of an expression.

use std::collections::BTreeMap;

use pumphouse::wire::Json;
use serde_json::Value;

use super::Problem;
use super::function;
use super::number::{Number, number_length};

/// Maps the names in an expression to their values.
pub(super) type Values = BTreeMap<String, Number>;

/// The maximum number of characters of a wrong value that an error repeats.
const FOUND_CHARACTERS_MAX: usize = 32;

/// Reads named values. A value is a number, or a text that is a number.
pub(super) fn read(given: &BTreeMap<String, Json>) -> Result<Values, Problem> {
    given.iter().map(|(name, Json(value))| Ok((named(name)?, number(name, value)?))).collect()
}

/// Checks the name of a value: a word that isn't that of a function or a constant.
fn named(name: &str) -> Result<String, Problem> {
    let wrong = |expected: &str| Problem::Value {
        name: name.to_owned(),
        found: format!("the name `{}`", cut(name)),
        expected: expected.to_owned(),
    };
    let begins = name.starts_with(|it: char| it.is_alphabetic() || it == '_');
    if !begins || !name.chars().all(|it| it.is_alphanumeric() || it == '_') {
        return Err(wrong("a name of letters, digits and _"));
    }
    if function::find(name).is_some() || function::constant(name).is_some() {
        return Err(wrong("a name that isn't a function's or a constant's"));
    }
    Ok(name.to_owned())
}

fn number(name: &str, value: &Value) -> Result<Number, Problem> {
    let text = match value {
        Value::String(it) => it.clone(),
        it => it.to_string(),
    };
    let (is_below_zero, digits) = match text.trim() {
        it if it.starts_with(['-', '−']) => (true, it.trim_start_matches(['-', '−'])),
        it => (false, it.strip_prefix('+').unwrap_or(it)),
    };
    let is_number = !digits.is_empty() && number_length(digits) == digits.len() && digits != ".";
    let read = is_number.then(|| Number::read(digits)).flatten();
    let read = read.map(|it| if is_below_zero { it.negate() } else { it });
    read.ok_or_else(|| Problem::Value {
        name: name.to_owned(),
        found: format!("`{}`", cut(&text)),
        expected: "a number".to_owned(),
    })
}

fn cut(text: &str) -> String {
    text.chars().take(FOUND_CHARACTERS_MAX).collect()
}
