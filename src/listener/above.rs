//! A child thread's note for its opener, while the child goes on.

use crate::listener::emit::aim;
use crate::listener::{Emit, IntoEmit, Need, Target};

/// Tells the listener that opened this thread how it goes, as a note: recorded here, and in the
/// thread above as [`ThreadNote`](crate::wire::core::ThreadNote) with the payload in it. It starts
/// nobody. The opener reads the note when it has another reason to look, as `action` does when a
/// call took too long.
///
/// In a thread that is below no other, or that an identity opened, it is recorded here alone.
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
    /// What is said.
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
