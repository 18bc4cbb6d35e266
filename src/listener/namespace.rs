//! Listeners whose payloads are in a namespace that is made from the listener's name. Thus an
//! organism can have two listeners of the same kind, under two names. When a listener gets another
//! name, this module renames its payloads.

use std::sync::Arc;

use crate::limits::XmlLimits;
use crate::listener::{Emit, HandlerKey, Listener, Need, Spec};
use crate::name::{Name, namespace_of};
use crate::wire::Fault;
use crate::xml::{Child, Element, View, Writer};

impl<S> Listener<S> {
    /// Ties the namespace of the listener's payloads to the listener's name, so that an organism
    /// can have two listeners of this kind. When [`named`](Listener::named) gives the listener
    /// another name, its payloads move from the namespace of the old name to the namespace of the
    /// new name; [`namespace_of`](crate::name::namespace_of) makes both namespaces. Call this
    /// before the first `.on(…)`.
    ///
    /// A payload that a handler sends with an `Outbox` isn't moved. So the handlers of such a
    /// listener must return their answers.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
    /// use pumphouse::prelude::*;
    ///
    /// /// Wants to know what is in stock.
    /// #[derive(Payload)]
    /// #[payload(ns = "https://xml-pipeline.org/ns/shop/v1")]
    /// struct Stock;
    ///
    /// let shop = || Listener::new("shop").own_namespace().on(async |_: Stock| {});
    /// assert!(pumphouse::builder().with((shop(), shop().named("kiosk"))).build().is_ok());
    /// ```
    #[must_use]
    pub fn own_namespace(mut self) -> Listener<S> {
        self.spec.traits.own_namespace = Some("");
        self
    }

    /// Does the same as [`own_namespace`](Listener::own_namespace), within a group of listeners.
    /// With the group `"shops/"`, a listener `kiosk` has the namespace
    /// `namespace_of("shops/kiosk")`. The group must end with a slash.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
    /// use pumphouse::prelude::*;
    ///
    /// /// Wants to know what is in stock.
    /// #[derive(Payload)]
    /// #[payload(ns = "https://xml-pipeline.org/ns/shops/shop/v1")]
    /// struct Stock;
    ///
    /// let shop = Listener::new("shop").own_namespace_in("shops/").on(async |_: Stock| {});
    /// let names: Vec<String> = shop.named("kiosk").payloads().map(|it| it.to_string()).collect();
    /// assert_eq!(names, ["{https://xml-pipeline.org/ns/shops/kiosk/v1}stock"]);
    /// ```
    #[must_use]
    pub fn own_namespace_in(mut self, group: &'static str) -> Listener<S> {
        self.spec.traits.own_namespace = Some(group);
        self
    }

    /// Whether the namespace of the listener's payloads is tied to its name.
    #[must_use]
    pub fn has_own_namespace(&self) -> bool {
        self.spec.traits.own_namespace.is_some()
    }
}

/// A move of payloads from one namespace into another.
#[derive(Clone, Debug)]
pub struct Move {
    /// The namespace that a payload has.
    pub from: String,
    /// The namespace that it gets.
    pub to: String,
}

impl Move {
    /// The move from the namespace of the listener name `from` to that of the name `to`, in a
    /// group. None if the names are equal.
    pub(crate) fn between(group: &str, from: &str, to: &str) -> Option<Move> {
        let namespace = |name: &str| namespace_of(&format!("{group}{name}"));
        (from != to).then(|| Move { from: namespace(from), to: namespace(to) })
    }

    /// The reverse move.
    pub(crate) fn reversed(&self) -> Move {
        Move { from: self.to.clone(), to: self.from.clone() }
    }

    fn name(&self, name: &Name) -> Name {
        match name.namespace() == self.from {
            true => Name::new(self.to.clone(), name.local().to_owned()),
            false => name.clone(),
        }
    }

    /// A copy of the payload whose elements are in the new namespace. Elements in other namespaces
    /// stay as they are, with all that they contain. A moved element keeps only its attributes
    /// without a namespace.
    pub fn element(&self, element: &Element) -> Result<Element, Fault> {
        let mut writer = Writer::new(XmlLimits::INSIDE);
        self.write(element.view(), &mut writer);
        Ok(writer.finish()?)
    }

    fn write(&self, view: View<'_>, writer: &mut Writer) {
        if view.namespace() != self.from {
            return writer.element(view);
        }
        writer.start(&self.to, view.local());
        for attribute in view.attributes().filter(|it| it.namespace.is_empty()) {
            writer.attribute(attribute.local, attribute.value);
        }
        for child in view.children() {
            match child {
                Child::Text(text) => writer.text(text),
                Child::Element(it) => self.write(it, writer),
            }
        }
        writer.end();
    }

    /// Moves the payloads that a handler emits. A fault replaces each payload that can't be moved.
    pub(crate) fn emit(&self, mut emit: Emit) -> Emit {
        for emission in &mut emit {
            let Ok(payload) = &mut emission.payload else { continue };
            match self.element(&payload.element) {
                Ok(element) => {
                    payload.element = element;
                    payload.typed = payload.typed.as_ref().map(|it| self.name(it));
                }
                Err(fault) => emission.payload = Err(fault),
            }
        }
        emit
    }

    /// Moves the names of all payloads that a listener owns, emits or announces.
    pub(crate) fn spec(&self, spec: &mut Spec) {
        for need in &mut spec.needs {
            if let Need::Accept(used) | Need::Emit(used) = need
                && used.name.namespace() == self.from
            {
                let schema = used.to_mut();
                schema.name = self.name(&schema.name);
            }
        }
        let names = |all: &mut Vec<Name>| all.iter_mut().for_each(|it| *it = self.name(it));
        names(&mut spec.no_replies);
        spec.emits_then = Arc::new(spec.emits_then.iter().map(|it| self.name(it)).collect());
        let emits = spec
            .emits
            .iter()
            .map(|(name, all)| (self.name(name), all.iter().map(|it| self.name(it)).collect()));
        spec.emits = Arc::new(emits.collect());
        for announcement in &mut spec.announcements {
            announcement.name = self.name(&announcement.name);
            announcement.element =
                announcement.element.as_ref().map_err(Clone::clone).and_then(|it| self.element(it));
        }
        for (key, _) in &mut spec.handlers {
            if let HandlerKey::Route(name) | HandlerKey::Reply(name) = key {
                *name = self.name(name);
            }
        }
    }
}
