//! Payloads that a listener announces when the pump starts, and functions that it runs when the
//! pump stops.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::listener::{Listener, Need};
use crate::name::Name;
use crate::wire::{Fault, Payload};
use crate::xml::Element;

/// A payload that a listener announces in the thread `organism`.
pub(crate) struct Announcement {
    pub(crate) name: Name,
    pub(crate) element: Result<Element, Fault>,
}

/// A function that runs when the pump stops.
pub(crate) type AtStop = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

impl<S> Listener<S> {
    /// Announces a payload. When the pump starts, the pump posts this payload to the thread
    /// `organism`, unless the thread's last payload of that name is equal. So the log shows which
    /// settings a listener used, and since when.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
    /// use pumphouse::prelude::*;
    ///
    /// /// The price list that is in force.
    /// #[derive(Payload)]
    /// #[payload(ns = "https://xml-pipeline.org/ns/shop/v1")]
    /// struct PriceList {
    ///     #[payload(attribute)]
    ///     digest: String,
    /// }
    ///
    /// let list = PriceList { digest: "5f2c".to_owned() };
    /// let shop = Listener::new("shop").on(async |_: Done| {}).announce(&list);
    /// # let _ = shop;
    /// ```
    #[must_use]
    pub fn announce<P: Payload>(mut self, payload: &P) -> Listener<S> {
        let element = payload.encode();
        self.spec.needs.push(Need::Emit(std::borrow::Cow::Borrowed(P::schema())));
        self.spec.announcements.push(Announcement { name: P::NAME, element });
        self
    }

    /// Runs this function when the pump stops, once all handlers have ended or the limit
    /// `drain_time_max` is over. Such a function may flush a file or log out of a server. The
    /// functions of all listeners run concurrently, and together they have five seconds. If the
    /// pump is killed, the functions don't run.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
    /// use pumphouse::prelude::*;
    ///
    /// # /// A line to keep.
    /// # #[derive(Payload)]
    /// # #[payload(ns = "urn:lines")]
    /// # struct Line { text: String }
    /// let lines = Listener::new("lines")
    ///     .on(async |_: Line| {})
    ///     .at_stop(async || println!("The last line was kept."));
    /// # assert!(pumphouse::builder().with(lines).build().is_ok());
    /// ```
    #[must_use]
    pub fn at_stop<F, R>(mut self, end: F) -> Listener<S>
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.spec.at_stop.push(Arc::new(move || Box::pin(end())));
        self
    }
}
