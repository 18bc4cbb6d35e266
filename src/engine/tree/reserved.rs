//! What handlers at work have reserved of a budget, and reservations that wait for others. Pure.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use crate::engine::tree::event::{Key, Ready};
use crate::listener::Entry;
use crate::wire::Fault;
use crate::wire::budget::{BudgetKey, Charge};

/// What a handler has reserved of a budget and not settled. Its first settlement settles all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reserved {
    tokens: u64,
    micros: u64,
}

impl Reserved {
    /// What an earlier attempt at a message had reserved.
    pub(crate) fn kept(sent: &VecDeque<Entry>) -> Reserved {
        let mut reserved = Reserved::default();
        let charges = sent.iter().filter(|it| !it.is_refused()).filter_map(Entry::decode_if);
        charges.for_each(|it: Charge| reserved.note(&it));
        reserved
    }

    /// Takes in a charge that the ledger has booked.
    pub(crate) fn note(&mut self, it: &Charge) {
        let whole = |it: i64| u64::try_from(it).unwrap_or(0);
        *self = match it.settled {
            true => Reserved::default(),
            false => {
                let more = Reserved { tokens: whole(it.tokens), micros: whole(it.cost_micros) };
                self.plus(more)
            }
        };
    }

    /// How much of one budget it is.
    pub(crate) fn of(self, key: BudgetKey) -> u64 {
        match key {
            BudgetKey::Tokens => self.tokens,
            BudgetKey::CostMicros => self.micros,
            _ => 0,
        }
    }

    pub(super) fn plus(self, more: Reserved) -> Reserved {
        let tokens = self.tokens.saturating_add(more.tokens);
        Reserved { tokens, micros: self.micros.saturating_add(more.micros) }
    }
}

/// A reservation that waits for others to settle theirs.
pub(crate) struct Pending {
    pub(super) key: Key,
    pub(super) ready: Vec<Ready>,
    pub(super) done: oneshot::Sender<Result<(), Fault>>,
}
