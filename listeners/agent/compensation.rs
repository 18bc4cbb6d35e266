//! Compensations: the calls that undo actions of a turn. A `<rollback>` becomes one action for each
//! compensation. This action runs only if the action that it undoes succeeded and isn't undone yet.

use pumphouse::listener::Capabilities;
use pumphouse::name::CORE;
use pumphouse::reply::{Body, Element, Kind};
use pumphouse::schema::{json, nearest};
use serde_json::{Map, Value};

use super::super::action::call::{Called, command_field, find, offered};
use super::super::action::undo;
use super::super::action::words::{Action, Mode, NAME as ACTION, TemplateText, When};

/// The field of an action's body that has the compensation.
const FIELD: &str = "compensate";

/// The actions of a turn that can be undone.
#[derive(Debug, Default)]
pub(super) struct Compensations {
    /// The ids of all actions of the turn, in the order in which they were written.
    ids: Vec<String>,
    all: Vec<Compensation>,
}

#[derive(Debug)]
struct Compensation {
    /// The id of the action that this compensation undoes.
    of: String,
    name: String,
    parameters: Option<String>,
    /// The texts of the parameters that an author's template made.
    template_text: Vec<TemplateText>,
    /// The ids of the undoing actions that rollbacks of this turn have made from this compensation.
    undone_by: Vec<String>,
}

/// The range of a `<rollback>`.
pub(super) struct Rollback<'a> {
    /// The id of the earliest action that is undone. All later actions are undone, too. None means
    /// that all actions of the turn are undone.
    pub(super) to: Option<&'a str>,
}

impl Compensations {
    /// Records an action of the turn.
    pub(super) fn record(&mut self, action: &Action) {
        self.ids.push(action.id.clone());
        let Some(text) = &action.compensate else { return };
        let Ok(Value::Object(call)) = json::read(text) else { return };
        let (of, parameters) = (action.id.clone(), call.get("parameters").map(Value::to_string));
        let name = call.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let text = action.template_text.iter().filter_map(|it| {
            let at = it.at.strip_prefix("/compensate")?.to_owned();
            Some(TemplateText { at, ..it.clone() })
        });
        let (template_text, undone_by) = (text.collect(), Vec::new());
        self.all.push(Compensation { of, name, parameters, template_text, undone_by });
    }

    /// Returns the actions that undo the turn's actions, in reverse order.
    ///
    /// # Errors
    /// If the turn has no action with the id [`Rollback::to`].
    pub(super) fn rollback(&mut self, rollback: &Rollback<'_>) -> Result<Vec<Action>, String> {
        let from = match rollback.to {
            None => 0,
            Some(to) => self.ids.iter().position(|it| it == to).ok_or_else(|| {
                let right = nearest(to, self.ids.iter().map(String::as_str));
                let right = right.map(|it| format!("; did you mean {it}?")).unwrap_or_default();
                format!("this turn has no action {to} before it{right}")
            })?,
        };
        let meant = &self.ids[from..];
        let mut actions = Vec::new();
        for it in self.all.iter_mut().rev().filter(|it| meant.contains(&it.of)) {
            let id = match it.undone_by.len() {
                0 => format!("{}-undo", it.of),
                more => format!("{}-undo-{}", it.of, more + 1),
            };
            let condition = undo::condition(&it.of, &it.undone_by);
            it.undone_by.push(id.clone());
            actions.push(Action {
                id,
                mode: Mode::Sync,
                name: it.name.clone(),
                parameters: it.parameters.clone(),
                template_text: it.template_text.clone(),
                when: Some(When { metadata: None, condition }),
                ..Action::default()
            });
        }
        Ok(actions)
    }
}

/// The names that an agent's actions may call. By default the names are unknown, and none is
/// refused.
#[derive(Default)]
pub(super) struct Callable(Option<(Capabilities, String)>);

impl std::fmt::Debug for Callable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Callable").field(&self.0.as_ref().map(|it| &it.1)).finish()
    }
}

