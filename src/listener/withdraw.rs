//! Takes a message back that a listener has sent.

use crate::id::EntryId;
use crate::listener::emit::aim;
use crate::listener::{Emit, IntoEmit, Need, Target};
use crate::wire::core::Done;

/// Takes back a message that this listener sent in this thread, because nobody needs its answer any
/// more. If the message still waits, it isn't handled. If its handler runs, the handler is told to
/// stop, and what it began, such as a program, ends with it. Nobody is answered.
///
/// A message that another listener sent, or that is handled already, is left alone. So are messages
/// to agents and to [pure](crate::Listener::pure) and [recorded](crate::Listener::recorded)
/// listeners. A `Withdraw` is carried out before the other emissions of its handler.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::listener::{Request, Withdraw};
/// use pumphouse::prelude::*;
///
/// /// Asks for a long walk.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Walk;
///
/// /// Calls the walker back.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Return;
///
/// async fn ask(_: Walk) -> Request<Again<Walk>> {
///     Request::new(Again(Walk))
/// }
///
/// async fn call_back(history: History, _: Return) -> Result<Vec<Withdraw>, Fault> {
///     let walks = history.all().await?.into_iter().filter(|it| it.is::<Walk>());
///     Ok(walks.map(|it| Withdraw(it.id().clone())).collect())
/// }
///
/// let dog = Listener::new("dog").on(ask).on(call_back);
/// assert!(pumphouse::builder().with(dog).build().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it names the message, and nothing else")]
pub struct Withdraw(
    /// The message's entry.
    pub EntryId,
);

#[diagnostic::do_not_recommend]
impl IntoEmit for Withdraw {
    fn into_emit(self) -> Emit {
        // The pump reads the target alone; the payload is never sent.
        aim(Done {}.into_emit(), &Target::Withdraw(self.0))
    }

    fn emits() -> Vec<Need> {
        Vec::new()
    }
}
