//! Fills in the references of parameters and outputs.

use serde_json::Value;

use super::super::action::variables::{Piece, Reference, pieces, steps};

/// Returns the value that a name and a path lead to. None if there is no such value.
pub(super) type Find<'a> = &'a dyn Fn(&str, &[&str]) -> Option<Value>;

/// Replaces the references in the strings of a JSON value. A string that is nothing but one
/// reference becomes the reference's value, of any type. A reference that begins with none of
/// `names` is text. Also returns the references that lead to nothing. Such a reference becomes null
/// if it is the whole string, or else an empty text.
pub(super) fn filled(value: &Value, names: &[&str], find: Find<'_>) -> (Value, Vec<String>) {
    let mut missing = Vec::new();
    let filled = fill(value, names, find, &mut missing);
    (filled, missing)
}

fn fill(value: &Value, names: &[&str], find: Find<'_>, missing: &mut Vec<String>) -> Value {
    match value {
        Value::String(text) => fill_text(text, names, find, missing),
        Value::Array(items) => items.iter().map(|it| fill(it, names, find, missing)).collect(),
        Value::Object(properties) => {
            let each = properties.iter();
            let each = each.map(|(key, it)| (key.clone(), fill(it, names, find, missing)));
            Value::Object(each.collect())
        }
        it => it.clone(),
    }
}

fn fill_text(text: &str, names: &[&str], find: Find<'_>, missing: &mut Vec<String>) -> Value {
    let mut found = |reference: &Reference<'_>| {
        let path = steps(reference.path).unwrap_or_default();
        let value = find(reference.name, &path);
        if value.is_none() {
            missing.push(reference.whole.to_owned());
        }
        value.unwrap_or_default()
    };
    let is_ours = |reference: &Reference<'_>| names.contains(&reference.name);
    let pieces = pieces(text);
    if let [Piece::Reference(reference)] = &pieces[..]
        && is_ours(reference)
    {
        return found(reference);
    }
    let mut filled = String::new();
    for piece in &pieces {
        match piece {
            Piece::Reference(reference) if is_ours(reference) => match found(reference) {
                Value::String(text) => filled.push_str(&text),
                Value::Null => {}
                value => filled.push_str(&value.to_string()),
            },
            Piece::Reference(reference) => filled.push_str(reference.whole),
            Piece::Text(text) => filled.push_str(text),
        }
    }
    Value::String(filled)
}
