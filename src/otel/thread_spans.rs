//! Makes the spans of one thread. [`ThreadSpans`] takes the entries in their order, and returns
//! each span when the span's last entry comes.
//!
//! This module is pure: the same entries always give the same spans.

use std::collections::BTreeMap;

use serde_json::json;

use crate::id::{EntryId, ThreadId};
use crate::listener::{Apply as _, Entry};
use crate::otel::model::{ModelName, finish_reason};
use crate::otel::names;
use crate::otel::span::{Attribute, Failure, Kind, Link, Span, SpanId, TraceId, Value};
use crate::wire::core::Huh;
use crate::xml::Element;
use pumphouse_listeners::action;
use pumphouse_listeners::action::words::{Action, ActionResult, Status};
use pumphouse_listeners::agent::root;
use pumphouse_listeners::agent::words::{CognitionIn, CognitionOut, Response, Stopped};
use pumphouse_listeners::mind::Minds;

/// The most bytes of a text that are sent as content.
const CONTENT_BYTES_MAX: usize = 8 * 1024;

/// What the spans of a thread have in common.
#[derive(Clone, Debug)]
pub(super) struct TracedThread {
    /// The thread.
    pub(super) thread: ThreadId,
    /// The root of the thread's tree.
    pub(super) root: ThreadId,
    /// The span in which the thread was opened, if there is one.
    pub(super) above: Option<SpanId>,
    /// Whether spans have content.
    pub(super) content: bool,
}

/// A thread's open spans.
#[derive(Clone, Debug)]
pub(super) struct ThreadSpans {
    traced: TracedThread,
    minds: Minds,
    /// Maps an agent to its open work.
    works: BTreeMap<String, OpenWork>,
    /// Maps an agent to its open turn.
    turns: BTreeMap<String, OpenTurn>,
    /// Maps the number of an action's entry to the action, until its result comes.
    actions: BTreeMap<u64, OpenAction>,
    /// Maps the number of each message that an agent got to the message's origin, until the agent's
    /// work begins.
    asked: BTreeMap<u64, Origin>,
    /// The position of the last entry that was taken.
    pub(super) position: u64,
}

/// The caller of work, and the text of the message that began the work.
#[derive(Clone, Debug, Default)]
struct Origin {
    parent: Option<SpanId>,
    link: Option<Link>,
    text: Option<String>,
}

#[derive(Clone, Debug)]
struct OpenWork {
    /// The number of the message or tick that the work answers.
    message: u64,
    /// The number and the time of the entry with which the work began.
    begun: (u64, u64),
    id: SpanId,
    origin: Origin,
    turns: u64,
    model: Option<ModelName>,
    /// The tokens of the work's prompts and of its replies so far, if a turn had any.
    tokens: Option<(u64, u64)>,
}

#[derive(Clone, Debug)]
struct OpenTurn {
    begun: (u64, u64),
    parent: Option<SpanId>,
    asked: CognitionIn,
}

#[derive(Clone, Debug)]
struct OpenAction {
    at_us: u64,
    parent: Option<SpanId>,
    agent: String,
    action: Action,
}

impl ThreadSpans {
    pub(super) fn new(traced: TracedThread) -> ThreadSpans {
        ThreadSpans {
            traced,
            minds: Minds::default(),
            works: BTreeMap::new(),
            turns: BTreeMap::new(),
            actions: BTreeMap::new(),
            asked: BTreeMap::new(),
            position: 0,
        }
    }

    pub(super) fn traced(&self) -> &TracedThread {
        &self.traced
    }

    /// Returns the span in which an entry of this thread was sent.
    ///
    /// - For a call by the listener `action`, it is the action's span.
    /// - For an entry of a working agent, it is the span of the agent's work.
    /// - For any other entry, it is the span in which the thread was opened.
    pub(super) fn parent_of(&self, entry: &Entry) -> Option<SpanId> {
        if entry.from() == action::NAME
            && let Some(of) = entry.key().and_then(|it| it.parse::<EntryId>().ok())
        {
            return Some(SpanId::of(&of));
        }
        self.working(entry.from()).or(self.traced.above)
    }

    /// Returns the span of an agent's work, if the work has had a turn.
    fn working(&self, agent: &str) -> Option<SpanId> {
        self.works.get(agent).filter(|it| it.turns > 0).map(|it| it.id)
    }

