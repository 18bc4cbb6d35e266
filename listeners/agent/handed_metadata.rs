//! The metadata that an agent in a thread of its own gets from the agent that called it, and the
//! changes that it sends back.

use pumphouse::listener::{NoteAbove, TreeHistory};
use pumphouse::prelude::*;
use pumphouse::schema::json;
use serde_json::{Map, Value};

use super::super::action::words::{Action, ActionKind};
use super::super::agent_context::AgentFacts;
use super::super::caller::opener;
use super::super::metadata::Metadatas;
use super::super::metadata::words::{Handed, Metadata};
use super::super::thread::SpawnThread;
use super::Agent;
use super::context::TurnContext;

/// Entries read per page.
const PAGE: usize = 256;
/// The listener kind of agents.
const AGENT: &str = "agent";

impl TurnContext {
    /// Takes over metadata of the agent that called this one. This happens before this agent's
    /// first turn in a thread that was opened for it.
    pub(super) async fn take_over_metadata(&mut self) -> Result<(), Fault> {
        let Agent { name, settings, .. } = self.agent();
        if settings.metadata.is_empty() || self.mind.turns > 0 || self.metadata.handed.is_some() {
            return Ok(());
        }
        let first = match self.message.seq() {
            1 => Some(self.message.0.clone()),
            _ => self.history.read(0, 1).await?.into_iter().next(),
        };
        let Some(first) = first.filter(|it| it.to() == Some(name)) else { return Ok(()) };
        let Some(asked) = opener(&first, &self.tree).await? else { return Ok(()) };
        let handed = match (asked.decode_if::<Action>(), asked.decode_if::<SpawnThread>()) {
            _ if asked.is_from_identity() => None,
            (Some(action), _) => action.metadata,
            (_, spawn) => spawn.and_then(|it| it.metadata),
        };
        let shares = match handed {
            None | Some(Handed::None) => return Ok(()),
            Some(handed) => handed == Handed::Share,
        };
        let mut values = metadata_at(&asked, &self.tree).await?;
        values.retain(|name, value| {
            settings.metadata.get(name).is_some_and(|field| field.accepts(value).is_ok())
        });
        let fields = (!values.is_empty()).then(|| json::text(&Value::Object(values)));
        if fields.is_none() && !shares {
            return Ok(());
        }
        let (by, shares) = (Some(asked.from().to_owned()), shares.then_some(true));
        let handed = Metadata { by, shares, fields, ..Metadata::default() };
        self.metadata.known.take(handed.clone());
        self.metadata.handed = Some(handed);
        Ok(())
    }

    /// Returns the part of a change that goes to the agent's caller: the fields that the caller
    /// has, too. None if there is no such part, or if the agent doesn't share its metadata.
    pub(super) fn shared(&self, set: &Metadata) -> Option<NoteAbove<Metadata>> {
        let caller = self.metadata.known.shared_with.clone()?;
        let facts = self.capabilities.listener(&caller)?.extension::<AgentFacts>()?;
        let mut values = set.changed()?.into_fields();
        values.retain(|name, _| facts.fields.get(name).is_some());
        if values.is_empty() {
            return None;
        }
        let (agent, by) = (Some(caller), Some(self.agent().name.clone()));
        let checked = facts.fields.checked(values);
        Some(NoteAbove(Metadata { turn: set.turn, agent, by, ..checked }))
    }

    /// If an action calls an agent, records in the action which metadata that agent gets. A choice
    /// that the model has made stays.
    pub(super) fn hand_metadata(&self, action: &mut Action) {
        let handed = self.agent().settings.metadata.children;
        if handed == Handed::None || action.metadata.is_some() {
            return;
        }
        let listener = action.name.split('.').next().unwrap_or_default();
        let called = self.capabilities.listener(listener);
        if action.kind == ActionKind::Agent || called.is_some_and(|it| it.kind == AGENT) {
            action.metadata = Some(handed);
        }
    }
}

/// Returns the values that the sender of an entry had set when it sent the entry.
async fn metadata_at(asked: &Entry, tree: &TreeHistory) -> Result<Map<String, Value>, Fault> {
    let (mut all, mut last) = (Metadatas::default(), 0);
    while last < asked.seq() {
        let page = tree.read(asked.thread(), last, PAGE).await?;
        let Some(newest) = page.last() else { break };
        last = newest.seq();
        page.iter().filter(|it| it.seq() < asked.seq()).for_each(|it| all.apply(it));
    }
    let known = all.of(asked.from());
    Ok(known.values().map(|(name, value)| (name.to_owned(), value.clone())).collect())
}
