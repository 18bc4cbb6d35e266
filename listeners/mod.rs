//! The house staff: ordinary listeners that use only what anyone can use.

pub mod describe;
pub mod echo;
pub mod thread;
pub mod timer;
pub mod tool;

use pumphouse::prelude::Listener;

/// What every organism needs to live: `thread` and `timer`.
#[must_use]
pub fn core() -> Vec<Listener> {
    vec![thread::thread(), timer::timer()]
}

/// What the server starts with when nothing else is said: [`core`], `echo`, `calculate` and
/// `describe`.
#[must_use]
pub fn standard() -> Vec<Listener> {
    let mut all = core();
    all.extend([echo::echo(), tool::calculate::calculate()]);
    all.push(describe::describe(describe::Allow::default()));
    all
}
