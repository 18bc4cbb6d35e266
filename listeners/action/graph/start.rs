//! Starts the queued actions of the graph. Agents, groups and `parallel` blocks have limits for the
//! number of actions that run at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pumphouse::limits::ActionLimits;

use super::super::super::words::agent::Dispatch;
use super::{Graph, Id, Node, NodeState, Output};

impl Graph {
    /// Starts queued actions in their order. Skips an action if `at_once` is reached, or if the
    /// action's group or block has no room. Always returns false, since a start lets no other
    /// action continue.
    pub(super) fn start(&mut self, now: u64, out: &mut Vec<Output>) -> bool {
        let mut running: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        let mut groups: BTreeSet<(Arc<str>, u64, String)> = BTreeSet::new();
        let mut blocks: BTreeMap<(Arc<str>, u64, u64), u64> = BTreeMap::new();
        for node in self.live.iter().filter_map(|it| self.nodes.get(it)) {
            if matches!(node.state, NodeState::Running(_)) {
                *running.entry(node.agent.clone()).or_default() += 1;
                node.block().into_iter().for_each(|it| *blocks.entry(it).or_default() += 1);
            }
            if matches!(node.state, NodeState::Running(_) | NodeState::Pausing(_)) {
                groups.extend(self.group(node));
            }
        }
        let is_queued = |it: &&Id| self.nodes.get(it).is_some_and(Node::is_queued);
        let queued: Vec<Id> = self.live.iter().filter(is_queued).copied().collect();
        for id in &queued {
            let Some(node) = self.nodes.get(id) else { continue };
            let room = self.scopes.get(&node.agent).and_then(|it| it.at_once);
            let room = room.unwrap_or_else(|| ActionLimits::default().at_once);
            let count = running.entry(node.agent.clone()).or_default();
            let group = self.group(node);
            // The first queued action of a group reserves the group. Thus an action that is retried
            // starts before later actions of its group.
            let is_free = group.is_none_or(|it| groups.insert(it));
            let most = node.definition.action.parallel_max.unwrap_or(u64::MAX).max(1);
            let beside = node.block().map(|it| blocks.entry(it).or_default());
            let is_full = beside.as_ref().is_some_and(|it| **it >= most);
            if *count >= room || !is_free || is_full {
                continue;
            }
            *count += 1;
            beside.into_iter().for_each(|it| *it += 1);
            let mut values = self.values(node);
            self.of_item(node, &mut values);
            let values = Arc::new(values);
            let Some(node) = self.nodes.get_mut(id) else { continue };
            node.attempts += 1;
            (node.limited_until, node.progress) = (None, None);
            node.values = values.clone();
            node.state = NodeState::Running(now.saturating_add(node.definition.timeout_us));
            let (agent, definition) = (node.agent.clone(), node.definition.clone());
            let (attempt, item) = (node.attempts, node.items.as_ref().map(|it| it.answers.len()));
            out.push(Output::Call { action: *id, attempt, item, agent, definition, values });
        }
        false
    }

    /// The group of an action if its turn is batched. The actions of a group run one after another.
    fn group(&self, node: &Node) -> Option<(Arc<str>, u64, String)> {
        let is_batched = self.turn(node)?.policy.dispatch == Dispatch::Batched;
        let group = || (node.agent.clone(), node.turn(), node.definition.group.clone());
        is_batched.then(group)
    }
}
