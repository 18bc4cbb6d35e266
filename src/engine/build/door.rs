//! The trait of doors.

use std::sync::Arc;

use crate::engine::handle::pump::Pump;
use crate::listener::Boxed;

/// A way into a pump, such as a TCP listener.
pub trait Door: Send {
    /// Serves until the pump is [`Stage::Drained`](crate::engine::Stage::Drained) and all
    /// outstanding messages to clients have been sent.
    fn serve(self: Box<Self>, pump: Pump) -> Boxed<'static, ()>;

    /// Returns the identities that clients may have at this door. No listener may have such a name.
    fn identities(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// Returns whether the door asks for tokens. If no door of a pump asks for tokens, faults may
    /// name listeners and payloads at doors that only this machine can reach.
    fn has_tokens(&self) -> bool {
        false
    }
}
