//! The house staff: ordinary listeners that use only what anyone can use.

pub mod echo;
pub mod thread;
pub mod tool;

use pumphouse::prelude::Listener;

/// What every organism needs to live: `thread`.
#[must_use]
pub fn core() -> Vec<Listener> {
    vec![thread::thread()]
}

/// What the server starts with when nothing else is said: [`core`], `echo` and `calculate`.
#[must_use]
pub fn standard() -> Vec<Listener> {
    let mut all = core();
    all.extend([echo::echo(), tool::calculate::calculate()]);
    all
}
