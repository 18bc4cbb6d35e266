//! The fold of a thread's unfinished work: questions without an answer and calls without a result.
//! A clear reads this fold to choose the entries that stay in view.

use std::collections::{BTreeMap, BTreeSet};

use pumphouse::prelude::*;
use pumphouse::wire::core::{NothingUnderWay, ThreadResult, ThreadSpawned};

use super::super::metadata::words::MetadataChanged;
use super::super::todo::words::StepsOpen;
use super::super::words::action::{Action, ActionResult};
use super::super::words::agent::{CognitionIn, CognitionOut, Response, Stopped};

/// The questions of a thread that have no answer, the calls that have no result, and the last entry
/// that each agent was shown. A fold.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    pub(super) agents: BTreeMap<String, AgentProgress>,
    /// Maps the entry number of each call without a result to the call.
    pub(super) calls: BTreeMap<u64, PendingCall>,
    thread: Option<ThreadId>,
}

/// The unanswered questions to a listener, and the progress of its turns. A question is an entry
/// with the listener's root: the payload that has the listener's own name. Agents are asked in this
/// way.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentProgress {
    /// Maps each sender to the entry numbers of its questions that have no answer.
    pub(super) questions: BTreeMap<String, BTreeSet<u64>>,
    /// The number of the last entry that the newest turn has shown. 0 before the first turn.
    pub(super) until: u64,
    /// The number of the entry with which the newest turn began. None if that turn is over.
    pub(super) begun: Option<u64>,
    /// The entry number of the newest answer. 0 before the first one.
    answered: u64,
}

/// A call or a thread that a listener began and that has no result yet.
#[derive(Clone, Debug)]
pub(super) struct PendingCall {
    pub(super) from: String,
    pub(super) kind: CallKind,
    /// The entry number of the reply, a `cognition_out`, in which the call was written. None until
    /// the log has the reply.
    pub(super) written: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) enum CallKind {
    Action,
    /// A payload to a listener.
    Payload(String, Name),
    /// A thread, by its id.
    Thread(String),
}

impl AgentProgress {
    /// Whether a turn is running or a question is unanswered.
    pub(super) fn is_at_work(&self) -> bool {
        self.begun.is_some() || !self.questions.is_empty()
    }

    /// The number of the first entry that may be new to the agent. While a turn is running, this is
    /// the entry after the last one that the turn shows, or the turn's first entry if that is
    /// earlier. While no turn is running, this is the first entry after the newest answer and after
    /// all entries that the newest turn showed. If the oldest unanswered question comes later, this
    /// is the question instead.
    pub(super) fn news(&self) -> u64 {
        if let Some(begun) = self.begun {
            return begun.min(self.until + 1);
        }
        let oldest = self.questions.values().filter_map(BTreeSet::first).min();
        let before = oldest.map_or(0, |it| it - 1);
        self.until.max(self.answered).max(before) + 1
    }
}

impl Apply for Pending {
    fn apply(&mut self, entry: &Entry) {
        if entry.is_refused() {
            return;
        }
        self.forks(entry);
        // A `thread-spawned` that answers a call isn't the call's result yet. The pending thread
        // replaces the pending call.
        let asked = entry.reply_to().filter(|it| it.thread == *entry.thread()).map(|it| it.seq);
        let replied = asked.and_then(|it| self.answers(entry, it));
        let (from, local) = (entry.from(), entry.name().local());
        if from != local && entry.to().is_none_or(|it| it == local) && is_root(entry.name()) {
            let agent = self.agents.entry(local.to_owned()).or_default();
            agent.questions.entry(from.to_owned()).or_default().insert(entry.seq());
        }
        match entry.to() {
            Some(to) if to == from => self.begins(entry),
            _ if entry.is::<CognitionOut>() => self.wrote(entry),
            _ if entry.is::<Action>() => self.calls(entry, from, CallKind::Action),
            Some(to) if entry.is_from_core() && entry.is::<ThreadSpawned>() => {
                let Some(spawned) = entry.decode_if::<ThreadSpawned>() else { return };
                self.calls(entry, to, CallKind::Thread(spawned.assigned_id));
                if let (Some(call), Some(by)) = (self.calls.get_mut(&entry.seq()), replied) {
                    call.written = by.written;
                }
            }
            _ if entry.is::<ActionResult>() => {
                entry.decode_if().map(|it: ActionResult| self.calls.remove(&it.of));
            }
            _ if entry.is::<ThreadResult>() => {
                let Some(result) = entry.decode_if::<ThreadResult>() else { return };
                let is_ended =
                    |kind: &CallKind| matches!(kind, CallKind::Thread(id) if *id == result.thread);
                self.calls.retain(|_, call| !is_ended(&call.kind));
            }
            Some(to) if asked.is_none() && self.asks(entry, to) => {
                self.calls(entry, from, CallKind::Payload(to.to_owned(), entry.name().clone()));
            }
            _ => {}
        }
    }
}

