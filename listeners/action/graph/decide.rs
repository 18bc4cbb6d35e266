//! Decisions in the graph: whether an action runs, and with which items. An action may have a
//! condition, and a list with whose items it is called. The graph asks for a decision once all
//! actions that the decision depends on are done. The action continues when the decision is in the
//! log.

use std::collections::BTreeMap;
use std::sync::Arc;

use pumphouse::Element;
use serde_json::Value as Json;

use super::super::words::{ActionError, NOT_TAKEN, Status};
use super::{ActionOutcome, Bound, Graph, Id, NeedKind, Node, NodeState, OnError, Output, Value};

/// The error code of a decision to skip an action whose list is the result of a failed action.
pub const LIST_FAILED: &str = "skipped";

/// Whether an action runs, and with which items.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// Why the action doesn't run. None if it runs.
    pub error: Option<ActionError>,
    /// The items with which the action is called. None stands for an item for which the condition
    /// doesn't hold.
    pub items: Option<Vec<Option<Json>>>,
}

/// The value and the status of a name that a decision refers to.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The value.
    pub value: Value,
    /// The status of the action with this name. None if the name isn't that of an action.
    pub status: Option<Status>,
    /// Whether the name is that of an action in the same `foreach` block. The value then has one
    /// answer for each item.
    pub is_paired: bool,
}

/// Maps each name in a condition or a list to its value and its status.
pub type SeenNames = BTreeMap<String, Seen>;

/// The state of the decision about an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecisionState {
    /// The decision waits for other actions.
    Open,
    /// The graph has asked for the decision.
    Asked,
    /// The decision is made, or there is nothing to decide.
    Made,
}

/// The items with which an action is called, one after another.
#[derive(Clone, Debug)]
pub(super) struct Items {
    pub(super) list: ItemList,
    /// The answers so far, one for each item. None stands for an item without an answer.
    pub(super) answers: Vec<Option<Element>>,
    /// The number of attempts before the current item.
    pub(super) before: u32,
}

/// The origin of the items.
#[derive(Clone, Debug)]
pub(super) enum ItemList {
    /// A list. None stands for an item for which the condition doesn't hold.
    Json(Arc<[Option<Json>]>),
    /// The partial results of another action.
    Parts,
}

impl Items {
    /// Makes the items of a stream: the partial results of another action. None is answered yet.
    pub(super) fn of_parts() -> Items {
        Items { list: ItemList::Parts, answers: Vec::new(), before: 0 }
    }

    /// Skips list items for which the condition doesn't hold. Returns the state in which the action
    /// waits for its call with the next item. None if no item is left.
    fn next(&mut self) -> Option<NodeState> {
        let ItemList::Json(items) = &self.list else { return Some(NodeState::Waiting) };
        while items.get(self.answers.len()).is_some_and(Option::is_none) {
            self.answers.push(None);
        }
        (self.answers.len() < items.len()).then_some(NodeState::Queued)
    }

    /// The list item with which the action is called now. None if the items are partial results.
    fn current(&self) -> Option<&Json> {
        let ItemList::Json(items) = &self.list else { return None };
        items.get(self.answers.len())?.as_ref()
    }

    /// The position of the current item, in words.
    fn place(&self) -> String {
        let number = self.answers.len() + 1;
        match &self.list {
            ItemList::Json(items) => format!("item {number} of {}", items.len()),
            ItemList::Parts => format!("partial result {number}"),
        }
    }
}

impl Graph {
    /// Asks for the decision about a waiting action, if all actions that the decision depends on
    /// are done. Returns whether the action changed.
    pub(super) fn asks(&mut self, id: Id, out: &mut Vec<Output>) -> bool {
        let Some(node) = self.nodes.get(&id) else { return false };
        let is_over = self.turn(node).is_none_or(|it| it.is_over);
        for need in node.needs.iter().filter(|it| it.kind == NeedKind::Decision) {
            match need.on {
                Some(on) if self.live.contains(&on) => return false,
                None if is_over => {
                    let message = self.unknown(node, need);
                    self.fail(id, NOT_TAKEN, message, out);
                    return true;
                }
                None => return false,
                Some(_) => {}
            }
        }
        let seen = self.seen(node);
        let Some(node) = self.nodes.get_mut(&id) else { return false };
        node.decision = DecisionState::Asked;
        let (agent, definition) = (node.agent.clone(), node.definition.clone());
        out.push(Output::Decide { action: id, agent, definition, seen });
        true
    }

    fn seen(&self, node: &Node) -> SeenNames {
        let found = node.seen.iter().filter_map(|(name, bound)| {
            let seen = match bound {
                Bound::Value(value) => {
                    Seen { value: value.clone(), status: None, is_paired: false }
                }
                Bound::Action(id) => Seen {
                    value: self.resolved(*id)?,
                    status: self.outcome(*id).map(|it| it.status),
                    is_paired: self.nodes.get(id).is_some_and(|it| is_paired(it, node)),
                },
            };
            Some((name.clone(), seen))
        });
        found.collect()
    }

