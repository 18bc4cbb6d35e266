//! Takes messages back for the listeners that sent them.

use crate::engine::tree::effect::{Effect, Step, World};
use crate::engine::tree::event::Ready;
use crate::engine::tree::route::Registered;
use crate::engine::tree::sending::Part;
use crate::engine::tree::thread::Thread;
use crate::id::EntryId;
use crate::listener::{Entry, Target};
use crate::log::Mark;

/// Takes the messages that a handler withdraws out of its emissions. Returns what is left, and
/// these messages.
pub(crate) fn split(mut ready: Vec<Ready>) -> (Vec<Ready>, Vec<EntryId>) {
    let is_it = |it: &mut Ready| matches!(it.target, Target::Withdraw(_));
    let withdrawn = ready.extract_if(.., is_it).filter_map(|it| match it.target {
        Target::Withdraw(message) => Some(message),
        _ => None,
    });
    let withdrawn = withdrawn.collect();
    (ready, withdrawn)
}

impl Thread {
    /// Takes messages back that the listener of this handling sent in this thread. Their handlers
    /// are told to stop, and their deliveries are consumed. Returns the pushes that these messages
    /// belong to: each is held until the caller lets go of it.
    pub(crate) fn withdraw(
        &mut self,
        part: &Part,
        messages: &[EntryId],
        world: &World<'_>,
        out: &mut Step,
    ) -> Vec<u64> {
        let mut held = Vec::new();
        let listeners = &world.routes.listeners;
        let own = listeners[part.listener].name.clone();
        for message in messages {
            if message.thread != self.id {
                continue;
            }
            let is_it = |it: &Entry| {
                let is_own = *it.sender() == own && !it.is_from_identity();
                is_own && it.seq() == message.seq && it.id() != part.message.id()
            };
            let may = |listener: usize| can_withdraw(&listeners[listener]);
            let running = self.running.iter();
            let running = running.filter(|((_, at), it)| may(*at) && is_it(&it.first.entry));
            let mut running: Vec<(u64, usize)> = running.map(|(key, _)| *key).collect();
            running.sort_unstable();
            for key in running {
                let Some(running) = self.running.remove(&key) else { continue };
                out.effects.extend(running.cancel.clone().map(Effect::Cancel));
                self.hold(running.root);
                held.push(running.root);
                self.consume(running, key.1, None, world, out);
            }
            let lanes = self.deliveries.iter().filter(|(at, _)| may(**at));
            let waits = lanes.filter(|(_, lane)| lane.waiting.iter().any(|it| is_it(&it.entry)));
            let mut waits: Vec<usize> = waits.map(|(at, _)| *at).collect();
            waits.sort_unstable();
            for listener in waits {
                self.drop_waiting(listener, message, world, out);
            }
        }
        held
    }

    /// Consumes a message that waits for its handler.
    fn drop_waiting(
        &mut self,
        listener: usize,
        message: &EntryId,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let Some(lane) = self.deliveries.get_mut(&listener) else { return };
        let at = lane.waiting.iter().position(|it| it.entry.seq() == message.seq);
        let Some(delivery) = at.and_then(|at| lane.waiting.remove(at)) else { return };
        if lane.is_empty() {
            self.deliveries.remove(&listener);
        }
        out.batch.marks.push(Mark::Consumed {
            entry: message.clone(),
            listener: world.routes.listeners[listener].name.clone(),
            attempt: delivery.attempt,
        });
        self.unconsumed -= 1;
        self.note_done(message.seq, listener, world, out);
        self.let_go(delivery.root, world, out);
    }
}

/// Returns whether messages to a listener can be taken back. An agent decides itself when its work
/// ends, and a replay expects all that a pure or recorded listener emits.
fn can_withdraw(listener: &Registered) -> bool {
    let traits = &listener.traits;
    !(traits.agent || traits.pure || traits.recorded || listener.parks)
}
