//! Tells a thread in plain words, for people: what its agents were told, wrote and did, and what
//! the other senders of the thread sent. This module is pure.
//!
//! System prompts are left out; `pumphouse prompt` shows them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::audit::{self, Paint, Style};
use crate::listener::Entry;
use crate::listeners::action;
use crate::listeners::action::words::{Action, ActionResult, CancelAction};
use crate::listeners::agent::transcript::{Event, EventKind, transcript};
use crate::listeners::workflow::words::{
    ConditionDecided, RetryRefused, StepRefused, WorkflowFailed, WorkflowResult, WorkflowStarted,
};
use crate::wire::core::{ThreadCancelled, ThreadResult, ThreadSpawned, ThreadStatus};
use crate::xml::View;

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
        // Who gets the result of an action may be a workflow, too.
        if !matches!(event.what, EventKind::ToolCallResult { .. }) {
            agents.insert(event.agent.clone());
        }
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
    if let Some(it) = entry.decode_if::<CancelAction>() {
        let id = it.id.as_deref().unwrap_or("all calls");
        return Some(Paragraph::new(
            seq,
            format!("{from} cancels {id}"),
            it.reason.unwrap_or_default(),
        ));
    }
    if let Some(it) = entry.decode_if::<ActionResult>() {
        let title = format!("{}: {}", it.id, it.status.as_str());
        return Some(Paragraph::new(seq, title, it.said()));
    }
    if let Some((title, text)) = of_workflow(entry) {
        return Some(Paragraph::new(seq, title, text));
    }
    // The listener `action` only passes calls and answers on, and reminds itself of their time. The
    // first message of a thread that it opens says what the thread is about.
    let is_passed_on = from == action::NAME && entry.seq() > 1 || entry.to() == Some(action::NAME);
    if is_passed_on || entry.to() == Some(from) && !entry.is_from_identity() {
        return None;
    }
    let to = entry.to().unwrap_or("nobody");
    let mut text = String::new();
    write_fields(entry.element().ok()?.view(), 0, &mut text);
    let title = format!("{from} → {to}: <{}>", entry.name().local());
    Some(Paragraph::new(seq, title, text))
}

/// The title and the text of what a workflow records or answers. None for any other entry.
fn of_workflow(entry: &Entry) -> Option<(String, String)> {
    let from = entry.from();
    if let Some(it) = entry.decode_if::<WorkflowStarted>() {
        let input = it.input.map(|it| listed(&it.0)).unwrap_or_default();
        return Some((format!("{from} begins a run"), input));
    }
    if let Some(it) = entry.decode_if::<ConditionDecided>() {
        let verdict = if it.holds { "holds" } else { "doesn't hold" };
        let title = format!("{from}: the condition of {} {verdict}", it.step);
        return Some((title, format!("{}\n{}", it.condition, listed(&it.saw.0))));
    }
    if let Some(it) = entry.decode_if::<StepRefused>() {
        return Some((format!("{from} can't call {}", it.step), it.reason));
    }
    if let Some(it) = entry.decode_if::<WorkflowResult>() {
        return Some((format!("{from} answers"), listed(&it.outputs.0)));
    }
    if let Some(it) = entry.decode_if::<WorkflowFailed>() {
        let rest = |what: &str, steps: &[String]| match steps {
            [] => String::new(),
            steps => format!("\n{what}: {}", steps.join(", ")),
        };
        let (undone, left) = (rest("undone", &it.undone), rest("not undone", &it.not_undone));
        return Some((format!("{from} fails"), format!("{}{undone}{left}", it.reason)));
    }
    let it = entry.decode_if::<RetryRefused>()?;
    Some((format!("{from} doesn't repeat a run"), it.message))
}

/// Formats the fields of a JSON object as lines `name: value`.
fn listed(value: &Value) -> String {
    let fields = value.as_object().into_iter().flatten();
    fields.map(|(name, value)| format!("{name}: {}\n", told(value))).collect()
}

/// Writes the text of an element, and its attributes and child elements as lines `name: value`.
fn write_fields(of: View<'_>, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    for attribute in of.attributes() {
        *out += &format!("{indent}{}: {}\n", attribute.local, attribute.value);
    }
    let has_fields = of.elements().next().is_some();
    let text = of.text();
    if !has_fields || !text.trim().is_empty() {
        *out += &format!("{indent}{}\n", if has_fields { text.trim() } else { &*text });
    }
    for element in of.elements() {
        let is_text = element.elements().next().is_none() && element.attributes().next().is_none();
        if is_text {
            *out += &format!("{indent}{}: {}\n", element.local(), element.text());
        } else {
            *out += &format!("{indent}{}:\n", element.local());
            write_fields(element, depth + 1, out);
        }
    }
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
