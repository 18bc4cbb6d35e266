//! One handler for several payloads, which finds out itself which of them its message has.

use std::borrow::Cow;

use crate::listener::{Arguments, Handler, HandlerKey, Listener, Need};
use crate::schema::Schema;
use crate::wire::{Fault, Payload};
use crate::xml::Element;

/// Payloads that one handler takes: a tuple of up to eight types.
#[diagnostic::on_unimplemented(
    message = "these are not payloads for one handler: a tuple of up to eight payload types",
    label = "not a tuple of payloads",
    note = "`.on_each::<(First, Second), _>(handle)`"
)]
pub trait Payloads {
    /// The schema of each payload, and a function that checks that an element can be read as it.
    fn all() -> Vec<(&'static Schema, Check)>;
}

/// Returns the element if it can be read as a certain payload.
pub type Check = fn(&Element) -> Result<Element, Fault>;

impl<S: Clone + Send + Sync + 'static> Listener<S> {
    /// Adds one handler for all payloads of a tuple, and routes messages with their names to this
    /// listener. The handler's last argument is the element; it can be read as the payload whose
    /// name it has. For handlers that treat their messages alike, or that handle a whole
    /// [`Queue`](crate::listener::Queue) of them.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
    /// use pumphouse::prelude::*;
    ///
    /// # /// Came in.
    /// # #[derive(Payload)]
    /// # #[payload(ns = "urn:gate")]
    /// # struct Entered;
    /// # /// Went out.
    /// # #[derive(Payload)]
    /// # #[payload(ns = "urn:gate")]
    /// # struct Left;
    /// async fn pass(Message(message): Message, _: Element) {
    ///     println!("{} says {}", message.from(), message.name().local());
    /// }
    ///
    /// let gate = Listener::new("gate").on_each::<(Entered, Left), _>(pass);
    /// assert_eq!(gate.takes().count(), 2);
    /// ```
    #[must_use]
    pub fn on_each<P: Payloads, A>(mut self, f: impl Handler<A> + Copy) -> Listener<S>
    where
        A: Arguments<S, Last = Element>,
    {
        for (schema, read) in P::all() {
            self.spec.needs.push(Need::Accept(Cow::Borrowed(schema)));
            self = self.bind(HandlerKey::Route(schema.name.clone()), f, read);
        }
        self
    }
}

macro_rules! tuples {
    ($([$($P:ident)+])+) => { $(
        impl<$($P: Payload),+> Payloads for ($($P,)+) {
            fn all() -> Vec<(&'static Schema, Check)> {
                vec![$(($P::schema(), check::<$P>)),+]
            }
        }
    )+ };
}

fn check<P: Payload>(element: &Element) -> Result<Element, Fault> {
    P::read(element.view())?;
    Ok(element.clone())
}

tuples!([A] [A B] [A B C] [A B C D] [A B C D E] [A B C D E F] [A B C D E F G] [A B C D E F G H]);
