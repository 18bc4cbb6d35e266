//! The listener `action` runs the actions of agents. An [`Action`] is a call of a tool or of
//! another listener that an agent wrote in its reply. Its answer is an [`ActionResult`].
//!
//! Usually an action starts as soon as it is defined, while its agent still writes. An action may
//! have to wait:
//!
//! - for actions that it depends on or refers to,
//! - for earlier `sync` actions of its turn,
//! - for the start of its batch or the end of its turn, if the turn's dispatch says so,
//! - for a limit, such as the number of actions that run at once.
//!
//! `docs/actions.md` has the rules. [`graph`] implements them, and `actions` makes the inputs of
//! the graph from the log.

mod open_payload;
pub mod read;
mod settings;
pub mod unresolved;
pub mod variables;
pub mod filling;
mod scalar_texts;
pub mod parameters;
pub mod graph;
mod actions;
pub mod value;
pub mod command_arguments;
pub mod call;
pub mod undo;
mod decide;

pub use super::words::action as words;

use std::sync::Arc;

use pumphouse::id::EntryId;
use pumphouse::limits::XmlLimits;
use pumphouse::listener::{Context, Described, FromContext, IntoEmit, Need, Withdraw};
use pumphouse::prelude::*;
use serde_json::Value;

pub use self::actions::{Actions, action_of};
use self::actions::{Effect, key};
use self::call::{ResolvedValues, called, oddity, payload, unresolved, with_peers};
use self::decide::Decider;
use self::graph::{ActionOutcome, Output, Time};
pub use self::settings::{InternalActions, Settings};
use self::value::{known, notes, sentence};
pub use self::words::NAME;
use self::words::{
    Action, ActionDecided, ActionError, ActionRefused, ActionResult, ActionsCancelled, ActionsDue,
    CancelAction, Mode, ResultValue, Status,
};
use super::agent_context::AgentFacts;
use super::metadata::METADATA;
use super::thread::CancelThread;
use super::words::agent::{CognitionOut, Stopped};

/// The listener `action`. Its fold [`Actions`] reads the messages, so the handlers take their
/// payloads undecoded.
#[must_use]
pub fn action(settings: Settings) -> Listener {
    Listener::with_state(NAME, Arc::new(settings))
        .on_named(Action::schema().clone(), handle)
        .on_named(CognitionOut::schema().clone(), handle)
        .on_named(CancelAction::schema().clone(), handle)
        .on_named(ActionRefused::schema().clone(), handle)
        .on_named(ActionDecided::schema().clone(), handle)
        .on_named(ActionsDue::schema().clone(), handle)
        .on_any_reply(handle)
        .fold::<Actions>()
        .wakes(actions::wakes)
        .serial()
        .reaction()
        .settles()
        .grant::<Timers>()
        .grant::<EmitCore>()
        .describe("Does what agents want done, in its order, side by side where it can be.")
        .stateless()
}

async fn handle(handling: Handling, _: Element) -> Emissions {
    handling.emissions()
}

/// The contexts of the handlers of `action`: the message, and what the handlers need besides it.
#[derive(FromContext)]
struct Handling {
    message: Message,
    actions: ReadableActions,
    capabilities: Capabilities,
    settings: State<Arc<Settings>>,
}

/// The thread's actions. The fold ignores an action whose payload can't be decoded. For the message
/// of such an action, this context returns an error. The handler then counts as failed, and the
/// sender gets a fault with the reason. `FromContext` is written by hand because of this check.
struct ReadableActions(Fold<Actions>);

impl<S> FromContext<S> for ReadableActions {
    fn needs() -> Vec<Need> {
        <Fold<Actions> as FromContext<S>>::needs()
    }

    fn from_context(context: &Context<S>) -> Result<ReadableActions, Fault> {
        let actions: Fold<Actions> = Fold::from_context(context)?;
        let message = context.message();
        if message.is::<Action>() && actions.of(message.seq()).is_empty() {
            message.decode::<Action>()?;
        }
        Ok(ReadableActions(actions))
    }
}

/// The emissions of a handler of `action`. They are sent in the order of these fields.
#[derive(Default, IntoEmit)]
struct Emissions {
    results: Vec<Reply<ActionResult>>,
    /// Results of agents' `fire_and_forget` actions. A note starts no handler, so these results
    /// wake no agent.
    quiet_results: Vec<Note<To<ActionResult, String>>>,
    calls: Vec<Request<To<Element, String>>>,
    /// Refusals of calls that can't be sent. Each is a message to `action` itself. When it is
    /// handled, the attempt of the refused call fails.
    refusals: Vec<Again<ActionRefused>>,
    /// Decisions on whether actions run. Each is a message to `action` itself.
    decisions: Vec<Again<ActionDecided>>,
    ended_threads: Vec<To<CancelThread>>,
    /// Calls whose answers aren't needed any more.
    withdrawn: Vec<Withdraw>,
    timers: Vec<Later<ActionsDue>>,
    cancelled: Option<ActionsCancelled>,
}

