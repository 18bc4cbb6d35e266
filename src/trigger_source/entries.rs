//! Follows the log and reports the entries that fire triggers.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

use super::{Chain, ORGANISM, is_of_pump, push};
use crate::engine::{LiveQueue, Pump};
use crate::follower::{Sent, Target, Unreachable};
use crate::id::{EntryId, ThreadId};
use crate::listener;
use crate::log::{Entry, Error, Log};
use crate::wire::{Code, Json};
use pumphouse_listeners::trigger::EventRule;
use pumphouse_listeners::trigger::words::TriggerDue;

/// How many entries of a thread are read at once to find equal ones.
const PAGE: u64 = 100;

/// Pushes a message for each entry that fires a trigger.
pub(super) struct EntryTarget {
    pump: Pump,
    rules: Vec<EventRule>,
    /// The firings that aren't reported yet. Each has the index of its rule, its entry and its
    /// value.
    waiting: VecDeque<(usize, Arc<Entry>, Value)>,
    /// Tells when the log has grown.
    grown: Arc<LiveQueue>,
}

impl EntryTarget {
    pub(super) fn new(pump: Pump, rules: Vec<EventRule>) -> EntryTarget {
        let grown = pump.live_queue(false);
        EntryTarget { pump, rules, waiting: VecDeque::new(), grown }
    }

    /// Reports that an entry fires a trigger.
    async fn report(&self, rule: &EventRule, entry: &Entry, value: &Value) -> Result<(), String> {
        let chain = Chain::read(&self.pump, rule, entry).await.map_err(|it| it.to_string())?;
        let about = match entry.cause.as_ref().filter(|_| is_of_organism(entry)) {
            Some(cause) => self.pump.log().entry(cause).await.map_err(|it| it.to_string())?,
            None => None,
        };
        let by = about.as_ref().and_then(|it| it.to.clone());
        let due = TriggerDue {
            rule: rule.name().to_owned(),
            of: Some(entry.id.to_string()),
            from: Some(by.as_ref().unwrap_or(&entry.from).to_string()),
            depth: chain.depth + 1,
            first: chain.first.map(|it| it.to_string()),
            within: chain.within.map(|it| it.to_string()),
            value: Json(value.clone()),
        };
        let session = about.as_deref().unwrap_or(entry).id.thread.tree();
        let session = Some(&session).filter(|it: &&ThreadId| it.as_str() != ORGANISM);
        let event = event(&**self.pump.log(), entry).await.map_err(|it| it.to_string())?;
        let id = format!("{}/{event}", rule.name());
        match push(&self.pump, session, &due, &id).await {
            Err(fault) if is_of_pump(&fault) => Err(fault.to_string()),
            Err(fault) if fault.code == Code::ClientId => {
                let (rule, entry) = (rule.name(), &entry.id);
                tracing::debug!(rule, %entry, "another entry has reported the same event");
                Ok(())
            }
            Err(fault) => {
                let (rule, entry) = (rule.name(), &entry.id);
                tracing::warn!(rule, %entry, %fault, "a trigger's message was refused");
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }
}

/// Whether an entry stands in the organism's own thread.
fn is_of_organism(entry: &Entry) -> bool {
    entry.id.thread.as_str() == ORGANISM
}

/// The id of the event that an entry reports. What a listener records in the organism's own thread
/// while it handles a message, and what it answers with the same content, is one event. So are the
/// answers of one handling to several messages. Equal answers to one message are several events.
async fn event(log: &dyn Log, entry: &Entry) -> Result<String, Error> {
    match &entry.cause {
        Some(cause) if is_of_organism(entry) || entry.reply_to.is_some() => {
            let name = entry.name.to_string();
            let content = [name.as_bytes(), &entry.body].concat();
            let digest = blake3::hash(&content).to_hex();
            let event = format!("{cause}/{}", &digest[..16]);
            Ok(match equal_before(log, cause, entry).await? {
                0 => event,
                number => format!("{event}/{number}"),
            })
        }
        _ => Ok(entry.id.to_string()),
    }
}

/// Counts the entries of a thread before `entry` that have its cause, its content and the message
/// that it answers. Reads the thread backwards, down to the time of the cause.
async fn equal_before(log: &dyn Log, cause: &EntryId, entry: &Entry) -> Result<usize, Error> {
    let since = log.entry(cause).await?.map_or(u64::MAX, |it| it.position);
    let is_equal = |it: &Entry| {
        it.cause == entry.cause
            && it.reply_to == entry.reply_to
            && it.name == entry.name
            && it.body == entry.body
    };
    let (mut upto, mut count) = (entry.id.seq.saturating_sub(1), 0);
    while upto > 0 {
        let after = upto.saturating_sub(PAGE);
        let page = log.read(&entry.id.thread, after, upto, PAGE as usize).await?;
        count += page.iter().filter(|it| it.position > since && is_equal(it)).count();
        if page.first().is_none_or(|it| it.position <= since) {
            break;
        }
        upto = after;
    }
    Ok(count)
}

impl Target for EntryTarget {
    async fn take(&mut self, entry: Arc<Entry>) -> Result<(), Error> {
        let seen = listener::Entry::kept(&entry);
        let all = self.pump.capabilities();
        for (number, rule) in self.rules.iter().enumerate() {
            let value = rule.fired_by(&seen, all);
            self.waiting.extend(value.map(|it| (number, entry.clone(), it)));
        }
        Ok(())
    }

    fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    async fn send(&mut self) -> Result<Sent, Unreachable> {
        while let Some((number, entry, value)) = self.waiting.front() {
            self.report(&self.rules[*number], entry, value).await.map_err(Unreachable)?;
            self.waiting.pop_front();
        }
        Ok(Sent::All)
    }

    async fn wake(&mut self) {
        self.grown.grown().await;
    }

    fn report_unreachable(&self, reason: &str) {
        tracing::debug!(reason, "the pump takes no messages of triggers");
    }

    fn report_reachable(&self) {}
}
