//! A way into a pump.

use std::sync::Arc;

use crate::engine::handle::pump::Pump;
use crate::listener::Boxed;

/// A way in.
pub trait Door: Send {
    /// Serves until the pump is [`Stage::Drained`] and everybody has been told what is due.
    fn serve(self: Box<Self>, pump: Pump) -> Boxed<'static, ()>;

    /// The identities that somebody may come in as; no listener may have such a name.
    fn identities(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// Whether it knows tokens. A pump where none does has no strangers among those who reach it.
    fn has_tokens(&self) -> bool {
        false
    }
}
