//! Reservations of handlers at work. A handler holds what it reserved until it settles or ends;
//! one that fits what is left, but not beside what the others hold, waits for them. Pure.

use crate::engine::tree::effect::{Effect, Step, World};
use crate::engine::tree::event::{Event, Key, Ready};
use crate::engine::tree::reserved::{Pending, Reserved};
use crate::engine::tree::step::Tree;
use crate::listener::Target;
use crate::wire::budget::Charge;
use crate::wire::{Code, Fault, Payload as _};

impl Tree {
    /// Takes what a handler sends before it returns; a reservation may have to wait.
    pub(crate) fn sent(&mut self, event: Event, world: &World<'_>, out: &mut Step) {
        let Event::Sent(key, ready, done) = event else { return };
        self.look_at_others(&key, &ready, out);
        if self.must_wait(&key, &ready, world, out) {
            return self.pending.push_back(Pending { key, ready, done });
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

    /// Notes what other handlers have reserved, where a handler charges something.
    pub(crate) fn look_at_others(&self, key: &Key, ready: &[Ready], out: &mut Step) {
        if !ready.iter().any(|it| matches!(it.target, Target::Charge)) {
            return;
        }
        let running = self.threads.iter().flat_map(|(thread, it)| {
            it.running.iter().map(move |(at, it)| (thread, *at, it.reserved))
        });
        let is_other = |(thread, at, _): &(_, (u64, usize), _)| {
            *thread != &key.thread || *at != (key.seq, key.listener)
        };
        let others = running.filter(is_other).map(|(.., it)| it);
        out.others = others.fold(Reserved::default(), Reserved::plus);
    }

    /// Whether a reservation fits what is left, but not beside those of other handlers. A handler
    /// that holds one never waits, so that no two wait for each other.
    fn must_wait(&self, key: &Key, ready: &[Ready], world: &World<'_>, out: &Step) -> bool {
        if out.others == Reserved::default() {
            return false;
        }
        let thread = self.threads.get(&key.thread);
        let running = thread.and_then(|it| it.running.get(&(key.seq, key.listener)));
        let Some(running) = running.filter(|it| it.reserved == Reserved::default()) else {
            return false;
        };
        let name = &world.routes.listeners[key.listener].name;
        let mut sent = running.first.sent.clone();
        ready.iter().any(|it| {
            let is_new = !it.repeats(&running.first.entry, &mut sent);
            let charge = it.what.as_ref().ok().filter(|_| matches!(it.target, Target::Charge));
            let Some(checked) = charge.filter(|_| is_new) else { return false };
            let Ok(charge) = Charge::decode(checked.element()) else { return false };
            let fits =
                |without| out.ledger.fits_charge(&key.thread, name, &charge, without).is_ok();
            !fits(Reserved::default()) && fits(out.others)
        })
    }

    /// Looks again at the reservations that wait, in the order in which they came.
    pub(crate) fn look_at_pending(&mut self, world: &World<'_>, out: &mut Step) {
        for it in std::mem::take(&mut self.pending) {
            // A handler that gave up, or was stopped, has reserved nothing.
            if !it.done.is_closed() && self.wants(&it.key) {
                self.sent(Event::Sent(it.key, it.ready, it.done), world, out);
            }
        }
    }
}
