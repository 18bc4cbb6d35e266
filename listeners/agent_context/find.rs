//! Finds agents in a tree of threads: the agent that caused a message, or a named agent in the
//! thread nearest to a message.

use pumphouse::listener::{Described, TreeHistory};
use pumphouse::prelude::*;
use pumphouse::schema::json;
use pumphouse::wire::Json;
use serde_json::{Map, Value};

use super::super::caller::asker;
use super::super::metadata::Fields;
use super::facts::is_agent;
use super::history::AgentHistory;
use super::words::AgentContext;

/// Maximum number of entries read per thread, and the number in all after which [`nearest`] reads
/// no further thread.
const ENTRIES_MAX: usize = 100_000;
/// Entries read per page.
const PAGE: usize = 256;
/// The listener that begins the runs of triggers.
const TRIGGER: &str = "trigger";

/// An agent in one thread of a tree, as of a message.
pub(in super::super) struct NearestAgent {
    thread: ThreadId,
    history: AgentHistory,
}

impl NearestAgent {
    /// The agent's metadata, with the defaults of the fields that it hasn't set.
    pub(in super::super) fn metadata(&self, fields: &Fields) -> Map<String, Value> {
        self.history.metadata(Some(fields))
    }

    /// The agent's context, without variables of the environment.
    ///
    /// # Errors
    /// If the log can't be read.
    pub(in super::super) async fn context(
        self,
        tree: &TreeHistory,
        agent: &Described,
        capabilities: &Capabilities,
    ) -> Result<AgentContext, Fault> {
        let session = tree.threads().await?.first().cloned();
        let session = session.unwrap_or_else(|| self.thread.clone());
        Ok(self.history.context(&session, &self.thread, agent, capabilities))
    }
}

/// Finds the agent that caused a message, and computes its context. None if no agent caused the
/// message.
///
/// # Errors
/// If the log can't be read.
pub(in super::super) async fn calling(
    message: &Entry,
    tree: &TreeHistory,
    capabilities: &Capabilities,
) -> Result<Option<AgentContext>, Fault> {
    let agent = capabilities.listener(message.from()).filter(|it| is_agent(it));
    if let Some(agent) = agent.filter(|_| !message.is_from_identity()) {
        // The message may begin a thread of the listener's own. Then the message's cause is an
        // entry of the agent's thread.
        let thread = message.cause().map_or_else(|| message.thread(), |it| &it.thread);
        let history = history_until(&agent.name, tree, thread, until(message, thread)).await?;
        let found = NearestAgent { thread: thread.clone(), history };
        return found.context(tree, agent, capabilities).await.map(Some);
    }
    let mut triggered = Triggered::by(message);
    let mut next = asker(message);
    while let Some(EntryId { thread, seq }) = next {
        let entries = entries_until(tree, &thread, seq).await?;
        let found = match &triggered {
            Some(it) => CausingAgent::named(&it.agent, capabilities),
            None => agent_among(&entries, seq, capabilities),
        };
        if let Some(agent) = found.agent {
            let mut history = AgentHistory::new(&agent.name);
            entries.iter().for_each(|it| history.apply(it));
            let found = NearestAgent { thread, history };
            let context = found.context(tree, agent, capabilities).await?;
            let metadata = triggered.map_or(context.metadata, |it| Json(it.metadata));
            return Ok(Some(AgentContext { metadata, ..context }));
        }
        next = found.above.filter(|it| it.thread != thread);
        triggered = found.triggered;
    }
    Ok(None)
}

