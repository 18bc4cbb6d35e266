//! Messages whose handling may be what ends the process. A message whose handling was under way at
//! three unclean ends in a row is handled alone at the next start. If the process ends then, too,
//! the message waits for a while before it is handled alone once more, so that whoever kills the
//! process at any time is told from a handler that ends it. After the second end, the message is
//! poisonous: it isn't handled any more.
//!
//! The log has all that is needed for this: a handler's start is recorded with the number of the
//! attempt, and an attempt whose end isn't recorded ended with the process.

use crate::engine::tree::effect::{Step, World};
use crate::engine::tree::event::{Key, Trial};
use crate::engine::tree::thread::Thread;
use crate::log::LastStart;

/// How many attempts in a row end with the process before a message is handled alone.
pub(crate) const ATTEMPTS_TOGETHER: u32 = 3;

/// How many attempts in a row end with the process before a message is poisonous: those together
/// with others, and two alone.
pub(crate) const ATTEMPTS_MAX: u32 = ATTEMPTS_TOGETHER + 2;

/// How many attempts at a message have begun and not ended. The start of a pure handler isn't
/// recorded when it is the first, so an attempt counts in any case.
pub(crate) fn attempts(last: LastStart, is_pure: bool) -> u32 {
    last.attempt.max(u32::from(is_pure))
}

impl Thread {
    /// Handles a held message alone, or lets it wait.
    pub(crate) fn try_alone(&mut self, key: &Key, trial: Trial, world: &World<'_>, out: &mut Step) {
        let name = world.routes.listeners[key.listener].name.clone();
        let waiting = self.deliveries.get_mut(&key.listener).and_then(|lane| {
            lane.waiting.iter_mut().find(|it| it.entry.seq() == key.seq && it.is_held)
        });
        match (trial, waiting) {
            (Trial::Begin(attempt), Some(delivery)) => {
                (delivery.attempt, delivery.is_held) = (attempt, false);
                self.start(key.listener, world, out);
            }
            (Trial::Pause, Some(delivery)) => {
                delivery.attempt = ATTEMPTS_TOGETHER;
                out.batch.marks.push(delivery.started(name, delivery.as_of));
            }
            (Trial::Over, _) => {
                let Some(running) = self.running.get_mut(&(key.seq, key.listener)) else { return };
                running.first.attempt = ATTEMPTS_TOGETHER;
                out.batch.marks.push(running.first.started(name, running.as_of));
            }
            (_, None) => {}
        }
    }

    /// Handles all messages that are still held.
    pub(crate) fn let_go_held(&mut self, world: &World<'_>, out: &mut Step) {
        let lanes = self.deliveries.values_mut();
        lanes.flat_map(|it| it.waiting.iter_mut()).for_each(|it| it.is_held = false);
        self.start_all(world, out);
    }
}
