//! Compensations: the calls that undo actions of a turn. `<rollback>` becomes an action for each of
//! them, which runs if what it undoes ended well.

use pumphouse::reply::{Body, Element};
use pumphouse::schema::{json, nearest};
use serde_json::{Map, Value};

use super::super::action::words::{Action, Mode, When};

/// The field of an action's body.
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
    /// The id of the action that it undoes.
    of: String,
    name: String,
    parameters: Option<String>,
    /// The ids of the actions that undo it so far.
    undone_by: Vec<String>,
}

/// How far a `<rollback>` goes.
pub(super) struct Rollback<'a> {
    /// The first action that is undone. None means all of the turn.
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
        self.all.push(Compensation { of, name, parameters, undone_by: Vec::new() });
    }

    /// The actions that undo the turn's actions, the last one first.
    ///
    /// # Errors
    /// If the turn has no action to begin with.
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
            let mut condition = format!("${{{}.action_status}} == \"ok\"", it.of);
            for before in &it.undone_by {
                condition += &format!(" and ${{{before}.action_status}} == \"skipped\"");
            }
            it.undone_by.push(id.clone());
            actions.push(Action {
                id,
                mode: Mode::Sync,
                name: it.name.clone(),
                parameters: it.parameters.clone(),
                when: Some(When { metadata: None, condition }),
                ..Action::default()
            });
        }
        Ok(actions)
    }
}

/// Takes the field `compensate` out of an action's body. Returns the body without it, and the
/// compensation as JSON. None if the body has no such field.
///
/// # Errors
/// What is wrong with the field.
pub(super) fn taken(element: &Element<'_>) -> Result<Option<(String, String)>, String> {
    let Body::Json(text) = element.body else { return Ok(None) };
    if !text.contains(FIELD) {
        return Ok(None);
    }
    let Ok(Value::Object(mut body)) = json::read(text) else { return Ok(None) };
    let Some(call) = body.remove(FIELD) else { return Ok(None) };
    let Value::Object(call) = call else {
        return Err(format!("{FIELD} takes a JSON object with name and parameters, not {call}"));
    };
    check(&call)?;
    Ok(Some((Value::Object(body).to_string(), Value::Object(call).to_string())))
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
