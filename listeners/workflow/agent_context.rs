//! What a workflow knows of the agent that it works for: the values of `${agent.…}`.
//!
//! The names are those of the document on metadata. All of them are computed from the agent's
//! thread when a run begins; the run records those that its workflow refers to.

use std::collections::{BTreeMap, BTreeSet};

use pumphouse::listener::{Described, TreeHistory};
use pumphouse::prelude::*;
use pumphouse::wire::Timestamp;
use serde_json::{Map, Value, json};

use super::super::metadata::{Fields, Metadatas};
use super::super::words::action::{Action, ActionResult, NAME};
use super::super::words::agent::{CognitionIn, Response, Thought};

/// The fields of an agent's context.
pub(super) const FIELDS: [&str; 16] = [
    "session_id",
    "thread",
    "agent_name",
    "iteration_count",
    "started_at",
    "metadata",
    "tools",
    "workflows",
    "agents",
    "relics",
    "actions_executed",
    "thoughts",
    "responses",
    "environment",
    "workspace_path",
    "manifest",
];

/// The largest number of actions, thoughts and responses, of each the newest.
const ITEMS_MAX: usize = 100;
/// The largest number of entries of a thread that are read for a context.
const ENTRIES_MAX: usize = 100_000;
/// The number of entries that are read at a time.
const PAGE: usize = 256;
/// The kind of listeners that are agents.
const AGENT: &str = "agent";

/// What is known of agents before any run begins.
#[derive(Clone, Debug, Default)]
pub(super) struct Surroundings {
    /// The metadata fields of agents, by the agents' names. They have the defaults.
    pub(super) fields: BTreeMap<String, Fields>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) workspace_path: Option<String>,
    pub(super) organism: Option<String>,
}

/// Computes the fields `wanted` of the context of the agent that caused a message. None if no agent
/// caused it.
///
/// # Errors
/// If the log can't be read.
pub(super) async fn agent_context(
    message: &Entry,
    tree: &TreeHistory,
    capabilities: &Capabilities,
    surroundings: &Surroundings,
    wanted: &BTreeSet<String>,
) -> Result<Option<Value>, Fault> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let mut next = asker(message);
    while let Some(EntryId { thread, seq }) = next {
        let entries = entries_until(tree, &thread, seq).await?;
        let (agent, above) = agent_among(&entries, seq, capabilities);
        if let Some(agent) = agent {
            let mut history = AgentHistory::new(agent.name.clone());
            entries.iter().for_each(|it| history.apply(it));
            let session = tree.threads().await?.first().cloned().unwrap_or(thread.clone());
            let whole = history.context(&session, &thread, agent, capabilities, surroundings);
            let kept = whole.into_iter().filter(|(name, _)| wanted.contains(name));
            return Ok(Some(Value::Object(kept.collect())));
        }
        next = above.filter(|it| it.thread != thread);
    }
    Ok(None)
}

/// The entry for whose sake another one was sent. For the call of an action that is the action, and
/// for a step of a run the message that began the run; for any other entry it is the cause.
fn asker(entry: &Entry) -> Option<EntryId> {
    let key = entry.key().unwrap_or_default();
    let of_action = key.rsplit_once('/').filter(|_| entry.from() == NAME);
    if let Some((thread, seq)) =
        of_action.and_then(|(it, seq)| Some((it, seq.split('.').next()?.parse().ok()?)))
    {
        return Some(EntryId { thread: ThreadId::new(thread), seq });
    }
    let of_run = key.split_once('/').filter(|_| entry.is::<Action>());
    if let Some(seq) = of_run.and_then(|(run, _)| run.parse().ok()) {
        return Some(EntryId { thread: entry.thread().clone(), seq });
    }
    entry.cause().cloned()
}

/// The entries of a thread up to one of them.
async fn entries_until(
    tree: &TreeHistory,
    thread: &ThreadId,
    until: u64,
) -> Result<Vec<Entry>, Fault> {
    let (mut entries, mut last): (Vec<Entry>, u64) = (Vec::new(), 0);
    while last < until && entries.len() < ENTRIES_MAX {
        let page = tree.read(thread, last, PAGE).await?;
        let Some(newest) = page.last() else { break };
        last = newest.seq();
        entries.extend(page.into_iter().filter(|it| it.seq() <= until));
    }
    Ok(entries)
}

