//! Replies with the calls in them and the results of these calls. A clear hides all of a reply's
//! entries or none, so that no prompt shows a call without its result, or a result without its
//! call.

use std::collections::{BTreeMap, BTreeSet};

use pumphouse::prelude::*;
use pumphouse::wire::core::{ThreadResult, ThreadSpawned};

use super::super::metadata::words::MetadataChanged;
use super::super::timer::Tick;
use super::super::todo::words::TodoNudge;
use super::super::words::action::{Action, ActionResult};
use super::super::words::agent::{CognitionIn, CognitionOut, Notice, ReasoningSigned};

/// The replies in a view that have calls, in their order. Each has the numbers of its entries: the
/// turn's beginning and end, the calls, and their results.
#[derive(Default)]
pub(super) struct Replies {
    replies: Vec<ReplyEntries>,
    /// Maps the number of each call to the reply that it belongs to.
    calls: BTreeMap<u64, usize>,
    /// Maps each thread that a call has opened to that call and its reply.
    threads: BTreeMap<String, (u64, usize)>,
    /// Maps each agent, with the number of its turn, to the turn's reply.
    turns: BTreeMap<(String, u64), usize>,
    /// Maps each agent to its running turn.
    running: BTreeMap<String, u64>,
}

/// The entries of a reply.
#[derive(Default)]
pub(super) struct ReplyEntries {
    pub(super) all: BTreeSet<u64>,
    has_calls: bool,
}

impl Replies {
    pub(super) fn of(view: &[Entry]) -> Replies {
        let mut replies = Replies::default();
        view.iter().filter(|it| !it.is_refused()).for_each(|it| replies.take(it));
        replies
    }

    /// Adds to `kept` all entries of each reply of which an entry stays in view: one after `upto`,
    /// one of `kept`, or the thread's first. `running` has the beginnings of the turns whose reply
    /// isn't over; those replies stay, too.
    pub(super) fn complete(&self, kept: &mut BTreeSet<u64>, upto: u64, running: &[u64]) {
        for reply in self.replies.iter().filter(|it| it.has_calls) {
            let stays =
                |it: &u64| *it == 1 || *it > upto || kept.contains(it) || running.contains(it);
            if reply.all.iter().any(stays) {
                kept.extend(&reply.all);
            }
        }
    }

    fn take(&mut self, entry: &Entry) {
        if let Some((call, of)) = self.result_of(entry) {
            self.replies[of].all.extend([call, entry.seq()]);
            return;
        }
        let (from, seq) = (entry.from(), entry.seq());
        if let Some(begun) = entry.decode_if::<CognitionIn>() {
            self.running.insert(from.to_owned(), begun.turn);
            self.reply(from, begun.turn).all.insert(seq);
        } else if let Some(it) = entry.decode_if::<CognitionOut>() {
            self.running.remove(from);
            self.reply(from, it.turn).all.insert(seq);
        } else if let Some(it) = entry.decode_if::<Action>() {
            let turn = it.turn.or_else(|| self.running.get(from).copied());
            if let Some(of) = self.call(entry, turn) {
                self.replies[of].all.insert(seq);
            }
        } else if let Some(it) = entry.decode_if::<Notice>().filter(|it| it.call.is_some()) {
            let reply = self.reply(from, it.turn);
            reply.all.insert(seq);
            reply.has_calls = true;
        } else if let Some(it) = entry.decode_if::<ReasoningSigned>() {
            self.reply(from, it.turn).all.insert(seq);
        } else if entry.to().is_some_and(|to| to != from) && !entry.is::<MetadataChanged>() {
            // A payload that the agent wrote to another listener is a call, too. It belongs to the
            // reply once it has an answer.
            let turn = self.running.get(from).copied();
            self.call(entry, turn.filter(|_| entry.reply_to().is_none()));
        }
    }

    /// The call whose result an entry is, and the reply of this call. None if the entry is no
    /// result of a call in view.
    fn result_of(&mut self, entry: &Entry) -> Option<(u64, usize)> {
        if let Some(it) = entry.decode_if::<ActionResult>() {
            return Some((it.of, *self.calls.get(&it.of)?));
        }
        if let Some(it) = entry.decode_if::<ThreadResult>() {
            return self.threads.get(&it.thread).copied();
        }
        // A timer may tick, and a checklist nudge, for as long as the thread lasts.
        if entry.is::<Tick>() || entry.is::<TodoNudge>() {
            return None;
        }
        let asked = entry.reply_to().filter(|it| it.thread == *entry.thread())?;
        let of = self.calls.get(&asked.seq).map(|it| (asked.seq, *it))?;
        if let Some(it) = entry.decode_if::<ThreadSpawned>() {
            self.threads.insert(it.assigned_id, of);
        }
        Some(of)
    }

    /// Records a call of a turn. Returns the call's reply.
    fn call(&mut self, entry: &Entry, turn: Option<u64>) -> Option<usize> {
        let at = self.at(entry.from(), turn?);
        self.calls.insert(entry.seq(), at);
        self.replies[at].has_calls = true;
        Some(at)
    }

    fn reply(&mut self, agent: &str, turn: u64) -> &mut ReplyEntries {
        let at = self.at(agent, turn);
        &mut self.replies[at]
    }

    fn at(&mut self, agent: &str, turn: u64) -> usize {
        *self.turns.entry((agent.to_owned(), turn)).or_insert_with(|| {
            self.replies.push(ReplyEntries::default());
            self.replies.len() - 1
        })
    }
}
