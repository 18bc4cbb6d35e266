//! Continues a thread after a restart: unfinished entries are handled, are handled again, continue
//! to wait, or are given up.

use std::sync::Arc;

use crate::engine::tree::due_time::Until;
use crate::engine::tree::effect::{Step, World};
use crate::engine::tree::event::Unfinished;
use crate::engine::tree::loop_guard::Chain;
use crate::engine::tree::route::Receiver;
use crate::engine::tree::sending::Part;
use crate::engine::tree::thread::{Delivery, Later, Thread};
use crate::engine::tree::trial::{self, ATTEMPT_PAUSED, ATTEMPTS_TOGETHER};
use crate::listener::Entry;
use crate::log::{Flags, LastStart, Mark};
use crate::name::CORE_NAME;
use crate::wire::{Code, Fault};

/// Why an unfinished message isn't handled.
#[derive(Clone, Copy)]
enum Why {
    /// Its handling had begun, and isn't to be done twice.
    Unknown,
    /// Its listener is no longer there.
    Gone,
    /// Its handling ends the process.
    Poisonous,
}

/// Consumes the unfinished entries of a thread that has ended meanwhile. Nothing runs in such a
/// thread.
pub(super) fn consume_all(left: Vec<Unfinished>, world: &World<'_>, out: &mut Step) {
    for Unfinished { open, .. } in left {
        let entry = Entry::kept(&open.entry);
        let listeners = world.routes.left_to(&entry, &open.started).into_iter().map(|it| it.0);
        let mut listeners: Vec<Arc<str>> = listeners.collect();
        let gone = listeners.len()..open.entry.receivers as usize;
        listeners.extend(gone.map(|it| format!("gone-{it}").into()));
        listeners.retain(|it| !open.consumed.contains(it));
        out.batch.marks.extend(listeners.into_iter().map(|listener| {
            let started = open.started.iter().find(|(it, _)| *it == listener);
            let attempt = started.map_or(0, |(_, last)| last.attempt);
            Mark::Consumed { entry: entry.id().clone(), listener, attempt }
        }));
    }
}

impl Thread {
    /// Continues unfinished entries. A parked entry is parked again, and a waiting one waits again.
    /// An entry is handled if no handler had started on it. An entry on which a handler had started
    /// is handled again if its listener is idempotent. Otherwise the entry's sender is told that
    /// the outcome is unknown. If the listener no longer exists, the sender is told so, and so is
    /// the sender of a message that ends the process whenever it is handled.
    pub(crate) fn resume(&mut self, left: Vec<Unfinished>, world: &World<'_>, out: &mut Step) {
        for Unfinished { open, sent, since, asked, last_emission, is_held } in left {
            let entry = Entry::kept(&open.entry);
            let root = asked.as_ref().map_or(0, Entry::seq);
            if let Some(push) = asked {
                self.askers.insert(root, push.sender().clone());
                self.newest_push = self.newest_push.max(root);
                self.resumed_push = self.newest_push;
            }
            let mut closed = open.consumed.len();
            for (name, receiver) in world.routes.left_to(&entry, &open.started) {
                if open.consumed.contains(&name) {
                    continue;
                }
                closed += 1;
                let started = open.started.iter().find(|(it, _)| *it == name);
                let last = started.map(|(_, last)| *last).unwrap_or_default();
                let attempt = last.attempt;
                let until = open.waits.iter().find(|(it, _)| *it == name);
                if let (Some(receiver), None) = (receiver, until) {
                    self.note_asked(receiver, &entry, since.clone(), world, out);
                }
                if let (Some(receiver), true) = (receiver, last_emission > 0) {
                    self.last_emissions.insert(receiver.listener, (last_emission, root));
                }
                match receiver {
                    Some(receiver) if attempt > 0 && until.is_some() => {
                        let until_us = until.map_or(0, |(_, until_us)| *until_us);
                        let parked = Delivery::new(receiver, entry.clone(), root);
                        self.park_again(receiver, until_us, Delivery { attempt, ..parked });
                    }
                    Some(receiver) if attempt == 0 && until.is_some() => {
                        let until_us = until.map_or(0, |(_, until_us)| *until_us);
                        let later = Later::kept(entry.clone(), receiver);
                        let root = if root == 0 { later.root } else { root };
                        let until = Until::of(&later.entry, until_us, world.ahead_us);
                        self.defer(Later { root, ..later }, until, out);
                    }
                    Some(receiver)
                        if attempt == 0
                            && !world.routes.listeners[receiver.listener].traits.pure =>
                    {
                        let first = Delivery::new(receiver, entry.clone(), root);
                        self.wait(receiver, Delivery { is_held, ..first });
                    }
                    Some(receiver)
                        if world.routes.listeners[receiver.listener].is_idempotent(&entry) =>
                    {
                        let own = |it: &&Entry| [&*name, CORE_NAME].contains(&it.from());
                        let sent = sent.iter().filter(own).cloned().collect();
                        let first = Delivery::new(receiver, entry.clone(), root);
                        let again = Delivery { sent, is_held, ..first };
                        self.handle_again(receiver, again, last, world, out);
                    }
                    _ => {
                        let why = if receiver.is_some() { Why::Unknown } else { Why::Gone };
                        self.give_up(&entry, &name, attempt, why, world, out);
                    }
                }
            }
            // Some listeners that shared the payload's name may be gone. Their deliveries are given
            // up.
            for gone in closed..open.entry.receivers as usize {
                let name = format!("gone-{gone}").into();
                self.give_up(&entry, &name, 0, Why::Gone, world, out);
            }
        }
        self.start_all(world, out);
    }

    /// Handles a message once more, unless it was under way at too many ends of the process.
    fn handle_again(
        &mut self,
        receiver: Receiver,
        again: Delivery,
        last: LastStart,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let registered = &world.routes.listeners[receiver.listener];
        let begun = trial::attempts(last, registered.traits.pure);
        if begun >= ATTEMPT_PAUSED {
            let name = &registered.name;
            return self.give_up(&again.entry, name, begun, Why::Poisonous, world, out);
        }
        let as_of = last.as_of.filter(|_| registered.traits.up_to_date);
        // Whether a message that is handled alone ends the process is counted there.
        let attempt = (begun + 1).min(ATTEMPTS_TOGETHER);
        self.wait(receiver, Delivery { attempt, as_of, ..again });
    }

    fn give_up(
        &mut self,
        entry: &Entry,
        listener: &Arc<str>,
        attempt: u32,
        why: Why,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let fault = match why {
            Why::Unknown => {
                let text = format!("the pump stopped while {listener} was at it");
                Fault::new(Code::OutcomeUnknown, text)
            }
            Why::Gone => {
                Fault::new(Code::ListenerGone, "a listener that had the message is no longer there")
            }
            Why::Poisonous => {
                let text = format!(
                    "the pump ended {attempt} times while {listener} was at it, three times with \
                     nothing else under way"
                );
                tracing::error!(entry = %entry.id(), %listener, "{text}; it is handled no more");
                Fault::new(Code::Poisonous, text)
            }
        };
        let part = Part {
            message: entry.clone(),
            listener: 0,
            root: 0,
            chain: Chain::default(),
            next_root: None,
            settles: false,
            emitted: 0,
            flags: Flags::NONE,
            meta: None,
        };
        self.complain(&part, &fault, world, out);
        out.batch.marks.push(Mark::Consumed {
            entry: entry.id().clone(),
            listener: listener.clone(),
            attempt,
        });
    }
}
