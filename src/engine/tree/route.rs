//! Finds the receivers of a payload: by the payload's name, by a listener's name, or because the
//! payload is a reply. Routes depend on the organism alone, not on threads or time.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::limits::XmlLimits;
use crate::listener::{
    Announcement, AtStop, BoundHandler, Capabilities, Charges, DoorAccess, Effects, Entry, FoldId,
    FoldOf, Grant, HandlerKey, IdempotentFor, Need, Spec, Threads, Traits, Wakes,
};
use crate::log::{Flags, LastStart};
use crate::name::{ENVELOPE, Name};
use crate::secret::Secrets;
use crate::wire::missing_namespace::meant;
use crate::wire::{Catalog, Checked, Code, Fault};
use crate::xml::{Element, Writer};

/// A listener in the form that the engine uses.
pub(crate) struct Registered {
    pub(crate) name: Arc<str>,
    pub(crate) traits: Traits,
    idempotent_for: Option<IdempotentFor>,
    effects: Option<Effects>,
    pub(crate) timeout_us: u64,
    pub(crate) peers: Option<Arc<[String]>>,
    /// Who may send it messages at a door.
    pub(crate) door: DoorAccess,
    pub(crate) relies_on: Arc<[String]>,
    pub(crate) grants: Arc<BTreeSet<String>>,
    pub(crate) folds: Vec<(FoldId, FoldOf)>,
    /// Whether some handler takes a `Queue`: the other messages that wait for the listener.
    pub(crate) takes_queue: bool,
    /// Whether a running handler is told of messages that come for its listener.
    pub(crate) takes_arrivals: bool,
    /// Whether the listener may charge budgets.
    pub(crate) charges: bool,
    /// Whether the listener itself decides when its thread ends.
    pub(crate) ends_itself: bool,
    /// Whether the listener parks messages until its work on them is done.
    pub(crate) parks: bool,
    /// Whether the listener may end, pause and resume threads. Such a listener also runs in threads
    /// that are paused or over budget.
    pub(crate) steers: bool,
    /// The function that says whether an entry ends the wait of one of the listener's deliveries.
    pub(crate) wakes: Option<Wakes>,
    pub(crate) handlers: Vec<BoundHandler>,
    pub(crate) announcements: Vec<Announcement>,
    pub(crate) at_stop: Vec<AtStop>,
    routes: FxHashMap<Name, usize>,
    replies: FxHashMap<Name, usize>,
    any_reply: Option<usize>,
}

impl Registered {
    pub(crate) fn new(spec: Spec, timeout_us: u64) -> Registered {
        let (mut routes, mut replies, mut any_reply) =
            (HashMap::default(), HashMap::default(), None);
        let door = spec.door_access();
        let mut handlers = Vec::new();
        for (at, (key, handler)) in spec.handlers.into_iter().enumerate() {
            match key {
                HandlerKey::Route(name) => drop(routes.insert(name, at)),
                HandlerKey::Reply(name) => drop(replies.insert(name, at)),
                HandlerKey::AnyReply => any_reply = Some(at),
            }
            handlers.push(handler);
        }
        Registered {
            door,
            name: spec.name.into(),
            traits: spec.traits,
            idempotent_for: IdempotentFor::of(&spec.extensions),
            effects: spec.effects,
            timeout_us,
            peers: spec.peers,
            relies_on: spec.relies_on,
            steers: spec.grants.contains(Threads::GRANT),
            wakes: spec.wakes,
            parks: spec.needs.iter().any(|it| matches!(it, Need::Park)),
            ends_itself: spec.needs.iter().any(|it| matches!(it, Need::Final)),
            charges: spec.grants.contains(Charges::GRANT),
            grants: Arc::new(spec.grants),
            folds: spec.folds.into_iter().collect(),
            takes_arrivals: spec.needs.iter().any(|it| matches!(it, Need::Arrivals)),
            takes_queue: spec.needs.iter().any(|it| matches!(it, Need::Queue)),
            handlers,
            announcements: spec.announcements,
            at_stop: spec.at_stop,
            routes,
            replies,
            any_reply,
        }
    }

    /// Returns whether the listener may send to a listener of this name.
    pub(crate) fn may_reach(&self, name: &str) -> bool {
        let is_there = |names: &[String]| names.iter().any(|it| it == name);
        *self.name == *name
            || self.peers.as_ref().is_none_or(|it| is_there(it))
            || is_there(&self.relies_on)
    }

    /// Returns whether the listener may handle a message twice with the effect of once.
    pub(crate) fn is_idempotent(&self, message: &Entry) -> bool {
        self.traits.idempotent || self.idempotent_for.as_ref().is_some_and(|it| it.covers(message))
    }

    /// Returns whether a handler that was stopped may have done something that can't be done twice.
    pub(crate) fn leaves_unknown(&self, message: &Entry) -> bool {
        let changes = matches!(self.effects, Some(Effects::Writes | Effects::Outside));
        changes && !self.is_idempotent(message)
    }

