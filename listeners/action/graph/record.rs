//! Applies the calls and results that the log has. Recorded calls and results count even if today's
//! rules lead to others, since an older version may have written the log. In a log of this version,
//! the graph has computed the recorded calls and results itself, so nothing changes.

use std::sync::Arc;

use super::{ActionOutcome, Graph, Id, NodeState, Status, Turn};

impl Graph {
    /// Records that the log has the call of an attempt, so the attempt runs. `is_idempotent` says
    /// whether the call may be made twice with the effect of once. Returns whether an answer to the
    /// call is still needed.
    pub fn called(&mut self, id: Id, attempt: u32, is_idempotent: bool) -> bool {
        let Some(node) = self.nodes.get_mut(&id) else { return false };
        node.is_idempotent = is_idempotent;
        let Some(node) = self.nodes.get(&id) else { return false };
        if node.is_recorded || attempt <= node.attempts {
            return self.live.contains(&id);
        }
        let values = Arc::new(self.values(node));
        let until = self.now.saturating_add(node.definition.timeout_us);
        if let Some(node) = self.nodes.get_mut(&id) {
            (node.attempts, node.values) = (attempt, values);
            node.state = NodeState::Running(until);
            (node.limited_until, node.progress) = (None, None);
        }
        self.live.insert(id);
        // The output that requests the timeout's wake-up is dropped, since it was sent with the
        // call.
        self.arm(&mut Vec::new());
        true
    }

    /// Records the end of the rate limit for which the called agent waits, in microseconds since
    /// the epoch.
    pub fn limited(&mut self, id: Id, attempt: u32, until: u64) {
        if let Some(node) = self.nodes.get_mut(&id).filter(|it| it.attempts == attempt) {
            node.limited_until = Some(until);
        }
    }

    /// Records how far the called agent has come.
    pub fn progressed(&mut self, id: Id, attempt: u32, progress: String) {
        if let Some(node) = self.nodes.get_mut(&id).filter(|it| it.attempts == attempt) {
            node.progress = Some(progress);
        }
    }

    /// Applies the recorded result of an action. If the graph computed another status, the recorded
    /// status counts, also for actions that depend on this one. If `recorded` has no answer, the
    /// answer to the last attempt stays.
    pub fn settle(&mut self, id: Id, recorded: ActionOutcome) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.is_recorded = true;
        if matches!(&node.state, NodeState::Done(it) if it.status == recorded.status) {
            return;
        }
        let answer = recorded.answer.or_else(|| node.answer.clone());
        node.state = NodeState::Done(Arc::new(ActionOutcome { answer, ..recorded }));
        self.live.remove(&id);
        self.armed.values_mut().for_each(|it| it.retain(|time| time.of != id));
        self.armed.retain(|_, it| !it.is_empty());
        // Other actions may have been skipped because of the computed status. Those without a
        // recorded result wait again.
        for (id, node) in &mut self.nodes {
            let is_skipped =
                matches!(&node.state, NodeState::Done(it) if it.status == Status::Skipped);
            let is_decided = matches!(&node.state, NodeState::Done(it) if it.is_not_taken());
            if !is_skipped || is_decided || node.is_recorded {
                continue;
            }
            node.state = NodeState::Waiting;
            self.live.insert(*id);
            let scope = self.scopes.entry(node.agent.clone()).or_default();
            let over = || Box::new(Turn { is_over: true, ..Turn::default() });
            scope.turns.entry(node.turn()).or_insert_with(over);
        }
        // The outputs are dropped: the log has them, too.
        self.settled(self.now, &mut Vec::new());
    }
}
