//! Fills in the references of parameters and outputs.

use serde_json::Value;

use super::super::action::filling::left;
use super::super::action::unresolved::FILLED_BYTES_MAX;
use super::super::action::variables::{Piece, Reference, pieces, steps};

/// Returns the value that a name and a path lead to. None if there is no such value.
pub(super) type Find<'a> = &'a dyn Fn(&str, &[&str]) -> Option<Value>;

/// A value whose references are replaced.
pub(super) struct Filled {
    pub(super) value: Value,
    /// The references that lead to nothing.
    pub(super) missing: Vec<String>,
    /// The first reference whose value would be more than [`FILLED_BYTES_MAX`] bytes together with
    /// those before it.
    too_large: Option<String>,
}

impl Filled {
    /// The value.
    ///
    /// # Errors
    /// If the values are too large together.
    pub(super) fn bounded(self) -> Result<(Value, Vec<String>), String> {
        match self.too_large {
            None => Ok((self.value, self.missing)),
            Some(it) => Err(format!(
                "{it} isn't filled in: the values are more than {FILLED_BYTES_MAX} bytes together \
                 with it"
            )),
        }
    }
}

/// Replaces the references in the strings of a JSON value. A string that is nothing but one
/// reference becomes the reference's value, of any type. A reference that begins with none of
/// `names` is text. A reference that leads to nothing becomes null if it is the whole string, or
/// else an empty text.
pub(super) fn filled(value: &Value, names: &[&str], find: Find<'_>) -> Filled {
    let mut filling =
        Filling { names, find, room: FILLED_BYTES_MAX, missing: Vec::new(), too_large: None };
    let value = filling.fill(value);
    Filled { value, missing: filling.missing, too_large: filling.too_large }
}

struct Filling<'a> {
    names: &'a [&'a str],
    find: Find<'a>,
    /// How many bytes of values may still come.
    room: usize,
    missing: Vec<String>,
    too_large: Option<String>,
}

impl Filling<'_> {
    fn fill(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill_text(text),
            Value::Array(items) => items.iter().map(|it| self.fill(it)).collect(),
            Value::Object(properties) => {
                let each = properties.iter();
                Value::Object(each.map(|(key, it)| (key.clone(), self.fill(it))).collect())
            }
            it => it.clone(),
        }
    }

    fn value(&mut self, reference: &Reference<'_>) -> Value {
        if self.too_large.is_some() {
            return Value::Null;
        }
        let path = steps(reference.path).unwrap_or_default();
        let Some(value) = (self.find)(reference.name, &path) else {
            self.missing.push(reference.whole.to_owned());
            return Value::Null;
        };
        match left(self.room, &value) {
            Some(room) => {
                self.room = room;
                value
            }
            None => {
                self.too_large = Some(reference.whole.to_owned());
                Value::Null
            }
        }
    }

    fn fill_text(&mut self, text: &str) -> Value {
        let pieces = pieces(text);
        let names = self.names;
        let is_ours = |reference: &Reference<'_>| names.contains(&reference.name);
        if let [Piece::Reference(reference)] = &pieces[..]
            && is_ours(reference)
        {
            return self.value(reference);
        }
        let mut filled = String::new();
        for piece in &pieces {
            match piece {
                Piece::Reference(reference) if is_ours(reference) => match self.value(reference) {
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
}
