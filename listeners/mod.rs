//! The house staff: ordinary listeners that use only what anyone can use.

pub mod echo;
pub mod tool;

use pumphouse::prelude::Listener;

/// What the server starts with when nothing else is said: `echo` and `calculate`.
#[must_use]
pub fn standard() -> Vec<Listener> {
    vec![echo::echo(), tool::calculate::calculate()]
}
