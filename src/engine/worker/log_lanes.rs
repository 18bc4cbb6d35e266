//! Batches on their way to the log, in two lanes. In the priority lane, light trees, which
//! `run_queue` describes, overtake bulk writers. A batch lands when the log has written or refused
//! it. The batches of one lane land in their order.
//!
//! A tree with a batch on its way in the lower lane may not use the priority lane: its later
//! entries would overtake its earlier ones.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use crate::engine::tree::effect::Effect;
use crate::log;

/// One of the two lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The priority lane, for light trees.
    Ahead,
    /// The lower lane, for all other trees. It also serves light trees while there is no batch to
    /// overtake, or while the priority lane is full.
    Behind,
}

/// For each lane: the number of the last batch that a tree is part of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastBatches {
    ahead: u64,
    behind: u64,
}

/// A batch on its way to the log.
pub(crate) struct Flight {
    pub(crate) append: Option<log::Boxed<'static, log::Receipt>>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) steps: usize,
    pub(crate) sent_us: u64,
}

/// A batch that the log has written or refused.
pub(crate) struct Landed {
    pub(crate) lane: Lane,
    /// The batch's number within its lane.
    pub(crate) number: u64,
    pub(crate) last: u64,
    pub(crate) flight: Flight,
    /// The log's answer. The receipt is None if the batch had nothing for the log.
    pub(crate) kept: Result<Option<log::Receipt>, log::Error>,
}

/// All batches on their way to the log.
#[derive(Default)]
pub(crate) struct Lanes {
    ahead: OneLane,
    behind: OneLane,
}

#[derive(Default)]
struct OneLane {
    flights: VecDeque<Flight>,
    sent: u64,
    /// The number of the commit that has the last batch that landed.
    last_commit: u64,
}

impl OneLane {
    /// Returns how many batches of the lane have landed.
    fn landed(&self) -> u64 {
        self.sent - self.flights.len() as u64
    }

    fn land(&mut self, lane: Lane, context: &mut Context<'_>) -> Option<Landed> {
        let first = self.flights.front_mut()?;
        let kept = match first.append.as_mut().map(|it| it.as_mut().poll(context)) {
            Some(Poll::Pending) => return None,
            Some(Poll::Ready(kept)) => kept.map(Some),
            None => Ok(None),
        };
        if let Ok(Some(receipt)) = &kept {
            let commit = receipt.head.number;
            debug_assert!(commit >= self.last_commit, "the log keeps a lane's batches in order");
            self.last_commit = commit;
        }
        let flight = self.flights.pop_front()?;
        Some(Landed { lane, number: self.landed(), last: self.sent, flight, kept })
    }
}

impl Lanes {
    fn one(&mut self, lane: Lane) -> &mut OneLane {
        match lane {
            Lane::Ahead => &mut self.ahead,
            Lane::Behind => &mut self.behind,
        }
    }

    /// Adds a batch that was sent to the log.
    pub(crate) fn send(&mut self, lane: Lane, flight: Flight) {
        let one = self.one(lane);
        one.sent += 1;
        one.flights.push_back(flight);
    }

    /// Takes the next batch that has landed.
    pub(crate) fn land(&mut self, context: &mut Context<'_>) -> Option<Landed> {
        let ahead = self.ahead.land(Lane::Ahead, context);
        ahead.or_else(|| self.behind.land(Lane::Behind, context))
    }

    /// Returns how many batches of a lane are on their way.
    pub(crate) fn len(&self, lane: Lane) -> usize {
        match lane {
            Lane::Ahead => self.ahead.flights.len(),
            Lane::Behind => self.behind.flights.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ahead.flights.is_empty() && self.behind.flights.is_empty()
    }

    /// Notes that a tree is part of the batch that is sent next.
    pub(crate) fn join(&mut self, lane: Lane, tree: &mut LastBatches) {
        let next = self.one(lane).sent + 1;
        match lane {
            Lane::Ahead => tree.ahead = next,
            Lane::Behind => tree.behind = next,
        }
    }

    /// Returns whether a batch with entries of a tree is on its way in the lower lane.
    pub(crate) fn is_behind(&self, tree: LastBatches) -> bool {
        tree.behind > self.behind.landed()
    }

    /// Returns whether a batch with entries of a tree is on its way.
    pub(crate) fn has(&self, tree: LastBatches) -> bool {
        self.is_behind(tree) || tree.ahead > self.ahead.landed()
    }
}
