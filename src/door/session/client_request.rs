//! Sorts the messages of clients into requests to the door, such as to follow a thread, and pushes.

use crate::limits::XmlLimits;
use crate::name::{META, Name};
use crate::wire::meta::{Follow, Unfollow};
use crate::wire::missing_namespace::adopt;
use crate::wire::{Code, Envelope, Fault, Payload};
use crate::xml::Writer;

/// The request in a client's envelope.
pub(super) enum ClientRequest {
    Push(Box<Envelope>),
    Follow(Follow),
    Unfollow(Unfollow),
}

impl ClientRequest {
    /// Parses the request in a client's envelope.
    pub(super) fn parse(envelope: Envelope) -> Result<ClientRequest, Fault> {
        let id = envelope.id.clone();
        ClientRequest::sorted(envelope).map_err(|fault| fault.of_client(id.as_deref()))
    }

    fn sorted(envelope: Envelope) -> Result<ClientRequest, Fault> {
        let is = |name: Name| {
            let payload = &envelope.payload;
            payload.local() == name.local() && matches!(payload.namespace(), META | "")
        };
        let (follow, unfollow) = (is(Follow::NAME), is(Unfollow::NAME));
        if !follow && !unfollow {
            return Ok(ClientRequest::Push(Box::new(envelope)));
        }
        if envelope.to.is_some() || envelope.thread.is_some() || envelope.id.is_some() {
            let text = "following is between a client and its door: say no <to>, <thread> or <id>";
            return Err(Fault::new(Code::Envelope, text).at(envelope.payload.place()));
        }
        let mut payload = envelope.payload;
        if payload.namespace().is_empty() {
            payload = adopt(&payload, META, None, Writer::new(XmlLimits::DOOR))?;
        }
        if follow {
            Ok(ClientRequest::Follow(Follow::decode(&payload)?))
        } else {
            Ok(ClientRequest::Unfollow(Unfollow::decode(&payload)?))
        }
    }
}