impl Handling {
    fn emissions(&self) -> Emissions {
        let mut emissions = Emissions::default();
        for effect in &*self.actions.0.of(self.message.seq()) {
            match effect {
                Effect::End(thread) => {
                    let reason = Some("the action that it worked for is over".to_owned());
                    let end = CancelThread { thread: Some(thread.clone()), reason };
                    emissions.ended_threads.push(To("thread", end));
                }
                Effect::Withdraw(seq) => {
                    let call = EntryId::new(self.message.thread(), *seq);
                    emissions.withdrawn.push(Withdraw(call));
                }
                Effect::Output(
                    Output::Call { action, attempt, item, agent, definition, values },
                    _,
                ) => {
                    let values = self.values(agent, definition, values);
                    match self.call(agent, definition, &values) {
                        Ok((listener, payload)) => {
                            let described = self.capabilities.listener(&listener);
                            let is_idempotent =
                                described.is_some_and(|it| it.is_idempotent(&payload));
                            let key = key(self.message.thread(), *action, *item);
                            let call = Request::new(To(listener, payload)).key(key);
                            emissions.calls.push(call.idempotent(is_idempotent));
                        }
                        Err(ActionError { code, message }) => {
                            let (of, attempt) = (*action, *attempt);
                            let refused = ActionRefused { of, attempt, code, message };
                            emissions.refusals.push(Again(refused));
                        }
                    }
                }
                Effect::Output(Output::Decide { action, definition, seen, .. }, _) => {
                    let decider = Decider { all: &self.capabilities, definition, seen };
                    emissions.decisions.push(Again(decider.decision(*action)));
                }
                Effect::Output(output, Some(asked)) => {
                    let Some(result) = self.result(output) else { continue };
                    if is_quiet(output) && !asked.is_from_identity() {
                        let quiet = Note(To(asked.from().to_owned(), result));
                        emissions.quiet_results.push(quiet);
                    } else {
                        emissions.results.push(Reply(asked.clone(), result));
                    }
                }
                Effect::Output(Output::Wake { time: Time { at, of }, is_awaited }, _) => {
                    let later = Later::at(*at, ActionsDue { at: *at, of: *of });
                    emissions.timers.push(if *is_awaited { later } else { later.unawaited() });
                }
                Effect::Output(Output::Cancelled(count), _) => {
                    emissions.cancelled = Some(ActionsCancelled { count: *count });
                }
                Effect::Output(..) => {}
            }
        }
        emissions
    }

    /// The listener that an action calls, and the payload for it.
    fn call(
        &self,
        agent: &str,
        definition: &graph::ActionDefinition,
        values: &ResolvedValues,
    ) -> Result<(String, Element), ActionError> {
        let all = &self.capabilities;
        let called = called(all, agent, definition, &self.settings.0)
            .map_err(|why| with_peers(why, all, agent, definition))?;
        let payload = payload(definition, &called, values)?;
        Ok((called.listener.name.clone(), payload))
    }

    /// The values of the references in an action, such as `$name`.
    fn values(
        &self,
        agent: &str,
        definition: &graph::ActionDefinition,
        values: &graph::Values,
    ) -> ResolvedValues {
        let resolved = ResolvedValues::of(&self.capabilities, values);
        let is_action = values.get(METADATA).is_some_and(graph::Value::is_of_action);
        match self.metadata(agent, definition) {
            Some(fields) if !is_action => resolved.with_metadata(&fields),
            _ => resolved,
        }
    }

    /// The metadata fields of an agent for an action that refers to them, as a JSON object. A field
    /// is null if it had no value when the action was written, or if the action doesn't refer to
    /// it. None if the agent has no fields, or if the action doesn't refer to metadata.
    fn metadata(&self, agent: &str, definition: &graph::ActionDefinition) -> Option<Value> {
        let names = [&definition.refers_to, &definition.escaped];
        let facts =
            self.capabilities.listener(agent).and_then(Described::extension::<AgentFacts>)?;
        if facts.fields.is_empty() || !names.iter().any(|it| it.contains(METADATA)) {
            return None;
        }
        let noted = definition.action.metadata_fields.as_ref().map(|it| &it.0);
        let value = |name: &str| noted.and_then(|it| it.get(name)).cloned().unwrap_or_default();
        let all = facts.fields.all().map(|it| (it.name().to_owned(), value(it.name())));
        Some(Value::Object(all.collect()))
    }

