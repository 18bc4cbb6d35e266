//! The field `stream` of an action. An action with this field is called with each partial result of
//! another action. The listener `action` makes these calls.

use pumphouse::reply::{Body, Element, Kind};
use pumphouse::schema::json;
use serde_json::Value;

/// The name of the field in an action's body.
const FIELD: &str = "stream";

/// The error text for an action with the field in a `<foreach>`.
pub(super) const IN_FOREACH: &str = "stream is not for an action in a <foreach>, which is called \
                                     with each item; write it behind the block";

/// Takes the field `stream` out of an action's body. Returns the body without it, and its value.
/// None if the body has no such field.
///
/// # Errors
/// If the field's value is neither true nor false.
pub(super) fn taken(element: &Element<'_>) -> Result<Option<(String, bool)>, String> {
    // Only an action's body can have the field. The body of a tool call has the parameters alone.
    let Body::Json(text) = element.body else { return Ok(None) };
    if element.kind != Kind::Action || !text.contains(FIELD) {
        return Ok(None);
    }
    let Ok(Value::Object(mut body)) = json::read(text) else { return Ok(None) };
    let Some(said) = body.remove(FIELD) else { return Ok(None) };
    match said {
        Value::Bool(stream) => Ok(Some((json::text(&Value::Object(body)), stream))),
        it => Err(format!("{FIELD} takes true or false, not {it}")),
    }
}
