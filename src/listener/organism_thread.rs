//! [`OrganismThread`], an argument with which a handler records payloads in the organism's own
//! thread, and reads this thread.

use std::sync::Arc;

use crate::listener::{Context, Entry, FromContext, Grant, HandlerCall, Need, Organism};
use crate::wire::{Fault, Payload};

/// The organism's own thread, `organism`. A handler records there what holds for the whole
/// organism, and reads what was recorded up to the moment when the log got the message.
///
/// The listener needs the grant [`Organism`].
///
/// ```
/// use pumphouse::listener::{Organism, OrganismThread};
/// use pumphouse::prelude::*;
///
/// /// Opens or closes the shop.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Turn {
///     #[payload(attribute)]
///     open: bool,
/// }
///
/// async fn turn(organism: OrganismThread, turn: Turn) -> Result<Done, Fault> {
///     organism.record(&turn).await?;
///     Ok(Done {})
/// }
///
/// let door = Listener::new("door").on(turn).grant::<Organism>().idempotent();
/// assert!(pumphouse::builder().with(door).build().is_ok());
/// ```
#[derive(Clone)]
pub struct OrganismThread(Arc<HandlerCall>);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for OrganismThread {
    fn needs() -> Vec<Need> {
        vec![Need::Log, Need::Grant(Organism::GRANT)]
    }

    fn from_context(context: &Context<S>) -> Result<OrganismThread, Fault> {
        Ok(OrganismThread(context.log("OrganismThread")?))
    }
}

impl OrganismThread {
    /// Records a payload in the organism's own thread, as a payload of the pump. It is in the log
    /// once this returns. If the pump is killed before that, and the listener is idempotent, the
    /// handler runs again and may record the payload a second time. A replay records nothing.
    ///
    /// # Errors
    /// If the payload can't be written, or the pump stops first.
    pub async fn record<P: Payload>(&self, payload: &P) -> Result<(), Fault> {
        let element = payload.encode()?;
        self.0.host.record_in_organism(P::NAME, element).await
    }

    /// Up to `limit` entries of the organism's own thread whose number is greater than `after`, but
    /// at most 256.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn read(&self, after: u64, limit: usize) -> Result<Vec<Entry>, Fault> {
        self.0.host.read_organism(&self.0, after, limit).await
    }
}
