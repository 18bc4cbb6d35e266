//! The listener `action`: what agents want done, in its order, side by side where it can be.
//!
//! An [`Action`] begins the moment it is defined, while its agent goes on writing, unless it has
//! to wait: for what it depends on, for an earlier `sync` one, for room. `docs/actions.md` has the
//! rules; [`graph`] keeps them; [`fold`] reads its inputs from the log.

pub mod call;
mod fold;
pub mod graph;
mod open;
pub mod read;
mod settings;
pub mod value;
pub mod variables;
pub mod words;

use std::sync::Arc;

use pumphouse::listener::{Context, FromContext, Need};
use pumphouse::prelude::*;
use serde_json::Value;

use self::call::{Values, called, oddity, payload};
pub use self::fold::Actions;
use self::fold::{Todo, key};
use self::graph::{Done as Outcome, Output, Time};
pub use self::settings::{InternalActions, Settings};
use self::value::{known, sentence};
pub use self::words::NAME;
use self::words::{
    Action, ActionError, ActionRefused, ActionResult, ActionsCancelled, ActionsDue, CancelAction,
    Mode, ResultValue, Status,
};
use super::agent::words::{CognitionOut, Stopped};
use super::thread::CancelThread;

/// The listener `action`. Whatever it takes, its fold has read that: no handler does so again.
#[must_use]
pub fn action(settings: Settings) -> Listener {
    Listener::with_state(NAME, Arc::new(settings))
        .on_named(Action::schema().clone(), goes_on)
        .on_named(CognitionOut::schema().clone(), goes_on)
        .on_named(CancelAction::schema().clone(), goes_on)
        .on_named(ActionRefused::schema().clone(), goes_on)
        .on_named(ActionsDue::schema().clone(), goes_on)
        .on_any_reply(goes_on)
        .fold::<Actions>()
        .wakes(fold::wakes)
        .serial()
        .inline()
        .pure()
        .settles()
        .grant::<Timers>()
        .grant::<EmitCore>()
        .describe("Does what agents want done, in its order, side by side where it can be.")
        .stateless()
}

async fn goes_on(it: Handling, _: Element) -> Sent {
    it.goes_on()
}

/// A message, and what it goes by.
struct Handling {
    message: Message,
    actions: Fold<Actions>,
    capabilities: Capabilities,
    settings: Arc<Settings>,
}

impl FromContext<Arc<Settings>> for Handling {
    fn needs() -> Vec<Need> {
        <Fold<Actions> as FromContext<Arc<Settings>>>::needs()
    }

    fn from_context(context: &Context<Arc<Settings>>) -> Result<Handling, Fault> {
        let message = Message::from_context(context)?;
        let actions: Fold<Actions> = Fold::from_context(context)?;
        // The fold passes over what can't be read, and its sender is told why.
        if message.is::<Action>() && actions.of(message.seq()).is_empty() {
            message.decode::<Action>()?;
        }
        Ok(Handling {
            message,
            actions,
            capabilities: Capabilities::from_context(context)?,
            settings: State::from_context(context)?.0,
        })
    }
}

/// What comes of a message: results, those that wake nobody, calls, calls that can't be, threads
/// that end, times, and how many actions were taken back.
type Sent = (
    Vec<Reply<ActionResult>>,
    Vec<Note<To<ActionResult, String>>>,
    Vec<Request<To<Element, String>>>,
    Vec<Again<ActionRefused>>,
    Vec<To<CancelThread>>,
    Vec<Later<ActionsDue>>,
    Option<ActionsCancelled>,
);

