//! The parts of a budget that running handlers have reserved, and reservations that wait.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use crate::engine::tree::event::{Key, Ready};
use crate::listener::Entry;
use crate::wire::Fault;
use crate::wire::budget::{BudgetKey, Charge};

/// The tokens and the money (in millionths) that a handler has reserved and not settled. A
/// settlement of the handler ends all of its reservations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReservedAmounts {
    tokens: u64,
    micros: u64,
}

impl ReservedAmounts {
    /// Returns the amounts that an earlier attempt at a message had reserved and not settled.
    pub(crate) fn kept(sent: &VecDeque<Entry>) -> ReservedAmounts {
        let mut reserved = ReservedAmounts::default();
        let charges = sent.iter().filter(|it| !it.is_refused()).filter_map(Entry::decode_if);
        charges.for_each(|it: Charge| reserved.note(&it));
        reserved
    }

    /// Applies a charge that the ledger has booked.
    pub(crate) fn note(&mut self, charge: &Charge) {
        let whole = |it: i64| u64::try_from(it).unwrap_or(0);
        *self = match charge.settled {
            true => ReservedAmounts::default(),
            false => {
                let more = ReservedAmounts {
                    tokens: whole(charge.tokens),
                    micros: whole(charge.cost_micros),
                };
                self.plus(more)
            }
        };
    }

    /// Returns the reserved amount of one budget.
    pub(crate) fn of(self, key: BudgetKey) -> u64 {
        match key {
            BudgetKey::Tokens => self.tokens,
            BudgetKey::CostMicros => self.micros,
            _ => 0,
        }
    }

    pub(super) fn plus(self, more: ReservedAmounts) -> ReservedAmounts {
        let tokens = self.tokens.saturating_add(more.tokens);
        ReservedAmounts { tokens, micros: self.micros.saturating_add(more.micros) }
    }
}

/// A reservation that waits until other handlers settle theirs.
pub(crate) struct PendingReservation {
    pub(super) key: Key,
    pub(super) ready: Vec<Ready>,
    pub(super) done: oneshot::Sender<Result<(), Fault>>,
}
