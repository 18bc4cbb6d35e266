//! Collects what the entries of a thread record about one agent.

use std::collections::BTreeMap;

use pumphouse::listener::Described;
use pumphouse::prelude::*;
use pumphouse::wire::{Json, Timestamp};
use pumphouse::xml::writable;
use serde_json::{Map, Value};

use super::super::metadata::{Fields, Metadatas};
use super::super::words::action::{Action, ActionResult};
use super::super::words::agent::{CognitionIn, Response, Thought};
use super::facts::AgentFacts;
use super::words::{AgentContext, AgentManifest, ExecutedAction};

/// Maximum length of a context's lists of actions, thoughts and responses. The newest items are
/// kept.
const ITEMS_MAX: usize = 100;
/// The listener kind of agents.
const AGENT: &str = "agent";

/// What a thread records about one agent.
#[derive(Default)]
pub(super) struct AgentHistory {
    agent: String,
    /// The number of entries that were applied.
    pub(super) entries: usize,
    turn: u64,
    started_at: Option<u64>,
    metadata: Metadatas,
    /// The actions, by the numbers of their entries.
    actions: BTreeMap<u64, ExecutedAction>,
    thoughts: Vec<String>,
    responses: Vec<String>,
}

impl AgentHistory {
    pub(super) fn new(agent: &str) -> AgentHistory {
        AgentHistory { agent: agent.to_owned(), ..AgentHistory::default() }
    }

    pub(super) fn apply(&mut self, entry: &Entry) {
        self.entries += 1;
        self.metadata.apply(entry);
        if entry.is_refused() || entry.is_from_identity() {
            return;
        }
        if entry.to() == Some(&*self.agent)
            && let Some(result) = entry.decode_if::<ActionResult>()
        {
            if let Some(action) = self.actions.get_mut(&result.of) {
                result.status.as_str().clone_into(&mut action.status);
            }
            return;
        }
        if entry.from() != self.agent {
            return;
        }
        if let Some(begun) = entry.decode_if::<CognitionIn>() {
            self.turn = begun.turn;
            self.started_at.get_or_insert(entry.at_us());
        } else if let Some(Action { id, name, .. }) = entry.decode_if::<Action>() {
            let action = ExecutedAction { id, name, status: "running".to_owned() };
            self.actions.insert(entry.seq(), action);
        } else if let Some(Thought { text, .. }) = entry.decode_if::<Thought>() {
            self.thoughts.push(text);
        } else if let Some(Response { text, .. }) = entry.decode_if::<Response>() {
            self.responses.push(text);
        }
    }

    /// Whether the thread has a turn or metadata of the agent.
    pub(super) fn is_any(&self) -> bool {
        self.turn > 0 || self.metadata.agents().any(|it| it == self.agent)
    }

    /// The agent's context, without variables of the environment.
    pub(super) fn context(
        self,
        session: &ThreadId,
        thread: &ThreadId,
        agent: &Described,
        capabilities: &Capabilities,
    ) -> AgentContext {
        let peers = |kinds: &[&str]| -> Vec<String> {
            let is_peer = |it: &&Described| {
                agent.peers.as_ref().is_none_or(|peers| peers.contains(&it.name))
                    && it.name != agent.name
            };
            let all = capabilities.listeners().iter().filter(is_peer);
            all.filter(|it| kinds.contains(&&*it.kind)).map(|it| it.name.clone()).collect()
        };
        let started_at = self.started_at.and_then(|it| i64::try_from(it).ok());
        let facts = agent.extension::<AgentFacts>();
        let text = |it: &Option<String>| it.as_deref().map(writable);
        AgentContext {
            session_id: session.to_string(),
            thread: thread.to_string(),
            iteration_count: self.turn,
            started_at: started_at.and_then(|it| Timestamp::from_microsecond(it).ok()),
            metadata: Json(Value::Object(self.metadata(facts.map(|it| &it.fields)))),
            tools: peers(&["tool", "llm"]),
            workflows: peers(&["workflow"]),
            agents: peers(&[AGENT]),
            relics: peers(&["relic"]),
            actions_executed: newest(self.actions.into_values().collect()),
            thoughts: newest(self.thoughts),
            responses: newest(self.responses),
            environment: BTreeMap::new(),
            workspace_path: facts.and_then(|it| text(&it.workspace_path)),
            manifest: AgentManifest {
                organism: facts.and_then(|it| text(&it.organism)),
                name: agent.name.clone(),
                description: text(&agent.text),
                model: text(&agent.model),
                max_turns: agent.turns_max,
            },
            agent_name: self.agent,
        }
    }

    /// The agent's metadata, with the defaults of fields that it hasn't set. Without `fields`, only
    /// the values that it has set.
    pub(super) fn metadata(&self, fields: Option<&Fields>) -> Map<String, Value> {
        let known = self.metadata.of(&self.agent);
        match fields {
            Some(fields) => known.all(fields),
            None => known.values().map(|(name, it)| (name.to_owned(), it.clone())).collect(),
        }
    }
}

/// Returns the newest `ITEMS_MAX` items of a list.
fn newest<T>(mut items: Vec<T>) -> Vec<T> {
    items.drain(..items.len().saturating_sub(ITEMS_MAX));
    items
}
