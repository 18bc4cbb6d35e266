//! The record of messages in the log: which entries each message led to, and when the message was
//! consumed. A replay is compared with this record.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::engine::tree::budget_ledger::{Ledger, Short};
use crate::id::{EntryId, ThreadId};
use crate::limits::Limits;
use crate::listener::Entry;
use crate::log;
use crate::log::{Flags, LastStart, Log, Mark, Pages};
use crate::name::CORE_NAME;
use crate::wire::budget::Charge;
use crate::wire::core::ThreadSpawned;
use crate::wire::{Fault, Payload};

/// The record of a tree's messages.
#[derive(Default)]
pub(super) struct Record {
    pub(super) outputs: HashMap<EntryId, Vec<Output>>,
    /// Maps an entry and a listener to the attempt that first consumed or parked the entry, and to
    /// the log's position at that time.
    pub(super) consumed: HashMap<(EntryId, Arc<str>), (u32, u64)>,
    /// Maps an entry and a listener to the last start that counts.
    pub(super) attempts: HashMap<(EntryId, Arc<str>), LastStart>,
    /// Maps a thread, a listener and the last entry that a handler saw to the handler's messages.
    hands: HashMap<(ThreadId, Arc<str>, u64), Hand>,
    /// Maps a thread and a listener to the numbers of the messages that are parked.
    parked: HashMap<(ThreadId, Arc<str>), BTreeSet<u64>>,
    /// Maps an entry that names no receiver to its recorded receivers.
    pub(super) chosen: HashMap<EntryId, Vec<Arc<str>>>,
    /// Maps a thread that ended to the entry that ended it, with the entry's position in the log.
    pub(super) ends: HashMap<ThreadId, (Entry, u64)>,
    /// The entries about budgets, in order.
    pub(super) charges: Vec<Arc<log::Entry>>,
}

/// The messages that a handler handled together.
#[derive(Clone, Default)]
struct Hand {
    /// Those with which the handler began. The first of them is the handler's message.
    begun: BTreeSet<u64>,
    /// Those that its listener had parked before.
    parked: BTreeSet<u64>,
}

/// An entry that a message led to.
pub(super) struct Output {
    pub(super) entry: Arc<log::Entry>,
    /// Whether the entry is the first one of a child thread.
    pub(super) begins: bool,
}

impl Record {
    pub(super) fn note(&mut self, marks: Vec<log::Noted>) {
        for log::Noted { after, mark, .. } in marks {
            let of = (mark.entry().thread.clone(), mark.listener().clone());
            match mark {
                Mark::Consumed { entry, listener, attempt } => {
                    if let Some(parked) = self.parked.get_mut(&of) {
                        parked.remove(&entry.seq);
                    }
                    self.consumed.entry((entry, listener)).or_insert((attempt, after));
                }
                // A message that waits after its handling had started was parked by this handling.
                Mark::Waits { entry, listener, .. } => {
                    let (seq, key) = (entry.seq, (entry, listener));
                    if let Some(last) = self.attempts.get(&key).copied() {
                        self.parked.entry(of).or_default().insert(seq);
                        self.consumed.entry(key).or_insert((last.attempt, after));
                    }
                }
                Mark::Started { entry, listener, attempt: 0, .. } => {
                    self.chosen.entry(entry).or_default().push(listener);
                }
                Mark::Started { entry, listener, attempt, as_of } => {
                    self.started(entry, listener, LastStart::new(attempt, as_of));
                }
                // The handler didn't begin.
                Mark::Stopped { entry, listener } => {
                    let start = self.attempts.remove(&(entry, listener));
                    let as_of = start.and_then(|it| it.as_of).unwrap_or(0);
                    self.hands.remove(&(of.0, of.1, as_of));
                }
            }
        }
    }

    fn started(&mut self, entry: EntryId, listener: Arc<str>, start: LastStart) {
        if let Some(as_of) = start.as_of {
            let of = (entry.thread.clone(), listener.clone());
            let parked = self.parked.get(&of).cloned().unwrap_or_default();
            let hand = self.hands.entry((of.0, of.1, as_of)).or_default();
            hand.begun.insert(entry.seq);
            hand.parked = parked;
        }
        self.attempts.insert((entry, listener), start);
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
                if is_of_stop(&entry) {
                    continue;
                }
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

/// Whether the entry is a settlement that the pump booked for a handler which it stopped. The
/// handler itself didn't send it.
fn is_of_stop(entry: &log::Entry) -> bool {
    let charge = || Entry::kept(entry).decode_if::<Charge>();
    entry.flags.contains(Flags::CHARGES) && charge().is_some_and(|it| it.stopped == Some(true))
}

impl Record {
    /// Returns the other messages that a serial listener handled together with a message. `as_of`
    /// is the number of the last entry that the listener saw. Returns None if the message was
    /// handled together with an earlier one.
    pub(super) fn hand(
        &self,
        message: &Entry,
        listener: &Arc<str>,
        as_of: u64,
    ) -> Option<BTreeSet<u64>> {
        let hand = self.hands.get(&(message.thread().clone(), listener.clone(), as_of))?;
        let is_first = hand.begun.first() == Some(&message.seq());
        let rest = || hand.begun.iter().skip(1).chain(&hand.parked).copied().collect();
        is_first.then(rest)
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
