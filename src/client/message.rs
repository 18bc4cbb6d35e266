//! What a pump sends to a client: direct answers to requests, and messages of threads.

use crate::client::{Error, is_of_the_connection};
use crate::id::{EntryId, ThreadId};
use crate::name::{CORE, ENVELOPE};
use crate::wire::core::{Accepted, Authenticated, Huh, SystemThreadError};
use crate::wire::meta::{Following, Unfollowed};
use crate::wire::{Fault, Payload};
use crate::xml::{Element, View};

/// A message of a pump, sorted by its kind. Pushes and the requests to follow a thread or to stop
/// following are numbered together from 0. The pump answers each of them directly, for example with
/// [`Accepted`]. A direct answer has the number of its request.
#[derive(Clone, Debug, PartialEq)]
// Exhaustive, since who shows what comes must treat each.
pub enum Incoming {
    /// A push is in the log.
    Accepted {
        /// The number of the push.
        push: u64,
        /// Where the push is in the log.
        accepted: Accepted,
    },
    /// A push or a request was refused, or the pump ends the connection.
    Refused {
        /// The number of the push or request. `None` if the refusal is about the connection.
        push: Option<u64>,
        /// The reason for the refusal.
        huh: Huh,
    },
    /// A push or a request named a thread that doesn't exist or that belongs to another identity.
    UnknownThread {
        /// The number of the push or request.
        push: u64,
        /// The pump's error, which names the thread.
        error: SystemThreadError,
    },
    /// The pump has accepted the token.
    Authenticated(Authenticated),
    /// The pump has agreed to a request to follow a thread.
    Following {
        /// The number of the request.
        push: u64,
        /// The thread, and where following begins.
        following: Following,
    },
    /// A thread is no longer followed, as requested.
    Unfollowed {
        /// The number of the request.
        push: u64,
        /// The thread.
        unfollowed: Unfollowed,
    },
    /// A message of a thread.
    Message(Message),
}

/// A payload from a pump, with what its envelope says.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// The sender: a listener, or `core` for the pump itself. In a followed thread, the sender may
    /// also be an identity.
    pub from: String,
    /// The receiver, if the message has one.
    pub to: Option<String>,
    /// The thread that the message belongs to.
    pub thread: Option<ThreadId>,
    /// The message's entry in the log. `None` for direct answers of the pump, such as [`Accepted`],
    /// and for live payloads.
    pub entry: Option<EntryId>,
    /// The entry that caused the message.
    pub cause: Option<EntryId>,
    /// When the pump accepted the message, in ISO 8601.
    pub time: Option<String>,
    /// Whether the message's entry is a failure, as `Entry::is_failure` says.
    pub failed: bool,
    /// Why the message came.
    pub shown: Shown,
    /// The payload.
    pub payload: Element,
}

/// Why a message came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shown {
    /// The message is for this client's identity.
    #[default]
    Sent,
    /// The client follows the message's thread.
    Followed,
    /// The client follows the message's thread, and the message is a live payload, which the log
    /// doesn't have.
    Live,
}

impl Message {
    /// Reads a `<message>` that a pump has sent.
    ///
    /// # Errors
    /// If the element is something else.
    pub fn open(document: &Element) -> Result<Message, Error> {
        let unexpected = || Error::Unexpected(format!("{document:?}"));
        let mut parts = document.elements();
        let (Some(meta), Some(payload), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(unexpected());
        };
        if !document.is(ENVELOPE, "message") || !meta.is(ENVELOPE, "meta") {
            return Err(unexpected());
        }
        let mut message = Message {
            from: String::new(),
            to: None,
            thread: None,
            entry: None,
            cause: None,
            time: None,
            failed: false,
            shown: Shown::Sent,
            payload: payload.to_element(),
        };
        for element in meta.elements() {
            message.read(element);
        }
        if message.from.is_empty() { Err(unexpected()) } else { Ok(message) }
    }

    fn read(&mut self, view: View<'_>) {
        if view.is(CORE, "entry") {
            let id = |name: &str| view.attribute(name).and_then(|text| text.parse().ok());
            (self.entry, self.cause) = (id("id"), id("cause"));
            self.time = view.attribute("time").map(str::to_owned);
            self.failed = view.attribute("failed") == Some("true");
        }
        if view.is(CORE, "followed") {
            self.shown = Shown::Followed;
            if view.attribute("live") == Some("true") {
                self.shown = Shown::Live;
                self.cause = view.attribute("cause").and_then(|text| text.parse().ok());
            }
        }
        if view.namespace() != ENVELOPE {
            return;
        }
        match view.local() {
            "from" => self.from = view.text().into_owned(),
            "to" => self.to = Some(view.text().into_owned()),
            "thread" => self.thread = Some(ThreadId::new(&view.text())),
            _ => {}
        }
    }

    /// Whether the payload has the name of a `P`.
    #[must_use]
    pub fn is<P: Payload>(&self) -> bool {
        self.payload.is(P::NAME.namespace(), P::NAME.local())
    }

    /// Decodes the payload as a `P`.
    ///
    /// # Errors
    /// If the payload isn't a `P`.
    pub fn decode<P: Payload>(&self) -> Result<P, Fault> {
        P::decode(&self.payload)
    }

    /// Whether an accepted push caused this message, and the message is for this client's identity.
    pub(super) fn is_caused_by(&self, accepted: &Accepted) -> bool {
        self.is_sent() && self.comes_of(accepted)
    }

    /// Whether an accepted push caused this message, whichever receiver the message has.
    pub(super) fn comes_of(&self, accepted: &Accepted) -> bool {
        let is_it = |it: &EntryId| it.thread.as_str() == accepted.thread && it.seq == accepted.seq;
        self.cause.as_ref().is_some_and(is_it)
    }

    pub(super) fn is_sent(&self) -> bool {
        self.shown == Shown::Sent
    }

    /// Sorts the message by its kind. A direct answer of the pump gets the number `next`.
    pub(super) fn sort(self, next: u64) -> Result<Incoming, Error> {
        if self.entry.is_some() || self.shown != Shown::Sent {
            return Ok(Incoming::Message(self));
        }
        if self.is::<Accepted>() {
            return Ok(Incoming::Accepted { push: next, accepted: self.decode()? });
        }
        if self.is::<SystemThreadError>() {
            return Ok(Incoming::UnknownThread { push: next, error: self.decode()? });
        }
        if self.is::<Following>() {
            return Ok(Incoming::Following { push: next, following: self.decode()? });
        }
        if self.is::<Unfollowed>() {
            return Ok(Incoming::Unfollowed { push: next, unfollowed: self.decode()? });
        }
        if self.is::<Authenticated>() {
            return Ok(Incoming::Authenticated(self.decode()?));
        }
        if self.is::<Huh>() {
            let huh: Huh = self.decode()?;
            let push = (!is_of_the_connection(&huh)).then_some(next);
            return Ok(Incoming::Refused { push, huh });
        }
        Ok(Incoming::Message(self))
    }
}
