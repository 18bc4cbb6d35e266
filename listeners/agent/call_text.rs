//! The form of native calls in the recorded text of a reply. A native call is one in the provider's
//! own protocol. Its id is the provider's, of any characters; beside it stands an id of our own.

use std::collections::BTreeSet;

use pumphouse::model::Call;
use pumphouse::xml;

use super::super::action::read::is_id;
use super::escape;

/// The beginning of a native call in the recorded text.
const OPEN: &str = "<tool_use";
/// The end of a native call. `CLOSE` ends with a line break. JSON escapes a line break within a
/// string, so no JSON string contains `CLOSE`.
const CLOSE: &str = "</tool_use>\n";

/// The maximum length of an id of the provider's that is also our own.
const ID_MAX: usize = 64;

/// Our own id of a native call: the provider's if that is a name which no other call of the reply
/// has, and else one from the numbers of the turn and of the call.
pub(super) fn own_id(call: &Call, turn: u64, place: usize, taken: &BTreeSet<String>) -> String {
    let is_free = |it: &String| !taken.contains(it);
    let theirs = Some(&call.id).filter(|it| it.len() <= ID_MAX && is_id(it) && is_free(it));
    let mut numbered = (place..).map(|it| format!("call_{turn}_{it}"));
    theirs.cloned().or_else(|| numbered.find(is_free)).unwrap_or_default()
}

/// Writes a native call, whose own id is `id`, as the recorded text has it.
pub(super) fn tool_use(call: &Call, id: &str) -> String {
    let mut text = String::from(OPEN);
    let theirs = (call.id != id).then(|| escape::recorded(&call.id));
    let attributes = [("id", Some(id)), ("call", theirs.as_deref()), ("name", Some(&*call.name))];
    for (name, value) in attributes.into_iter().filter_map(|(name, it)| Some((name, it?))) {
        text += &format!(" {name}=\"");
        // A `>` would look like the end of the tag.
        let from = text.len();
        xml::escape_attribute(value, &mut text);
        let escaped = text.split_off(from).replace('>', "&gt;");
        text.push_str(&escaped);
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
