//! Reservations: parts of a budget that running handlers charge before they know what they will
//! spend. A handler holds its reservation until the handler settles it or ends. A new reservation
//! may fit the budget alone, but not beside the reservations of other handlers. In that case the
//! new reservation waits until other reservations are settled.

use crate::engine::tree::effect::{Effect, Step, World};
use crate::engine::tree::event::{Event, Key, Ready};
use crate::engine::tree::reserved_amounts::{PendingReservation, ReservedAmounts};
use crate::engine::tree::step::Tree;
use crate::listener::Target;
use crate::wire::{Code, Fault};

impl Tree {
    /// Handles the emissions that a handler sends before it returns. If one of the emissions is a
    /// reservation that has to wait, all of them wait.
    pub(crate) fn sent(&mut self, event: Event, world: &World<'_>, out: &mut Step) {
        let Event::Sent(key, ready, done) = event else { return };
        self.look_at_others(&key, &ready, out);
        if self.must_wait(&key, &ready, world, out) {
            return self.pending.push_back(PendingReservation { key, ready, done });
        }
        let kept = self.threads.get_mut(&key.thread);
        if kept.is_some_and(|it| it.sent(&key, ready, world, out)) {
            let fits = out.uncharged.take().map_or(Ok(()), |(_, fault)| Err(fault));
            out.effects.push(Effect::Kept(done, fits));
        } else {
            let text = "the message this was sent for is over";
            out.effects.push(Effect::Kept(done, Err(Fault::new(Code::Late, text))));
        }
    }

    /// Sets `out.others` to the sum of the amounts that handlers other than `key` have reserved in
    /// the tree. Does nothing if none of the emissions is a charge.
    pub(crate) fn look_at_others(&self, key: &Key, ready: &[Ready], out: &mut Step) {
        if !ready.iter().any(|it| matches!(it.target, Target::Charge(_))) {
            return;
        }
        let running = self.threads.iter().flat_map(|(thread, thread_state)| {
            thread_state.running.iter().map(move |(at, it)| (thread, *at, it.reserved))
        });
        let is_other = |(thread, at, _): &(_, (u64, usize), _)| {
            *thread != &key.thread || *at != (key.seq, key.listener)
        };
        let others = running.filter(is_other).map(|(.., it)| it);
        out.others = others.fold(ReservedAmounts::default(), ReservedAmounts::plus);
    }

    /// Returns whether a handler's new reservation fits the budget alone, but not beside the
    /// reservations of other handlers. A handler that holds a reservation never waits, so no two
    /// handlers wait for each other.
    fn must_wait(&self, key: &Key, ready: &[Ready], world: &World<'_>, out: &Step) -> bool {
        if out.others == ReservedAmounts::default() {
            return false;
        }
        let thread = self.threads.get(&key.thread);
        let running = thread.and_then(|it| it.running.get(&(key.seq, key.listener)));
        let Some(running) = running.filter(|it| it.reserved == ReservedAmounts::default()) else {
            return false;
        };
        let name = &world.routes.listeners[key.listener].name;
        let mut sent = running.first.sent.clone();
        ready.iter().any(|emission| {
            let is_new = !emission.repeats(&running.first.entry, &mut sent);
            let (Target::Charge(charge), true) = (&emission.target, is_new) else { return false };
            let fits = |without| out.ledger.fits_charge(&key.thread, name, charge, without).is_ok();
            emission.payload.is_ok() && !fits(ReservedAmounts::default()) && fits(out.others)
        })
    }

    /// Tries the waiting reservations again, in the order in which they came.
    pub(crate) fn look_at_pending(&mut self, world: &World<'_>, out: &mut Step) {
        for reservation in std::mem::take(&mut self.pending) {
            // A handler that no longer waits or was stopped needs no reservation.
            if !reservation.done.is_closed() && self.wants(&reservation.key) {
                self.sent(
                    Event::Sent(reservation.key, reservation.ready, reservation.done),
                    world,
                    out,
                );
            }
        }
    }
}
