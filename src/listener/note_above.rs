//! Notes with which a child thread reports progress to the listener that opened it.

use crate::listener::emit::aim;
use crate::listener::{Emit, IntoEmit, Need, Target};

/// Reports progress to the listener that opened this thread. The payload is recorded in this thread
/// and, within a [`ThreadNote`](crate::wire::core::ThreadNote), in the parent thread. The note
/// starts only listeners that take [`ThreadNote`](crate::wire::core::ThreadNote). Any other opener
/// can read the note in its thread's history when it runs next. An agent, for example, reports in
/// this way that its model's provider limits the rate of requests.
///
/// If no listener opened the thread, as with a session, the payload is recorded only in the thread
/// itself.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
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
