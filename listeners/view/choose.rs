//! Chooses the messages that a clear hides: from the entries in view to a `context-cleared`.

use std::collections::BTreeSet;

use pumphouse::prelude::*;
use pumphouse::wire::core::ContextCleared;

use super::super::words::agent::root;
use super::super::words::agent::{CognitionOut, ContextSummary, Correction, Notice};
use super::pending::{AgentProgress, CallKind, Pending, PendingCall};

/// What was asked for.
pub(super) struct Request<'a> {
    /// Who asked.
    pub(super) from: &'a str,
    /// How many messages are to stay.
    pub(super) keep: u64,
    /// How many are hidden already, where that was counted.
    pub(super) hidden: Option<u64>,
}

/// What a clear hides of the entries that were in view before it was asked for.
///
/// The first message stays and the newest, as many as were asked for. So does what is still to be
/// answered, what is still to have a result, and what the agents at work have not been shown.
pub(super) fn choose(
    request: &Request<'_>,
    view: &[Entry],
    pending: &Pending,
    all: &Capabilities,
) -> ContextCleared {
    let readers = Readers::new(pending, all);
    let messages: Vec<&Entry> = view.iter().filter(|it| readers.is_message(it)).collect();
    let newest = usize::try_from(request.keep.saturating_sub(1)).unwrap_or(usize::MAX);
    let mut upto = match messages.len().checked_sub(newest) {
        // The first of those that stay is the one after the last that is hidden.
        Some(at) if at > 1 => match messages.get(at) {
            Some(first) => first.seq() - 1,
            None => view.last().map_or(1, Entry::seq),
        },
        _ => 1,
    };
    if let Some(agent) = readers.agent(request.from) {
        upto = upto.min(agent.news() - 1);
    }
    let upto = upto.max(1);
    let mut except = readers.unfinished();
    except.extend(messages.first().map(|it| it.seq()));
    except.extend(view.iter().filter(|it| readers.is_news(it)).map(Entry::seq));
    // What stands for hidden messages stays.
    except.extend(view.iter().filter(|it| it.is::<ContextSummary>()).map(Entry::seq));
    let in_view: BTreeSet<u64> = view.iter().map(Entry::seq).collect();
    except.retain(|it| (2..=upto).contains(it) && in_view.contains(it));
    let is_hidden = |seq: u64| (2..=upto).contains(&seq) && !except.contains(&seq);
    let new = messages.iter().filter(|it| is_hidden(it.seq())).count() as u64;
    ContextCleared {
        kept_messages: request.keep,
        upto: Some(upto),
        hidden: request.hidden.map(|it| it + new),
        except: Some(except.into_iter().collect()).filter(|it: &Vec<u64>| !it.is_empty()),
    }
}

/// The agents of a thread, for whose prompts its messages are.
struct Readers<'a> {
    pending: &'a Pending,
    all: &'a Capabilities,
    agents: Vec<(&'a str, &'a AgentProgress)>,
}

impl<'a> Readers<'a> {
    fn new(pending: &'a Pending, all: &'a Capabilities) -> Readers<'a> {
        // One that had a turn is an agent, though the organism may have it no more.
        let is_agent = |name: &str, agent_progress: &AgentProgress| {
            let is_one = || all.listener(name).is_some_and(|it| it.kind == "agent");
            agent_progress.until > 0
                || is_one() && all.takers(&root(name)).any(|it| it.name == name)
        };
        let agents = pending.agents.iter().filter(|(name, it)| is_agent(name, it));
        let agents = agents.map(|(name, it)| (&**name, it)).collect();
        Readers { pending, all, agents }
    }

    fn agent(&self, name: &str) -> Option<&'a AgentProgress> {
        self.agents.iter().find(|(it, _)| *it == name).map(|(_, it)| *it)
    }

    /// Whether a prompt shows an entry: with agents in the thread, whether one of theirs does.
    /// What a model wrote counts once, as its reply, and not as what came of it.
    fn is_message(&self, entry: &Entry) -> bool {
        if entry.is_refused() || self.all.schema(entry.name()).is_some_and(|it| it.bookkeeping) {
            return false;
        }
        if self.agents.is_empty() {
            return true;
        }
        let is_own = self.agent(entry.from()).is_some();
        match entry.to() {
            _ if is_own && entry.is::<CognitionOut>() => true,
            Some(to) if to == entry.from() => {
                is_own && (entry.is::<Correction>() || entry.is::<Notice>())
            }
            Some(to) => self.agent(to).is_some(),
            None => false,
        }
    }

    /// Whether an entry is for an agent at work that no turn has shown it.
    fn is_news(&self, entry: &Entry) -> bool {
        let agent = entry.to().and_then(|to| self.agent(to)).filter(|it| it.is_at_work());
        agent.is_some_and(|agent| entry.seq() >= agent.news()) && self.is_message(entry)
    }

    /// The questions without an answer, of each sender the oldest and the newest, and the calls
    /// without a result, each with the reply that it was written in.
    fn unfinished(&self) -> BTreeSet<u64> {
        let asked = self.agents.iter().flat_map(|(_, it)| it.questions.values());
        let asked = asked.flat_map(|it| [it.first(), it.last()]).flatten().copied();
        let calls = self.pending.calls.iter().filter(|(_, it)| self.is_awaited(it));
        let calls = calls.flat_map(|(seq, it)| [Some(*seq), it.written]).flatten();
        asked.chain(calls).collect()
    }

    /// Whether something may come of a call. A listener that answers nothing leaves nothing open.
    fn is_awaited(&self, call: &PendingCall) -> bool {
        match &call.kind {
            CallKind::Action => true,
            CallKind::Thread(_) => self.agent(&call.from).is_some(),
            CallKind::Payload(to, name) => {
                let emits = |described: &pumphouse::listener::Described| {
                    described.emits.get(name).is_some_and(|it| !it.is_empty())
                };
                self.agent(&call.from).is_some() && self.all.listener(to).is_some_and(emits)
            }
        }
    }
}
