//! Accepts pushes, and appends every entry of a thread.

use crate::engine::tree::effect::{Effect, Step, Timing, World};
use crate::engine::tree::event::{Key, Push};
use crate::engine::tree::loop_guard::Hop;
use crate::engine::tree::observer::PushEvent;
use crate::engine::tree::route::Receiver;
use crate::engine::tree::sending::Sending;
use crate::engine::tree::thread::{Delivery, Later, Origin, Thread, ended};
use crate::id::EntryId;
use crate::listener::Entry;
use crate::log::{Draft, Flags, Mark, State};
use crate::name::CORE_NAME;
use crate::wire::{Checked, Fault};

impl Thread {
    pub(crate) fn push(&mut self, push: Box<Push>, world: &World<'_>, out: &mut Step) {
        if self.closed_to(&push, world).is_some() {
            return self.turn_away(*push, out);
        }
        if !self.held.is_empty() || self.unconsumed >= world.limits.unconsumed_max {
            self.held.push_back(push);
        } else {
            self.accept(*push, world, out);
        }
    }

    pub(crate) fn accept(&mut self, push: Push, world: &World<'_>, out: &mut Step) {
        if let Some(short) = self.shortage(&push, world, out) {
            return self.refuse_push(push, short, out);
        }
        let chain = self.guard.called();
        let seq = self.next_seq;
        let Push { by, message, meta, client_id, source: _ } = push;
        self.pushed_by(&by.identity, &by.observer, by.number);
        let origin = Origin {
            identity: by.identity.clone(),
            observer: by.observer.clone(),
            push: by.number,
            open: 0,
            wants_answer: message.flags.contains(Flags::ANSWER_WANTED),
            answered: false,
            may_know_why: by.may_know_why,
            undelivered: None,
        };
        self.note_pusher(seq, by.identity.clone());
        self.origins.insert(seq, origin);
        let (client_id, claim) = client_id.map(|own| (own.id, own.claim)).unzip();
        let news = PushEvent::Accepted { id: self.entry(seq), client_id: client_id.clone() };
        if let Some(claim) = claim {
            out.effects.push(Effect::Tell(claim, by.number, news.clone()));
        }
        out.effects.push(Effect::Tell(by.observer, by.number, news));
        let sending = Sending {
            from: &by.identity,
            to: message.to,
            checked: message.checked,
            cause: None,
            reply_to: None,
            flags: message.flags.with(Flags::FROM_IDENTITY),
            receivers: &message.receivers,
            client_id,
            meta,
            root: seq,
            chain,
            until: None,
        };
        self.append(sending, world, out);
        self.start_all_of(&message.receivers, world, out);
        self.settle(seq, world, out);
    }

    /// Gives an entry its number, appends it to the thread, and queues a delivery for each
    /// receiver. With `until`, the deliveries wait for that time or for an entry instead.
    pub(crate) fn append(
        &mut self,
        sending: Sending<'_>,
        world: &World<'_>,
        out: &mut Step,
    ) -> Entry {
        if !self.kept {
            self.kept = true;
            out.batch.threads.push(self.record.clone());
        }
        let id = self.entry(self.next_seq);
        self.next_seq += 1;
        // Nothing runs in a thread that has ended.
        let receivers = if self.state.is_live() { sending.receivers } else { &[] };
        let cause = sending.cause.as_ref().filter(|it| it.thread == self.id).map_or(0, |it| it.seq);
        out.ledger.count(!receivers.is_empty() && **sending.from != *CORE_NAME, world.now_us);
        let draft = Draft {
            id,
            at_us: world.now_us,
            from: sending.from.clone(),
            to: sending.to,
            name: sending.checked.name().clone(),
            cause: sending.cause,
            reply_to: sending.reply_to,
            flags: if is_to_agent(receivers, world) {
                sending.flags.with(Flags::TO_AGENT)
            } else {
                sending.flags
            },
            receivers: u32::try_from(receivers.len()).unwrap_or(u32::MAX),
            client_id: sending.client_id,
            meta: sending.meta,
            body: sending.checked.element().canonical(),
            key: None,
        };
        debug_assert!(self.follows(&draft), "{} comes of a later entry", draft.id);
        let entry = Entry::fresh(&draft, sending.checked.element().clone());
        out.batch.entries.push(draft);
        let begins = entry.seq() == 1 && world.routes.any_takes_folds(receivers);
        self.remember(&entry, begins, world.limits.entries_at_hand_max);
        if let Some(entries) = &mut out.new_entries {
            entries.push(entry.clone());
        }
        note_receivers(&entry, receivers, world, out);
        for receiver in receivers {
            match sending.until {
                None => {
                    self.note_asked(*receiver, &entry, Vec::new(), world, out);
                    let to = &world.routes.listeners[receiver.listener].name;
                    let hop =
                        Hop { from: sending.from, to, chain: sending.chain, cause, asked: None };
                    let is_outside = sending.flags.contains(Flags::FROM_IDENTITY);
                    let chain = if is_outside { sending.chain } else { self.guard.longer(&hop) };
                    self.tell_arrived(*receiver, &entry, world, out);
                    let first = Delivery::new(*receiver, entry.clone(), sending.root);
                    self.wait(*receiver, Delivery { chain, ..first });
                }
                Some(until) => {
                    out.batch.marks.push(Mark::Waits {
                        entry: entry.id().clone(),
                        listener: world.routes.listeners[receiver.listener].name.clone(),
                        until_us: until.kept(world.ahead_us),
                    });
                    let (receiver, root, chain) = (*receiver, sending.root, sending.chain);
                    self.defer(Later { entry: entry.clone(), receiver, root, chain }, until, out);
                }
            }
        }
        entry
    }