impl Pending {
    /// At the first entry of a fork, forgets the unfinished questions, calls and turns. They belong
    /// to the thread that was forked.
    fn forks(&mut self, entry: &Entry) {
        if self.thread.as_ref() != Some(entry.thread()) {
            self.thread = Some(entry.thread().clone());
            self.calls.clear();
            for agent in self.agents.values_mut() {
                agent.questions.clear();
                agent.begun = None;
            }
        }
    }

    /// Applies a reply. If the reply answers a payload to a listener, the pending call is removed
    /// and returned.
    fn answers(&mut self, entry: &Entry, asked: u64) -> Option<PendingCall> {
        let is_news = entry.is::<StepsOpen>() || entry.is::<NothingUnderWay>();
        if is_news || entry.decode_if::<Response>().is_some_and(|it| !it.is_final) {
            return None;
        }
        for (name, agent) in &mut self.agents {
            // An agent that stops will answer no earlier question of its asker. Any other answer
            // covers all questions of the asker that the agent has been shown.
            let is_stopped = entry.is::<Stopped>() && entry.from() == name;
            let upto = if is_stopped { entry.seq() } else { agent.until.max(asked) };
            let by = agent.questions.iter().find(|(by, all)| {
                all.contains(&asked) || is_stopped && entry.to() == Some(by.as_str())
            });
            let Some(by) = by.map(|(by, _)| by.clone()) else { continue };
            if let Some(all) = agent.questions.get_mut(&by) {
                all.retain(|it| *it > upto);
            }
            agent.questions.retain(|_, all| !all.is_empty());
            agent.answered = entry.seq();
            // The agent's open payloads to peers belonged to this work, so nothing waits for them
            // any more.
            let is_open =
                |it: &PendingCall| it.from != *name || !matches!(it.kind, CallKind::Payload(..));
            self.calls.retain(|_, it| is_open(it));
        }
        match self.calls.get(&asked)?.kind {
            CallKind::Payload(..) => self.calls.remove(&asked),
            CallKind::Action | CallKind::Thread(_) => None,
        }
    }

    /// Whether an agent sends another listener a message during a turn. Messages to `action` don't
    /// count, and neither does `metadata-changed`.
    fn asks(&self, entry: &Entry, to: &str) -> bool {
        let is_turn = self.agents.get(entry.from()).is_some_and(|it| it.begun.is_some());
        let is_told = entry.is::<MetadataChanged>() || to == super::super::words::action::NAME;
        is_turn && entry.receivers() > 0 && !is_told
    }

    fn begins(&mut self, entry: &Entry) {
        let Some(turn) = entry.decode_if::<CognitionIn>() else { return };
        let agent = self.agents.entry(entry.from().to_owned()).or_default();
        (agent.until, agent.begun) = (turn.until, Some(entry.seq()));
    }

    fn wrote(&mut self, entry: &Entry) {
        let Some(agent) = self.agents.get_mut(entry.from()) else { return };
        let Some(begun) = agent.begun.take() else { return };
        let written = self.calls.range_mut(begun..).filter(|(_, it)| it.from == entry.from());
        for (_, call) in written {
            call.written.get_or_insert(entry.seq());
        }
    }

    fn calls(&mut self, entry: &Entry, from: &str, kind: CallKind) {
        self.calls.insert(entry.seq(), PendingCall { from: from.to_owned(), kind, written: None });
    }
}

/// Whether a payload's name has the form of an agent's root.
fn is_root(name: &Name) -> bool {
    let within = name.namespace().strip_prefix("https://xml-pipeline.org/ns/");
    within.and_then(|it| it.strip_suffix("/v1")) == Some(name.local())
}
