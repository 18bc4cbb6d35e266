//! What a listener takes and emits, for those who build an organism of several.

use crate::listener::need::Need;
use crate::listener::spec::{HandlerKey, Listener};
use crate::name::Name;
use crate::schema::Schema;

impl<S> Listener<S> {
    /// The payloads that the listener takes or may emit, without reserved ones, which are the
    /// pump's own. A name may be listed more than once.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
    /// # use pumphouse::prelude::*;
    /// # /// Asks for the time of a place.
    /// # #[derive(Payload)]
    /// # #[payload(ns = "https://example.org/ns/clock/v1")]
    /// # struct Ask {
    /// #     place: String,
    /// # }
    /// # /// The time of a place.
    /// # #[derive(Payload)]
    /// # #[payload(ns = "https://example.org/ns/clock/v1")]
    /// # struct Told {
    /// #     time: String,
    /// # }
    /// async fn tell(Ask { place }: Ask) -> Told {
    ///     Told { time: format!("noon in {place}") }
    /// }
    ///
    /// let clock = Listener::new("clock").on(tell);
    /// let names: Vec<&str> = clock.payloads().map(|it| it.local()).collect();
    /// assert!(names.contains(&"ask") && names.contains(&"told"));
    /// ```
    pub fn payloads(&self) -> impl Iterator<Item = &Name> {
        self.spec.payloads()
    }

    /// The payloads that are routed to the listener.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
    /// # use pumphouse::prelude::*;
    /// # /// Asks for the time of a place.
    /// # #[derive(Payload)]
    /// # #[payload(ns = "https://example.org/ns/clock/v1")]
    /// # struct Ask {
    /// #     place: String,
    /// # }
    /// # /// The time of a place.
    /// # #[derive(Payload)]
    /// # #[payload(ns = "https://example.org/ns/clock/v1")]
    /// # struct Told {
    /// #     time: String,
    /// # }
    /// async fn tell(Ask { place }: Ask) -> Told {
    ///     Told { time: format!("noon in {place}") }
    /// }
    ///
    /// let clock = Listener::new("clock").on(tell);
    /// let names: Vec<&str> = clock.takes().map(|it| it.local()).collect();
    /// assert_eq!(names, ["ask"]);
    /// ```
    pub fn takes(&self) -> impl Iterator<Item = &Name> {
        self.spec.handlers.iter().filter_map(|(key, _)| match key {
            HandlerKey::Route(name) => Some(name),
            HandlerKey::Reply(_) | HandlerKey::AnyReply => None,
        })
    }

    /// Returns the schemas of the payloads that the listener takes, and of those that its handlers
    /// name beside them.
    pub fn accepts(&self) -> impl Iterator<Item = &Schema> {
        self.spec.needs.iter().filter_map(|it| match it {
            Need::Accept(schema) => Some(&**schema),
            _ => None,
        })
    }

    /// A payload that this listener and `other` both take. None if there is no such payload, or if
    /// both listeners are [shared](Listener::shared). If such a payload is returned, one
    /// organism can't have both listeners, even under different names.
    #[must_use]
    pub fn disputes<T>(&self, other: &Listener<T>) -> Option<&Name> {
        let is_taken = |it: &&HandlerKey| other.spec.handlers.iter().any(|(key, _)| key == *it);
        let ways = self.spec.handlers.iter().map(|(key, _)| key);
        let both_share = self.spec.traits.shared && other.spec.traits.shared;
        ways.filter(|_| !both_share).filter(is_taken).find_map(|key| match key {
            HandlerKey::Route(name) => Some(name),
            HandlerKey::Reply(_) | HandlerKey::AnyReply => None,
        })
    }
}
