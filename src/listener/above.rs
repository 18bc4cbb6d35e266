//! A child thread's note for its opener, while the child continues.

use crate::listener::emit::aim;
use crate::listener::{Emit, IntoEmit, Need, Target};

/// Reports progress to the listener that opened this thread. The payload is recorded here and,
/// within a [`ThreadNote`](crate::wire::core::ThreadNote), in the parent thread. It starts no
/// handler: the opener reads the note when it runs next, as `action` does when a call took too
/// long.
///
/// In a session, or a thread that an identity opened, it is recorded here only.
///
/// ```
/// use pumphouse::listener::NoteAbove;
/// use pumphouse::prelude::*;
///
/// /// Wants something copied.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Copy;
///
/// /// The tape is being changed.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct TapeChange;
///
/// /// It is copied.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Copied;
///
/// async fn copy(_: Copy) -> (NoteAbove<TapeChange>, Copied) {
///     (NoteAbove(TapeChange), Copied)
/// }
///
/// let copier = Listener::new("copier").on(copy).own_thread();
/// assert!(pumphouse::builder().with(copier).build().is_ok());
/// ```
pub struct NoteAbove<E>(
    /// The payload.
    pub E,
);

#[diagnostic::do_not_recommend]
impl<E: IntoEmit> IntoEmit for NoteAbove<E> {
    fn into_emit(self) -> Emit {
        aim(self.0.into_emit(), &Target::Above)
    }

    fn emits() -> Vec<Need> {
        E::emits()
    }
}
