//! The trait of doors.

use std::sync::Arc;

use crate::engine::handle::pump::Pump;
use crate::listener::Boxed;

/// A way into a pump, such as a TCP listener.
pub trait Door: Send {
    /// Serves until the pump is [`Stage::Drained`](crate::engine::Stage::Drained) and every client
    /// has been sent what is due.
    fn serve(self: Box<Self>, pump: Pump) -> Boxed<'static, ()>;

    /// The identities that clients may have at this door. No listener may have such a name.
    fn identities(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// Whether the door asks for tokens. If no door of a pump does, faults may name listeners and
    /// payloads at doors that only this machine can reach.
    fn has_tokens(&self) -> bool {
        false
    }
}
