//! The form of native calls in the recorded text of a reply. A native call is one in the provider's
//! own protocol.

use pumphouse::model::Call;
use pumphouse::xml;

/// The beginning of a native call in the recorded text.
const OPEN: &str = "<tool_use";
/// The end of a native call. `CLOSE` ends with a line break. JSON escapes a line break within a
/// string, so no JSON string contains `CLOSE`.
const CLOSE: &str = "</tool_use>\n";

/// Writes a native call as the recorded text has it.
pub(super) fn tool_use(call: &Call) -> String {
    let mut text = String::from(OPEN);
    // A call without an id gets one later.
    let attributes = [("id", &call.id), ("name", &call.name)];
    for (name, value) in attributes.into_iter().filter(|(_, value)| !value.is_empty()) {
        text += &format!(" {name}=\"");
        xml::escape_attribute(value, &mut text);
        text.push('"');
    }
    text += &format!(">{}{CLOSE}", call.arguments);
    text
}

/// Splits a text at its first native call into the text before, the call, and the text after. None
/// if there is no such call.
pub(super) fn split(text: &str) -> Option<(&str, &str, &str)> {
    let begin = text.find(OPEN)?;
    let end = begin + text[begin..].find(CLOSE)? + CLOSE.len();
    Some((&text[..begin], &text[begin..end], &text[end..]))
}
