//! Tells a thread in plain words, for people: what its agents were told, wrote and did, and what
//! the other senders of the thread sent. This module is pure.
//!
//! System prompts are left out; `pumphouse prompt` shows them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::audit::{self, Paint, Style};
use crate::engine::CORE_NAME;
use crate::listener::Entry;
use crate::listeners::action;
use crate::listeners::action::words::{Action, ActionResult};
use crate::listeners::agent::transcript::{Event, EventKind, transcript};
use crate::wire::core::{ThreadCancelled, ThreadResult, ThreadSpawned, ThreadStatus};

/// What one entry or event tells.
pub(crate) struct Paragraph {
    /// The number of the entry. None for a live payload.
    entry: Option<u64>,
    title: String,
    text: String,
}

impl Paragraph {
    fn new(entry: Option<u64>, title: String, text: impl Into<String>) -> Paragraph {
        Paragraph { entry, title, text: text.into() }
    }

    /// Formats the paragraph for people.
    pub(crate) fn lines(&self, style: Style) -> String {
        let title = style.paint(Paint::Strong, &audit::line(&self.title));
        let text = self.text.trim();
        let text = if text.is_empty() { String::new() } else { audit::quoted(text) };
        format!("{title}\n{text}")
    }

    /// The paragraph as an object.
    pub(crate) fn object(&self) -> Value {
        json!({ "entry": self.entry, "title": self.title, "text": self.text.trim() })
    }
}

/// Tells the events of agents.
pub(crate) fn of_events(events: &[Event], style: Style) -> String {
    events.iter().filter_map(paragraph).map(|it| it.lines(style)).collect()
}

/// Tells a whole thread.
pub(crate) fn of_thread(entries: &[Entry]) -> Vec<Paragraph> {
    let mut told: BTreeMap<u64, Vec<Event>> = BTreeMap::new();
    let mut agents = BTreeSet::new();
    for event in transcript(entries) {
        agents.insert(event.agent.clone());
        told.entry(event.entry.unwrap_or_default()).or_default().push(event);
    }
    let mut story = Vec::new();
    for entry in entries {
        match told.get(&entry.seq()) {
            Some(events) => story.extend(events.iter().filter_map(paragraph)),
            None if entry.is_refused() => story.push(refused(entry)),
            None if agents.contains(entry.from()) => {}
            None => story.extend(sent(entry)),
        }
    }
    story
}

fn refused(entry: &Entry) -> Paragraph {
    let title = format!("{} tried to send <{}>", entry.from(), entry.name().local());
    Paragraph::new(Some(entry.seq()), title, "It was refused.")
}

/// What an entry tells that no agent sent. None for the pump's own bookkeeping.
fn sent(entry: &Entry) -> Option<Paragraph> {
    let (seq, from) = (Some(entry.seq()), entry.from());
    if let Some(it) = entry.decode_if::<ThreadSpawned>() {
        let title = format!("{} opens {}", entry.to().unwrap_or(from), it.assigned_id);
        return Some(Paragraph::new(seq, title, ""));
    }
    if let Some(it) = entry.decode_if::<ThreadResult>() {
        let status = match it.status {
            ThreadStatus::Completed => "is done",
            ThreadStatus::Empty => "is done, without an answer",
            ThreadStatus::Failed => "failed",
            ThreadStatus::Cancelled => "was cancelled",
        };
        return Some(Paragraph::new(seq, format!("{} {status}", it.thread), ""));
    }
    if let Some(it) = entry.decode_if::<ThreadCancelled>() {
        let title = format!("{} is cancelled by {}", it.thread, it.by);
        return Some(Paragraph::new(seq, title, it.reason.unwrap_or_default()));
    }
    if let Some(it) = entry.decode_if::<Action>() {
        let text = it.parameters.unwrap_or_default();
        return Some(Paragraph::new(seq, format!("{from} calls {}, {}", it.name, it.id), text));
    }
    if let Some(it) = entry.decode_if::<ActionResult>() {
        let title = format!("{}: {}", it.id, it.status.as_str());
        return Some(Paragraph::new(seq, title, it.said()));
    }
    // The listener `action` only passes calls on, and reminds itself of their time.
    let is_own = from == action::NAME || from == CORE_NAME && entry.to() == Some(action::NAME);
    if is_own || entry.to() == Some(from) && !entry.is_from_identity() {
        return None;
    }
    let to = entry.to().unwrap_or("nobody");
    let element = entry.element().ok()?;
    let text = match element.elements().next() {
        None => element.text().into_owned(),
        Some(_) => audit::pretty(&element.canonical(), Style::PLAIN),
    };
    let title = format!("{from} → {to}: <{}>", entry.name().local());
    Some(Paragraph::new(seq, title, text))
}

fn paragraph(event: &Event) -> Option<Paragraph> {
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
    Some(Paragraph::new(event.entry, title, text))
}

/// Formats a result as text: a string without quotes, other values as JSON.
fn told(output: &Value) -> String {
    output.as_str().map_or_else(|| output.to_string(), str::to_owned)
}
