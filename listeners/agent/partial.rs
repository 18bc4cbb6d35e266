//! The actions of the turn at hand, their results so far, and the partial responses that wait for
//! them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pumphouse::prelude::*;
use serde_json::{Map, Value};

use super::super::action::words::{Action, ActionResult, Mode, Status};
use super::words::{Response, ResponseWaits};

/// The actions of a turn so far, and the partial responses that wait for them.
#[derive(Default)]
pub(super) struct Partials {
    actions: Vec<OwnAction>,
    /// The results that have come so far, by the ids of their actions.
    pub(super) results: BTreeMap<String, ActionResult>,
    /// The ids that several actions of the turn have.
    doubled: BTreeSet<String>,
    pub(super) waiting: VecDeque<WaitingPartial>,
}

/// An action of the turn.
struct OwnAction {
    id: String,
    key: Option<String>,
    target: String,
    is_sync: bool,
}

/// A partial response that waits for results of its turn.
pub(super) struct WaitingPartial {
    pub(super) text: String,
    pub(super) metadata: Map<String, Value>,
    /// The number of the turn's actions that come before it.
    pub(super) after: usize,
}

impl Partials {
    /// Records an action that begins.
    pub(super) fn begins(&mut self, action: &Action) {
        let target = action.name.split_once('.').map_or(&*action.name, |(listener, _)| listener);
        if self.actions.iter().any(|it| it.id == action.id) {
            self.doubled.insert(action.id.clone());
        }
        self.actions.push(OwnAction {
            id: action.id.clone(),
            key: action.output_key.clone(),
            target: target.to_owned(),
            is_sync: action.mode == Mode::Sync,
        });
    }

    /// Whether an action of the turn has this name.
    pub(super) fn has(&self, name: &str) -> bool {
        let named = |it: &OwnAction| it.id == name || it.key.as_deref() == Some(name);
        self.actions.iter().any(|it| named(it) || it.target == name)
    }

    /// The number of the turn's actions so far.
    pub(super) fn count(&self) -> usize {
        self.actions.len()
    }

    /// Adds a response that waits.
    pub(super) fn wait(&mut self, partial: WaitingPartial) {
        self.waiting.push_back(partial);
    }

    /// Whether no `sync` action among the first ones of the turn is unfinished.
    pub(super) fn is_past_syncs(&self, first: usize) -> bool {
        let mut syncs = self.actions.iter().take(first).filter(|it| it.is_sync);
        syncs.all(|it| self.result(&it.id).is_some())
    }

    /// The result of the turn's action with this id. None if it hasn't come, or if several actions
    /// have the id.
    fn result(&self, id: &str) -> Option<&ActionResult> {
        self.results.get(id).filter(|it| !self.doubled.contains(&it.id))
    }

    /// The value of a name of this turn. The outer None means that no action of the turn has the
    /// name. The inner one means that the value isn't known yet.
    pub(super) fn value(&self, name: &str) -> Option<Option<Value>> {
        let result = self.result_named(name)?;
        Some(result.map(|it| it.value().unwrap_or(Value::Null)))
    }

    /// The result of a name of this turn, with the same meaning of None as in `value`.
    pub(super) fn result_named(&self, name: &str) -> Option<Option<&ActionResult>> {
        let is_key = |it: &&OwnAction| it.key.as_deref() == Some(name);
        let action = self.actions.iter().rev().find(is_key);
        let action = action.or_else(|| self.actions.iter().rev().find(|it| it.id == name));
        let Some(action) = action else { return self.has(name).then_some(None) };
        Some(self.result(&action.id).filter(|it| it.status == Status::Ok))
    }
}

/// The places at which the responses of a recorded turn begin that had to wait, and the partial
/// responses that were delivered during the turn.
pub(super) fn recorded(sent: &[Entry]) -> (BTreeSet<u64>, Vec<Response>) {
    let waits = sent.iter().filter_map(Entry::decode_if::<ResponseWaits>).map(|it| it.from);
    let responses = sent.iter().filter_map(Entry::decode_if::<Response>);
    (waits.collect(), responses.filter(|it| !it.is_final).collect())
}
