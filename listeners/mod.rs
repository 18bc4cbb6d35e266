//! The house staff: ordinary listeners that use only what anyone can use.

pub mod describe;
pub mod echo;
pub mod tool;

use pumphouse::prelude::Listener;

/// What the server starts with when nothing else is said: `echo`, `calculate` and `describe`.
#[must_use]
pub fn standard() -> Vec<Listener> {
    let describe = describe::describe(describe::Allow::default());
    vec![echo::echo(), tool::calculate::calculate(), describe]
}
