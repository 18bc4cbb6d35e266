//! Checks what a waiting action waits for: its decision, its dependencies, earlier `sync` actions
//! of its turn, and the end of the turn.

use super::super::words::{ActionError, Mode, Status};
use super::decide::Items;
use super::{ActionOutcome, DecisionState, Dispatch, Graph, Id, NeedKind, Node, NodeState};
use super::{OnError, Output, micros};

/// The state of a waiting action's dependencies.
enum Readiness {
    Ready,
    Waits,
    /// The action depends on a name that no action has. The text is the error's message.
    Unknown(String),
    /// The action ends without a further call, since an action that it depends on failed, was
    /// cancelled or was skipped.
    Over(ActionOutcome),
}

impl Graph {
    /// Checks what a waiting action waits for. The action may continue, be skipped or fail. Returns
    /// whether the action changed.
    pub(super) fn look(&mut self, now: u64, id: Id, out: &mut Vec<Output>) -> bool {
        let Some(node) = self.nodes.get(&id) else { return false };
        match node.decision {
            DecisionState::Open => return self.asks(id, out),
            DecisionState::Asked => return false,
            DecisionState::Made => {}
        }
        let Some(turn) = self.turn(node) else { return false };
        let (is_over, policy) = (turn.is_over, turn.policy);
        match self.readiness(node, is_over) {
            Readiness::Ready => {}
            Readiness::Waits => return false,
            Readiness::Unknown(message) => {
                self.fail(id, "unknown-dependency", message, out);
                return true;
            }
            Readiness::Over(outcome) => {
                self.finish(id, outcome, out);
                return true;
            }
        }
        if self.barrier(id).next().is_some() {
            return false;
        }
        if self.goes_on(id, out) {
            return true;
        }
        let state = match policy.dispatch {
            Dispatch::AfterResponse if !is_over => return false,
            Dispatch::Batched if !is_over => NodeState::Batched,
            _ => NodeState::Queued,
        };
        if matches!(state, NodeState::Batched)
            && let Some(turn) = self.turn_mut(id)
        {
            let delay = micros(turn.policy.limits.batch_delay);
            turn.batch_due.get_or_insert(now.saturating_add(delay));
        }
        let has_part = self.nodes.get(&id).is_some_and(|it| self.has_part(it));
        if let Some(node) = self.nodes.get_mut(&id) {
            node.state = state;
            if has_part {
                node.items = Some(Items::of_parts());
            }
        }
        true
    }

    fn readiness(&self, node: &Node, is_over: bool) -> Readiness {
        let source = node.source();
        let mut is_ready = true;
        for need in node.needs.iter().filter(|it| it.kind != NeedKind::Decision) {
            let Some(on) = need.on else {
                if is_over && need.kind == NeedKind::Reference && !need.is_streamed {
                    // No action has the name, so the reference is plain text.
                    continue;
                }
                if is_over {
                    return Readiness::Unknown(self.unknown(node, need));
                }
                is_ready = false;
                continue;
            };
            let Some(NodeState::Done(done)) = self.nodes.get(&on).map(|it| &it.state) else {
                is_ready &= source == Some(on) && self.has_part(node);
                continue;
            };
            if !self.lets_through(on, done) {
                let skipped = || {
                    let because = done.because.clone().unwrap_or_else(|| need.id.clone());
                    let message = done.reason(&need.id);
                    let error = Some(ActionError { code: "skipped".to_owned(), message });
                    let (status, because) = (Status::Skipped, Some(because));
                    ActionOutcome { status, answer: None, error, because }
                };
                return Readiness::Over(self.cut_off(node, on, done).unwrap_or_else(skipped));
            }
        }
        if is_ready { Readiness::Ready } else { Readiness::Waits }
    }

    /// Whether the actions that depend on this one may run, given its outcome.
    pub(super) fn lets_through(&self, id: Id, done: &ActionOutcome) -> bool {
        let skips = self.nodes.get(&id).is_some_and(|it| it.definition.on_error() == OnError::Skip);
        match done.status {
            Status::Ok => true,
            Status::Failed | Status::TimedOut | Status::Unknown => skips,
            Status::Skipped => done.is_not_taken(),
            Status::Cancelled => false,
        }
    }

    /// The unfinished `sync` actions that come before this action in the same turn. This action
    /// waits for them. Actions that the model wrote as tool calls don't wait for each other.
    /// Neither do actions of one `parallel` block. A stream doesn't wait for its sources.
    pub(super) fn barrier(&self, id: Id) -> impl Iterator<Item = Id> {
        let node = self.nodes.get(&id);
        let sources = node.map(|it| self.sources(it)).unwrap_or_default();
        let earlier = self.live.range(..id).filter_map(|it| Some((*it, self.nodes.get(it)?)));
        earlier.filter_map(move |(at, earlier_node)| {
            let node = node?;
            let is_same = earlier_node.agent == node.agent
                && earlier_node.definition.action.turn.is_some()
                && earlier_node.definition.action.turn == node.definition.action.turn;
            let is_sync = earlier_node.definition.action.mode == Mode::Sync;
            let are_together =
                earlier_node.definition.is_tool_use() && node.definition.is_tool_use();
            let is_beside = is_same && earlier_node.is_beside(node) || sources.contains(&at);
            (is_same && is_sync && !are_together && !is_beside).then_some(at)
        })
    }
}
