//! A push of a client: a payload with its envelope.

use crate::clock;
use crate::id::{EntryId, ThreadId};
use crate::limits::XmlLimits;
use crate::wire::{Envelope, Fault, Payload};
use crate::xml::{self, Element, Profile};

/// A payload to push, with its envelope.
#[derive(Clone, Debug)]
pub struct Push(Envelope);

impl Push {
    /// A payload of a type.
    ///
    /// # Errors
    /// Where it holds what XML can't.
    pub fn of(payload: &impl Payload) -> Result<Push, Fault> {
        payload.encode().map(Push::element)
    }

    /// An element as it is.
    #[must_use]
    pub fn element(payload: Element) -> Push {
        Push(Envelope::bare(payload))
    }

    /// An element as text.
    ///
    /// # Errors
    /// Where it isn't one.
    pub fn text(payload: impl AsRef<[u8]>) -> Result<Push, xml::Error> {
        xml::read(payload, Profile::Document, &XmlLimits::INSIDE).map(Push::element)
    }

    /// Addresses this listener. Without it the push goes to the owners of the payload's name.
    #[must_use]
    pub fn to(mut self, listener: &str) -> Push {
        self.0.to = Some(listener.into());
        self
    }

    /// Sends it into this thread. Without it the push opens a session.
    #[must_use]
    pub fn in_thread(mut self, thread: &ThreadId) -> Push {
        self.0.thread = Some(thread.as_str().into());
        self
    }

    /// Into a session that goes on from this entry: a fork of its thread.
    #[must_use]
    pub fn fork_at(mut self, entry: &EntryId) -> Push {
        self.0.thread = Some(entry.to_string());
        self
    }

    /// Gives it a client id. However often the same push is sent with the same id, it is recorded
    /// once.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Push {
        self.0.id = Some(id.into());
        self
    }

    /// Gives it a new client id, a UUID of version 7. If it is sent again after a lost connection,
    /// it is recorded once.
    #[must_use]
    pub fn with_fresh_id(self) -> Push {
        let (millis, chance) = (clock::wall_us() / 1_000, clock::random_bytes());
        let id = uuid::Builder::from_unix_timestamp_millis(millis, &chance).into_uuid();
        self.with_id(&id.to_string())
    }

    /// The sender's own id, where it has one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.0.id.as_deref()
    }

    /// Writes it as it goes over the wire, without a line end.
    pub fn write(&self, out: &mut String) {
        self.0.write(out);
    }
}
