//! Resolves the names that actions and responses refer to. A name stands for an action by its
//! output key or id, for a feed, or for the only action that called a listener of this name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pumphouse::schema::nearest;

use super::{
    ActionDefinition, ActionOutcome, Bound, FeedContents, Graph, Id, Meaning, NeedKind, Needed,
    Node, NodeState, Scope,
};
use super::{Status, Value, Values};

impl Graph {
    /// Sets the contents of an agent's feeds in a turn's prompt. None means that the prompt shows
    /// nothing of the feed. In this turn's actions and responses, a feed's name stands for this
    /// content.
    pub fn shows(&mut self, agent: &Arc<str>, turn: u64, feeds: FeedContents) {
        let scope = self.scopes.entry(agent.clone()).or_default();
        let before = scope.shown.values().next_back();
        let feeds = before.filter(|it| ***it == feeds).cloned().unwrap_or_else(|| Arc::new(feeds));
        scope.shown.insert(turn, feeds);
    }

    /// Records that an agent has given its final answer or stopped. Results that have lost their
    /// name to a newer action are dropped. While the agent works, such results are kept, since a
    /// waiting response may refer to them.
    pub fn work_over(&mut self, agent: &str) {
        let Some(scope) = self.scopes.get_mut(agent) else { return };
        scope.is_at_work = false;
        let newest = scope.shown.keys().next_back().copied();
        scope.shown.retain(|turn, _| Some(*turn) == newest);
        self.forget(agent);
    }

    /// The meaning of a name in a response of an agent's turn. `at` is the place of the response:
    /// actions with a smaller number come before it.
    ///
    /// The meaning is the first one of these that exists:
    ///
    /// - the newest action with the name as its output key, of those before the response,
    /// - the newest action with the name as its id, of those before the response,
    /// - a feed of the turn,
    /// - the only action before the response that called the listener of this name,
    /// - the first action after the response, in the same turn, whose output key, id or called
    ///   listener is the name.
    ///
    /// Actions of later turns don't change the meaning.
    #[must_use]
    pub fn meaning(&self, agent: &str, name: &str, at: Id, turn: u64) -> Meaning {
        let Some(scope) = self.scopes.get(agent) else { return Meaning::Nothing };
        let is_own = |it: &(&Id, &Node)| *it.1.agent == *agent;
        let before = || self.nodes.range(..at).rev().filter(is_own);
        let keyed = before().find(|(_, it)| it.definition.has_key(name));
        let called = || before().find(|(_, it)| it.definition.action.id == name);
        if let Some((id, _)) = keyed.or_else(called) {
            return Meaning::Action(*id);
        }
        if scope.feed(name, turn).is_some() {
            return Meaning::Feed;
        }
        if let Some(id) = scope.target(name, at) {
            return Meaning::Action(id);
        }
        let behind = self.nodes.range(at..).filter(is_own);
        let mut behind = behind.filter(|(_, it)| it.definition.action.turn == Some(turn));
        let later = behind.find(|(_, it)| it.definition.has_name(name));
        later.map_or(Meaning::Nothing, |(id, _)| Meaning::Action(*id))
    }

    /// The outcome of an action. None if it is unfinished or unknown.
    #[must_use]
    pub fn outcome(&self, id: Id) -> Option<&ActionOutcome> {
        match &self.nodes.get(&id)?.state {
            NodeState::Done(done) => Some(done),
            _ => None,
        }
    }

    /// The value of an action in a response: its answer, or [`Value::Failed`]. None while the
    /// action is unfinished.
    #[must_use]
    pub fn resolved(&self, id: Id) -> Option<Value> {
        let done = self.outcome(id)?;
        Some(match done.status {
            Status::Ok => match self.answers(id) {
                Some(all) => Value::List(all),
                None => Value::Result(done.answer.clone()),
            },
            _ if done.is_not_taken() => Value::Skipped,
            _ => Value::Failed,
        })
    }

    /// The content of a feed in a turn's prompt. None if the agent had no such feed in that turn.
    #[must_use]
    pub fn shown(&self, agent: &str, name: &str, turn: u64) -> Option<Value> {
        self.scopes.get(agent)?.feed(name, turn)
    }

    /// The current value of a name in a feed's parameters. None if the name doesn't mean a finished
    /// action.
    #[must_use]
    pub fn value(&self, agent: &str, name: &str) -> Option<Value> {
        let scope = self.scopes.get(agent)?;
        let feeds = scope.shown.values().next_back();
        let is_feed = feeds.is_some_and(|it| it.contains_key(name));
        let target = || scope.target(name, Id::MAX).filter(|_| !is_feed);
        self.result(scope.action(name).or_else(target)?)
    }

