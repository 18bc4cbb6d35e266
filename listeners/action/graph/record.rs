//! Takes over what a log says of actions that an older version ran. Its calls and results count,
//! whatever today's rules would make of the same messages. In a log that this version writes, the
//! graph has computed each of them before, and nothing changes.

use std::sync::Arc;

use super::{ActionOutcome, Graph, Id, NodeState, Status, Turn};

impl Graph {
    /// Takes in that the log has a call of an action: its attempt runs. Says whether an answer to
    /// it is of use.
    pub fn called(&mut self, id: Id, attempt: u32) -> bool {
        let Some(node) = self.nodes.get(&id) else { return false };
        if node.is_recorded || attempt <= node.attempts {
            return self.live.contains(&id);
        }
        let values = Arc::new(self.values(node));
        let until = self.now.saturating_add(node.definition.timeout_us);
        if let Some(node) = self.nodes.get_mut(&id) {
            (node.attempts, node.values) = (attempt, values);
            node.state = NodeState::Running(until);
            node.limited_until = None;
        }
        self.live.insert(id);
        // The time that it may take was asked for with the call.
        self.arm(&mut Vec::new());
        true
    }

    /// Notes the end of the rate limit that the agent waits for which an attempt called.
    pub fn limited(&mut self, id: Id, attempt: u32, until: u64) {
        if let Some(node) = self.nodes.get_mut(&id).filter(|it| it.attempts == attempt) {
            node.limited_until = Some(until);
        }
    }

    /// Takes in the result that the log has of an action. Where the graph made something else of
    /// it, the log is right: what the action was answered stays its answer, and those that depend
    /// on it go by the recorded status.
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
        // It may be why others were skipped, of which the log knows nothing.
        for (id, node) in &mut self.nodes {
            let is_skipped =
                matches!(&node.state, NodeState::Done(it) if it.status == Status::Skipped);
            if !is_skipped || node.is_recorded {
                continue;
            }
            node.state = NodeState::Waiting;
            self.live.insert(*id);
            let scope = self.scopes.entry(node.agent.clone()).or_default();
            let over = || Turn { is_over: true, ..Turn::default() };
            scope.turns.entry(node.turn()).or_insert_with(over);
        }
        // What this leads to stands in the log, too.
        self.settled(self.now, &mut Vec::new());
    }
}
