//! Chooses the messages that a clear hides, and makes the `context-cleared` that records them.

use std::collections::BTreeSet;

use pumphouse::prelude::*;
use pumphouse::wire::core::ContextCleared;

use super::super::words::agent::root;
use super::super::words::agent::{CognitionOut, ContextSummary, Correction, Notice};
use super::pairs::Replies;
use super::pending::{AgentProgress, CallKind, Pending, PendingCall};

/// A request to hide messages.
pub(super) struct Request<'a> {
    /// The sender of the request.
    pub(super) from: &'a str,
    /// The number of messages that are to stay.
    pub(super) keep: u64,
    /// The number of messages that are hidden already.
    pub(super) hidden: u64,
}

/// Chooses what a clear hides. `view` has the entries that were in view before the request.
///
/// The first message and the newest ones stay, `keep` messages in all. Of each sender's unanswered
/// questions, the oldest and the newest stay. Calls without a result stay, and so do messages that
/// an agent at work hasn't been shown. A call, its result and the reply that made it stay together,
/// or are hidden together, so a few more messages than `keep` may stay.
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
        // The message at `at` is the first of the newest messages, which stay.
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
    // Summaries stay, since they stand for hidden messages.
    except.extend(view.iter().filter(|it| it.is::<ContextSummary>()).map(Entry::seq));
    Replies::of(view).complete(&mut except, upto, &readers.running());
    let in_view: BTreeSet<u64> = view.iter().map(Entry::seq).collect();
    except.retain(|it| (2..=upto).contains(it) && in_view.contains(it));
    let is_hidden = |seq: u64| (2..=upto).contains(&seq) && !except.contains(&seq);
    let new = messages.iter().filter(|it| is_hidden(it.seq())).count() as u64;
    ContextCleared {
        kept_messages: request.keep,
        upto,
        hidden: request.hidden + new,
        except: Some(except.into_iter().collect()).filter(|it: &Vec<u64>| !it.is_empty()),
    }
}

/// The agents of a thread. Their prompts show the thread's messages.
struct Readers<'a> {
    pending: &'a Pending,
    all: &'a Capabilities,
    agents: Vec<(&'a str, &'a AgentProgress)>,
}

impl<'a> Readers<'a> {
    fn new(pending: &'a Pending, all: &'a Capabilities) -> Readers<'a> {
        // A listener that had a turn is an agent, even if the organism doesn't have it any more.
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

    /// The entries with which the turns began that aren't over.
    fn running(&self) -> Vec<u64> {
        self.agents.iter().filter_map(|(_, it)| it.begun).collect()
    }

    /// Whether an entry counts as a message. Refused entries and bookkeeping don't count. In a
    /// thread with agents, only entries count that the agents' prompts show. A model's reply counts
    /// once; the actions and responses that come from the reply don't count.
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

    /// Whether an entry is a message to an agent at work that no turn of the agent has shown yet.
    fn is_news(&self, entry: &Entry) -> bool {
        let agent = entry.to().and_then(|to| self.agent(to)).filter(|it| it.is_at_work());
        agent.is_some_and(|agent| entry.seq() >= agent.news()) && self.is_message(entry)
    }

    /// The unfinished entries. These are the oldest and the newest of each sender's unanswered
    /// questions, the calls without a result, and the replies in which models wrote these calls.
    fn unfinished(&self) -> BTreeSet<u64> {
        let asked = self.agents.iter().flat_map(|(_, it)| it.questions.values());
        let asked = asked.flat_map(|it| [it.first(), it.last()]).flatten().copied();
        let calls = self.pending.calls.iter().filter(|(_, it)| self.is_awaited(it));
        let calls = calls.flat_map(|(seq, it)| [Some(*seq), it.written]).flatten();
        asked.chain(calls).collect()
    }

    /// Whether a call may still get a result. A payload gets no result if its receiver never
    /// answers such a payload. Payloads and threads count only if an agent sent or opened them.
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