impl Callable {
    /// The names that this agent may call.
    pub(super) fn of(all: &Capabilities, agent: &str) -> Callable {
        Callable(Some((all.clone(), agent.to_owned())))
    }

    /// The field of a called payload that lists a program and its arguments. None if the name isn't
    /// that of a listener that runs programs.
    pub(super) fn command(&self, name: &str) -> Option<&'static str> {
        command_field(&self.0.as_ref()?.0, name)
    }

    /// Checks the name in a compensation.
    ///
    /// # Errors
    /// If the agent may not call the name. The text doesn't reveal whether the name exists.
    pub(super) fn check(&self, compensation: &str) -> Result<(), String> {
        let Some((all, agent)) = &self.0 else { return Ok(()) };
        let call = json::read(compensation).unwrap_or_default();
        let name = call.get("name").and_then(Value::as_str).unwrap_or_default();
        let given = call.get("parameters").and_then(Value::as_object).into_iter().flatten();
        let given: Vec<&str> = given.map(|(name, _)| name.as_str()).collect();
        let peers = all.listener(agent).and_then(|it| it.peers.as_ref());
        let is_peer =
            |it: &str| it == agent || peers.is_none_or(|peers| peers.iter().any(|peer| peer == it));
        let may = |it: &Called<'_>| {
            let listener = &*it.listener.name;
            listener != ACTION && (is_peer(listener) || it.schema.name.namespace() == CORE)
        };
        match find(all, name, &given, may) {
            Ok(_) => Ok(()),
            Err(error) if error.code == "ambiguous" => Err(format!("{FIELD}: {}", error.message)),
            Err(_) => {
                let own =
                    all.listeners().iter().filter(|it| it.name != ACTION && is_peer(&it.name));
                let names: Vec<String> =
                    own.flat_map(|it| offered(all, it)).map(|it| it.0).collect();
                let right = nearest(name, names.iter().map(String::as_str));
                let right = right.map(|it| format!("; did you mean {it}?")).unwrap_or_default();
                Err(format!("{FIELD}: you have no peer {name}{right}"))
            }
        }
    }
}

/// Takes the field `compensate` out of an action's body. Returns the body without it, and the
/// compensation as JSON. None if the body has no such field.
///
/// # Errors
/// If the field's value isn't a JSON object with a name and, optionally, parameters.
pub(super) fn taken(element: &Element<'_>) -> Result<Option<(String, String)>, String> {
    // Only an action's body can have the field. The body of a tool call has the parameters alone.
    let Body::Json(text) = element.body else { return Ok(None) };
    if element.kind != Kind::Action || !text.contains(FIELD) {
        return Ok(None);
    }
    let Ok(Value::Object(mut body)) = json::read(text) else { return Ok(None) };
    let Some(call) = body.remove(FIELD) else { return Ok(None) };
    let Value::Object(call) = call else {
        return Err(format!("{FIELD} takes a JSON object with name and parameters, not {call}"));
    };
    check(&call)?;
    Ok(Some((json::text(&Value::Object(body)), json::text(&Value::Object(call)))))
}

fn check(call: &Map<String, Value>) -> Result<(), String> {
    let known = ["name", "parameters"];
    if let Some(name) = call.keys().find(|it| !known.contains(&it.as_str())) {
        let right = nearest(name, known.into_iter());
        let right = right.map(|it| format!("; did you mean {it}?")).unwrap_or_default();
        return Err(format!("{name} is no field of {FIELD}; there are name, parameters{right}"));
    }
    match call.get("name") {
        Some(Value::String(it)) if !it.trim().is_empty() => {}
        _ => return Err(format!("{FIELD} needs the name of the listener to call")),
    }
    match call.get("parameters") {
        None | Some(Value::Object(_)) => Ok(()),
        Some(it) => Err(format!("parameters of {FIELD} takes a JSON object, not {it}")),
    }
}
