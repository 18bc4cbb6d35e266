//! Texts that references stand for, where a payload takes no text but what the text says. The value
//! of `calculate` is such a text, since no number of JSON holds every result.

use pumphouse::schema::{self, Schema, json};
use serde_json::Value;

use super::variables::{steps, whole};

/// Replaces the texts that the payload doesn't take by the numbers and truth values that they say.
/// `said` has the parameters as they were written, and `filled` with the values of the references.
/// None if that makes no payload.
pub(super) fn as_scalars(schema: &Schema, said: &Value, filled: &Value) -> Option<Value> {
    let errors = schema::from_json(schema, filled).err()?;
    let mut scalars = filled.clone();
    for error in &errors.all {
        let steps = steps(error.path.strip_prefix('$')?)?;
        let pointer: String = steps.iter().map(|it| format!("/{it}")).collect();
        let is_reference = said.pointer(&pointer)?.as_str().is_some_and(|it| whole(it).is_some());
        let value = scalars.pointer_mut(&pointer).filter(|_| is_reference)?;
        *value = json::read(value.as_str()?).ok().filter(|it| it.is_number() || it.is_boolean())?;
    }
    Some(scalars)
}

#[cfg(test)]
mod tests {
    use pumphouse::Name;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_a_number_where_the_payload_takes_no_text() {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" },
            "all": { "type": "array", "items": { "type": "boolean" } },
            "text": { "type": "string" } } });
        let schema = Schema::from_json_schema(Name::new("urn:x", "x"), &schema).unwrap();
        let said = json!({ "n": "$sum", "all": [true, "${is}"], "text": "$sum" });
        let filled = json!({ "n": "42", "all": [true, "false"], "text": "42" });
        let expected = json!({ "n": 42, "all": [true, false], "text": "42" });
        assert_eq!(as_scalars(&schema, &said, &filled), Some(expected));
        let check = |said: Value, filled: Value| {
            assert_eq!(as_scalars(&schema, &said, &filled), None, "{filled}");
        };
        check(json!({ "n": "$sum" }), json!({ "n": "many" }));
        check(json!({ "n": "$sum" }), json!({ "n": "18446744073709551616" }));
        check(json!({ "n": "42" }), json!({ "n": "42" }));
    }
}