    fn result(&self, output: &Output) -> Option<ActionResult> {
        let Output::Result { action: of, agent, definition, values, attempts, .. } = output else {
            return None;
        };
        let Output::Result { answers, item, done, .. } = output else { return None };
        let action = &definition.action;
        let ActionOutcome { status, answer, error, because } = &**done;
        let all = &self.capabilities;
        let json = |it: &Element| known(all, it).value;
        let listed = answers.as_ref().map(|answers| {
            answers.iter().map(|it| it.as_ref().map_or(Value::Null, json)).collect()
        });
        let value = match (status, answer) {
            _ if listed.is_some() => listed,
            (Status::Ok, None) => Some(Value::Null),
            (_, it) => it.as_ref().map(json),
        };
        let value = value.map(ResultValue::from);
        let mut error = error.clone();
        // The error of a stopped agent has a good message already.
        let told = answer.as_ref().filter(|it| it.name() != Stopped::NAME);
        if let (Some(error), Some(answer)) = (&mut error, told) {
            error.message = match sentence(all, answer) {
                said if said.is_empty() => format!("{} says no more", action.name),
                said => said,
            };
        }
        if let (Some(item), Some(error)) = (item, &mut error) {
            error.message = format!("{item}: {}", error.message);
        }
        let warning = match *attempts {
            0 => Vec::new(),
            _ => self.warnings(agent, definition, &self.values(agent, definition, values)),
        };
        // The sentence of an error has the notes already.
        let note = match (&error, answers, answer) {
            (None, Some(answers), _) => notes_of_items(all, answers),
            (None, None, Some(answer)) => notes(all, answer),
            _ => Vec::new(),
        };
        Some(sendable(ActionResult {
            id: action.id.clone(),
            turn: action.turn,
            of: *of,
            name: action.name.clone(),
            status: *status,
            attempts: *attempts,
            dialect: action.dialect,
            show: action.show,
            because: because.clone(),
            answer: answer.as_ref().map(|it| it.name().to_string()),
            note,
            warning,
            error,
            value,
        }))
    }

    /// The warnings about an action that ran. They report a wrong `type`, a field `metadata` that
    /// has no effect, and references to unknown names.
    fn warnings(
        &self,
        agent: &str,
        definition: &graph::ActionDefinition,
        values: &ResolvedValues,
    ) -> Vec<String> {
        let Ok(called) = called(&self.capabilities, agent, definition, &self.settings.0) else {
            return Vec::new();
        };
        let unresolved = unresolved(definition, called.schema, values);
        let own = &definition.action.id;
        let unknown = unresolved.iter().filter(|it| it.missing.is_none()).take(UNKNOWN_MAX);
        let unresolved = unknown.map(|it| match it.name == *own {
            true => format!("{} stays as it is: {own} is this action itself", it.reference),
            false => it.advised(self.actions.0.graph().known(agent)),
        });
        oddity(definition, &called).into_iter().chain(unresolved).collect()
    }
}

/// The maximum number of references to unknown names that an action is warned of.
const UNKNOWN_MAX: usize = 20;

/// The notes of the answers for items, each with the number of its item, from 1.
fn notes_of_items(all: &Capabilities, answers: &[Option<Element>]) -> Vec<String> {
    let numbered = (1..).zip(answers);
    let numbered = numbered.filter_map(|(number, it)| Some((number, it.as_ref()?)));
    let each = numbered.flat_map(|(number, it): (usize, _)| {
        notes(all, it).into_iter().map(move |it| format!("item {number}: {it}"))
    });
    each.collect()
}

/// Whether an output is the result of a `fire_and_forget` action.
fn is_quiet(output: &Output) -> bool {
    let Output::Result { definition, .. } = output else { return false };
    definition.action.mode == Mode::FireAndForget
}

/// The number of bytes that one byte of a text has at the most once it is escaped.
const ESCAPED_BYTES_MAX: usize = 6;

/// Takes the value out of a result that would be larger than a message may be, and says so in a
/// warning. The status stays: the call has ended as it says, and `$id` still has the value.
fn sendable(mut result: ActionResult) -> ActionResult {
    let texts = result.value.iter().map(|it| &it.text);
    let texts = texts.chain(result.error.iter().map(|it| &it.message));
    let bytes: usize = texts.chain(&result.note).map(String::len).sum();
    let max = XmlLimits::INSIDE.message_bytes_max;
    if bytes <= max / ESCAPED_BYTES_MAX || result.encode().is_ok() {
        return result;
    }
    result.warning = vec![format!(
        "The value has {bytes} bytes, and a message at most {max} once it is escaped: it is left \
         out here. Ask for less, or for a part of it."
    )];
    (result.value, result.note) = (None, Vec::new());
    if let Some(error) = &mut result.error {
        error.message = "its message is too long for a message of the pump".to_owned();
    }
    result
}