    /// Applies the decision about an action.
    pub(super) fn decided(&mut self, id: Id, decision: Decision, out: &mut Vec<Output>) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if node.decision != DecisionState::Asked || !self.live.contains(&id) {
            return;
        }
        node.decision = DecisionState::Made;
        let list = node.definition.list_name.clone();
        match decision.error {
            Some(error) if error.code == NOT_TAKEN || error.code == LIST_FAILED => {
                let because = list.filter(|_| error.code == LIST_FAILED);
                let (status, error) = (Status::Skipped, Some(error));
                self.finish(id, ActionOutcome { status, answer: None, error, because }, out);
            }
            Some(ActionError { code, message }) => self.fail(id, &code, message, out),
            None => {
                let Some(items) = decision.items else { return };
                let list = ItemList::Json(items.into());
                node.items = Some(Items { list, answers: Vec::new(), before: 0 });
                self.next_item(id, None, out);
            }
        }
    }

    /// Whether an attempt was a call with an earlier item.
    pub(super) fn is_of_earlier_item(&self, id: Id, attempt: u32) -> bool {
        let items = self.nodes.get(&id).and_then(|it| it.items.as_ref());
        items.is_some_and(|it| attempt <= it.before)
    }

    /// Ends the current item with its answer, and continues with the next item. After the last
    /// item, the action is done. `answer` is None if the action begins with its first item, and
    /// `Some(None)` if the current item has no answer.
    pub(super) fn next_item(
        &mut self,
        id: Id,
        answer: Option<Option<Element>>,
        out: &mut Vec<Output>,
    ) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let attempts = node.attempts;
        let Some(items) = &mut node.items else { return };
        let is_first = answer.is_none();
        if let Some(answer) = &answer {
            node.parts.called(answer.as_ref());
        }
        items.answers.extend(answer);
        items.before = attempts;
        match items.next() {
            None => {
                let done =
                    ActionOutcome { status: Status::Ok, answer: None, error: None, because: None };
                self.finish(id, done, out);
            }
            Some(state) if !is_first => node.state = state,
            Some(_) => {}
        }
    }

    /// Ends the current item after its last attempt. Returns the outcome if it is also the outcome
    /// of the whole action.
    pub(super) fn item_over(
        &mut self,
        id: Id,
        done: ActionOutcome,
        out: &mut Vec<Output>,
    ) -> Option<ActionOutcome> {
        let node = self.nodes.get_mut(&id)?;
        let Some(items) = &node.items else { return Some(done) };
        let skips = node.definition.on_error() == OnError::Skip;
        match done.status {
            Status::Ok => self.next_item(id, Some(done.answer), out),
            Status::Failed | Status::TimedOut | Status::Unknown if skips => {
                self.next_item(id, Some(None), out);
            }
            _ => {
                node.failed_item = Some(items.place());
                return Some(done);
            }
        }
        None
    }

    /// The answers of an action that was called with items. None for any other action.
    pub(super) fn answers(&self, id: Id) -> Option<Vec<Option<Element>>> {
        Some(self.nodes.get(&id)?.items.as_ref()?.answers.clone())
    }

    /// Sets the values that depend on the current item. The value of an action in the same
    /// `foreach` block becomes its answer for this item. The variable of the block becomes the item
    /// itself. In a stream, the value of the source is the current partial result.
    pub(super) fn of_item(&self, node: &Node, values: &mut super::Values) {
        if let Some(part) = self.current_part(node) {
            let is_source =
                |it: &Bound| matches!(it, Bound::Action(id) if node.source() == Some(*id));
            let names = node.bound.iter().filter(|(_, it)| is_source(it)).map(|(name, _)| name);
            let value = || Value::Result(Some(part.clone()));
            values.extend(names.map(|name| (name.clone(), value())));
        }
        let (Some(items), Some(each)) = (&node.items, &node.definition.action.for_each) else {
            return;
        };
        let at = items.answers.len();
        for (name, bound) in &node.bound {
            let Bound::Action(id) = bound else { continue };
            if let (Some(Value::List(all)), Some(other)) = (values.get(name), self.nodes.get(id))
                && is_paired(other, node)
            {
                let value = Value::Result(all.get(at).cloned().flatten());
                values.insert(name.clone(), value);
            }
        }
        values.extend(items.current().map(|it| (each.var.clone(), Value::Item(it.clone()))));
    }
}

/// Whether two actions belong to the same `foreach` block.
fn is_paired(one: &Node, other: &Node) -> bool {
    let block = |it: &Node| it.definition.action.for_each.as_ref().map(|it| it.block);
    one.turn() == other.turn() && block(one).is_some() && block(one) == block(other)
}
