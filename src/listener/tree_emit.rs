//! What a handler asks of its tree of threads: to spend or raise a budget, and to try stopped
//! listeners again.

use crate::listener::emit::{Emit, IntoEmit, Target, aim};
use crate::listener::{Charges, Grant, Need, Threads};
use crate::wire::budget::{self, RaiseBudget};
use crate::wire::core::RetryListeners;

/// The cost of some work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "whoever charges says each")]
pub struct Cost {
    /// Turns of the listener in the message's thread.
    pub turns: u64,
    /// Tokens of models.
    pub tokens: u64,
    /// Millionths of the operator's currency.
    pub micros: u64,
}

/// Charges the budget of the message's tree. It needs a [grant](Charges).
///
/// Reserve before the work, settle after it. If a reservation that `out.send` sends doesn't fit,
/// awaiting the send returns an `Err` with the fault `P0042`, and nothing is spent.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::listener::{Charge, Charges, Cost};
/// use pumphouse::prelude::*;
///
/// /// Wants an answer.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Ask;
///
/// async fn think(out: Outbox<Charge>, _: Ask) -> Result<(), Fault> {
///     let reserved = Cost { turns: 1, tokens: 4_000, micros: 0 };
///     out.send(Charge::reserve(reserved)).await?;
///     let spent = Cost { tokens: 3_120, ..reserved };
///     out.send(Charge::settle(reserved, spent)).await
/// }
///
/// let thinker = Listener::new("thinker").on(think).grant::<Charges>();
/// assert!(pumphouse::builder().with(thinker).build().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Charge(budget::Charge);

impl Charge {
    /// Reserves a cost, if the budget has room for all of it.
    #[must_use]
    pub fn reserve(cost: Cost) -> Charge {
        let whole = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
        Charge(budget::Charge {
            turns: whole(cost.turns),
            tokens: whole(cost.tokens),
            cost_micros: whole(cost.micros),
            ..budget::Charge::default()
        })
    }

    /// Settles a reservation with what was spent, and gives back the part that wasn't spent.
    /// Spending beyond the reservation counts even if the budget has no room for it.
    #[must_use]
    pub fn settle(reserved: Cost, spent: Cost) -> Charge {
        let (was, is) = (Charge::reserve(reserved).0, Charge::reserve(spent).0);
        Charge(budget::Charge {
            turns: is.turns - was.turns,
            tokens: is.tokens - was.tokens,
            cost_micros: is.cost_micros - was.cost_micros,
            settled: true,
            ..budget::Charge::default()
        })
    }
}

impl Charge {
    /// The charge as the log records it.
    pub(crate) fn into_budget(self) -> budget::Charge {
        self.0
    }
}

/// Makes a charge with details, such as the model and its kinds of tokens.
impl From<budget::Charge> for Charge {
    fn from(charge: budget::Charge) -> Charge {
        Charge(charge)
    }
}

/// Tries the listeners again that are stopped in a thread or below it, since one of their folds
/// panicked. It needs a [grant](Threads).
///
/// The sender of the message gets
/// [`ListenersRetried`](crate::wire::core::ListenersRetried). The thread must be the message's own
/// thread or one of its descendants.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a newtype, to be built")]
pub struct Retry(
    /// The thread.
    pub RetryListeners,
);

/// Raises a budget of the message's tree, if an operator sent the message. It needs a
/// [grant](Threads). The operator gets `budget-raised`, and threads that were over budget continue.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "it says what the operator said")]
pub struct Raise(
    /// The budget and its new limit.
    pub RaiseBudget,
);

#[diagnostic::do_not_recommend]
impl IntoEmit for Charge {
    fn into_emit(self) -> Emit {
        aim(self.0.clone().into_emit(), &Target::Charge(Box::new(self.0)))
    }

    fn emits() -> Vec<Need> {
        vec![Need::Grant(Charges::GRANT)]
    }
}

#[diagnostic::do_not_recommend]
impl IntoEmit for Retry {
    fn into_emit(self) -> Emit {
        aim(self.0.into_emit(), &Target::Retry)
    }

    fn emits() -> Vec<Need> {
        vec![Need::Grant(Threads::GRANT)]
    }
}

#[diagnostic::do_not_recommend]
impl IntoEmit for Raise {
    fn into_emit(self) -> Emit {
        aim(self.0.into_emit(), &Target::Raise)
    }

    fn emits() -> Vec<Need> {
        vec![Need::Grant(Threads::GRANT)]
    }
}
