//! The output of a step: a batch for the log, and effects. A worker carries out the effects once
//! the log has the batch.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::engine::tree::budget_ledger::Ledger;
use crate::engine::tree::due_time::Until;
use crate::engine::tree::event::{Key, Push, Start};
use crate::engine::tree::observer::{PushEvent, PushObserver};
use crate::engine::tree::request::TreeRequest;
use crate::engine::tree::reserved_amounts::ReservedAmounts;
use crate::engine::tree::route::Routes;
use crate::id::{EntryId, ThreadId};
use crate::limits::Limits;
use crate::listener::{ArrivalSignal, Entry};
use crate::log::Batch;
use crate::wire::Fault;

/// The values that a step may read beside its tree: the routes, free places, limits and the time.
pub(crate) struct World<'a> {
    pub(crate) routes: &'a Routes,
    pub(crate) places: &'a dyn Places,
    pub(crate) limits: &'a Limits,
    pub(crate) core: &'a Arc<str>,
    pub(crate) now_us: u64,
    /// How many microseconds the wall clock is ahead of `now_us`.
    pub(crate) ahead_us: i64,
}

/// The free places of listeners.
pub(crate) trait Places {
    /// Returns how many places of a listener are free and not promised to an earlier batch.
    fn free(&self, listener: usize) -> usize;
}

impl Push {
    /// Adds the effects that tell the push's observers of the refusal.
    pub(crate) fn refuse(self, fault: Fault, effects: &mut Vec<Effect>) {
        let fault = fault.of_client(self.client_id());
        let claim = self.client_id.map(|own| own.claim);
        let observers = claim.into_iter().chain([self.by.observer]);
        let refused = |it| Effect::Tell(it, self.by.number, PushEvent::Refused(fault.clone()));
        effects.extend(observers.map(refused));
    }
}

/// A change that concerns deliveries that wait for a time or an entry.
pub(crate) enum Timing {
    /// A listener with `wakes` has this message to handle, and may send itself a delivery that
    /// waits for an entry. After a restart, the list has the entries that came after the message
    /// and before the stop. Otherwise the list is empty.
    Asked(Key, Vec<Entry>),
    /// The message of an earlier `Asked` needs no more handling.
    Done(Key),
    /// The delivery waits until this time.
    Until(Until, Key),
    /// The delivery no longer waits.
    Over(Key),
}

/// The output of steps: one batch, then its effects in order.
#[derive(Default)]
pub(crate) struct Step {
    pub(crate) batch: Batch,
    pub(crate) effects: Vec<Effect>,
    /// Maps a listener to the number of places that its handlers in this batch will take. An inline
    /// handler takes none.
    pub(crate) promised: BTreeMap<usize, usize>,
    /// Listeners without a free place, each with a thread that waits for one.
    pub(crate) starving: Vec<(usize, ThreadId)>,
    /// Changes of deliveries that wait for a time or an entry.
    pub(crate) later: Vec<Timing>,
    /// Requests of threads to their tree. Empty between events.
    pub(crate) requests: VecDeque<TreeRequest>,
    /// The entries that this event led to. None if no listener of the organism has `wakes`.
    pub(crate) new_entries: Option<Vec<Entry>>,
    /// The tree's budget while the tree handles an event.
    pub(crate) ledger: Ledger,
    /// The first charge of this event that didn't fit the budget: its entry, and the fault.
    pub(crate) uncharged: Option<(EntryId, Fault)>,
    /// The amounts that handlers other than the current one have reserved in the tree. They are
    /// computed anew whenever a handler charges something.
    pub(crate) others: ReservedAmounts,
    /// The faults of emissions that no listener got, for the current handling.
    pub(crate) undelivered: Vec<Fault>,
}

impl Step {
    /// Returns an empty step with this capacity.
    pub(crate) fn with_room(room: Room) -> Step {
        let mut step = Step::default();
        step.batch.entries.reserve(room.entries);
        step.batch.marks.reserve(room.marks);
        step.effects.reserve(room.effects);
        step
    }

    /// Promises a place of a listener to a handler. Returns false if none is free.
    pub(crate) fn promise(&mut self, listener: usize, world: &World<'_>) -> bool {
        let promised = self.promised.entry(listener).or_default();
        let is_free = world.places.free(listener) > *promised;
        *promised += usize::from(is_free);
        is_free
    }

    /// Returns the size of this step, up to `Room::MAX` of each kind. The next step is allocated
    /// with this capacity, since vectors that grow copy their elements several times.
    pub(crate) fn room(&self) -> Room {
        let bounded = |len: usize| len.min(Room::MAX);
        Room {
            entries: bounded(self.batch.entries.len()),
            marks: bounded(self.batch.marks.len()),
            effects: bounded(self.effects.len()),
        }
    }
}

/// The capacity of a step.
#[derive(Clone, Copy, Default)]
pub(crate) struct Room {
    entries: usize,
    marks: usize,
    effects: usize,
}

impl Room {
    /// The largest capacity that a step is allocated with.
    const MAX: usize = 4_096;
}

/// An action that a worker carries out once the log has the batch.
pub(crate) enum Effect {
    /// Passes an event to the observer of a push. The number is the sender's own number for the
    /// push.
    Tell(Arc<dyn PushObserver>, u64, PushEvent),
    /// Runs a handler.
    Start(Box<Start>),
    /// Tells a handler that the log has its emissions, or the fault because of which they failed.
    Kept(oneshot::Sender<Result<(), Fault>>, Result<(), Fault>),
    /// Tells a running handler that a message came for its listener.
    Arrived(ArrivalSignal, Entry),
    /// Tells a handler to stop.
    Cancel(CancellationToken),
    /// Gives back the place of a handler that never began.
    Leave(usize),
}
