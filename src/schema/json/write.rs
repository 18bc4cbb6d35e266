//! Writes JSON as text that XML can hold.

use serde_json::Value;

use crate::xml::is_character;

/// Returns the text of a JSON value. Characters that XML doesn't have are escaped, so that a
/// payload can hold the text and it is still the same value.
///
/// ```
/// # extern crate pumphouse_ground as pumphouse;
/// use pumphouse::schema::json::text;
///
/// assert_eq!(text(&serde_json::json!(["\u{FFFE}", "\u{1}"])), r#"["\ufffe","\u0001"]"#);
/// ```
#[must_use]
pub fn text(value: &Value) -> String {
    let text = value.to_string();
    // The writer of JSON escapes what is below a space, and only strings have other characters.
    match text.contains(|it| !is_character(it)) {
        true => text.replace('\u{FFFE}', "\\ufffe").replace('\u{FFFF}', "\\uffff"),
        false => text,
    }
}

/// Returns the text of a JSON value with the properties of each object in alphabetical order, for
/// digests and keys: values that are equal have the same text.
///
/// ```
/// # extern crate pumphouse_ground as pumphouse;
/// use pumphouse::schema::json::{read, sorted};
///
/// let value = read(r#"{"b": {"d": 1, "c": 2}, "a": 3}"#)?;
/// assert_eq!(sorted(&value), r#"{"a":3,"b":{"c":2,"d":1}}"#);
/// # Ok::<(), pumphouse::schema::json::Broken>(())
/// ```
#[must_use]
pub fn sorted(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    text(&value)
}
