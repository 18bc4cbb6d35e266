//! Joins pushes that are answered together. There are two cases, both for a listener that has
//! `takes_queue` and doesn't park messages:
//!
//! - The listener took messages of several pushes in one handling.
//! - The listener handled a message of one push without an emission, and its last emission was for
//!   another push that isn't settled.

use std::sync::Arc;

use crate::engine::tree::effect::{Effect, Step, World};
use crate::engine::tree::observer::PushEvent;
use crate::engine::tree::sending::Sending;
use crate::engine::tree::thread::Thread;
use crate::listener::Entry;
use crate::log::Flags;

impl Thread {
    /// Joins the pushes of the messages that one handling took.
    pub(crate) fn join_taken(&mut self, root: u64, taken: &[u64]) {
        taken.iter().for_each(|other| self.join(root, *other));
    }

    /// Joins a push that a listener handled without an emission to the push that the listener's
    /// last emission belongs to.
    pub(crate) fn join_silent(&mut self, root: u64, listener: usize) {
        let last_push = self.last_emissions.get(&listener).map_or(0, |(_, root)| *root);
        if self.origins.get(&last_push).is_some_and(|it| it.open > 0) {
            self.join(root, last_push);
        }
    }

    fn join(&mut self, one: u64, other: u64) {
        let (one, other) = (self.first_of(one), self.first_of(other));
        let are_open = self.origins.contains_key(&one) && self.origins.contains_key(&other);
        if are_open && one != other {
            self.joined.insert(one.max(other), one.min(other));
        }
    }

    /// Returns the oldest of the pushes that are answered together with a push.
    fn first_of(&self, mut root: u64) -> u64 {
        while let Some(older) = self.joined.get(&root) {
            root = *older;
        }
        root
    }

    /// Returns the pushes that are answered together with a push, including the push itself.
    pub(crate) fn together(&self, root: u64) -> Vec<u64> {
        if self.joined.is_empty() {
            return vec![root];
        }
        let first = self.first_of(root);
        let mut all: Vec<u64> = self.origins.keys().copied().collect();
        all.retain(|it| self.first_of(*it) == first);
        all.sort_unstable();
        all
    }

    /// Sends the answer of one push to the senders of the pushes that are joined with it. Each
    /// identity gets one entry, and each connection gets the answer once, even if the answer is for
    /// several of its pushes.
    pub(crate) fn tell_others(
        &mut self,
        root: u64,
        told: Entry,
        sending: &Sending<'_>,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let Some(first) = self.origins.get(&root) else { return };
        let mut heard = vec![(first.identity.clone(), told, vec![first.observer.clone()])];
        for other in self.together(root).into_iter().filter(|it| *it != root) {
            let Some(origin) = self.origins.get_mut(&other) else { continue };
            origin.answered = true;
            let (identity, observer, push) =
                (origin.identity.clone(), origin.observer.clone(), origin.push);
            if heard
                .iter()
                .any(|(.., observers)| observers.iter().any(|it| Arc::ptr_eq(it, &observer)))
            {
                continue;
            }
            let at = heard.iter().position(|(it, ..)| *it == identity).unwrap_or_else(|| {
                let (to, reply_to) = (Some(identity.clone()), Some(self.entry(other)));
                let flags = sending.flags.with(Flags::TO_IDENTITY);
                let sending = Sending { to, reply_to, flags, ..sending.clone() };
                heard.push((identity, self.append(sending, world, out), Vec::new()));
                heard.len() - 1
            });
            let (_, entry, observers) = &mut heard[at];
            out.effects.push(Effect::Tell(observer.clone(), push, PushEvent::Reply(entry.clone())));
            observers.push(observer);
        }
    }
}