    /// Returns the names of the payloads that the listener owns, in order.
    pub(crate) fn routes(&self) -> Vec<&Name> {
        let mut names: Vec<&Name> = self.routes.keys().collect();
        names.sort();
        names
    }
}

/// One handler of one listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receiver {
    pub(crate) listener: usize,
    pub(crate) handler: usize,
}

/// A payload that fits its schema, with its receivers.
pub(crate) struct Addressed {
    pub(crate) checked: Checked,
    pub(crate) receivers: Vec<Receiver>,
    /// The listener that the sender named, or the only listener that takes the payload. None if the
    /// sender named none and several listeners take the payload.
    pub(crate) to: Option<Arc<str>>,
    pub(crate) flags: Flags,
}

/// All listeners and the names of the payloads that they own.
pub(crate) struct Routes {
    pub(crate) listeners: Vec<Registered>,
    pub(crate) catalog: Catalog,
    pub(crate) capabilities: Capabilities,
    /// Whether some listener has a function `wakes`.
    pub(crate) any_wakes: bool,
    /// The secrets of all listeners and models, which are hidden in all that listeners emit.
    pub(crate) secrets: Secrets,
    by_name: FxHashMap<Arc<str>, usize>,
    owners: FxHashMap<Name, Vec<Receiver>>,
}

impl Routes {
    /// Sets the secrets that are hidden in all that listeners emit.
    pub(crate) fn hiding(self, secrets: Secrets) -> Routes {
        Routes { secrets, ..self }
    }

    pub(crate) fn new(listeners: Vec<Registered>, capabilities: Capabilities) -> Routes {
        let mut owners: FxHashMap<Name, Vec<Receiver>> = FxHashMap::default();
        for (listener, registered) in listeners.iter().enumerate() {
            for name in registered.routes() {
                let handler = registered.routes[name];
                owners.entry(name.clone()).or_default().push(Receiver { listener, handler });
            }
        }
        let by_name = listeners.iter().enumerate().map(|(at, it)| (it.name.clone(), at)).collect();
        let catalog = capabilities.catalog().clone();
        let any_wakes = listeners.iter().any(|it| it.wakes.is_some());
        let secrets = Secrets::default();
        Routes { listeners, catalog, capabilities, any_wakes, secrets, by_name, owners }
    }

    /// Returns the listeners that an entry of the log was for, each with its handler if the
    /// organism still has one. If the entry names no receiver, `noted` has its recorded receivers.
    pub(crate) fn left_to(
        &self,
        entry: &Entry,
        noted: &[(Arc<str>, LastStart)],
    ) -> Vec<(Arc<str>, Option<Receiver>)> {
        let name = entry.name();
        if let Some(to) = entry.to() {
            let found = self.find(to).and_then(|found| self.handler_of(found, entry));
            return vec![(to.into(), found)];
        }
        let found = |to: &Arc<str>| self.find(to).and_then(|it| self.route(it, name));
        noted.iter().map(|(to, _)| (to.clone(), found(to))).collect()
    }

    /// Returns the handler of a listener for an entry of the log, if the listener still has one.
    pub(crate) fn handler_of(&self, listener: usize, entry: &Entry) -> Option<Receiver> {
        let name = entry.name();
        match entry.reply_to() {
            Some(_) => self.reply(listener, name),
            // A message of the pump itself may go to a handler of replies although it has no
            // `reply_to`.
            None => self.route(listener, name).or_else(|| self.reply(listener, name)),
        }
    }

    /// Checks a payload from outside against its schema. Payloads that only the pump and the house
    /// staff may send are refused. A payload without a namespace gets the namespace that [`meant`]
    /// returns.
    pub(crate) fn check(&self, element: Element, limits: XmlLimits) -> Result<Checked, Fault> {
        let own = |namespace: &str| {
            if !self.catalog.is_reserved(namespace, element.local()) {
                return Ok(());
            }
            let local = element.local();
            if namespace == ENVELOPE {
                let text = format!("<{local}> has the envelope's namespace, which it inherits");
                let advice =
                    "Give the payload an xmlns of its own; xmlns=\"\" finds whoever takes it.";
                let fault = Fault::new(Code::Envelope, text).at(element.place());
                return Err(Fault { advice: Some(advice.to_owned()), ..fault });
            }
            if self.catalog.named(local).iter().all(|it| it.namespace() != namespace) {
                return Err(Fault::undeliverable());
            }
            let text = format!("{{{namespace}}}{local} may be sent by the pump only");
            Err(Fault::new(Code::Reserved, text).at(element.place()))
        };
        if !element.namespace().is_empty() {
            own(element.namespace())?;
            return self.catalog.check(element);
        }
        let owned = |it: &&Name| self.receivers(None, it).is_ok();
        let names: Vec<_> = self.catalog.named(element.local()).iter().filter(owned).collect();
        let namespace = meant(&element, &names)?;
        own(&namespace)?;
        self.catalog.check_as(&element, &namespace, Writer::new(limits))
    }

