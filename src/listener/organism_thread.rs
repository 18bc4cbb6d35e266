//! [`OrganismThread`], an argument with which a handler records payloads in the organism's own
//! thread, and reads this thread. [`OrganismFold`] is state that is computed from this thread.

use std::sync::{Arc, Mutex, PoisonError};

use crate::listener::{Apply, Context, Entry, FromContext, Grant, HandlerCall, Need, Organism};
use crate::wire::{Code, Fault, Payload};

/// Entries read per page.
const PAGE: usize = 256;

/// The organism's own thread, `organism`. A handler records payloads there that hold for the whole
/// organism. Reading leaves out entries that the log got after the handler's message.
///
/// The listener needs the grant [`Organism`].
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::listener::{Organism, OrganismThread};
/// use pumphouse::prelude::*;
///
/// /// Opens or closes the shop.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct OpenShop {
///     #[payload(attribute)]
///     open: bool,
/// }
///
/// /// The shop is open or closed from now on.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct ShopOpened {
///     #[payload(attribute)]
///     open: bool,
/// }
///
/// async fn open_shop(organism: OrganismThread, it: OpenShop) -> Result<ShopOpened, Fault> {
///     let opened = ShopOpened { open: it.open };
///     organism.record(&opened).await?;
///     Ok(opened)
/// }
///
/// let door = Listener::new("door").on(open_shop).grant::<Organism>().idempotent();
/// assert!(pumphouse::builder().with(door).build().is_ok());
/// ```
///
/// The pump routes a payload in the organism's own thread like any other, to the listeners that
/// take it. Therefore a listener can't record a payload that it takes itself.
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
    /// Records a payload in the organism's own thread, as a payload of the pump, caused by the
    /// handler's message. The payload is in the log once this returns. If the pump is killed before
    /// that, and the listener is idempotent, the handler runs again and may record the payload a
    /// second time. A replay records nothing.
    ///
    /// # Errors
    /// If the listener takes such a payload itself, if the payload can't be written, or if the pump
    /// stops first.
    pub async fn record<P: Payload>(&self, payload: &P) -> Result<(), Fault> {
        let own = self.0.host.capabilities().listener(&self.0.listener);
        if own.is_some_and(|it| it.takes.contains(&P::NAME)) {
            let text = format!("{} takes {}, so it can't record it", self.0.listener, P::NAME);
            return Err(Fault::new(Code::InvalidReturn, text));
        }
        let element = payload.encode()?;
        self.0.host.record_in_organism(&self.0, P::NAME, element).await
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
/// whole organism. A listener keeps an `OrganismFold` in its own state.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use std::sync::Arc;
///
/// use pumphouse::listener::{Organism, OrganismFold, OrganismThread};
/// use pumphouse::prelude::*;
///
/// /// Asks whether the shop is open.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct AskShop {}
///
/// /// The shop is open or closed.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct ShopOpened {
///     #[payload(attribute)]
///     open: bool,
/// }
///
/// #[derive(Clone, Debug, Default)]
/// struct IsOpen(bool);
///
/// impl Apply for IsOpen {
///     fn apply(&mut self, entry: &Entry) {
///         if let Some(ShopOpened { open }) = entry.decode_if() {
///             self.0 = open;
///         }
///     }
/// }
///
/// async fn ask(
///     State(shop): State<Arc<OrganismFold<IsOpen>>>,
///     organism: OrganismThread,
///     _: AskShop,
/// ) -> Result<ShopOpened, Fault> {
///     Ok(ShopOpened { open: shop.with(&organism, |it| it.0).await? })
/// }
///
/// let state = Arc::new(OrganismFold::<IsOpen>::default());
/// let shop = Listener::with_state("shop", state).on(ask).grant::<Organism>().idempotent();
/// assert!(pumphouse::builder().with(shop).build().is_ok());
/// ```
#[derive(Debug, Default)]
pub struct OrganismFold<T>(Mutex<Progress<T>>);

/// The state as far as the thread has been read.
#[derive(Debug, Default)]
struct Progress<T> {
    /// The number of the last entry that has been read.
    read: u64,
    state: T,
}

impl<T: Apply> OrganismFold<T> {
    /// Reads the new entries of the thread, and calls `read` with the state. The state has at least
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
