//! Pushes: payloads that a client sends, with their envelopes.

use crate::clock;
use crate::id::{EntryId, ThreadId};
use crate::wire::{Envelope, Fault, Payload};
use crate::xml::{self, Element, Profile};
use pumphouse_ground::limits::XmlLimits;

/// A payload to push, with its envelope: receiver, thread and client id.
#[derive(Clone, Debug)]
pub struct Push(Envelope);

impl Push {
    /// Makes a push of a typed payload.
    ///
    /// # Errors
    /// If the payload can't be written as XML.
    pub fn of(payload: &impl Payload) -> Result<Push, Fault> {
        payload.encode().map(Push::element)
    }

    /// Makes a push of an element.
    #[must_use]
    pub fn element(payload: Element) -> Push {
        Push(Envelope::bare(payload))
    }

    /// Makes a push of an element that is given as text.
    ///
    /// # Errors
    /// If the text isn't one XML element.
    pub fn text(payload: impl AsRef<[u8]>) -> Result<Push, xml::Error> {
        xml::read(payload, Profile::Document, &XmlLimits::INSIDE).map(Push::element)
    }

    /// Sets the listener that gets the push. Without this, the push goes to the listeners that own
    /// the payload.
    #[must_use]
    pub fn to(mut self, listener: &str) -> Push {
        self.0.to = Some(listener.into());
        self
    }

    /// Sends the push into this thread. Without this, the push opens a new session.
    #[must_use]
    pub fn in_thread(mut self, thread: &ThreadId) -> Push {
        self.0.thread = Some(thread.as_str().into());
        self
    }

    /// Sends the push into a new fork of the entry's thread. The fork continues after this entry.
    #[must_use]
    pub fn fork_at(mut self, entry: &EntryId) -> Push {
        self.0.thread = Some(entry.to_string());
        self
    }

    /// Sets the client id. However often the push is sent with the same id, it is recorded once.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Push {
        self.0.id = Some(id.into());
        self
    }

    /// Sets a new client id, a UUID of version 7. With it, a push that is sent again after a lost
    /// connection is recorded once.
    #[must_use]
    pub fn with_fresh_id(self) -> Push {
        let (millis, chance) = (clock::wall_us() / 1_000, clock::random_bytes());
        let id = uuid::Builder::from_unix_timestamp_millis(millis, &chance).into_uuid();
        self.with_id(&id.to_string())
    }

    /// The client id, if the push has one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.0.id.as_deref()
    }

    /// Writes the push as it is sent over the wire, without a line end.
    pub fn write(&self, out: &mut String) {
        self.0.write(out);
    }
}
