//! Declares which messages a listener may handle twice with the effect of once.

use std::sync::Arc;

use crate::listener::{Described, Entry, Extensions, Listener};
use crate::xml::Element;

impl<S> Listener<S> {
    /// Declares that handling a message twice has the same effect as handling it once. After a
    /// crash the pump may then run the handler again, and an action that calls the listener may be
    /// tried again even if nobody knows what its last attempt did.
    #[must_use]
    pub fn idempotent(mut self) -> Listener<S> {
        self.spec.traits.idempotent = true;
        self
    }

    /// Declares the same as [`idempotent`](Listener::idempotent), but only of the messages whose
    /// payloads `is_idempotent` accepts, for example of reads.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
    /// use pumphouse::prelude::*;
    ///
    /// let clerk = Listener::new("clerk").on(async |_: Done| ());
    /// let clerk = clerk.idempotent_for(|it| it.local() == "done");
    /// let plan = pumphouse::builder().with(clerk).build()?;
    /// let clerk = plan.capabilities().listener("clerk").ok_or("there is no clerk")?;
    /// assert!(clerk.is_idempotent(&Done {}.encode()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn idempotent_for(
        mut self,
        is_idempotent: impl Fn(&Element) -> bool + Send + Sync + 'static,
    ) -> Listener<S> {
        self.spec.extensions.insert(IdempotentFor(Arc::new(is_idempotent)));
        self
    }
}

/// The function that says which payloads may be handled twice.
type IsIdempotent = Arc<dyn Fn(&Element) -> bool + Send + Sync>;

/// The payloads that a listener may handle twice.
#[derive(Clone)]
pub(crate) struct IdempotentFor(IsIdempotent);

impl IdempotentFor {
    pub(crate) fn of(extensions: &Extensions) -> Option<IdempotentFor> {
        extensions.get::<IdempotentFor>().cloned()
    }

    /// Returns whether an entry's payload may be handled twice. A payload that can't be read may
    /// not.
    pub(crate) fn covers(&self, entry: &Entry) -> bool {
        entry.element().is_ok_and(|it| (self.0)(it))
    }
}

impl Described {
    /// Whether the listener declares that it may handle this payload twice with the effect of once.
    #[must_use]
    pub fn is_idempotent(&self, payload: &Element) -> bool {
        self.idempotent || self.extension::<IdempotentFor>().is_some_and(|it| (it.0)(payload))
    }
}