impl Handling {
    fn goes_on(&self) -> Sent {
        let mut sent = Sent::default();
        for it in &*self.actions.of(self.message.seq()) {
            match it {
                Todo::End(thread) => {
                    let reason = Some("the action that it worked for is over".to_owned());
                    let end = CancelThread { thread: Some(thread.clone()), reason };
                    sent.4.push(To("thread", end));
                }
                Todo::Output(Output::Call { action, attempt, agent, definition, values }, _) => {
                    let values = self.values(agent, definition, values);
                    match self.call(agent, definition, &values) {
                        Ok((listener, payload)) => {
                            let key = key(self.message.thread(), *action);
                            sent.2.push(Request::new(To(listener, payload)).key(key));
                        }
                        Err(ActionError { code, message }) => {
                            let (of, attempt) = (*action, *attempt);
                            sent.3.push(Again(ActionRefused { of, attempt, code, message }));
                        }
                    }
                }
                Todo::Output(output, Some(asked)) => {
                    let Some(result) = self.result(output) else { continue };
                    let is_quiet = self.is_quiet(output) && !asked.is_from_identity();
                    match is_quiet {
                        true => sent.1.push(Note(To(asked.from().to_owned(), result))),
                        false => sent.0.push(Reply(asked.clone(), result)),
                    }
                }
                Todo::Output(Output::Wake { time: Time { at, of }, is_awaited }, _) => {
                    let later = Later::at(*at, ActionsDue { at: *at, of: *of });
                    sent.5.push(if *is_awaited { later } else { later.unawaited() });
                }
                Todo::Output(Output::Cancelled(count), _) => {
                    sent.6 = Some(ActionsCancelled { count: *count });
                }
                Todo::Output(..) => {}
            }
        }
        sent
    }

    /// Whom an action calls, and with what.
    fn call(
        &self,
        agent: &str,
        definition: &graph::Definition,
        values: &Values,
    ) -> Result<(String, Element), ActionError> {
        let called = called(&self.capabilities, agent, definition, &self.settings)?;
        let made = payload(definition, called.schema, values);
        Ok((called.listener.name.clone(), made.payload?))
    }

    /// What an action's references stand for, by the rules of its turn.
    fn values(
        &self,
        agent: &str,
        definition: &graph::Definition,
        values: &graph::Values,
    ) -> Values {
        let rules = self.actions.rules(agent, definition.action.turn);
        Values::of(&self.capabilities, values, rules)
    }

    fn is_quiet(&self, output: &Output) -> bool {
        let Output::Result { definition, .. } = output else { return false };
        definition.action.mode == Mode::FireAndForget
    }

    fn result(&self, output: &Output) -> Option<ActionResult> {
        let Output::Result { action: of, agent, definition, values, attempts, done } = output
        else {
            return None;
        };
        let action = &definition.action;
        let Outcome { status, answer, error, because } = &**done;
        let (all, rules) = (&self.capabilities, self.actions.rules(agent, action.turn));
        let value = match (status, answer) {
            (Status::Ok, None) => Some(Value::Null),
            (_, it) => it.as_ref().map(|it| known(all, it, rules).value),
        };
        let value = value.map(|it| match rules {
            Some(_) => ResultValue::from(it),
            None => ResultValue { form: None, text: it.to_string() },
        });
        let mut error = error.clone();
        // Why an agent stopped is a sentence already.
        let told = answer.as_ref().filter(|it| it.name() != Stopped::NAME);
        if let (Some(error), Some(answer), Some(_)) = (&mut error, told, rules) {
            error.message = match sentence(all, answer) {
                said if said.is_empty() => format!("{} says no more", action.name),
                said => said,
            };
        }
        let warning = match *attempts {
            0 => Vec::new(),
            _ => self.warnings(agent, definition, &self.values(agent, definition, values)),
        };
        Some(ActionResult {
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
            warning,
            error,
            value,
        })
    }

    /// What was odd about an action that ran.
    fn warnings(
        &self,
        agent: &str,
        definition: &graph::Definition,
        values: &Values,
    ) -> Vec<String> {
        let Ok(called) = called(&self.capabilities, agent, definition, &self.settings) else {
            return Vec::new();
        };
        let unresolved = payload(definition, called.schema, values).unresolved;
        let rules = self.actions.rules(agent, definition.action.turn);
        let own = &definition.action.id;
        let unresolved = unresolved.iter().map(|it| match it.name == *own {
            true => format!("{} stays as it is: {own} is this action itself", it.reference),
            false => it.advised(self.actions.graph().known(agent)),
        });
        oddity(definition, &called, rules).into_iter().chain(unresolved).collect()
    }
}