    /// The names of an agent's actions and feeds, and of the listeners that exactly one action
    /// called. An error can suggest one of them.
    pub fn known(&self, agent: &str) -> impl Iterator<Item = &str> {
        let scope = self.scopes.get(agent);
        let names = scope.into_iter().flat_map(|node| {
            let feeds = node.shown.values().next_back().into_iter().flat_map(|it| it.keys());
            let called = node.targets.iter().filter(|(_, (_, second))| second.is_none());
            let called = called.map(|(name, _)| name);
            node.keys.keys().chain(node.names.keys()).chain(feeds).chain(called)
        });
        names.map(String::as_str)
    }

    /// The actions that must be done before this one starts, and the meanings of its references.
    pub(super) fn needs(
        &self,
        agent: &str,
        definition: &ActionDefinition,
    ) -> (Vec<Needed>, BTreeMap<String, Bound>) {
        let none = Scope::default();
        let scope = self.scopes.get(agent).unwrap_or(&none);
        let said = definition.action.depends_on.iter().map(|needed| Needed {
            id: needed.clone(),
            on: scope.names.get(needed).copied(),
            kind: NeedKind::Named,
            is_streamed: definition.source.as_ref() == Some(needed),
        });
        let (mut needs, mut bound): (Vec<Needed>, _) = (said.collect(), BTreeMap::new());
        let turn = definition.action.turn.unwrap_or(0);
        for name in &definition.refers_to {
            let is_streamed =
                definition.action.depends_on.is_empty() && definition.source.as_ref() == Some(name);
            let action = match scope.action(name) {
                Some(id) => Some(id),
                None => {
                    if let Some(feed) = scope.feed(name, turn) {
                        bound.insert(name.clone(), Bound::Value(feed));
                        continue;
                    }
                    scope.target(name, Id::MAX).filter(|_| definition.references.has_targets())
                }
            };
            match action.map(|id| (id, self.result(id))) {
                // An action that has already failed is no reason to skip this one: the agent may
                // not have known of the failure when it wrote the reference.
                Some((_, Some(Value::Failed))) if !is_streamed => {
                    bound.insert(name.clone(), Bound::Value(Value::Failed));
                }
                // If no action has the name yet, a later action of the turn may get it.
                found => {
                    let on = found.map(|(id, _)| id);
                    bound.extend(on.map(|id| (name.clone(), Bound::Action(id))));
                    let kind = NeedKind::Reference;
                    needs.push(Needed { id: name.clone(), on, kind, is_streamed });
                }
            }
        }
        for name in definition.escaped.difference(&definition.refers_to) {
            let is_target =
                definition.references.has_targets() && scope.target(name, Id::MAX).is_some();
            let is_item = definition.action.for_each.as_ref().is_some_and(|it| it.var == *name);
            let is_known = scope.action(name).is_some() || scope.feed(name, turn).is_some();
            if is_known || is_target || is_item {
                bound.insert(name.clone(), Bound::Value(Value::Named));
            }
        }
        (needs, bound)
    }

    /// The actions that must be done before the decision about this one, and the meanings of the
    /// names that the decision refers to.
    pub(super) fn decision_needs(
        &self,
        agent: &str,
        definition: &ActionDefinition,
    ) -> (Vec<Needed>, BTreeMap<String, Bound>) {
        let none = Scope::default();
        let scope = self.scopes.get(agent).unwrap_or(&none);
        let (mut needs, mut seen) = (Vec::new(), BTreeMap::new());
        let turn = definition.action.turn.unwrap_or(0);
        for name in &definition.decides_by {
            let feed = scope.feed(name, turn).map(Bound::Value);
            let target = || scope.target(name, Id::MAX).map(Bound::Action);
            let bound = scope.action(name).map(Bound::Action).or(feed).or_else(target);
            let on = match &bound {
                Some(Bound::Value(_)) => None,
                Some(Bound::Action(id)) => Some(Some(*id)),
                None => Some(None),
            };
            seen.extend(bound.map(|it| (name.clone(), it)));
            let kind = NeedKind::Decision;
            let is_streamed = false;
            needs.extend(on.map(|on| Needed { id: name.clone(), on, kind, is_streamed }));
        }
        (needs, seen)
    }

    /// Registers the names of an action.
    pub(super) fn name(&mut self, agent: &str, id: Id, definition: &ActionDefinition) {
        let Some(scope) = self.scopes.get_mut(agent) else { return };
        let action = &definition.action;
        let mut is_anothers = scope.names.insert(action.id.clone(), id).is_some();
        if let Some(key) = &action.output_key {
            is_anothers |= scope.keys.insert(key.clone(), id).is_some();
        }
        match scope.targets.get_mut(definition.target()) {
            Some((_, second)) => {
                is_anothers |= second.is_none();
                second.get_or_insert(id);
            }
            None => drop(scope.targets.insert(definition.target().to_owned(), (id, None))),
        }
        if is_anothers && !scope.is_at_work {
            self.forget(agent);
        }
    }

