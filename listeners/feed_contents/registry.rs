//! The fold of feed definitions: the feeds in the settings of a thread's agents, and the agents'
//! own changes to them.

use std::collections::BTreeMap;

use pumphouse::prelude::*;

use super::definition::Definition;
use super::injection::Injection;
use super::words::{ContextFeedAdded, ContextFeedRemoved, ContextFeedUpdated, DeclareFeeds, NAME};

/// A fold of the feeds of a thread's agents.
#[derive(Clone, Debug, Default)]
pub struct Registry(BTreeMap<String, FeedList>);

/// The feeds of one agent. `declared` has the feeds of the agent's settings. `all` also has the
/// agent's own changes.
#[derive(Clone, Debug, Default)]
struct FeedList {
    declared: Vec<Definition>,
    all: Vec<Registered>,
    injection: Injection,
}

/// A feed that an agent has.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Registered {
    /// The definition.
    pub definition: Definition,
    /// Whether the agent itself added the feed or changed its source.
    pub is_added: bool,
}

impl Apply for Registry {
    fn apply(&mut self, entry: &Entry) {
        if entry.is_refused() || entry.is_from_identity() {
            return;
        }
        if entry.is::<DeclareFeeds>() && entry.to() == Some(NAME) {
            if let Ok(DeclareFeeds { injection, feed }) = entry.decode() {
                self.declare(entry.from(), feed);
                let desk = self.0.entry(entry.from().to_owned()).or_default();
                desk.injection = injection.unwrap_or_default();
            }
        } else if entry.from() == NAME {
            self.change(entry);
        }
    }
}

impl Registry {
    /// The agents that have feeds, in the order of their names.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, it)| !it.all.is_empty()).map(|(agent, _)| &**agent)
    }

    /// An agent's feeds: first those of its settings, then those that the agent itself added.
    #[must_use]
    pub fn of(&self, agent: &str) -> &[Registered] {
        self.0.get(agent).map_or(&[], |it| &it.all)
    }

    /// An agent's feed with this id.
    #[must_use]
    pub fn get(&self, agent: &str, id: &str) -> Option<&Registered> {
        self.of(agent).iter().find(|it| it.definition.id == id)
    }

    /// The feeds of an agent's settings, as the agent last declared them.
    #[must_use]
    pub fn declared(&self, agent: &str) -> &[Definition] {
        self.0.get(agent).map_or(&[], |it| &it.declared)
    }

    /// How an agent's prompts show its feeds.
    #[must_use]
    pub fn injection(&self, agent: &str) -> Injection {
        self.0.get(agent).map(|it| it.injection).unwrap_or_default()
    }

    fn declare(&mut self, agent: &str, declared: Vec<Definition>) {
        let desk = self.0.entry(agent.to_owned()).or_default();
        let is_other =
            |it: &Registered| it.is_added && declared.iter().all(|new| new.id != it.definition.id);
        desk.all.retain(is_other);
        let new = declared.iter().map(|it| Registered { definition: it.clone(), is_added: false });
        desk.all.splice(0..0, new);
        desk.declared = declared;
    }

    /// Applies a change that the listener `feed` has reported.
    fn change(&mut self, entry: &Entry) {
        if let Ok(ContextFeedAdded { agent, feed: definition }) = entry.decode() {
            let desk = self.0.entry(agent).or_default();
            desk.all.retain(|it| it.definition.id != definition.id);
            desk.all.push(Registered { definition, is_added: true });
        } else if let Ok(ContextFeedUpdated { agent, feed }) = entry.decode() {
            let desk = self.0.entry(agent).or_default();
            desk.all.iter_mut().filter(|it| it.definition.id == feed.id).for_each(|held| {
                held.is_added |= held.definition.source != feed.source;
                held.definition = feed.clone();
            });
        } else if let Ok(ContextFeedRemoved { agent, id }) = entry.decode() {
            let desk = self.0.entry(agent).or_default();
            desk.all.retain(|it| it.definition.id != id);
        }
    }
}
