//! [`OrganismThread`], an argument with which a handler records payloads in the organism's own
//! thread, and reads this thread; and [`OrganismFold`], state that is computed from this thread.

use std::sync::{Arc, Mutex, PoisonError};

use crate::listener::{Apply, Context, Entry, FromContext, Grant, HandlerCall, Need, Organism};
use crate::wire::{Fault, Payload};

/// The number of entries that are read at a time.
const PAGE: usize = 256;

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

/// State that is computed from the entries of the organism's own thread, such as a setting for the
/// whole organism. A listener has it in its own state.
///
/// ```
/// use std::sync::Arc;
///
/// use pumphouse::listener::{Organism, OrganismFold, OrganismThread};
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
/// /// Asks whether the shop is open.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Ask {}
///
/// #[derive(Clone, Debug, Default)]
/// struct IsOpen(bool);
///
/// impl Apply for IsOpen {
///     fn apply(&mut self, entry: &Entry) {
///         if let Some(Turn { open }) = entry.decode_if() {
///             self.0 = open;
///         }
///     }
/// }
///
/// async fn turn(organism: OrganismThread, turn: Turn) -> Result<Done, Fault> {
///     organism.record(&turn).await?;
///     Ok(Done {})
/// }
///
/// async fn ask(
///     State(door): State<Arc<OrganismFold<IsOpen>>>,
///     organism: OrganismThread,
///     _: Ask,
/// ) -> Result<Turn, Fault> {
///     Ok(Turn { open: door.with(&organism, |it| it.0).await? })
/// }
///
/// let state = Arc::new(OrganismFold::<IsOpen>::default());
/// let door = Listener::with_state("door", state).on(turn).on(ask).grant::<Organism>();
/// assert!(pumphouse::builder().with(door.idempotent()).build().is_ok());
/// ```
#[derive(Debug, Default)]
pub struct OrganismFold<T>(Mutex<Known<T>>);

/// The state as far as the thread has been read.
#[derive(Debug, Default)]
struct Known<T> {
    /// The number of the last entry that has been read.
    read: u64,
    state: T,
}

impl<T: Apply> OrganismFold<T> {
    /// Reads what is new in the thread, and calls `read` with the state. The state has at least
    /// the entries that the log got before the message at hand.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn with<R>(
        &self,
        organism: &OrganismThread,
        read: impl FnOnce(&T) -> R,
    ) -> Result<R, Fault> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let after = known().read;
            let page = organism.read(after, PAGE).await?;
            let mut known = known();
            if page.is_empty() {
                return Ok(read(&known.state));
            }
            // Another call may have applied some of these entries meanwhile.
            for entry in &page {
                if entry.seq() > known.read {
                    known.read = entry.seq();
                    known.state.apply(entry);
                }
            }
        }
    }
}
