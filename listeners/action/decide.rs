//! Decides whether an action runs, and with which items: evaluates its condition and its list with
//! the values of other actions. The decision becomes an entry of the log.

use pumphouse::prelude::*;
use pumphouse::schema::json;
use pumphouse::xml::writable;
use serde_json::Value;

use super::super::condition::{Condition, Reference};
use super::call::lookup;
use super::filling::{Filling, resolve_json};
use super::graph::{self, ActionDefinition, LIST_FAILED, Seen, SeenNames};
use super::undo;
use super::variables::{Lookup, list_reference, step_into};
use super::words::{ActionDecided, ActionError, ForEach, ITEMS_MAX, METADATA, NOT_TAKEN};

/// The maximum number of a value's characters that the reason of a decision shows.
const SHOWN_MAX: usize = 200;

/// The inputs of a decision.
pub(super) struct Decider<'a> {
    pub(super) all: &'a Capabilities,
    pub(super) definition: &'a ActionDefinition,
    pub(super) seen: &'a SeenNames,
}

/// An item of a list: its number from 0, the name of the block's variable, and its value.
type Item<'a> = (usize, &'a str, &'a Value);

impl Decider<'_> {
    /// The decision about the action with this number.
    pub(super) fn decision(&self, of: u64) -> ActionDecided {
        let decided = match &self.definition.action.for_each {
            Some(each) => self.items(each).map(|(items, because)| (Some(items), because)),
            None => self.holds(None).map(|because| (None, because)),
        };
        match decided {
            Ok((items, because)) => {
                let items = items.map(|it| json::text(&Value::Array(it)));
                ActionDecided { of, runs: true, code: None, because, items }
            }
            Err(ActionError { code, message }) => {
                let (code, because) = (Some(code), Some(writable(&message)));
                ActionDecided { of, runs: false, code, because, items: None }
            }
        }
    }

    /// Evaluates the condition. If it holds, returns the condition's text and the values of its
    /// references. If it doesn't hold, the error says why. Returns `Ok(None)` if there is no
    /// condition.
    fn holds(&self, item: Option<Item<'_>>) -> Result<Option<String>, ActionError> {
        let Some(condition) = &self.definition.condition else { return Ok(None) };
        let verdict = condition.evaluate(&|reference| self.value(reference, item));
        let saw = verdict.saw.iter().map(|(name, value)| format!("{name} is {}", cut(value)));
        let saw = saw.collect::<Vec<_>>().join(", ");
        let saw = if saw.is_empty() { saw } else { format!(", where {saw}") };
        let written = self.written(condition);
        match verdict.holds {
            true => Ok(Some(writable(&format!("{written}{saw}")))),
            false => {
                let plain = undo::why_not(&self.definition.action.id, &written, &verdict.saw);
                let message = plain.unwrap_or_else(|| format!("{written} doesn't hold{saw}"));
                Err(ActionError { code: NOT_TAKEN.to_owned(), message })
            }
        }
    }

    fn written(&self, condition: &Condition) -> String {
        let when = self.definition.action.when.as_ref();
        when.map_or_else(|| condition.to_string(), |it| it.condition.clone())
    }

    /// Returns the items of the list, each wrapped in a list of one. Null stands for an item for
    /// which the condition doesn't hold. Also returns why the condition holds, for the first item
    /// for which it does. Fails if the list has items and the condition holds for none of them.
    fn items(&self, each: &ForEach) -> Result<(Vec<Value>, Option<String>), ActionError> {
        let list = self.list(each)?;
        let most = each.max.map_or(ITEMS_MAX, |it| usize::try_from(it).unwrap_or(ITEMS_MAX));
        let most = most.min(ITEMS_MAX);
        if list.len() > most {
            let message = format!(
                "{} has {} items, and this foreach takes {most} at the most; nothing ran",
                shown_list(each),
                list.len()
            );
            return Err(foreach(message));
        }
        let (mut items, mut refused, mut because) = (Vec::new(), None, None);
        for (number, item) in list.iter().enumerate() {
            match self.holds(Some((number, &each.var, item))) {
                Ok(why) => {
                    because = because.or(why);
                    items.push(Value::Array(vec![item.clone()]));
                }
                Err(why) => {
                    refused = refused.or(Some(why));
                    items.push(Value::Null);
                }
            }
        }
        match refused {
            Some(why) if items.iter().all(Value::is_null) => Err(why),
            _ => Ok((items, because)),
        }
    }

    /// The list of a `foreach` block.
    fn list(&self, each: &ForEach) -> Result<Vec<Value>, ActionError> {
        let Some(reference) = list_reference(&each.list) else {
            return match json::read(&each.list) {
                Ok(Value::Array(items)) => Ok(items),
                Ok(_) => Err(foreach(format!("{} is no list", shown_list(each)))),
                Err(error) => Err(foreach(format!("{} is no list: {error}", shown_list(each)))),
            };
        };
        let mut filling = Filling::default();
        let names = |name: &str| match self.seen.get(name) {
            Some(it) => lookup(self.all, &it.value),
            None => Lookup::Unknown,
        };
        let whole = Value::String(reference);
        let value = resolve_json(&whole, &names, &mut filling);
        if let Some(missing) = filling.unresolved.first() {
            let text = match &missing.missing {
                None if missing.is_too_large => missing.lost(),
                Some(step) => format!("the result of {} has no {step}", missing.name),
                None => format!("nothing is called {}", missing.name),
            };
            return Err(foreach(format!("{} is no list: {text}", shown_list(each))));
        }
        if let Some(Seen { value: graph::Value::Failed, .. }) =
            self.definition.list_name.as_ref().and_then(|it| self.seen.get(it))
        {
            let name = self.definition.list_name.as_deref().unwrap_or_default();
            let message = format!("{name}, which has its list, failed");
            return Err(ActionError { code: LIST_FAILED.to_owned(), message });
        }
        match value {
            Value::Array(items) => Ok(items),
            // The text may hold a list as JSON.
            Value::String(text) if text.trim_start().starts_with('[') => match json::read(&text) {
                Ok(Value::Array(items)) => Ok(items),
                _ => Err(foreach(format!("{} is a text and no list", shown_list(each)))),
            },
            it => Err(foreach(format!("{} is {} and no list", shown_list(each), cut(&it)))),
        }
    }

    /// The value of a reference in the condition.
    fn value(&self, reference: &Reference, item: Option<Item<'_>>) -> Option<Value> {
        let path: Vec<_> = reference.path().collect();
        let walk = |from: &Value| {
            path.iter().try_fold(from, |value, step| step_into(value, step)).cloned()
        };
        let name = reference.name();
        if let Some((_, var, value)) = item
            && name == var
        {
            return walk(value);
        }
        if name == METADATA {
            let when = self.definition.action.when.as_ref()?;
            return walk(&json::read(when.metadata.as_deref()?).ok()?);
        }
        let seen = self.seen.get(name)?;
        let own = match (&seen.value, item) {
            (graph::Value::List(all), Some((number, ..))) if seen.is_paired => {
                Some(graph::Value::Result(all.get(number).cloned().flatten()))
            }
            _ => None,
        };
        let found = match lookup(self.all, own.as_ref().unwrap_or(&seen.value)) {
            Lookup::Value(known) => {
                let path: Vec<&str> = path.iter().map(|it| &**it).collect();
                known.at(&path).ok().cloned()
            }
            _ => None,
        };
        // `action_status` is always the status of the action. `status` has this meaning only if the
        // result has no field `status`.
        let status = seen.status.map(|it| Value::String(it.as_str().to_owned()));
        match &path[..] {
            [it] if it == "action_status" => status,
            [it] if it == "status" => found.or(status),
            _ => found,
        }
    }
}

fn foreach(message: String) -> ActionError {
    ActionError { code: "foreach".to_owned(), message }
}

/// The list as it is written, cut after `SHOWN_MAX` characters.
fn shown_list(each: &ForEach) -> String {
    match each.list.char_indices().nth(SHOWN_MAX) {
        Some((at, _)) => format!("{}…", &each.list[..at]),
        None => each.list.clone(),
    }
}

/// A value as JSON, cut after `SHOWN_MAX` characters.
fn cut(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