    /// Drops an agent's finished actions that have no name any more and that no unfinished action
    /// waits for.
    fn forget(&mut self, agent: &str) {
        let Some(scope) = self.scopes.get(agent) else { return };
        let alone = scope.targets.values().filter(|it| it.1.is_none()).map(|it| it.0);
        let named = scope.names.values().chain(scope.keys.values()).copied();
        let live = self.live.iter().filter_map(|it| self.nodes.get(it));
        let needed = live.flat_map(|it| it.needs.iter().filter_map(|it| it.on));
        let of_use: BTreeSet<Id> = alone.chain(named).chain(needed).collect();
        let live = &self.live;
        self.nodes.retain(|id, it| *it.agent != *agent || live.contains(id) || of_use.contains(id));
    }

    /// Binds names to this new action. These are names that unfinished actions of the same turn
    /// refer to, and that no action had so far.
    pub(super) fn meet(&mut self, agent: &str, id: Id) {
        let Some(node) = self.nodes.get(&id) else { return };
        let definition = node.definition.clone();
        let turn = node.turn();
        let is_over = self.turn(node).is_none_or(|it| it.is_over);
        for other in self.live.clone() {
            let Some(node) = self.nodes.get_mut(&other) else { continue };
            if *node.agent != *agent || node.turn() != turn {
                continue;
            }
            let takes_targets = node.definition.references.has_targets();
            let is_named = |name: &str| match takes_targets {
                true => definition.has_name(name),
                false => definition.has_key(name) || definition.action.id == name,
            };
            for need in node.needs.iter_mut().filter(|it| it.on.is_none()) {
                let is_meant = match need.kind {
                    NeedKind::Named => definition.action.id == need.id,
                    NeedKind::Reference => !is_over && other != id && is_named(&need.id),
                    NeedKind::Decision => !is_over && definition.has_name(&need.id),
                };
                if is_meant {
                    need.on = Some(id);
                    let bound = match need.kind {
                        NeedKind::Named => continue,
                        NeedKind::Reference => &mut node.bound,
                        NeedKind::Decision => &mut node.seen,
                    };
                    bound.insert(need.id.clone(), Bound::Action(id));
                }
            }
        }
    }

    /// The error message for an action that depends on an unknown name.
    pub(super) fn unknown(&self, node: &Node, need: &Needed) -> String {
        let id = need.id.as_str();
        let scope = self.scopes.get(&node.agent);
        let own = node.definition.action.id.as_str();
        let is_own = node.definition.has_name(id);
        let names = scope.into_iter().flat_map(|it| it.names.keys().map(String::as_str));
        let right = nearest(id, names.filter(|it| *it != own));
        let right = right.map(|it| format!("; did you mean {it}?")).unwrap_or_default();
        let how = match need.kind {
            NeedKind::Decision => format!("{} refers to", node.definition.decided_by(id)),
            _ if need.is_streamed => "it takes the partial results of".to_owned(),
            NeedKind::Named | NeedKind::Reference => "depends on".to_owned(),
        };
        match is_own {
            true => format!("{how} {id}, which is this action itself"),
            false => format!("{how} {id}, and the turn is over without an action called so{right}"),
        }
    }

    /// The values of an action's references when it starts.
    pub(super) fn values(&self, node: &Node) -> Values {
        let found = node.bound.iter().filter_map(|(name, means)| {
            let value = match means {
                Bound::Action(id) => self.result(*id)?,
                Bound::Value(it) => it.clone(),
            };
            Some((name.clone(), value))
        });
        found.collect()
    }

    /// The value of an action in parameters. None while the action is unfinished.
    /// [`Value::Skipped`] if the action failed and its `on_error` is `skip`.
    fn result(&self, id: Id) -> Option<Value> {
        match self.resolved(id)? {
            Value::Failed if self.outcome(id).is_some_and(|it| self.lets_through(id, it)) => {
                Some(Value::Skipped)
            }
            it => Some(it),
        }
    }
}

impl Scope {
    /// The newest action with this output key. If there is none, the newest action with this id.
    fn action(&self, name: &str) -> Option<Id> {
        self.keys.get(name).or_else(|| self.names.get(name)).copied()
    }

    /// The action before the entry `at` that called this listener, if exactly one did.
    fn target(&self, name: &str, at: Id) -> Option<Id> {
        let (first, second) = self.targets.get(name)?;
        (*first < at && second.is_none_or(|it| it >= at)).then_some(*first)
    }

    /// The content of a feed in a turn's prompt.
    fn feed(&self, name: &str, turn: u64) -> Option<Value> {
        let shown = self.shown.get(&turn)?.get(name)?;
        Some(shown.clone().map_or(Value::Unavailable, Value::Feed))
    }
}

impl ActionDefinition {
    fn has_key(&self, name: &str) -> bool {
        self.action.output_key.as_deref() == Some(name)
    }

    /// Whether a reference of this name may mean the action.
    fn has_name(&self, name: &str) -> bool {
        self.has_key(name) || self.action.id == name || self.target() == name
    }
}