/// Of the threads with a turn or metadata of an agent, finds the one nearest to a message. The
/// message's own thread is the nearest; the tree's other threads follow, newest first. None if
/// there is no such thread.
///
/// # Errors
/// If the log can't be read.
pub(in super::super) async fn nearest(
    agent: &str,
    message: &Entry,
    tree: &TreeHistory,
) -> Result<Option<NearestAgent>, Fault> {
    let mut left = ENTRIES_MAX;
    let own = message.thread();
    let others = tree.threads().await?.into_iter().rev().filter(|it| it != own);
    for thread in std::iter::once(own.clone()).chain(others) {
        let history = history_until(agent, tree, &thread, until(message, &thread)).await?;
        left = left.saturating_sub(history.entries);
        if history.is_any() {
            return Ok(Some(NearestAgent { thread, history }));
        }
        if left == 0 {
            break;
        }
    }
    Ok(None)
}

/// Returns the number of the last entry to read in a thread, as of a message. Threads other than
/// the message's own need no bound here, since a `TreeHistory` reads them as of the message.
fn until(message: &Entry, thread: &ThreadId) -> u64 {
    if thread == message.thread() { message.seq() } else { u64::MAX }
}

/// Reads what a thread records about an agent, up to the entry `until`.
async fn history_until(
    agent: &str,
    tree: &TreeHistory,
    thread: &ThreadId,
    until: u64,
) -> Result<AgentHistory, Fault> {
    let (mut history, mut last) = (AgentHistory::new(agent), 0);
    while last < until && history.entries < ENTRIES_MAX {
        let page = tree.read(thread, last, PAGE).await?;
        let Some(newest) = page.last() else { break };
        last = newest.seq();
        page.iter().filter(|it| it.seq() <= until).for_each(|it| history.apply(it));
    }
    Ok(history)
}

/// Reads the entries of a thread up to the entry `until`.
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

/// The input of a run that a trigger on metadata began: an agent and its metadata.
struct Triggered {
    agent: String,
    metadata: Value,
}

impl Triggered {
    /// Reads the input in a message that began a run. None if no trigger on metadata began the run.
    fn by(message: &Entry) -> Option<Triggered> {
        if message.from() != TRIGGER || message.is_from_identity() {
            return None;
        }
        let mut input = json::read(&message.element().ok()?.view().text()).ok()?;
        let agent = input.get("agent")?.as_str()?.to_owned();
        // The inputs of other triggers have neither field.
        let metadata = input.get_mut("metadata").filter(|it| it.is_object())?.take();
        Some(Triggered { agent, metadata })
    }
}

/// The result of a search, within one thread, for the agent that caused an entry.
#[derive(Default)]
struct CausingAgent<'a> {
    /// The agent that caused the entry.
    agent: Option<&'a Described>,
    /// The first cause in another thread, if no agent of this thread caused the entry.
    above: Option<EntryId>,
    /// The input of the thread's run, if a trigger on metadata began the run.
    triggered: Option<Triggered>,
}

impl<'a> CausingAgent<'a> {
    fn named(agent: &str, capabilities: &'a Capabilities) -> CausingAgent<'a> {
        let agent = capabilities.listener(agent).filter(|it| is_agent(it));
        CausingAgent { agent, ..CausingAgent::default() }
    }
}

/// Finds the agent that caused the entry `seq` of a thread. Only the thread's own `entries` are
/// searched.
fn agent_among<'a>(
    entries: &[Entry],
    seq: u64,
    capabilities: &'a Capabilities,
) -> CausingAgent<'a> {
    let at = |seq: u64| {
        let place = entries.binary_search_by_key(&seq, Entry::seq).ok()?;
        entries.get(place)
    };
    let mut next = at(seq);
    while let Some(entry) = next {
        let sender = capabilities.listener(entry.from()).filter(|it| is_agent(it));
        if sender.is_some() && !entry.is_from_identity() {
            return CausingAgent { agent: sender, ..CausingAgent::default() };
        }
        let Some(asker) = asker(entry) else { return CausingAgent::default() };
        if asker.thread != *entry.thread() {
            let triggered = Triggered::by(entry);
            return CausingAgent { agent: None, above: Some(asker), triggered };
        }
        next = at(asker.seq);
    }
    CausingAgent::default()
}
