//! Batches on their way to the log, in two priority lanes: trees with low recent usage overtake
//! bulk writers. The batches of one lane land in their order.
//!
//! A tree with a batch on its way in the lower lane may not use the upper lane: its entries would
//! overtake each other.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use crate::engine::tree::effect::Effect;
use crate::log;

/// A lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// That of those who took little.
    Ahead,
    /// Everybody's.
    Behind,
}

/// The last batch of each lane that a tree is part of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Last {
    ahead: u64,
    behind: u64,
}

/// A batch on its way.
pub(crate) struct Flight {
    pub(crate) append: Option<log::Boxed<'static, log::Receipt>>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) steps: usize,
    pub(crate) sent_us: u64,
}

/// A batch that has landed.
pub(crate) struct Landed {
    pub(crate) lane: Lane,
    /// Its number within its lane, and that of the last one sent there.
    pub(crate) number: u64,
    pub(crate) last: u64,
    pub(crate) flight: Flight,
    /// What the log says of it; nothing where it wasn't asked.
    pub(crate) kept: Result<Option<log::Receipt>, log::Error>,
}

/// All batches on their way.
#[derive(Default)]
pub(crate) struct Lanes {
    ahead: One,
    behind: One,
}

#[derive(Default)]
struct One {
    flights: VecDeque<Flight>,
    sent: u64,
}

impl One {
    /// How many of those that were sent have landed.
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
        let flight = self.flights.pop_front()?;
        Some(Landed { lane, number: self.landed(), last: self.sent, flight, kept })
    }
}

impl Lanes {
    fn one(&mut self, lane: Lane) -> &mut One {
        match lane {
            Lane::Ahead => &mut self.ahead,
            Lane::Behind => &mut self.behind,
        }
    }

    /// A batch is on its way.
    pub(crate) fn send(&mut self, lane: Lane, flight: Flight) {
        let one = self.one(lane);
        one.sent += 1;
        one.flights.push_back(flight);
    }

    /// The next one that has landed.
    pub(crate) fn land(&mut self, context: &mut Context<'_>) -> Option<Landed> {
        let ahead = self.ahead.land(Lane::Ahead, context);
        ahead.or_else(|| self.behind.land(Lane::Behind, context))
    }

    /// How many are on their way in a lane.
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
    pub(crate) fn join(&mut self, lane: Lane, tree: &mut Last) {
        let next = self.one(lane).sent + 1;
        match lane {
            Lane::Ahead => tree.ahead = next,
            Lane::Behind => tree.behind = next,
        }
    }

    /// Whether something of a tree is on its way in the lane behind.
    pub(crate) fn is_behind(&self, tree: Last) -> bool {
        tree.behind > self.behind.landed()
    }

    /// Whether something of a tree is on its way.
    pub(crate) fn has(&self, tree: Last) -> bool {
        self.is_behind(tree) || tree.ahead > self.ahead.landed()
    }
}
