//! Transcripts. A transcript shows what agents did in a thread, as events with the names that agent
//! runtimes use.
//!
//! A transcript takes the entries of a thread in their order, from the log or while the thread
//! grows, and returns events. Live payloads, such as the `delta` of a model that writes, may come
//! in between.
//!
//! A listener is known to be an agent only once its first turn begins. The events of earlier
//! messages to it are held back until then.

use std::collections::{BTreeMap, BTreeSet};

use pumphouse::prelude::*;
use pumphouse::wire::core::{OutputStream, ProgramOutput, Progress};
use pumphouse::wire::iso_time;
use serde_json::{Map, Value};

use super::super::action::words::{Action, ActionResult, Mode};
use super::super::feed::words::{DeclareFeeds, RefreshFeeds};
use super::super::metadata::words::{Metadata, MetadataChanged};
use super::render::{self, Form};
pub use super::transcript_event::{Event, EventKind};
use super::words::{
    CognitionIn, CognitionOut, CognitionReasoning, CognitionSystem, ContextFull, Correction, Delta,
    ModelFailed, Notice, Repair, Response, Stopped, Thought,
};

/// The events of a whole thread.
#[must_use]
pub fn transcript(thread: &[Entry]) -> Vec<Event> {
    let mut transcript = Transcript::default();
    thread.iter().flat_map(|it| transcript.hear(it)).collect()
}

/// The state of a thread while its entries are read.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    standing: BTreeMap<String, Participant>,
    /// Maps each agent to the number of calls that its newest turn has defined so far.
    called: BTreeMap<String, u64>,
    calls: BTreeMap<u64, ActionRef>,
    /// The ids of calls so far.
    ids: BTreeSet<String>,
    /// Maps each agent to its newest turn.
    turns: BTreeMap<String, u64>,
    /// Maps each agent to the mark in its newest prompt.
    marks: BTreeMap<String, String>,
    /// Held-back events of live payloads, from turns whose beginning isn't in the log yet.
    early: Vec<Event>,
}

/// The role of a sender or receiver in the thread, as far as it is known.
#[derive(Clone, Debug)]
enum Participant {
    /// A listener that was sent the payload with which an agent of its name is asked. It has
    /// neither begun a turn nor answered yet. The messages to it, and its system prompt, wait here
    /// for the form of its first prompt.
    Asked(Vec<Entry>),
    /// An agent.
    Agent,
    /// A sender or receiver that is no agent.
    Other,
}

#[derive(Clone, Debug)]
struct ActionRef {
    id: String,
    agent: String,
    tool: String,
    turn: Option<u64>,
}

impl Transcript {
    /// Takes the next entry, and returns its events: mostly one or none.
    #[must_use]
    pub fn hear(&mut self, entry: &Entry) -> Vec<Event> {
        if entry.is_refused() {
            return Vec::new();
        }
        self.learn_mark(entry);
        let mut events = self.meets(entry);
        let what = match self.standing.get(entry.from()) {
            Some(Participant::Agent) => self.says(entry),
            _ => None,
        };
        match what {
            Some(what) => {
                let begun = match what {
                    EventKind::StepStart { turn, .. } => Some(turn),
                    _ => None,
                };
                events.push(event(entry.from(), entry, what));
                if let Some(turn) = begun {
                    events.extend(self.release(entry.from(), turn));
                }
            }
            None => events.extend(self.take_told(entry)),
        }
        events
    }

    /// Takes a live payload of a thread, and returns its event. The event of a `delta` is held back
    /// until the log has the beginning of the delta's turn; then [`hear`](Transcript::hear) returns
    /// it.
    #[must_use]
    pub fn glimpse(&mut self, from: &str, thread: &ThreadId, payload: &Element) -> Option<Event> {
        if !payload.is(Delta::NAME.namespace(), Delta::NAME.local()) {
            return self.progress(from, thread, payload);
        }
        let Delta { turn, within, text } = Delta::decode(payload).ok()?;
        let what = EventKind::CognitionOutDelta { turn, within, text };
        let (agent, thread) = (from.to_owned(), thread.as_str().to_owned());
        let event = Event { what, agent, thread, entry: None, time: None, show: true };
        if self.turns.get(from).is_none_or(|it| *it < turn) {
            self.early.push(event);
            return None;
        }
        Some(event)
    }

