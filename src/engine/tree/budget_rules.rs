//! The rules of budgets and of the loop guard: which messages are refused, how charges are booked,
//! which entries the pump records about budgets and loops, and which threads continue once an
//! operator raises a budget.

use std::sync::PoisonError;

use bytes::Bytes;

use crate::engine::tree::budget_ledger::Short;
use crate::engine::tree::effect::{Step, World};
use crate::engine::tree::event::Push;
use crate::engine::tree::loop_guard::{Bound, Hop};
use crate::engine::tree::request::{RaiseRequest, SpentBudget, TreeRequest};
use crate::engine::tree::reserved_amounts::ReservedAmounts;
use crate::engine::tree::route::Receiver;
use crate::engine::tree::sending::{Part, Sending, word};
use crate::engine::tree::step::Tree;
use crate::engine::tree::thread::{Running, Thread};
use crate::id::{EntryId, ThreadId};
use crate::listener::{Entry, Target};
use crate::log::{Flags, State};
use crate::name::CORE_NAME;
use crate::wire::budget::{BudgetKey, BudgetRaised, Charge, LoopWarning, OverBudget, RaiseBudget};
use crate::wire::core::{ThreadStatus, said};
use crate::wire::{Checked, Code, Fault, Payload};

/// Returns the payload that the pump records in a thread that is over budget.
fn over_budget(Short { key, used, limit, .. }: Short) -> OverBudget {
    OverBudget { key, used, limit }
}

impl Tree {
    /// Checks the tree's time before an event is handled. If the time is up, asks the tree to hold
    /// its threads.
    pub(crate) fn look_at_clock(&self, world: &World<'_>, out: &mut Step) {
        if let Err(short) = out.ledger.look_at_clock(world.now_us)
            && self.threads.values().any(|it| it.state == State::Open && it.kept)
        {
            out.requests.push_back(TreeRequest::Spent(SpentBudget { short, thread: None }));
        }
    }

    /// Records the noted warnings about budgets in the session.
    pub(crate) fn warn(&mut self, world: &World<'_>, out: &mut Step) {
        for warning in out.ledger.take_unsaid() {
            let Some(session) = self.threads.values_mut().find(|it| it.record.parent.is_none())
            else {
                return;
            };
            session.record(&warning, Flags::CHARGES, None, world, out);
        }
    }

    /// Holds the threads that a spent budget bounds: their state becomes `OverBudget`.
    pub(crate) fn spent(&mut self, spent: &SpentBudget, world: &World<'_>, out: &mut Step) {
        let what = over_budget(spent.short);
        let is_meant = |id: &&ThreadId| spent.thread.as_ref().is_none_or(|only| only == *id);
        let mut ids: Vec<ThreadId> = self.threads.keys().filter(is_meant).cloned().collect();
        ids.sort_unstable();
        for id in ids {
            let open = |it: &&mut Box<Thread>| it.state == State::Open && it.kept;
            if let Some(thread) = self.threads.get_mut(&id).filter(open) {
                thread.note(&what, State::OverBudget, None, world, out);
                // Listeners that only settle earlier work continue.
                thread.start_all(world, out);
            }
        }
    }

    /// Raises a budget, records the raise, and lets the held threads continue. If the sender isn't
    /// an operator, it gets a fault instead.
    pub(crate) fn raise(&mut self, raising: &RaiseRequest, world: &World<'_>, out: &mut Step) {
        let (part, message) = (&raising.part, &raising.part.message);
        let Some(own) = self.threads.get_mut(message.thread()) else { return };
        if !message.flags().contains(Flags::FROM_OPERATOR) {
            let fault = match own.may_know_why(part) {
                true => Fault::new(Code::Undeliverable, "only an operator raises a budget"),
                false => Fault::undeliverable(),
            };
            return own.complain(part, &fault, world, out);
        }
        let limit = match out.ledger.raise(&raising.raise) {
            Ok(limit) => limit.to_string(),
            Err(fault) => return own.complain(part, &fault, world, out),
        };
        let what = BudgetRaised { key: raising.raise.key, limit, by: message.from().to_owned() };
        let Some(checked) = word(&what) else { return };
        let was_over = own.state == State::OverBudget;
        let flags = if was_over { State::Open.flag() } else { Flags::NONE };
        let cause = own.entry(own.next_seq);
        own.state = if was_over { State::Open } else { own.state };
        let sending = own.sending(part, checked, Some(message.sender().clone()), world);
        let (flags, reply_to) = (flags.with(Flags::CHARGES), Some(message.id().clone()));
        own.answer(part, message, Sending { flags, reply_to, ..sending }, world, out);
        own.start_all(world, out);
        self.reopen(&what, &cause, world, out);
        let overdue = self.threads.values().filter(|it| !it.overdue.is_empty());
        let mut overdue: Vec<ThreadId> = overdue.map(|it| it.id.clone()).collect();
        overdue.sort_unstable();
        for id in overdue {
            if let Some(thread) = self.threads.get_mut(&id) {
                thread.catch_up(world, out);
            }
        }
    }

