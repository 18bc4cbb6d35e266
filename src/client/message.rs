//! The messages of a pump: answers to pushes, and messages of threads.

use crate::client::{Error, is_of_the_connection};
use crate::id::{EntryId, ThreadId};
use crate::name::{CORE, ENVELOPE};
use crate::wire::core::{Accepted, Authenticated, Huh, SystemThreadError};
use crate::wire::meta::{Following, Unfollowed};
use crate::wire::{Fault, Payload};
use crate::xml::{Element, View};

/// What a pump sends.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Incoming {
    /// A push is in the log.
    Accepted {
        /// The number of the push.
        push: u64,
        /// Where it is.
        accepted: Accepted,
    },
    /// A push was refused, or the connection is ended.
    Refused {
        /// The number of the push; none where it is about the connection.
        push: Option<u64>,
        /// Why.
        huh: Huh,
    },
    /// A push named a thread that isn't there, or that is another's.
    UnknownThread {
        /// The number of the push.
        push: u64,
        /// What the pump says.
        error: SystemThreadError,
    },
    /// The pump has accepted the token.
    Authenticated(Authenticated),
    /// A thread is followed from here on.
    Following {
        /// The number of the push that asked for it.
        push: u64,
        /// From where.
        following: Following,
    },
    /// A thread is followed no more.
    Unfollowed {
        /// The number of the push that asked for it.
        push: u64,
        /// Which.
        unfollowed: Unfollowed,
    },
    /// A message of a thread.
    Message(Message),
}

/// A payload with the pump's envelope.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// Who it is from: a listener, or `core`.
    pub from: String,
    /// Who it is for.
    pub to: Option<String>,
    /// The thread it stands in.
    pub thread: Option<ThreadId>,
    /// Its place in the log; answers to pushes have none.
    pub entry: Option<EntryId>,
    /// The entry that caused it.
    pub cause: Option<EntryId>,
    /// When the pump took it, in ISO 8601.
    pub time: Option<String>,
    /// Whether it reports a failure: a fault, an `Err` of a listener, or an agent that stopped
    /// although nothing interrupted it.
    pub failed: bool,
    /// Why it came.
    pub shown: Shown,
    /// The payload.
    pub payload: Element,
}

/// Why a message came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shown {
    /// It is for this client's identity.
    #[default]
    Sent,
    /// Its thread is followed.
    Followed,
    /// Its thread is followed, and it is a live payload, which the log doesn't have.
    Live,
}

impl Message {
    /// Opens the `<message>` that a pump sends.
    ///
    /// # Errors
    /// Where it is something else.
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

    /// Whether its payload is a `P`, by name.
    #[must_use]
    pub fn is<P: Payload>(&self) -> bool {
        self.payload.is(P::NAME.namespace(), P::NAME.local())
    }

    /// The payload as a `P`.
    ///
    /// # Errors
    /// Where it isn't one.
    pub fn decode<P: Payload>(&self) -> Result<P, Fault> {
        P::decode(&self.payload)
    }

    /// Whether it is an answer to the sender of an accepted push.
    pub(super) fn is_caused_by(&self, accepted: &Accepted) -> bool {
        self.is_sent() && self.comes_of(accepted)
    }

    /// Whether it came of an accepted push, whoever its receiver is.
    pub(super) fn comes_of(&self, accepted: &Accepted) -> bool {
        let is_it = |it: &EntryId| it.thread.as_str() == accepted.thread && it.seq == accepted.seq;
        self.cause.as_ref().is_some_and(is_it)
    }

    pub(super) fn is_sent(&self) -> bool {
        self.shown == Shown::Sent
    }

    /// Determines the kind of a message. An answer is that of push `next`.
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
