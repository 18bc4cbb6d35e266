//! Converts a server's answer to a call into payloads.

use pumphouse::schema;
use pumphouse::wire::Json;
use pumphouse::wire::core::Attachment;
use serde_json::{Value, json};

use super::super::text::{known, shown};
use super::exchange::Failure;
use super::limits::{ATTACHMENTS_MAX, McpLimits};
use super::{Reason, ToolFailed, ToolResult};

/// The maximum number of characters of a media type. A longer media type is cut.
const MEDIA_TYPE_MAX: usize = 100;

/// What is said of a call that was sent and has no answer.
pub(super) const UNKNOWN: &str = "whether anything was done is unknown";

/// Converts an answer into the result of the call and the attachments: images, sounds and files.
pub(super) fn answer(
    tool: &str,
    answer: Result<Value, Failure>,
    limits: &McpLimits,
) -> Result<(ToolResult, Vec<Attachment>), ToolFailed> {
    let failed = |reason, text: &str| {
        Err(ToolFailed { tool: tool.to_owned(), reason, text: cut(text, limits.text_bytes_max) })
    };
    let answer = match answer {
        Ok(it) => it,
        Err(Failure::Unreachable(text)) => return failed(Reason::Unreachable, &text),
        Err(Failure::Error(text) | Failure::Forgotten(text)) => {
            return failed(Reason::Refused, &text);
        }
        Err(Failure::Changed(text)) => return failed(Reason::Changed, &text),
        Err(Failure::Lost(text) | Failure::Nonsense(text)) => {
            return failed(Reason::Unknown, &format!("{text}; {UNKNOWN}"));
        }
    };
    let answer = match answer.get("toolResult") {
        Some(old) if answer.get("content").is_none() => in_new_form(old),
        _ => answer,
    };
    let is_error = answer.get("isError").is_some_and(|it| *it == true);
    let content = match answer.get("content") {
        Some(Value::Array(all)) => &all[..],
        Some(Value::Null) => &[],
        Some(one) => std::slice::from_ref(one),
        None if is_error || answer.get("structuredContent").is_some() => &[],
        None => {
            let text = format!("the server answers no result of a tool: {answer}; {UNKNOWN}");
            return failed(Reason::Unknown, &text);
        }
    };
    // A failed tool says in a text why it failed. Attachments of such an answer aren't kept.
    let room = if is_error { 0 } else { ATTACHMENTS_MAX };
    let bytes_max = limits.attachment_bytes_max;
    let mut contents = Contents { all: Vec::new(), room, bytes_max };
    let texts: Vec<String> = content.iter().map(|it| contents.part(it)).collect();
    let text = texts.join("\n");
    if is_error {
        return failed(Reason::Tool, &text);
    }
    let mut text = cut(&text, limits.text_bytes_max);
    let mut kept = None;
    if let Some(data) = answer.get("structuredContent").filter(|it| !it.is_null()) {
        let length = data.to_string().len();
        match length > limits.data_bytes_max {
            true => {
                let most = limits.data_bytes_max;
                let note = format!(
                    "[structured content of {length} bytes left out; the limit \
                                    data_bytes_max is {most}]"
                );
                text = format!("{text}\n{note}");
            }
            false => kept = Some(Json(data.clone())),
        }
    }
    // Without a text, the structured content is the value.
    let text = Some(text).filter(|it| !it.is_empty() || kept.is_none());
    let (tool, attachment) = (tool.to_owned(), Vec::new());
    Ok((ToolResult { tool, text, data: kept, attachment }, contents.all))
}

/// Converts a result in the form of the protocol's first revision.
fn in_new_form(old: &Value) -> Value {
    match old {
        Value::Object(it) if it.contains_key("content") => old.clone(),
        Value::String(text) => json!({ "content": [{ "type": "text", "text": text }] }),
        old => json!({ "content": [{ "type": "text", "text": old.to_string() }] }),
    }
}

/// Collects the attachments of an answer: at most `room` of them, each of at most `bytes_max`
/// bytes.
struct Contents {
    all: Vec<Attachment>,
    room: usize,
    bytes_max: usize,
}

impl Contents {
    /// Converts a part of an answer to text. If the part is an attachment, the attachment is
    /// collected, and the text names it.
    fn part(&mut self, part: &Value) -> String {
        let said = |key: &str| part.get(key).and_then(Value::as_str);
        if let Some(text) = part.as_str() {
            return text.to_owned();
        }
        match said("type").unwrap_or(if part.get("text").is_some() { "text" } else { "" }) {
            "text" => said("text").unwrap_or_default().to_owned(),
            "resource_link" => format!("[resource {}]", said("uri").unwrap_or_default()),
            "resource" => {
                let inside = part.get("resource").unwrap_or(&Value::Null);
                let said = |key: &str| inside.get(key).and_then(Value::as_str);
                match said("text") {
                    Some(text) => text.to_owned(),
                    None => self.attach(said("mimeType"), said("blob")),
                }
            }
            _ => self.attach(said("mimeType"), said("data")),
        }
    }

    fn attach(&mut self, media_type: Option<&str>, base64: Option<&str>) -> String {
        let media_type = media_type.filter(|it| !it.is_empty());
        let media_type = shown(media_type.unwrap_or("application/octet-stream"));
        let media_type: String = media_type.chars().take(MEDIA_TYPE_MAX).collect();
        let length = bytes(base64.unwrap_or_default());
        if length > self.bytes_max {
            let most = self.bytes_max;
            let limit = format!("the limit attachment_bytes_max is {most}");
            return format!("[{media_type} of {length} bytes left out; {limit}]");
        }
        let content = base64.filter(|_| self.all.len() < self.room).and_then(schema::base64);
        let Some(content) = content else {
            return format!("[{media_type} of {length} bytes left out]");
        };
        let attachment = Attachment::new(media_type, content);
        let text =
            format!("[{} of {} bytes, attached]", attachment.media_type, attachment.content.len());
        self.all.push(attachment);
        text
    }
}

/// Cuts a text after at most `most` bytes, and adds the number of bytes that are left out. Each
/// character that XML can't hold is replaced by U+FFFD.
fn cut(text: &str, most: usize) -> String {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept: String = text[..end].chars().map(known).collect();
    match text.len() - end {
        0 => kept,
        rest => format!("{kept}\n[… {rest} bytes left out; the limit text_bytes_max is {most}]"),
    }
}

/// Returns the number of bytes that a text in Base64 encodes.
fn bytes(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}