    fn reopen(&mut self, what: &BudgetRaised, cause: &EntryId, world: &World<'_>, out: &mut Step) {
        let over = self.threads.values().filter(|it| it.state == State::OverBudget);
        let mut over: Vec<ThreadId> = over.map(|it| it.id.clone()).collect();
        over.sort_unstable();
        for id in over {
            if let Some(thread) = self.threads.get_mut(&id) {
                thread.note(what, State::Open, Some(cause.clone()), world, out);
                thread.start_all(world, out);
            }
        }
    }
}

impl Thread {
    /// Returns the budget that has no room for a push, if there is one. Pushes for listeners that
    /// steer threads always have room, so that a tree's owner can end the tree.
    pub(crate) fn shortage(&self, push: &Push, world: &World<'_>, out: &Step) -> Option<Short> {
        let steers = |it: usize| world.routes.listeners[it].steers;
        if push.message.receivers.iter().all(|it| steers(it.listener)) {
            return None;
        }
        out.ledger.fits_message(world.now_us).err()
    }

    /// Refuses a push, since a budget has no room for it.
    pub(crate) fn refuse_push(&mut self, push: Push, short: Short, out: &mut Step) {
        push.refuse(short.fault(), &mut out.effects);
        self.run_out(short, None, out);
    }

    /// Returns the budget that has no room for an emission, if there is one. These emissions always
    /// have room:
    ///
    /// - emissions that no listener of this thread gets;
    /// - emissions for a listener that only settles earlier work, and its messages to itself;
    /// - [`Target::Oneself`] of a listener that continues even if the thread is over budget;
    /// - answers to a listener that parks messages, and answers to [`Target::Askers`];
    /// - emissions of a listener that steers threads.
    pub(crate) fn shortage_for(
        &self,
        part: &Part,
        target: &Target,
        world: &World<'_>,
        out: &Step,
    ) -> Option<Short> {
        let own = &world.routes.listeners[part.listener];
        let registered = |name: &str| world.routes.find(name).map(|it| &world.routes.listeners[it]);
        let answered = |entry: &Entry| {
            let settles = registered(entry.from()).is_some_and(|it| it.traits.settles || it.parks);
            !entry.is_from_identity() && !self.ends_with(entry) && !settles
        };
        let is_given = match target {
            Target::Sender => answered(&part.message),
            Target::Entry(it) => answered(it),
            Target::Listener(name) => !registered(name).is_some_and(|it| it.traits.settles),
            Target::Oneself => !part.settles && !own.traits.settles,
            Target::Later { .. } => !own.traits.settles,
            // A child is checked when it is opened. Answers to askers are never refused here. The
            // other targets reach no listener of this thread.
            _ => false,
        };
        out.ledger.fits_message(world.now_us).err().filter(|_| is_given && !own.steers)
    }

    /// Refuses an emission, since a budget has no room for it.
    pub(crate) fn refuse_for(
        &mut self,
        part: &Part,
        checked: Checked,
        target: &Target,
        short: Short,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let to = match target {
            Target::Listener(name) => Some(name.as_str().into()),
            _ => None,
        };
        let fault = short.fault();
        let sending = self.sending(part, checked, to, world);
        let refused = self.append(Sending { flags: Flags::REFUSED, ..sending }, world, out);
        if short.is_spent() && self.state == State::Open {
            // The thread is held before its listener is told, so that the fault starts no handler
            // yet.
            self.note(&over_budget(short), State::OverBudget, None, world, out);
        }
        self.tell_refused(part, refused.id(), &fault, world, out);
        self.give_reason(part, &fault, world, out);
        self.run_out(short, None, out);
    }