/// The agent that caused an entry of a thread, and the first cause that is in another thread.
fn agent_among<'a>(
    entries: &[Entry],
    seq: u64,
    capabilities: &'a Capabilities,
) -> (Option<&'a Described>, Option<EntryId>) {
    let at = |seq: u64| {
        let place = entries.binary_search_by_key(&seq, Entry::seq).ok()?;
        entries.get(place)
    };
    let mut next = at(seq);
    while let Some(entry) = next {
        let sender = capabilities.listener(entry.from()).filter(|it| it.kind == AGENT);
        if sender.is_some() && !entry.is_from_identity() {
            return (sender, None);
        }
        let Some(asker) = asker(entry) else { return (None, None) };
        if asker.thread != *entry.thread() {
            return (None, Some(asker));
        }
        next = at(asker.seq);
    }
    (None, None)
}

/// What a thread says of one agent.
#[derive(Default)]
struct AgentHistory {
    agent: String,
    turn: u64,
    started_at: Option<u64>,
    metadata: Metadatas,
    /// The actions, by the numbers of their entries.
    actions: BTreeMap<u64, Map<String, Value>>,
    thoughts: Vec<Value>,
    responses: Vec<Value>,
}

impl AgentHistory {
    fn new(agent: String) -> AgentHistory {
        AgentHistory { agent, ..AgentHistory::default() }
    }

    fn apply(&mut self, entry: &Entry) {
        self.metadata.apply(entry);
        if entry.is_refused() || entry.is_from_identity() {
            return;
        }
        if entry.to() == Some(&*self.agent)
            && let Some(result) = entry.decode_if::<ActionResult>()
        {
            if let Some(action) = self.actions.get_mut(&result.of) {
                action.insert("status".to_owned(), json!(result.status.as_str()));
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
            let action = json!({"id": id, "name": name, "status": "running"});
            if let Value::Object(action) = action {
                self.actions.insert(entry.seq(), action);
            }
        } else if let Some(Thought { text, .. }) = entry.decode_if::<Thought>() {
            self.thoughts.push(json!(text));
        } else if let Some(Response { text, .. }) = entry.decode_if::<Response>() {
            self.responses.push(json!(text));
        }
    }

    /// All fields of the context.
    fn context(
        self,
        session: &ThreadId,
        thread: &ThreadId,
        agent: &Described,
        capabilities: &Capabilities,
        surroundings: &Surroundings,
    ) -> Map<String, Value> {
        let peers = |kinds: &[&str]| {
            let is_peer = |it: &&Described| {
                agent.peers.as_ref().is_none_or(|peers| peers.contains(&it.name))
                    && it.name != agent.name
            };
            let all = capabilities.listeners().iter().filter(is_peer);
            all.filter(|it| kinds.contains(&&*it.kind)).map(|it| json!(it.name)).collect()
        };
        let started_at = self.started_at.and_then(|it| i64::try_from(it).ok());
        let started_at = started_at.and_then(|it| Timestamp::from_microsecond(it).ok());
        let about = json!({
            "organism": surroundings.organism,
            "name": agent.name,
            "description": agent.text,
            "model": agent.model,
            "max_turns": agent.turns_max,
        });
        let actions = self.actions.values().cloned().map(Value::Object).collect();
        let metadata = self.metadata(surroundings.fields.get(&self.agent));
        let values = [
            json!(session.to_string()),
            json!(thread.to_string()),
            json!(self.agent),
            json!(self.turn),
            json!(started_at.map(|it| it.to_string())),
            Value::Object(metadata),
            Value::Array(peers(&["tool", "llm"])),
            Value::Array(peers(&["workflow"])),
            Value::Array(peers(&[AGENT])),
            Value::Array(peers(&["relic"])),
            newest(actions),
            newest(self.thoughts),
            newest(self.responses),
            json!(surroundings.environment),
            json!(surroundings.workspace_path),
            about,
        ];
        FIELDS.into_iter().map(str::to_owned).zip(values).collect()
    }

    /// The agent's metadata, with the defaults of fields that it hasn't set.
    fn metadata(&self, fields: Option<&Fields>) -> Map<String, Value> {
        let known = self.metadata.of(&self.agent);
        let Some(fields) = fields else {
            return known.values().map(|(name, it)| (name.to_owned(), it.clone())).collect();
        };
        let value = |name: &str| known.value(fields, name).cloned().unwrap_or_default();
        fields.all().map(|it| (it.name().to_owned(), value(it.name()))).collect()
    }
}

/// The newest items of a list.
fn newest(mut items: Vec<Value>) -> Value {
    items.drain(..items.len().saturating_sub(ITEMS_MAX));
    Value::Array(items)
}