    /// Takes the next entry, and returns the spans that end with it.
    pub(super) fn take(&mut self, entry: &Entry) -> Vec<Span> {
        let mut spans = Vec::new();
        if entry.thread() != &self.traced.thread {
            // A fork begins with entries of another thread. Their spans belong to that thread.
            self.minds.apply(entry);
            return spans;
        }
        if entry.is_refused() {
            return spans;
        }
        self.note_asked(entry);
        self.take_action(entry, &mut spans);
        self.take_turn(entry, &mut spans);
        let shown = self.minds.of(entry.from()).work.as_ref().map(|it| it.asked.clone());
        self.minds.apply(entry);
        let mut agents = vec![entry.from()];
        agents.extend(entry.to().filter(|it| *it != entry.from()));
        for agent in agents {
            self.take_work(agent, entry, shown.as_deref().unwrap_or_default(), &mut spans);
        }
        if let Some(state) = entry.flags().state().filter(|it| !it.is_live()) {
            self.end_all(entry, state.as_str(), &mut spans);
        }
        spans
    }

    /// Records the caller of a message to an agent until the agent's work begins.
    fn note_asked(&mut self, entry: &Entry) {
        let Some(to) = entry.to().filter(|it| *it != entry.from()) else { return };
        if *entry.name() == root(to) && entry.receivers() > 0 {
            let text = || entry.element().map(|it| it.text().into_owned()).unwrap_or_default();
            let origin = Origin {
                parent: self.parent_of(entry),
                link: entry.meta().and_then(traceparent),
                text: self.traced.content.then(text),
            };
            self.asked.insert(entry.seq(), origin);
        }
    }

    fn take_action(&mut self, entry: &Entry, spans: &mut Vec<Span>) {
        if let Some(action) = entry.decode_if::<Action>() {
            let parent = self.working(entry.from()).or(self.traced.above);
            let agent = entry.from().to_owned();
            let open = OpenAction { at_us: entry.at_us(), parent, agent, action };
            self.actions.insert(entry.seq(), open);
        } else if let Some(result) = entry.decode_if::<ActionResult>()
            && let Some(open) = self.actions.remove(&result.of)
        {
            spans.push(self.tool_span(result.of, open, entry, Ok(&result)));
        }
    }

    fn take_turn(&mut self, entry: &Entry, spans: &mut Vec<Span>) {
        let agent = entry.from();
        if let Some(asked) = entry.decode_if::<CognitionIn>() {
            if let Some(open) = self.turns.remove(agent) {
                spans.push(self.chat_span(agent, &open, entry, None));
            }
            if let Some(work) = self.works.get_mut(agent) {
                work.turns += 1;
                work.model = Some(ModelName::parse(&asked.model));
            }
            let parent = self.working(agent).or(self.traced.above);
            let open = OpenTurn { begun: (entry.seq(), entry.at_us()), parent, asked };
            self.turns.insert(agent.to_owned(), open);
        } else if let Some(over) = entry.decode_if::<CognitionOut>()
            && let Some(open) = self.turns.remove(agent)
        {
            if let (Some(work), Some(more)) =
                (self.works.get_mut(agent), over.tokens_in.zip(over.tokens_out))
            {
                let sum = work.tokens.unwrap_or_default();
                work.tokens = Some((sum.0.saturating_add(more.0), sum.1.saturating_add(more.1)));
            }
            spans.push(self.chat_span(agent, &open, entry, Some(&over)));
        }
    }

    /// Ends an agent's work and begins its next one, if the entry changed which work the agent
    /// does. `shown` has the numbers of the messages that the prompts of the sender's work have
    /// shown.
    fn take_work(&mut self, agent: &str, entry: &Entry, shown: &[u64], spans: &mut Vec<Span>) {
        let message = self.minds.of(agent).work.as_ref().map(|it| it.id);
        if self.works.get(agent).map(|it| it.message) == message {
            return;
        }
        if let Some(work) = self.works.remove(agent) {
            let stopped = entry.decode_if::<Stopped>();
            // A listener that answers without a turn is no agent, and gets no span.
            if work.turns > 0 || stopped.is_some() {
                if let Some(open) = self.turns.remove(agent) {
                    spans.push(self.chat_span(agent, &open, entry, None));
                }
                let failure = self.failure_of(entry);
                spans.push(self.work_span(agent, work, entry, failure));
            }
            shown.iter().for_each(|it| drop(self.asked.remove(it)));
        }
        if let Some(message) = message {
            let id = SpanId::of_work(&EntryId::new(&self.traced.thread, entry.seq()), agent);
            let above = || Origin { parent: self.traced.above, ..Origin::default() };
            let origin = self.asked.remove(&message).unwrap_or_else(above);
            let begun = (entry.seq(), entry.at_us());
            let (turns, model, tokens) = (0, None, None);
            let open = OpenWork { message, begun, id, origin, turns, model, tokens };
            self.works.insert(agent.to_owned(), open);
        }
    }