    /// Asks the tree to hold threads, if the budget is spent.
    pub(crate) fn run_out(&mut self, short: Short, thread: Option<ThreadId>, out: &mut Step) {
        if short.is_spent() {
            out.requests.push_back(TreeRequest::Spent(SpentBudget { short, thread }));
        }
    }

    /// Books a charge of a listener, and appends its entry. If the charge doesn't fit, it is
    /// recorded as refused. In that case `out.uncharged` keeps the fault for the handler.
    pub(crate) fn charge(
        &mut self,
        part: &Part,
        checked: Checked,
        charge: &Charge,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let listener = &world.routes.listeners[part.listener].name;
        let booked = out
            .ledger
            .charge(&self.id, listener, charge)
            .map_err(|it| Short { reserved: out.others.of(it.key), ..it });
        let at = (part.message.seq(), part.listener);
        if let Some(running) = self.running.get_mut(&at).filter(|_| booked.is_ok()) {
            running.reserved.note(charge);
        }
        let flags = if booked.is_ok() { Flags::CHARGES } else { Flags::REFUSED };
        let sending = self.sending(part, checked, None, world);
        let entry = self.append(Sending { flags, ..sending }, world, out);
        if let Err(short) = booked {
            out.uncharged.get_or_insert((entry.id().clone(), short.fault()));
            let of = (short.key == BudgetKey::Turns).then(|| self.id.clone());
            self.run_out(short, of, out);
        }
    }

    /// Settles what the thread's running handlers have reserved, since they are about to be
    /// stopped.
    pub(crate) fn settle_all_stopped(&mut self, world: &World<'_>, out: &mut Step) {
        let is_open = |it: &Running| it.reserved != ReservedAmounts::default();
        let open = self.running.iter().filter(|(_, it)| is_open(it)).map(|(at, _)| *at);
        let mut open: Vec<(u64, usize)> = open.collect();
        open.sort_unstable();
        for (seq, listener) in open {
            if let Some(running) = self.running.remove(&(seq, listener)) {
                self.settle_stopped(&running, listener, world, out);
                self.running.insert((seq, listener), running);
            }
        }
    }

    /// Settles what a handler has reserved, since the handler is stopped. The handler has said what
    /// it had spent so far.
    pub(crate) fn settle_stopped(
        &mut self,
        running: &Running,
        listener: usize,
        world: &World<'_>,
        out: &mut Step,
    ) {
        if running.reserved == ReservedAmounts::default() {
            return;
        }
        let said = running.stop_charge.as_ref();
        let said = said.and_then(|it| it.lock().unwrap_or_else(PoisonError::into_inner).take());
        let said = said.map(|it| Charge { stopped: Some(true), ..it });
        if let Some((settlement, checked)) = said.and_then(|it| Some((it.clone(), word(&it)?))) {
            self.charge(&Part::of(running, listener), checked, &settlement, world, out);
        }
    }

    /// Asks the tree to raise a budget for the sender of the current message.
    pub(crate) fn ask_for_more(&mut self, part: &Part, checked: &Checked, out: &mut Step) {
        let Ok(raise) = RaiseBudget::decode(checked.element()) else { return };
        self.hold(part.root);
        let raising = RaiseRequest { part: part.clone(), raise };
        out.requests.push_back(TreeRequest::Raise(Box::new(raising)));
    }

    /// Returns the bound of the loop guard that a message between listeners would exceed, if there
    /// is one. If the message is an answer, `asked` is the body of the message that it answers.
    pub(crate) fn goes_round(
        &self,
        sending: &Sending<'_>,
        asked: Option<&Bytes>,
        world: &World<'_>,
    ) -> Option<Bound> {
        let receiver = sending.receivers.first()?;
        let hop = self.hop(sending, &world.routes.listeners[receiver.listener].name)?;
        let hop = Hop { asked, ..hop };
        self.guard.refuses(&hop, || sending.checked.element().canonical(), world.limits)
    }

    fn hop<'a>(&self, sending: &Sending<'a>, to: &'a str) -> Option<Hop<'a>> {
        let cause = sending.cause.as_ref().filter(|it| it.thread == self.id)?.seq;
        (**sending.from != *CORE_NAME).then_some(Hop {
            from: sending.from,
            to,
            chain: sending.chain,
            cause,
            asked: None,
        })
    }

