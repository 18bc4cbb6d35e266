//! What a server answers to a call, as payloads.

use pumphouse::wire::Json;
use serde_json::Value;

use super::super::text::known;
use super::limits::McpLimits;
use super::wire::Failure;
use super::{Reason, ToolFailed, ToolResult};

/// A call's answer.
pub(super) fn answer(
    tool: &str,
    answer: Result<Value, Failure>,
    limits: &McpLimits,
) -> Result<ToolResult, ToolFailed> {
    let failed = |reason, text: &str| {
        Err(ToolFailed { tool: tool.to_owned(), reason, text: cut(text, limits.text_bytes_max) })
    };
    let answer = match answer {
        Ok(it) => it,
        Err(Failure::Gone(text)) => return failed(Reason::Gone, &text),
        Err(Failure::Error(text)) => return failed(Reason::Refused, &text),
        Err(Failure::Nonsense(text)) => return failed(Reason::Nonsense, &text),
    };
    let content = answer.get("content").and_then(Value::as_array);
    let texts: Vec<String> = content.into_iter().flatten().map(part).collect();
    let text = texts.join("\n");
    if answer.get("isError").is_some_and(|it| *it == true) {
        return failed(Reason::Tool, &text);
    }
    let mut result =
        ToolResult { tool: tool.to_owned(), text: cut(&text, limits.text_bytes_max), data: None };
    if let Some(data) = answer.get("structuredContent").filter(|it| !it.is_null()) {
        let length = data.to_string().len();
        match length > limits.data_bytes_max {
            true => {
                let most = limits.data_bytes_max;
                let note = format!(
                    "[structured content of {length} bytes left out; the limit \
                                    data_bytes_max is {most}]"
                );
                result.text = format!("{}\n{note}", result.text);
            }
            false => result.data = Some(Json(data.clone())),
        }
    }
    Ok(result)
}

/// One part of the content, as text.
fn part(it: &Value) -> String {
    let said = |key: &str| it.get(key).and_then(Value::as_str).unwrap_or_default();
    match said("type") {
        "text" => said("text").to_owned(),
        "resource_link" => format!("[resource {}]", said("uri")),
        "resource" => {
            let inside = it.get("resource").unwrap_or(&Value::Null);
            let said = |key: &str| inside.get(key).and_then(Value::as_str);
            match said("text") {
                Some(text) => text.to_owned(),
                None => left_out(said("mimeType"), said("blob")),
            }
        }
        _ => left_out(Some(said("mimeType")).filter(|it| !it.is_empty()), Some(said("data"))),
    }
}

fn left_out(media_type: Option<&str>, base64: Option<&str>) -> String {
    let length = bytes(base64.unwrap_or_default());
    format!("[{} of {length} bytes left out]", media_type.unwrap_or("content"))
}

/// The beginning of a text that is too long, with a note; and nothing that XML can't hold.
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

/// Bytes that a text in base64 stands for.
fn bytes(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}
