//! Reads the metadata that a model wrote, and checks them against the declared fields.

use pumphouse::limits::XmlLimits;
use pumphouse::reply::{Body, Element};
use pumphouse::schema::json;
use pumphouse::xml::{self, Profile};
use serde_json::Value;

use super::words::Metadata;
use super::{Field, Fields, Kind};

/// Error texts cut wrong names and values to this number of characters.
const TOLD_MAX: usize = 100;

/// An update of metadata that a model wrote: fields and their values.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataUpdate {
    fields: Vec<(String, Value)>,
    /// Whether the fields were written as XML elements. The values of elements are texts, whatever
    /// types the fields have.
    is_text: bool,
}

impl MetadataUpdate {
    /// Reads a `<metadata>` element of a reply.
    ///
    /// # Errors
    /// Fails if the body is neither a JSON object nor elements.
    pub fn read(element: &Element<'_>) -> Result<MetadataUpdate, String> {
        match element.body {
            Body::Json(text) => match json::read(text).map_err(|it| it.to_string())? {
                Value::Object(object) => {
                    Ok(MetadataUpdate { fields: object.into_iter().collect(), is_text: false })
                }
                it => Err(format!("the body is a JSON object, not {}", cut(&it.to_string()))),
            },
            Body::Elements(text) => {
                let element = xml::read(text, Profile::Wire, &XmlLimits::INSIDE);
                let element = element.map_err(|it| it.to_string())?;
                let field = |view: xml::View<'_>| {
                    (view.local().to_owned(), Value::String(view.text().into_owned()))
                };
                Ok(MetadataUpdate {
                    fields: element.elements().map(field).collect(),
                    is_text: true,
                })
            }
            _ => Err("the body is a JSON object, and it is empty".to_owned()),
        }
    }

    /// Checks the update against the declared fields. The result has the values to keep, and an
    /// error for each unknown field and each wrong value. If the fields are atomic, any error means
    /// that no value is kept.
    #[must_use]
    pub fn held_against(self, declared: &Fields, turn: u64) -> Metadata {
        let place = |name: &str| declared.all().position(|it| it.name() == name);
        let mut said = self.fields;
        said.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        let is_text = self.is_text;
        let values = said.into_iter().map(|(name, value)| {
            let value = match declared.get(&name).filter(|_| is_text) {
                Some(field) => typed(field, value),
                None => value,
            };
            (name, value)
        });
        Metadata { turn, ..declared.checked(values) }
    }
}

/// Reads a text as a value of the field's type. For types other than an enum or a string, the text
/// is JSON. A text that isn't JSON stays a text, which the field then refuses.
fn typed(field: &Field, value: Value) -> Value {
    let Value::String(text) = &value else { return value };
    let text = text.trim();
    let as_text = || Value::String(text.to_owned());
    match field.kind() {
        Kind::Enum(_) | Kind::String => as_text(),
        _ => json::read(text).unwrap_or_else(|_| as_text()),
    }
}

/// Shortens a text for an error, to `TOLD_MAX` characters.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(TOLD_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
