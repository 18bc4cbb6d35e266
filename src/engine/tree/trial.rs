//! Messages whose handling may be what ends the process. After three ends of the process in a row,
//! whatever was under way at each of them is held at the next start, and handled one after another.
//! Only a message that ends the process alone in three ways is poisonous, and handled no more: at
//! any time, right after a start, and after a pause. An operator or a supervisor that kills the
//! process at a certain time after each start hits at most one of the last two.
//!
//! The log has all that is needed for this: a handler's start is recorded with the number of the
//! attempt, and an attempt whose end isn't recorded ended with the process.

use crate::engine::tree::effect::{Step, World};
use crate::engine::tree::event::{Key, Trial};
use crate::engine::tree::thread::Thread;
use crate::log::LastStart;

/// How many attempts in a row end with the process before a message is handled alone.
pub(crate) const ATTEMPTS_TOGETHER: u32 = 3;
/// The attempt of a message that is handled alone at any time.
pub(crate) const ATTEMPT_ALONE: u32 = ATTEMPTS_TOGETHER + 1;
/// The attempt of a message that is handled alone right after a start.
pub(crate) const ATTEMPT_FIRST: u32 = ATTEMPT_ALONE + 1;
/// The attempt of a message that is handled alone after a pause. A message whose attempt with this
/// number ended with the process is poisonous.
pub(crate) const ATTEMPT_PAUSED: u32 = ATTEMPT_FIRST + 1;

/// How many attempts at a message have begun and not ended. The start of a pure handler isn't
/// recorded when it is the first, so an attempt counts in any case.
pub(crate) fn attempts(last: LastStart, is_pure: bool) -> u32 {
    last.attempt.max(u32::from(is_pure))
}

impl Thread {
    /// Handles a held message alone, or lets it wait.
    pub(crate) fn try_alone(&mut self, key: &Key, trial: Trial, world: &World<'_>, out: &mut Step) {
        let name = &world.routes.listeners[key.listener].name;
        let lane = self.deliveries.get_mut(&key.listener).map(|it| &mut it.waiting);
        let at = lane.as_ref().and_then(|it| it.iter().position(|it| it.entry.seq() == key.seq));
        match (trial, lane.zip(at)) {
            // What waits before it in its lane begins before it.
            (Trial::Begin(attempt), Some((lane, at))) => {
                lane.iter_mut().take(at + 1).for_each(|it| it.is_held = false);
                lane[at].attempt = attempt;
                self.start(key.listener, world, out);
            }
            (Trial::Pause, Some((lane, at))) => {
                lane[at].attempt = ATTEMPTS_TOGETHER;
                out.batch.marks.push(lane[at].started(name.clone(), lane[at].as_of));
            }
            // The handler hasn't begun, since its thread is paused, for example.
            (Trial::Over, Some((lane, at))) => lane[at].attempt = ATTEMPTS_TOGETHER,
            (Trial::Over, None) => {
                let Some(running) = self.running.get_mut(&(key.seq, key.listener)) else { return };
                running.first.attempt = ATTEMPTS_TOGETHER;
                out.batch.marks.push(running.first.started(name.clone(), running.as_of));
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