    /// Releases the events that were held back until an agent's turn began.
    fn release(&mut self, agent: &str, turn: u64) -> impl Iterator<Item = Event> {
        let is_released = move |it: &mut Event| match it.what {
            EventKind::CognitionOutDelta { turn: of, .. } => it.agent == agent && of <= turn,
            _ => true,
        };
        self.early.extract_if(.., is_released)
    }

    /// The event of a tool's live payload. If the tool has several open calls, the event belongs to
    /// the latest. None if the tool has no open call.
    fn progress(&self, from: &str, thread: &ThreadId, payload: &Element) -> Option<Event> {
        let is_of = |tool: &str| {
            tool.strip_prefix(from).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let call = self.calls.values().rev().find(|it| is_of(&it.tool))?;
        let (call_id, tool) = (call.id.clone(), call.tool.clone());
        let what = if payload.is(Progress::NAME.namespace(), Progress::NAME.local()) {
            let Progress { done, total, text } = Progress::decode(payload).ok()?;
            EventKind::ToolCallProgress { call_id, tool, done, total, text }
        } else {
            let ProgramOutput { stream, text } = ProgramOutput::decode(payload).ok()?;
            let stream = match stream {
                OutputStream::Out => "out",
                OutputStream::Err => "err",
            };
            let stream = stream.to_owned();
            EventKind::ToolCallOutput { call_id, tool, stream, text }
        };
        let (agent, thread) = (call.agent.clone(), thread.as_str().to_owned());
        Some(Event { what, agent, thread, entry: None, time: None, show: true })
    }

    /// Learns from an entry whether its sender is an agent. When the sender turns out to be one,
    /// returns the events that were held back for it.
    fn meets(&mut self, entry: &Entry) -> Vec<Event> {
        let from = entry.from();
        if let Some(Participant::Agent | Participant::Other) = self.standing.get(from) {
            return Vec::new();
        }
        let is_own = entry.to() == Some(from) && !entry.is_from_identity();
        if is_own && entry.is::<CognitionSystem>() {
            self.wait_for(from, entry);
            return Vec::new();
        }
        let begins = entry.is::<CognitionIn>() || entry.is::<ContextFull>();
        // An agent that stops before its first turn, such as for its budget, says so to its asker.
        let is_agent = is_own && begins || entry.is::<Stopped>() && self.answers(entry);
        let standing = match is_agent {
            true => Participant::Agent,
            // Any other listener that answers its asker without a turn is no agent.
            false if self.answers(entry) => Participant::Other,
            false => return Vec::new(),
        };
        let waiting = match self.standing.insert(from.to_owned(), standing) {
            Some(Participant::Asked(waiting)) if is_agent => waiting,
            _ => Vec::new(),
        };
        let mut events = Vec::new();
        for it in &waiting {
            events.extend(match it.from() == from {
                true => self.says(it).map(|what| event(from, it, what)),
                false => self.told(from, it),
            });
        }
        events
    }

    fn wait_for(&mut self, agent: &str, entry: &Entry) {
        let asked = || Participant::Asked(Vec::new());
        let standing = self.standing.entry(agent.to_owned()).or_insert_with(asked);
        if let Participant::Asked(waiting) = standing {
            waiting.push(entry.clone());
        }
    }

    /// Learns from a turn's beginning what the mark of its prompt is.
    fn learn_mark(&mut self, entry: &Entry) {
        let is_own = entry.to() == Some(entry.from()) && !entry.is_from_identity();
        if let Some(it) = read::<CognitionIn>(entry).filter(|_| is_own) {
            self.marks.insert(entry.from().to_owned(), it.mark);
        }
    }

    /// The form of an agent's prompts.
    fn form(&self, agent: &str) -> Form<'_> {
        Form::new(self.marks.get(agent).map(String::as_str).unwrap_or_default())
    }

    /// The event of a message to an agent. None if the agent's prompts don't show the message.
    fn told(&self, agent: &str, entry: &Entry) -> Option<Event> {
        let text = render::heard(self.form(agent), &super::root(agent), entry)?;
        let (role, from) = ("user".to_owned(), entry.from().to_owned());
        Some(event(agent, entry, EventKind::CognitionIn { role, from, text }))
    }

