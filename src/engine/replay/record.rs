//! The record of messages in the log: which entries each message led to, and when the message was
//! consumed. A replay is compared with this record.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::engine::tree::budget_ledger::{Ledger, Short};
use crate::engine::tree::event::CORE_NAME;
use crate::id::{EntryId, ThreadId};
use crate::limits::Limits;
use crate::listener::Entry;
use crate::log;
use crate::log::{Log, Mark, Pages};
use crate::wire::core::ThreadSpawned;
use crate::wire::{Fault, Payload};

/// The record of a tree's messages.
#[derive(Default)]
pub(super) struct Record {
    pub(super) outputs: HashMap<EntryId, Vec<Output>>,
    /// Maps an entry and a listener to the attempt that first consumed or parked the entry, and to
    /// the time of this consumption or parking.
    pub(super) consumed: HashMap<(EntryId, Arc<str>), (u32, ConsumedAt)>,
    /// Maps an entry and a listener to the number of the last attempt that started.
    pub(super) attempts: HashMap<(EntryId, Arc<str>), u32>,
    /// Maps a thread and a listener to how often the listener has started on a message so far.
    pub(super) starts: HashMap<(ThreadId, Arc<str>), u64>,
    /// Maps a thread, a listener and a time to the numbers of the messages that were consumed
    /// together. A serial listener consumes all messages of one handling at the same time.
    pub(super) hands: HashMap<(ThreadId, Arc<str>, ConsumedAt), BTreeSet<u64>>,
    /// Maps a thread and a listener to the emissions of the listener in the thread, in order.
    pub(super) emissions: HashMap<(ThreadId, Arc<str>), Vec<Arc<log::Entry>>>,
    /// Maps an entry that names no receiver to its recorded receivers.
    pub(super) chosen: HashMap<EntryId, Vec<Arc<str>>>,
    /// Maps a thread that ended to the entry that ended it, with the entry's position in the log.
    pub(super) ends: HashMap<ThreadId, (Entry, u64)>,
    /// The entries about budgets, in order.
    pub(super) charges: Vec<Arc<log::Entry>>,
}

/// The time at which a listener consumed a message: the log's position, and how often the listener
/// had started in the thread. Two handlings without emissions may have the same position, since
/// they leave no entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ConsumedAt {
    pub(super) after: u64,
    pub(super) starts: u64,
}

/// An entry that a message led to.
pub(super) struct Output {
    pub(super) entry: Arc<log::Entry>,
    /// Whether the entry is the first one of a child thread.
    pub(super) begins: bool,
}

impl Record {
    pub(super) fn note(&mut self, marks: Vec<log::Noted>) {
        for noted in marks {
            match noted.mark {
                Mark::Consumed { entry, listener, attempt } => {
                    self.handled(entry, listener, attempt, noted.after);
                }
                // A message that waits after its handling had started was parked by this handling.
                Mark::Waits { entry, listener, .. } => {
                    let key = (entry, listener);
                    if let Some(attempt) = self.attempts.get(&key).copied() {
                        self.handled(key.0, key.1, attempt, noted.after);
                    }
                }
                Mark::Started { entry, listener, attempt: 0 } => {
                    self.chosen.entry(entry).or_default().push(listener);
                }
                Mark::Started { entry, listener, attempt } => {
                    let of = (entry.thread.clone(), listener.clone());
                    *self.starts.entry(of).or_default() += 1;
                    self.attempts.insert((entry, listener), attempt);
                }
            }
        }
    }

    /// Notes that the first handling of a message is over. Later handlings of a parked message
    /// change nothing.
    fn handled(&mut self, entry: EntryId, listener: Arc<str>, attempt: u32, after: u64) {
        let key = (entry, listener);
        if self.consumed.contains_key(&key) {
            return;
        }
        let of = (key.0.thread.clone(), key.1.clone());
        let starts = self.starts.get(&of).copied().unwrap_or(0);
        let when = ConsumedAt { after, starts };
        self.hands.entry((of.0, of.1, when)).or_default().insert(key.0.seq);
        self.consumed.insert(key, (attempt, when));
    }

    /// Reads the entries that each message of a thread led to. If a message led to a child thread,
    /// its output is the child's first entry.
    pub(super) async fn read(
        &mut self,
        log: &dyn Log,
        thread: &ThreadId,
    ) -> Result<(), log::Error> {
        let mut pages = Pages::of(log, thread);
        while let Some(page) = pages.next().await? {
            for entry in page.into_iter().filter(|it| it.id.thread == *thread) {
                if entry.flags.state().is_some_and(|it| !it.is_live()) {
                    self.ends.insert(thread.clone(), (Entry::kept(&entry), entry.position));
                }
                let from = (thread.clone(), entry.from.clone());
                self.emissions.entry(from).or_default().push(entry.clone());
                let Some(cause) = entry.cause.clone() else { continue };
                let spawned = (*entry.from == *CORE_NAME && entry.name == ThreadSpawned::NAME)
                    .then(|| Entry::kept(&entry).decode_if::<ThreadSpawned>())
                    .flatten();
                let output = match spawned {
                    Some(output) => {
                        let child = ThreadId::new(&output.assigned_id);
                        let first = log.entry(&EntryId::new(&child, 1)).await?;
                        first.map(|entry| Output { entry, begins: true })
                    }
                    None => Some(Output { entry, begins: false }),
                };
                self.outputs.entry(cause).or_default().extend(output);
            }
        }
        Ok(())
    }
}

impl Record {
    /// Returns the messages that a serial listener handled together with a message, and the last
    /// entry that the listener saw. Returns None if the message was handled together with an
    /// earlier one.
    pub(super) fn hand(
        &self,
        message: &Entry,
        listener: &Arc<str>,
        when: ConsumedAt,
    ) -> Option<(Vec<u64>, u64)> {
        let hand = (message.thread().clone(), listener.clone(), when);
        let mut hand = self.hands.get(&hand)?.iter().copied();
        hand.next().filter(|it| *it == message.seq())?;
        let rest: Vec<u64> = hand.collect();
        // The emissions of earlier handlings are in earlier commits.
        let from = (message.thread().clone(), listener.clone());
        let mut emissions = self.emissions.get(&from).into_iter().flatten().rev();
        let is_before =
            |it: &log::Entry| it.position <= when.after && it.cause.as_ref() != Some(message.id());
        let last_emission = emissions.find(|it| is_before(it)).map(|it| it.id.seq);
        let last = rest.last().copied().unwrap_or(message.seq());
        Some((rest, last.max(last_emission.unwrap_or(0))))
    }
}

impl Record {
    /// Returns why a charge was refused when it was recorded, computed from the earlier charges and
    /// `limits`. Returns None if the charge would fit.
    pub(super) fn refused(&self, charge: &log::Entry, limits: &Limits) -> Option<Fault> {
        let tree = charge.id.thread.tree();
        let is_earlier =
            |it: &&Arc<log::Entry>| it.position < charge.position && it.id.thread.tree() == tree;
        let earlier = self.charges.iter().filter(is_earlier).map(|it| Entry::kept(it));
        let mut ledger = Ledger::kept(limits, 0, 0, earlier);
        let charge = Entry::kept(charge);
        let short = ledger.charge(charge.thread(), charge.sender(), &charge.decode().ok()?);
        short.err().map(Short::fault)
    }
}
