//! Requests, which their receiver has to answer, and replies to earlier messages.

use crate::listener::emit::aim;
use crate::listener::{Emit, Entry, IntoEmit, Need, Target};
use crate::log::Flags;

/// A message whose sender waits for an answer. If the handler that gets the message emits nothing,
/// the pump answers with `<done/>`.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::listener::Request;
/// use pumphouse::prelude::*;
///
/// /// Asks for a file to be kept.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Keep {
///     name: String,
/// }
///
/// async fn ask(message: Message, it: Keep) -> Request<To<Keep>> {
///     // Every attempt has the same key, so the disk can tell that it is the same request.
///     Request::new(To("disk", it)).key(message.id().to_string())
/// }
///
/// async fn keep(message: Message, _: Keep) {
///     assert!(message.key().is_some());
/// }
///
/// async fn kept(_: Done) {}
///
/// let asks = Listener::new("clerk").on(ask).on_reply(kept).shared();
/// let keeps = Listener::new("disk").on(keep).shared();
/// assert!(pumphouse::builder().with((asks, keeps)).build().is_ok());
/// ```
pub struct Request<E> {
    payload: E,
    key: Option<String>,
    is_idempotent: bool,
}

impl<E> Request<E> {
    /// Makes a request from an emission, such as a [`To`](crate::listener::To) or an
    /// [`Again`](crate::listener::Again).
    pub fn new(payload: E) -> Request<E> {
        Request { payload, key: None, is_idempotent: false }
    }

    /// Gives the request a key, which its receiver reads with
    /// [`Entry::key`](crate::listener::Entry::key). To the receiver, requests with equal keys
    /// are attempts at the same request. The pump doesn't compare keys. If the pump refuses the
    /// request, the refused entry and the fault have the key. If the request opens a child thread,
    /// `thread-spawned` and the child's first entry have the key.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Request<E> {
        Request { key: Some(key.into()), ..self }
    }

    /// Records with the request whether its receiver may handle it twice with the effect of once,
    /// as [`Described::is_idempotent`](crate::listener::Described::is_idempotent) says. The sender
    /// can read this later from its entry or from that of the `thread-spawned`, and needs no
    /// capabilities then.
    #[must_use]
    pub fn idempotent(self, is_idempotent: bool) -> Request<E> {
        Request { is_idempotent, ..self }
    }
}

/// Answers an earlier message of the same thread.
pub struct Reply<E>(
    /// The earlier message.
    pub Entry,
    /// The answer.
    pub E,
);

#[diagnostic::do_not_recommend]
impl<E: IntoEmit> IntoEmit for Request<E> {
    fn into_emit(self) -> Emit {
        let mut emit = self.payload.into_emit();
        for emission in &mut emit {
            emission.marks.flags = emission.marks.flags.with(Flags::ANSWER_WANTED);
            if self.is_idempotent {
                emission.marks.flags = emission.marks.flags.with(Flags::IDEMPOTENT);
            }
            emission.marks.key.clone_from(&self.key);
        }
        emit
    }

    fn emits() -> Vec<Need> {
        E::emits()
    }
}

#[diagnostic::do_not_recommend]
impl<E: IntoEmit> IntoEmit for Reply<E> {
    fn into_emit(self) -> Emit {
        aim(self.1.into_emit(), &Target::Entry(Box::new(self.0)))
    }

    fn emits() -> Vec<Need> {
        E::emits()
    }
}
