//! Formats a thread for people: what its agents were told, wrote and did. This module is pure.
//!
//! System prompts are left out; `pumphouse prompt` shows them.

use serde_json::Value;

use crate::audit::{self, Paint, Style};
use crate::listeners::agent::transcript::{Event, EventKind};

/// Formats a thread's events. Each event that is shown becomes a paragraph.
pub(super) fn lines(events: &[Event], style: Style) -> String {
    events.iter().filter_map(|it| paragraph(it, style)).collect()
}

fn paragraph(event: &Event, style: Style) -> Option<String> {
    let agent = &event.agent;
    let (title, text) = match &event.what {
        EventKind::CognitionIn { role, .. } if role == "system" => return None,
        EventKind::CognitionIn { from, text, .. } => (format!("{from} → {agent}"), text.clone()),
        EventKind::StepStart { turn, model, .. } => {
            (format!("{agent}, turn {turn}, with {model}"), String::new())
        }
        EventKind::CognitionReasoning { text, .. } => (format!("{agent} reasons"), text.clone()),
        EventKind::ModelFailed { model, text, .. } => {
            let model = model.as_deref().unwrap_or("the model");
            (format!("{model} failed for {agent}"), text.clone())
        }
        EventKind::CognitionOut { text, error, .. } => {
            let broken = error.as_ref().map(|it| format!(", and breaks off: {it}"));
            (format!("{agent} writes{}", broken.unwrap_or_default()), text.clone())
        }
        EventKind::ToolCallStart { id, tool, input, .. } => {
            (format!("{agent} calls {tool}, {id}"), input.to_string())
        }
        EventKind::ToolCallResult { call_id, status, output, error, .. } => {
            let words = error.clone().or_else(|| output.as_ref().map(told));
            (format!("{call_id}: {status}"), words.unwrap_or_default())
        }
        EventKind::Response { text, .. } => (format!("{agent} answers"), text.clone()),
        EventKind::Message { to, payload, .. } => (format!("{agent} → {to}"), payload.clone()),
        EventKind::Repair { text, .. } => (format!("understood of {agent}"), text.clone()),
        EventKind::Stopped { reason, text } => (format!("{agent} stops, {reason}"), text.clone()),
        _ => return None,
    };
    let title = style.paint(Paint::Strong, &audit::line(&title));
    let text = if text.trim().is_empty() { String::new() } else { audit::quoted(text.trim()) };
    Some(format!("{title}\n{text}"))
}

/// Formats a result as text: a string without quotes, other values as JSON.
fn told(output: &Value) -> String {
    output.as_str().map_or_else(|| output.to_string(), str::to_owned)
}