    /// Ends all open spans when the thread has ended.
    fn end_all(&mut self, entry: &Entry, why: &str, spans: &mut Vec<Span>) {
        for (seq, open) in std::mem::take(&mut self.actions) {
            spans.push(self.tool_span(seq, open, entry, Err(why)));
        }
        for (agent, open) in std::mem::take(&mut self.turns) {
            spans.push(self.chat_span(&agent, &open, entry, None));
        }
        for (agent, work) in std::mem::take(&mut self.works) {
            if work.turns > 0 {
                let failure = Failure { kind: why.to_owned(), message: None };
                spans.push(self.work_span(&agent, work, entry, Some(failure)));
            }
        }
        self.asked.clear();
    }

    /// Returns the failure that an entry reports at the end of work, if it reports one.
    fn failure_of(&self, entry: &Entry) -> Option<Failure> {
        let (kind, message) = if let Some(it) = entry.decode_if::<Stopped>() {
            (it.reason, it.text)
        } else if let Some(it) = entry.decode_if::<Huh>() {
            (it.code, it.message)
        } else if entry.flags().contains(crate::log::Flags::ERROR) {
            let element = entry.element().map(|it| it.text().into_owned());
            (entry.name().local().to_owned(), element.unwrap_or_default())
        } else {
            return None;
        };
        Some(self.failure(kind, Some(&message)))
    }

    /// Makes a failure. The message may quote a payload, so only spans with content have it.
    fn failure(&self, kind: String, message: Option<&str>) -> Failure {
        Failure { kind, message: message.filter(|_| self.traced.content).map(cut) }
    }

    fn work_span(
        &self,
        agent: &str,
        work: OpenWork,
        last: &Entry,
        failure: Option<Failure>,
    ) -> Span {
        let mut attributes = self.attributes("invoke_agent", agent, work.begun.0);
        attributes.extend(work.model.iter().flat_map(ModelName::attributes));
        // A provider and a server belong to one request. The work of an agent may have several
        // requests, so its span names neither.
        let of_request = [names::PROVIDER_NAME, names::SERVER_ADDRESS, names::SERVER_PORT];
        attributes.retain(|it| !of_request.contains(&it.0));
        if let Some((input, output)) = work.tokens {
            attributes.push((names::INPUT_TOKENS, input.into()));
            attributes.push((names::OUTPUT_TOKENS, output.into()));
        }
        if let Some(text) = work.origin.text {
            attributes.push((names::INPUT_MESSAGES, messages("user", &text).into()));
        }
        if let Some(it) = last.decode_if::<Response>().filter(|_| self.traced.content) {
            let text = messages("assistant", &it.text);
            attributes.push((names::OUTPUT_MESSAGES, text.into()));
        }
        Span {
            name: format!("invoke_agent {agent}"),
            link: work.origin.link,
            ..self.span((work.id, work.origin.parent), work.begun.1, last, attributes, failure)
        }
    }

    fn chat_span(
        &self,
        agent: &str,
        open: &OpenTurn,
        last: &Entry,
        over: Option<&CognitionOut>,
    ) -> Span {
        let model = ModelName::parse(&open.asked.model);
        let mut attributes = self.attributes("chat", agent, open.begun.0);
        attributes.push((names::TURN, open.asked.turn.into()));
        let answered = over.and_then(|it| it.answered_by.as_deref()).map(ModelName::parse);
        attributes.extend(model.attributes_answered_by(answered.as_ref()));
        let most = open.asked.max_tokens.map(u64::from);
        attributes.extend(most.map(|it| (names::REQUEST_MAX_TOKENS, it.into())));
        let temperature = open.asked.temperature;
        attributes.extend(temperature.map(|it| (names::REQUEST_TEMPERATURE, Value::Number(it))));
        let mut failure = None;
        if let Some(over) = over {
            let reason = finish_reason(&over.stop);
            let reasons = reason.map(|it| Value::Texts(vec![it.to_owned()]));
            attributes.extend(reasons.map(|it| (names::FINISH_REASONS, it)));
            attributes.extend(over.tokens_in.map(|it| (names::INPUT_TOKENS, it.into())));
            attributes.extend(over.tokens_out.map(|it| (names::OUTPUT_TOKENS, it.into())));
            let parts = [
                (names::CACHE_READ_TOKENS, over.tokens_cached),
                (names::CACHE_WRITE_TOKENS, over.tokens_cache_written),
                (names::REASONING_TOKENS, over.tokens_reasoning),
            ];
            attributes.extend(parts.into_iter().filter_map(|(name, it)| Some((name, it?.into()))));
            if self.traced.content {
                let text = messages("assistant", &over.text);
                attributes.push((names::OUTPUT_MESSAGES, text.into()));
            }
            failure = over.error.as_deref().map(|error| {
                let kind = if over.refused == Some(true) { "refused" } else { &over.stop };
                self.failure(kind.to_owned(), Some(error))
            });
        } else {
            failure = Some(self.failure(names::UNFINISHED.to_owned(), None)).or(failure);
        }
        let id = SpanId::of(&EntryId::new(&self.traced.thread, open.begun.0));
        Span {
            name: format!("chat {}", model.name),
            kind: Kind::Client,
            ..self.span((id, open.parent), open.begun.1, last, attributes, failure)
        }
    }