    pub(crate) fn handler(&self, receiver: Receiver) -> &BoundHandler {
        &self.listeners[receiver.listener].handlers[receiver.handler]
    }

    /// Returns whether one of these handlers takes folds.
    pub(crate) fn any_takes_folds(&self, receivers: &[Receiver]) -> bool {
        receivers.iter().any(|it| self.handler(*it).takes_folds)
    }

    /// Returns whether a handler may run before the log has its message. Such a handler is inline,
    /// does nothing but answer, and reads nothing from the log.
    pub(crate) fn is_early(&self, receiver: Receiver) -> bool {
        let traits = &self.listeners[receiver.listener].traits;
        traits.inline && traits.pure && !self.handler(receiver).reads_log
    }

    pub(crate) fn find(&self, listener: &str) -> Option<usize> {
        self.by_name.get(listener).copied()
    }

    /// Returns the receivers of a push: the listener `to`, or, without `to`, every listener that
    /// owns the payload's name.
    pub(crate) fn receivers(&self, to: Option<&str>, name: &Name) -> Result<Vec<Receiver>, Fault> {
        match to {
            Some(to) => Ok(vec![self.address(None, to, name)?]),
            None => self.owners.get(name).cloned().ok_or_else(Fault::undeliverable),
        }
    }

    /// Returns the payload of a push with its receivers.
    pub(crate) fn addressed(
        &self,
        checked: Checked,
        to: Option<Arc<str>>,
        flags: Flags,
    ) -> Result<Addressed, Fault> {
        let receivers = self.receivers(to.as_deref(), checked.name())?;
        let to = to.or_else(|| match &receivers[..] {
            [one] => Some(self.listeners[one.listener].name.clone()),
            _ => None,
        });
        Ok(Addressed { checked, receivers, to, flags })
    }

    /// Leaves those receivers of a message that are open to its sender, if it came in at a door.
    ///
    /// # Errors
    /// If the message has no receiver left. An operator is told why. For others, this is the fault
    /// of a payload that nobody takes.
    pub(crate) fn admitted(
        &self,
        receivers: Vec<Receiver>,
        sender: &str,
        flags: Flags,
    ) -> Result<Vec<Receiver>, Fault> {
        if !flags.contains(Flags::AT_DOOR) {
            return Ok(receivers);
        }
        let is_operator = flags.contains(Flags::AS_OPERATOR);
        let is_open = |it: &Receiver| self.listeners[it.listener].door.admits(sender, is_operator);
        let open: Vec<Receiver> = receivers.iter().copied().filter(is_open).collect();
        match receivers.first() {
            Some(shut) if open.is_empty() && is_operator => {
                let Registered { name, door, .. } = &self.listeners[shut.listener];
                let text = format!(
                    "at a door, {name} takes messages from {door}, and not from {sender}; its \
                     `door` in the manifest says who may send it"
                );
                Err(Fault::new(Code::Undeliverable, text))
            }
            Some(shut) if open.is_empty() => {
                let listener = &self.listeners[shut.listener].name;
                tracing::info!(%listener, sender, "the `door` of a listener shuts the sender out");
                Err(Fault::undeliverable())
            }
            _ => Ok(open),
        }
    }

    /// Returns the receiver of a payload for the listener `to`, if the sender may address this
    /// listener. `from` is None for a push, which may address every listener.
    pub(crate) fn address(
        &self,
        from: Option<&Registered>,
        to: &str,
        name: &Name,
    ) -> Result<Receiver, Fault> {
        let may = from.is_none_or(|from| self.may_name(from, to));
        let listener = self.find(to).filter(|_| may).ok_or_else(Fault::undeliverable)?;
        self.route(listener, name).ok_or_else(Fault::undeliverable)
    }

    /// Returns whether there is a listener `to`, and `from` may address it.
    pub(crate) fn may_name(&self, from: &Registered, to: &str) -> bool {
        from.may_reach(to) && self.find(to).is_some()
    }

    /// Returns the listener's handler for a name that it owns.
    pub(crate) fn route(&self, listener: usize, name: &Name) -> Option<Receiver> {
        let handler = *self.listeners[listener].routes.get(name)?;
        Some(Receiver { listener, handler })
    }

    /// Returns a listener's handler for a reply of this name: the handler for replies of this name,
    /// else the handler for any reply, else the handler for messages of this name. Returns None if
    /// the listener has none of these handlers.
    pub(crate) fn reply(&self, listener: usize, name: &Name) -> Option<Receiver> {
        let registered = &self.listeners[listener];
        let handler = registered.replies.get(name).copied().or(registered.any_reply);
        let handler = handler.or_else(|| registered.routes.get(name).copied())?;
        Some(Receiver { listener, handler })
    }
}