    /// Whether the entry is an answer of a listener that may be an agent, but hasn't begun a turn.
    /// An answer goes to the sender of a message that waits in [`Participant::Asked`].
    fn answers(&self, entry: &Entry) -> bool {
        let Some(Participant::Asked(waiting)) = self.standing.get(entry.from()) else {
            return false;
        };
        waiting.iter().any(|it| entry.to() == Some(it.from()) && it.from() != entry.from())
    }

    /// The event of an agent's entry. None if the entry has none.
    fn says(&mut self, entry: &Entry) -> Option<EventKind> {
        if let Some(CognitionSystem { text }) = read(entry) {
            let from = entry.from().to_owned();
            return Some(EventKind::CognitionIn { role: "system".to_owned(), from, text });
        }
        if let Some(CognitionIn { turn, model, asker, .. }) = read(entry) {
            self.called.insert(entry.from().to_owned(), 0);
            self.turns.insert(entry.from().to_owned(), turn);
            return Some(EventKind::StepStart { turn, model, asker });
        }
        if let Some(it) = read::<CognitionReasoning>(entry) {
            let CognitionReasoning { turn, text, is_partial, was_interrupted } = it;
            return Some(EventKind::CognitionReasoning { turn, text, is_partial, was_interrupted });
        }
        if let Some(ModelFailed { turn, model, kind, text, .. }) = read(entry) {
            return Some(EventKind::ModelFailed { turn, model, kind, text });
        }
        if let Some(Thought { turn, text, .. }) = read(entry) {
            return Some(EventKind::Thought { turn, text });
        }
        if let Some(it) = read::<Action>(entry) {
            *self.called.entry(entry.from().to_owned()).or_default() += 1;
            return Some(self.calls(entry, it));
        }
        if let Some(it) = read::<CognitionOut>(entry) {
            return Some(EventKind::CognitionOut {
                turn: it.turn,
                text: it.text,
                tool_count: self.called.get(entry.from()).copied().unwrap_or(0),
                is_partial: it.is_partial,
                truncated: it.truncated,
                error: it.error,
                completion_percentage: it.completion_percentage,
            });
        }
        if let Some(Response { turn, text, is_final, .. }) = read(entry) {
            return Some(EventKind::Response { turn, text, is_final });
        }
        if let Some(Stopped { reason, text, .. }) = read(entry) {
            return Some(EventKind::Stopped { reason, text });
        }
        if let Some(Repair { turn, text, .. }) = read(entry) {
            return Some(EventKind::Repair { turn, text });
        }
        if let Some(Metadata { turn, fields, error, .. }) = read(entry) {
            let fields = fields.and_then(|it| serde_json::from_str(&it).ok());
            let fields = fields.unwrap_or_else(|| Value::Object(Map::new()));
            let errors = error.into_iter().map(|it| it.message).collect();
            return Some(EventKind::Metadata { turn, fields, errors });
        }
        // Requests for feeds come from the agent's code, not from its model.
        let is_quiet = entry.is::<RefreshFeeds>()
            || entry.is::<DeclareFeeds>()
            || entry.is::<MetadataChanged>();
        if is_quiet { None } else { sends(self.form(entry.from()), entry) }
    }

    fn calls(&mut self, entry: &Entry, it: Action) -> EventKind {
        let seq = entry.seq();
        let mut call_id = it.id.clone();
        // A later turn may use an id again.
        if !self.ids.insert(call_id.clone()) {
            call_id = format!("{}-{seq}", it.id);
            self.ids.insert(call_id.clone());
        }
        let (agent, tool) = (entry.from().to_owned(), it.name.clone());
        self.calls.insert(seq, ActionRef { id: call_id.clone(), agent, tool, turn: it.turn });
        let (input, mode) = (input(&it), mode(it.mode).to_owned());
        EventKind::ToolCallStart { turn: it.turn, call_id, id: it.id, tool: it.name, input, mode }
    }