    /// Makes the span of an action. `result` is the action's result or, if the thread ended first,
    /// the thread's state.
    fn tool_span(
        &self,
        seq: u64,
        open: OpenAction,
        last: &Entry,
        result: Result<&ActionResult, &str>,
    ) -> Span {
        let OpenAction { at_us, parent, agent, action } = open;
        let mut attributes = self.attributes("execute_tool", &agent, seq);
        attributes.extend(action.turn.map(|it| (names::TURN, it.into())));
        attributes.push((names::TOOL_NAME, action.name.as_str().into()));
        attributes.push((names::TOOL_TYPE, "function".into()));
        attributes.push((names::TOOL_CALL_ID, action.id.as_str().into()));
        if self.traced.content {
            let elements = action.elements.map(|it| it.parameters.canonical());
            let elements = elements.map(|it| String::from_utf8_lossy(&it).into_owned());
            if let Some(it) = action.parameters.or(elements) {
                attributes.push((names::TOOL_CALL_ARGUMENTS, cut(&it).into()));
            }
            if let Ok(it) = result {
                attributes.push((names::TOOL_CALL_RESULT, cut(&it.said()).into()));
            }
        }
        let failure = match result {
            Err(why) => Some(self.failure(why.to_owned(), None)),
            Ok(it) if it.status == Status::Ok => None,
            Ok(it) => {
                let code = it.error.as_ref().map(|it| it.code.as_str());
                let kind = code.unwrap_or(it.status.as_str()).to_owned();
                Some(self.failure(kind, it.why().as_deref()))
            }
        };
        let id = SpanId::of(&EntryId::new(&self.traced.thread, seq));
        Span {
            name: format!("execute_tool {}", action.name),
            ..self.span((id, parent), at_us, last, attributes, failure)
        }
    }

    /// Returns the attributes that every span has.
    fn attributes(&self, operation: &str, agent: &str, seq: u64) -> Vec<Attribute> {
        let entry = EntryId::new(&self.traced.thread, seq);
        vec![
            (names::OPERATION_NAME, operation.into()),
            (names::CONVERSATION_ID, self.traced.root.as_str().into()),
            (names::AGENT_NAME, agent.into()),
            (names::THREAD_ID, self.traced.thread.as_str().into()),
            (names::ENTRY_ID, entry.to_string().into()),
        ]
    }

    fn span(
        &self,
        (id, parent): (SpanId, Option<SpanId>),
        start_us: u64,
        last: &Entry,
        mut attributes: Vec<Attribute>,
        failure: Option<Failure>,
    ) -> Span {
        attributes.extend(failure.iter().map(|it| (names::ERROR_TYPE, it.kind.as_str().into())));
        Span {
            trace: TraceId::of(&self.traced.root),
            id,
            parent,
            name: String::new(),
            kind: Kind::Internal,
            start_us,
            // A span ends no earlier than it begins, even if the clock was set back.
            end_us: last.at_us().max(start_us),
            attributes,
            failure,
            link: None,
        }
    }
}

/// Reads the `traceparent` among the foreign elements of a `<meta>`, in any namespace.
fn traceparent(meta: &[u8]) -> Option<Link> {
    // A document has one root element, so the meta elements are wrapped in one.
    let whole = [b"<meta>", meta, b"</meta>"].concat();
    let meta = Element::from_canonical(whole.into()).ok()?;
    let found = meta.elements().find(|it| it.local() == "traceparent")?;
    Link::parse(&found.text())
}

/// Writes a message in the convention's form, as JSON.
fn messages(role: &str, text: &str) -> String {
    let parts = json!([{ "type": "text", "content": cut(text) }]);
    json!([{ "role": role, "parts": parts }]).to_string()
}

/// Returns the text, cut to at most [`CONTENT_BYTES_MAX`] bytes.
fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(CONTENT_BYTES_MAX)].to_owned()
}