    /// Appends a message between listeners, and warns if it reaches a bound of the loop guard. If
    /// the message is an answer, `asked` is the body of the message that it answers.
    pub(crate) fn pass(
        &mut self,
        sending: Sending<'_>,
        asked: Option<&Bytes>,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let Some(receiver) = sending.receivers.first() else {
            self.append(sending, world, out);
            return;
        };
        let (from, chain, cause) = (sending.from, sending.chain, sending.cause.clone());
        let entry = self.append(sending, world, out);
        let to = &world.routes.listeners[receiver.listener].name;
        let Some(cause) = cause.filter(|it| it.thread == self.id && **from != *CORE_NAME) else {
            return;
        };
        let hop = Hop { from, to, chain, cause: cause.seq, asked };
        self.watch(&hop, entry.id(), entry.body(), world, out);
    }

    /// Notes a message in the loop guard, and warns if it reaches a bound.
    pub(crate) fn watch(
        &mut self,
        hop: &Hop<'_>,
        at: &EntryId,
        body: &Bytes,
        world: &World<'_>,
        out: &mut Step,
    ) {
        if let Some(Bound { name, value }) = self.guard.note(hop, at.seq, body, world.limits) {
            let (listener, limit) = (hop.from.to_string(), name.to_owned());
            let what = LoopWarning { listener, limit, value: value as u64 };
            self.record(&what, Flags::NONE, Some(at.clone()), world, out);
        }
    }

    /// Stops a message that goes round in a circle. The message is recorded as refused. The first
    /// of these that applies gets the fault:
    ///
    /// - the receiver of the message, if the message is an answer and the receiver has the trait
    ///   `settles`;
    /// - the parent of a child thread, since the child ends with the fault;
    /// - the identity that pushed.
    pub(crate) fn stop_round(
        &mut self,
        part: &Part,
        refused: Sending<'_>,
        bound: Bound,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let fault = bound.fault(refused.from);
        let flags = refused.flags.with(Flags::REFUSED);
        let asker =
            refused.receivers.first().map(|it| it.listener).filter(|_| refused.reply_to.is_some());
        let asker = asker.filter(|it| world.routes.listeners[*it].traits.settles);
        let reply_to = refused.reply_to.clone();
        self.append(Sending { flags, receivers: &[], ..refused }, world, out);
        if let (Some(asker), Some(checked)) = (asker, said(&fault)) {
            let receiver = world.routes.reply(asker, checked.name());
            let receivers: Vec<Receiver> = receiver.into_iter().collect();
            let to = world.routes.listeners[asker].name.clone();
            let sending = self.sending(part, checked, Some(to), world);
            let (from, receivers) = (world.core, &receivers[..]);
            let flags = Flags::NONE;
            self.append(Sending { from, reply_to, flags, receivers, ..sending }, world, out);
            return self.start_all_of(receivers, world, out);
        }
        match self.spawner {
            Some(_) if self.state.is_live() => {
                let Some(checked) = said(&fault) else { return };
                self.finish(part, world.core, checked, ThreadStatus::Failed, world, out);
            }
            _ => self.give_reason(part, &fault, world, out),
        }
    }

    /// Sends a fault to the identity whose push led to a handling. If that push is unknown or
    /// answered already, the fault is only traced.
    fn give_reason(&mut self, part: &Part, fault: &Fault, world: &World<'_>, out: &mut Step) {
        let origin = self.origins.get(&part.root).filter(|it| !it.answered);
        let Some(identity) = origin.map(|it| it.identity.clone()) else {
            tracing::warn!(message = %part.message.id(), %fault, "nobody waits to be told");
            return;
        };
        let Some(checked) = said(fault) else { return };
        let sending = self.sending(part, checked, Some(identity.clone()), world);
        let reply_to = Some(self.entry(part.root));
        let sending = Sending { from: world.core, reply_to, ..sending };
        self.tell(&identity, part.root, sending, world, out);
    }

    /// Records a payload of the pump itself. The entry starts no handler.
    pub(crate) fn record<P: Payload>(
        &mut self,
        what: &P,
        flags: Flags,
        cause: Option<EntryId>,
        world: &World<'_>,
        out: &mut Step,
    ) -> EntryId {
        let id = self.entry(self.next_seq);
        let Some(checked) = word(what) else { return id };
        let sending = Sending {
            from: world.core,
            to: None,
            checked,
            cause,
            reply_to: None,
            flags,
            receivers: &[],
            client_id: None,
            meta: None,
            root: 0,
            chain: self.guard.here(),
            until: None,
        };
        self.append(sending, world, out);
        id
    }
}