    /// Returns whether a draft's cause, and the entry that the draft answers, come before the
    /// draft. Entries of other threads always count as earlier.
    fn follows(&self, draft: &Draft) -> bool {
        let is_before = |id: &EntryId| id.thread != self.id || id.seq < draft.id.seq;
        draft.cause.as_ref().is_none_or(is_before) && draft.reply_to.as_ref().is_none_or(is_before)
    }

    /// Tells the running handlers of a listener that a message came for it.
    fn tell_arrived(&self, receiver: Receiver, entry: &Entry, world: &World<'_>, out: &mut Step) {
        if !world.routes.listeners[receiver.listener].takes_arrivals {
            return;
        }
        let at_work = self.running.iter().filter(|((_, it), _)| *it == receiver.listener);
        let hears = at_work.filter_map(|(_, it)| it.arrivals.clone());
        out.effects.extend(hears.map(|it| Effect::Arrived(it, entry.clone())));
    }

    /// Notes that the receiver's listener has this message to handle, if the listener has `wakes`.
    /// If the message came before a restart, `since` has the entries after the message.
    pub(crate) fn note_asked(
        &self,
        receiver: Receiver,
        entry: &Entry,
        since: Vec<Entry>,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let listener = receiver.listener;
        if world.routes.listeners[listener].wakes.is_some() {
            let key = Key { thread: self.id.clone(), seq: entry.seq(), listener };
            out.later.push(Timing::Asked(key, since));
        }
    }

    /// Notes that the message needs no more handling, if the listener has `wakes`.
    pub(crate) fn note_done(&self, seq: u64, listener: usize, world: &World<'_>, out: &mut Step) {
        if world.routes.listeners[listener].wakes.is_some() {
            out.later.push(Timing::Done(Key { thread: self.id.clone(), seq, listener }));
        }
    }

    /// Returns the fault if the thread refuses a push.
    pub(crate) fn closed_to(&self, push: &Push, world: &World<'_>) -> Option<Fault> {
        let steers = |it: &Receiver| world.routes.listeners[it.listener].steers;
        match self.state {
            State::Open | State::Paused => None,
            // A push that ends a thread or raises its budget is accepted even if the budget is
            // spent.
            State::OverBudget if push.message.receivers.iter().all(steers) => None,
            state => Some(ended(&self.id, state)),
        }
    }

    pub(super) fn turn_away(&mut self, push: Push, out: &mut Step) {
        push.refuse(ended(&self.id, self.state), &mut out.effects);
    }

    /// Appends a payload of the pump itself, for the listeners that take it.
    pub(crate) fn say(
        &mut self,
        checked: Checked,
        cause: Option<EntryId>,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let receivers = world.routes.receivers(None, checked.name()).unwrap_or_default();
        let sending = Sending {
            from: world.core,
            to: None,
            checked,
            cause,
            reply_to: None,
            flags: Flags::NONE,
            receivers: &receivers,
            client_id: None,
            meta: None,
            root: 0,
            chain: self.guard.here(),
            until: None,
        };
        self.append(sending, world, out);
        self.start_all_of(&receivers, world, out);
    }
}

/// Returns whether the only receiver is an agent.
fn is_to_agent(receivers: &[Receiver], world: &World<'_>) -> bool {
    matches!(receivers, [it] if world.routes.listeners[it.listener].traits.agent)
}

/// Records the receivers of an entry that names no receiver. After a restart other listeners may
/// share the payload's name, but the receivers of this entry stay the same.
fn note_receivers(entry: &Entry, receivers: &[Receiver], world: &World<'_>, out: &mut Step) {
    if entry.to().is_none() {
        out.batch.marks.extend(receivers.iter().map(|receiver| Mark::Started {
            entry: entry.id().clone(),
            listener: world.routes.listeners[receiver.listener].name.clone(),
            attempt: 0,
            as_of: None,
        }));
    }
}
