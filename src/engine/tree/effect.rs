//! What a step comes to: a batch for the log, and effects that happen once the log has it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::engine::tree::budget::Ledger;
use crate::engine::tree::event::{Key, Push, Start};
use crate::engine::tree::observer::{PushEvent, PushObserver};
use crate::engine::tree::request::Beyond;
use crate::engine::tree::reserved::Reserved;
use crate::engine::tree::route::Routes;
use crate::engine::tree::until::Until;
use crate::id::{EntryId, ThreadId};
use crate::limits::Limits;
use crate::listener::{ArrivalSignal, Entry};
use crate::log::Batch;
use crate::name::Name;
use crate::wire::Fault;

/// What a step may ask of the organism: who is there, what the bounds are, what time it is.
pub(crate) struct World<'a> {
    pub(crate) routes: &'a Routes,
    pub(crate) places: &'a dyn Places,
    pub(crate) limits: &'a Limits,
    pub(crate) core: &'a Arc<str>,
    pub(crate) now_us: u64,
    /// By how much the wall clock is ahead of that.
    pub(crate) ahead_us: i64,
}

/// How many handlers of each listener may start.
pub(crate) trait Places {
    /// The places of a listener that were free when the step began, and that no earlier batch was
    /// promised.
    fn free(&self, listener: usize) -> usize;
}

impl Push {
    /// Tells all who wait for it that it is refused.
    pub(crate) fn refuse(self, fault: Fault, effects: &mut Vec<Effect>) {
        let fault = fault.of_client(self.client_id());
        let claim = self.client_id.map(|own| own.claim);
        let observers = claim.into_iter().chain([self.by.inlet]);
        let refused = |it| Effect::Tell(it, self.by.number, PushEvent::Refused(fault.clone()));
        effects.extend(observers.map(refused));
    }
}

/// What becomes of a delivery that waits for its time, or may come to wait.
pub(crate) enum Timing {
    /// A listener that waits for entries has this to do; what came since it was sent.
    Asked(Key, Vec<Entry>),
    /// It has done it.
    Done(Key),
    /// It waits until then.
    Until(Until, Key),
    /// It waits no more.
    Over(Key),
}

/// What a step comes to: one batch, then its effects in order.
#[derive(Default)]
pub(crate) struct Step {
    pub(crate) batch: Batch,
    pub(crate) effects: Vec<Effect>,
    /// Places that this batch's handlers will take, by listener; an inline handler takes none.
    pub(crate) promised: BTreeMap<usize, usize>,
    /// Listeners that have no room for one more handler, and the threads that wait for it.
    pub(crate) starving: Vec<(usize, ThreadId)>,
    /// What waits for a time, and what no longer does.
    pub(crate) later: Vec<Timing>,
    /// What a thread asks of its tree; empty between events.
    pub(crate) beyond: VecDeque<Beyond>,
    /// The entries of this event, where something waits for one.
    pub(crate) came: Option<Vec<Entry>>,
    /// The tree's ledger, for as long as an event of the tree is taken.
    pub(crate) ledger: Ledger,
    /// A charge of this event that didn't fit, and why.
    pub(crate) uncharged: Option<(EntryId, Fault)>,
    /// What handlers at work have reserved beside the one that charges something.
    pub(crate) others: Reserved,
    /// Why nobody got what the handling at hand emitted, for each emission that nobody got.
    pub(crate) undelivered: Vec<Fault>,
}

impl Step {
    /// Nothing yet, with room for so much.
    pub(crate) fn with_room(room: Room) -> Step {
        let mut step = Step::default();
        step.batch.entries.reserve(room.entries);
        step.batch.marks.reserve(room.marks);
        step.effects.reserve(room.effects);
        step
    }

    /// Promises a place of a listener to a handler; false where none is free.
    pub(crate) fn promise(&mut self, listener: usize, world: &World<'_>) -> bool {
        let promised = self.promised.entry(listener).or_default();
        let is_free = world.places.free(listener) > *promised;
        *promised += usize::from(is_free);
        is_free
    }

    /// The room that it took, for the next one to have: growing into it would move it all,
    /// several times.
    pub(crate) fn room(&self) -> Room {
        let bounded = |len: usize| len.min(Room::MAX);
        Room {
            entries: bounded(self.batch.entries.len()),
            marks: bounded(self.batch.marks.len()),
            effects: bounded(self.effects.len()),
        }
    }
}

/// How much a step has room for.
#[derive(Clone, Copy, Default)]
pub(crate) struct Room {
    entries: usize,
    marks: usize,
    effects: usize,
}

impl Room {
    /// What a step has room for at the most, before it comes to anything.
    const MAX: usize = 4_096;
}

/// What happens once the batch is in the log.
pub(crate) enum Effect {
    /// Tells whoever pushed.
    Tell(Arc<dyn PushObserver>, u64, PushEvent),
    /// Runs a handler.
    Start(Box<Start>),
    /// Tells a handler that what it sent is kept, or why not.
    Kept(oneshot::Sender<Result<(), Fault>>, Result<(), Fault>),
    /// Tells a handler at work that something came for its listener.
    Came(ArrivalSignal, Name),
    /// Tells a handler to stop.
    Cancel(CancellationToken),
    /// Gives back the place of a handler that never began.
    Leave(usize),
}