    /// Takes an entry that has no event of its sender, and returns the event of its receiver. None
    /// if the receiver has no event, or if the event is held back.
    fn take_told(&mut self, entry: &Entry) -> Option<Event> {
        let to = entry.to().filter(|to| *to != entry.from())?.to_owned();
        if let Some(result) = read::<ActionResult>(entry) {
            let call = self.calls.remove(&result.of);
            return Some(event(&to, entry, came(result, call)));
        }
        let is_root = *entry.name() == super::root(&to);
        let standing = self.standing.get(&to);
        if !matches!(standing, Some(Participant::Agent | Participant::Asked(_))) && !is_root {
            return None;
        }
        let told = self.told(&to, entry)?;
        if matches!(standing, Some(Participant::Agent)) {
            return Some(told);
        }
        self.wait_for(&to, entry);
        None
    }
}

/// The payload of an entry. None if the payload has another type, or can't be decoded.
fn read<P: Payload>(entry: &Entry) -> Option<P> {
    if entry.is::<P>() { entry.decode().ok() } else { None }
}

fn event(agent: &str, entry: &Entry, what: EventKind) -> Event {
    let shown = |it: Option<bool>| it != Some(false);
    let show = match (read::<Action>(entry), read::<ActionResult>(entry)) {
        (Some(it), _) => shown(it.show),
        (_, Some(it)) => shown(it.show),
        _ => true,
    };
    Event {
        what,
        agent: agent.to_owned(),
        thread: entry.thread().as_str().to_owned(),
        entry: Some(entry.seq()),
        time: Some(iso_time(entry.at_us())),
        show,
    }
}

/// The event for a notice that an agent sends itself about its own reply, or for a payload that it
/// sends to a listener other than `action`. None for its other entries.
fn sends(form: Form<'_>, entry: &Entry) -> Option<EventKind> {
    let (from, to) = (entry.from().to_owned(), entry.to()?);
    if entry.is::<Notice>() || entry.is::<Correction>() {
        let text = render::told(form, entry)?;
        return Some(EventKind::CognitionIn { role: "user".to_owned(), from, text });
    }
    let own = to == from || to == super::super::action::NAME;
    let payload = || String::from_utf8_lossy(entry.body()).into_owned();
    let name = entry.name().local();
    (!own).then(|| EventKind::Message {
        to: to.to_owned(),
        name: name.to_owned(),
        payload: payload(),
    })
}

/// The parameters of a call, as the model wrote them.
fn input(it: &Action) -> Value {
    if let Some(json) = &it.parameters {
        return serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.clone()));
    }
    let mut input = Map::new();
    for one in it.elements.iter().flat_map(|it| it.parameters.elements()) {
        let text = match one.elements().next() {
            Some(_) => String::from_utf8_lossy(&one.to_element().canonical()).into_owned(),
            None => one.text().into_owned(),
        };
        input.insert(one.local().to_owned(), Value::String(text));
    }
    Value::Object(input)
}

fn mode(it: Mode) -> &'static str {
    match it {
        Mode::Sync => "sync",
        Mode::Async => "async",
        Mode::FireAndForget => "fire_and_forget",
    }
}

fn came(it: ActionResult, call: Option<ActionRef>) -> EventKind {
    let (output, error) = (it.value(), it.why());
    let (turn, call_id) = call.map_or((it.turn, it.id), |call| (call.turn, call.id));
    EventKind::ToolCallResult {
        turn,
        call_id,
        tool: it.name,
        status: it.status.as_str().to_owned(),
        output,
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_turn_releases_the_deltas_of_no_other_agent() {
        let (mut transcript, thread) = (Transcript::default(), ThreadId::new("t"));
        let text = || "x".to_owned();
        let delta = Delta { turn: 1, within: text(), text: text() }.encode().unwrap();
        assert_eq!(transcript.glimpse("a", &thread, &delta), None);
        assert_eq!(transcript.glimpse("b", &thread, &delta), None);
        let mut released = |agent, turn| -> Vec<String> {
            transcript.release(agent, turn).map(|it| it.agent).collect()
        };
        assert_eq!(released("b", 1), ["b"]);
        assert_eq!(released("a", 0), [""; 0]);
        assert_eq!(released("a", 1), ["a"]);
    }
}
