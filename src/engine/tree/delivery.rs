//! Carries deliveries from start to end: starts their handlers, takes emissions and returns, makes
//! deliveries wait for a time or an entry, and settles pushes.

use tokio_util::sync::CancellationToken;

use crate::engine::tree::due_time::Until;
use crate::engine::tree::effect::{Effect, Step, Timing, World};
use crate::engine::tree::event::{Key, Ready, Start};
use crate::engine::tree::observer::PushEvent;
use crate::engine::tree::parked;
use crate::engine::tree::route::{Receiver, Registered};
use crate::engine::tree::sending::{Part, Sending};
use crate::engine::tree::thread::{Deliveries, Delivery, Later, Origin, Running, Thread};
use crate::engine::tree::withdraw;
use crate::id::EntryId;
use crate::listener::{ArrivalSignal, Entry, Park, StopCharge};
use crate::log::{Flags, Mark, State};
use crate::wire::{Checked, Code, Fault};

/// The deliveries that a handler is to handle together.
struct Hand {
    first: Delivery,
    /// Those that a serial listener takes from its queue, then those that it had parked.
    more: Vec<Delivery>,
    /// How many of `more` were parked.
    parked: usize,
    /// The number of the last entry that the handler sees.
    as_of: u64,
}

impl Hand {
    /// Takes the next deliveries of a listener. `upto` is the number of an entry that the handler
    /// sees in any case. A later attempt of a listener that is up to date handles what the earlier
    /// one handled, and sees what that one saw.
    fn take(lane: &mut Deliveries, registered: &Registered, upto: u64) -> Option<Hand> {
        let first = lane.waiting.pop_front()?;
        let mut more: Vec<Delivery> = Vec::new();
        if registered.traits.serial && registered.takes_queue {
            for delivery in std::mem::take(&mut lane.waiting) {
                match delivery.as_of == first.as_of {
                    true => more.push(delivery),
                    false => lane.waiting.push_back(delivery),
                }
            }
        }
        let parked = std::mem::take(&mut lane.parked.all);
        let taken = parked.len();
        more.extend(parked);
        let last = more.iter().map(|it| it.entry.seq()).max().unwrap_or(0).max(first.entry.seq());
        let as_of = last.max(first.as_of.unwrap_or(upto));
        Some(Hand { first, more, parked: taken, as_of })
    }

    /// Returns the marks of the start. The first start of a pure listener needs none, unless a
    /// replay would otherwise not know what the handler saw.
    fn started(&self, registered: &Registered) -> impl Iterator<Item = Mark> {
        let is_wide = registered.takes_queue || registered.traits.up_to_date;
        let as_of = is_wide.then_some(self.as_of);
        let taken = self.more.len() - self.parked;
        let all = std::iter::once(&self.first).chain(self.more.iter().take(taken));
        all.filter(move |it| is_wide || !registered.traits.pure || it.attempt > 1)
            .map(move |it| it.started(registered.name.clone(), as_of))
    }
}

impl Thread {
    /// Starts queued deliveries of these receivers.
    pub(crate) fn start_all_of(
        &mut self,
        receivers: &[Receiver],
        world: &World<'_>,
        out: &mut Step,
    ) {
        for receiver in receivers {
            self.start(receiver.listener, world, out);
        }
    }

    /// Starts every delivery that may start.
    pub(crate) fn start_all(&mut self, world: &World<'_>, out: &mut Step) {
        let mut listeners: Vec<usize> = self.deliveries.keys().copied().collect();
        listeners.sort_unstable();
        for listener in listeners {
            self.start(listener, world, out);
        }
    }

    /// Starts queued deliveries of a listener, as far as the thread's state and the listener's
    /// free places allow. A serial listener starts only one at a time. The batch of this step
    /// records the start, so the start is durable before the handler runs.
    pub(crate) fn start(&mut self, listener: usize, world: &World<'_>, out: &mut Step) {
        let registered = &world.routes.listeners[listener];
        let Some(lane) = self.deliveries.get_mut(&listener) else { return };
        let settles = registered.traits.settles || lane.parked.settles;
        let runs = match self.state {
            State::Open => true,
            State::OverBudget => registered.steers || settles,
            // A paused thread still runs the listeners that may resume it.
            _ => registered.steers,
        };
        if !runs || lane.stopped {
            return;
        }
        while !lane.waiting.is_empty() {
            if registered.traits.serial && lane.running > 0 {
                return;
            }
            if lane.waiting.front().is_some_and(|it| it.is_held) {
                return;
            }
            if !registered.traits.inline && !out.promise(listener, world) {
                if !std::mem::replace(&mut lane.starving, true) {
                    out.starving.push((listener, self.id.clone()));
                }
                return;
            }
            let last_emission = self.last_emissions.get(&listener).map_or(0, |it| it.0);
            let upto = match registered.traits.up_to_date {
                true => self.next_seq - 1,
                false => last_emission,
            };
            let Some(hand) = Hand::take(lane, registered, upto) else { return };
            debug_assert!(self.parked >= hand.parked, "more is parked than was counted");
            self.parked -= hand.parked;
            lane.running += 1;
            out.batch.marks.extend(hand.started(registered));
            let Hand { first, more, as_of, .. } = hand;
            let cancel = (!registered.traits.inline).then(CancellationToken::new);
            let arrivals = registered.takes_arrivals.then(ArrivalSignal::default);
            let stop_charge = registered.charges.then(StopCharge::default);
            let has_parked = hand.parked > 0;
            let root = lane.parked.root.filter(|_| has_parked).unwrap_or(first.root);
            let mut queue: Vec<Entry> = more.iter().map(|it| it.entry.clone()).collect();
            queue.sort_unstable_by_key(Entry::seq);
            let seq = first.entry.seq();
            let start = Start {
                entry: first.entry.clone(),
                receiver: Receiver { listener, handler: first.handler },
                attempt: first.attempt,
                queue,
                as_of,
                cancel,
                arrivals,
                stop_charge,
            };
            if world.routes.handler(start.receiver).takes_folds {
                self.folds.note_start(listener, start.as_of);
            }
            let is_wide = registered.takes_queue || registered.traits.up_to_date;
            let mut running = Running::new(first, more, root, &start);
            running.as_of = is_wide.then_some(as_of);
            self.running.insert((seq, listener), running);
            out.effects.push(Effect::Start(Box::new(start)));
        }
        if lane.is_empty() {
            self.deliveries.remove(&listener);
        }
    }

    /// Starts deliveries of a listener that has a free place again.
    pub(crate) fn room(&mut self, listener: usize, world: &World<'_>, out: &mut Step) {
        if let Some(lane) = self.deliveries.get_mut(&listener) {
            lane.starving = false;
            self.start(listener, world, out);
        }
    }

    pub(crate) fn sent(
        &mut self,
        key: &Key,
        ready: Vec<Ready>,
        world: &World<'_>,
        out: &mut Step,
    ) -> bool {
        let (ready, withdrawn) = withdraw::split(ready);
        let part = self.running.get(&(key.seq, key.listener));
        let part = part.map(|running| Part::of(running, key.listener));
        let held = part.map(|it| self.withdraw(&it, &withdrawn, world, out)).unwrap_or_default();
        let Some(running) = self.running.get_mut(&(key.seq, key.listener)) else {
            held.into_iter().for_each(|root| self.let_go(root, world, out));
            return false;
        };
        running.emitted += ready.len();
        running.silent += ready.iter().filter(|it| it.is_silent()).count();
        let again = |it: &Ready| it.repeats(&running.first.entry, &mut running.first.sent);
        let repeated = ready.iter().map(again).collect::<Vec<_>>();
        let mut repeated = repeated.into_iter();
        let mut ready = ready;
        ready.retain(|_| !repeated.next().unwrap_or(false));
        let part = Part::of(running, key.listener);
        if !world.routes.listeners[key.listener].parks {
            let taken = running.taken();
            self.join_taken(part.root, &taken);
        }
        self.emit_all(&part, ready, world, out);
        if let Some(running) = self.running.get_mut(&(key.seq, key.listener)) {
            running.take_undelivered(out);
        }
        held.into_iter().for_each(|root| self.let_go(root, world, out));
        true
    }

    pub(crate) fn returned(
        &mut self,
        key: &Key,
        ready: Vec<Ready>,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let Some(mut running) = self.running.remove(&(key.seq, key.listener)) else { return };
        let (ready, withdrawn) = withdraw::split(ready);
        let held = self.withdraw(&Part::of(&running, key.listener), &withdrawn, world, out);
        let (ready, park) = parked::split(ready);
        // If the handling failed without a `Park`, `park` stays None, and the parked messages stay
        // parked. Otherwise only the messages that `park` names are parked.
        let has_failed = ready.iter().any(|it| it.payload.is_err());
        let park = park.or_else(|| (!has_failed).then(Park::default));
        running.emitted += ready.len();
        running.silent += ready.iter().filter(|it| it.is_silent()).count();
        let mut part = Part::of(&running, key.listener);
        // What follows from a timer belongs to the push of the message that is taken back.
        if let Some(root) = held.first().filter(|_| !self.origins.contains_key(&part.root)) {
            part.root = *root;
        }
        part.next_root = running.next_root(park.as_ref());
        part.settles = park.as_ref().is_some_and(Park::goes_on);
        if !world.routes.listeners[key.listener].parks {
            self.join_taken(part.root, &running.taken());
        }
        self.emit_all(&part, ready, world, out);
        if let Some((entry, fault)) = out.uncharged.take() {
            self.tell_refused(&part, &entry, &fault, world, out);
        }
        let message = &running.first.entry;
        let asked = message.flags().contains(Flags::ANSWER_WANTED);
        if asked && running.emitted == 0 && !message.is_from_identity() {
            self.nothing_came(&part, world, out);
        }
        running.take_undelivered(out);
        self.report_undelivered(&part, &running, world, out);
        self.consume(running, key.listener, park, world, out);
        held.into_iter().for_each(|root| self.let_go(root, world, out));
    }

    /// Sets the token that tells a handler to stop. An inline handler gets its token when it
    /// becomes a task.
    pub(crate) fn cancel_by(&mut self, key: &Key, cancel: CancellationToken) {
        if let Some(running) = self.running.get_mut(&(key.seq, key.listener)) {
            running.cancel = Some(cancel);
        }
    }

    pub(crate) fn overtime(&mut self, key: &Key, world: &World<'_>, out: &mut Step) {
        let Some(running) = self.running.remove(&(key.seq, key.listener)) else { return };
        out.effects.extend(running.cancel.clone().map(Effect::Cancel));
        self.settle_stopped(&running, key.listener, world, out);
        let registered = &world.routes.listeners[key.listener];
        let seconds = registered.timeout_us as f64 / 1e6;
        let text = format!("{} took longer than its {seconds} s", registered.name);
        let fault = match registered.leaves_unknown(&running.first.entry) {
            false => Fault::new(Code::TimeOut, text),
            true => Fault {
                advice: Some(Code::OutcomeUnknown.advice().to_owned()),
                retry: Some(false),
                ..Fault::new(Code::TimeOut, text + "; what it had done by then is unknown")
            },
        };
        self.complain(&Part::of(&running, key.listener), &fault, world, out);
        self.consume(running, key.listener, None, world, out);
    }

    /// Ends the thread's work: handlers are told to stop, deliveries are consumed, waiting pushes
    /// are refused, and accepted pushes are settled.
    pub(crate) fn stop(&mut self, world: &World<'_>, out: &mut Step) {
        let name = |listener: usize| world.routes.listeners[listener].name.clone();
        let mut over: Vec<(u64, usize, u32)> = Vec::new();
        let mut running: Vec<_> = self.running.drain().collect();
        running.sort_unstable_by_key(|(key, _)| *key);
        for ((_, listener), handler) in running {
            over.extend(handler.hand().map(|it| (it.entry.seq(), listener, it.attempt)));
            out.effects.extend(handler.cancel.map(Effect::Cancel));
        }
        let waiting = self.deliveries.drain().flat_map(|(listener, lane)| {
            let all = lane.waiting.into_iter().chain(lane.parked.all);
            all.map(move |it| (it.entry.seq(), listener, it.attempt))
        });
        over.extend(waiting);
        self.overdue.clear();
        let mut later: Vec<(u64, usize)> = self.later.drain().map(|(key, _)| key).collect();
        later.sort_unstable();
        for (seq, listener) in later {
            over.push((seq, listener, 0));
            out.later.push(Timing::Over(Key { thread: self.id.clone(), seq, listener }));
        }
        out.effects.extend(self.folds.drain().into_iter().map(Effect::Leave));
        over.sort_unstable();
        for (seq, listener, _) in &over {
            self.note_done(*seq, *listener, world, out);
        }
        out.batch.marks.extend(over.into_iter().map(|(seq, listener, attempt)| Mark::Consumed {
            entry: self.entry(seq),
            listener: name(listener),
            attempt,
        }));
        (self.unconsumed, self.parked) = (0, 0);
        for push in std::mem::take(&mut self.held) {
            self.turn_away(*push, out);
        }
        self.joined.clear();
        let mut origins: Vec<(u64, Origin)> = self.origins.drain().collect();
        origins.sort_unstable_by_key(|(seq, _)| *seq);
        for (seq, origin) in origins {
            if !origin.answered {
                let text = format!("{} is {}", self.id, self.state);
                self.tell_cancelled(seq, &origin, &Fault::new(Code::Cancelled, text), world, out);
            }
            out.effects.push(Effect::Tell(origin.observer, origin.push, PushEvent::Settled));
        }
    }

    /// Makes a delivery wait for a time or an entry.
    pub(crate) fn defer(&mut self, later: Later, until: Until, out: &mut Step) {
        self.hold(later.root);
        let (seq, listener) = (later.entry.seq(), later.receiver.listener);
        let key = Key { thread: self.id.clone(), seq, listener };
        out.later.push(Timing::Until(until, key));
        self.later.insert((seq, listener), later);
    }

    /// Sends a waiting message again, since the time or the entry that it waits for has come. The
    /// new entry shows when and why the wait ended, also to folds. If the budget has no room for
    /// the message, the delivery is overdue and waits until a budget is raised. Listeners that
    /// steer threads or only settle earlier work get the message in any case.
    ///
    /// `because` is the entry that the delivery waited for, or None if its time has come.
    pub(crate) fn due(
        &mut self,
        key: &Key,
        because: Option<&EntryId>,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let registered = &world.routes.listeners[key.listener];
        let goes_on = registered.steers || registered.traits.settles;
        if let Some(short) = out.ledger.fits_message(world.now_us).err().filter(|_| !goes_on) {
            let waits = self.later.contains_key(&(key.seq, key.listener));
            if waits && self.overdue.iter().all(|(it, _)| it != key) {
                self.overdue.push((key.clone(), because.cloned()));
                self.run_out(short, None, out);
            }
            return;
        }
        let found = self.later.remove(&(key.seq, key.listener));
        let Some(Later { entry, receiver, root, chain }) = found else { return };
        let root = if root == Later::FOR_NONE { 0 } else { root };
        out.later.push(Timing::Over(key.clone()));
        let listener = world.routes.listeners[key.listener].name.clone();
        let Ok(element) = entry.element() else { return };
        let chain = match because {
            None => self.guard.called(),
            Some(_) => self.guard.resumed(chain, entry.seq()),
        };
        let sending = Sending {
            from: &listener,
            to: Some(listener.clone()),
            checked: Checked::typed(entry.name().clone(), element.clone()),
            cause: Some(because.unwrap_or(entry.id()).clone()),
            reply_to: None,
            flags: Flags::NONE,
            receivers: &[receiver],
            client_id: None,
            meta: None,
            root,
            chain,
            until: None,
        };
        self.append(sending, world, out);
        self.let_go(root, world, out);
        let entry = entry.id().clone();
        out.batch.marks.push(Mark::Consumed { entry, listener, attempt: 0 });
        self.start(key.listener, world, out);
    }

    /// Sends the deliveries that became due while the budget was spent.
    pub(crate) fn catch_up(&mut self, world: &World<'_>, out: &mut Step) {
        for (key, because) in std::mem::take(&mut self.overdue) {
            self.due(&key, because.as_ref(), world, out);
        }
    }

    /// Refuses every push that waits to be accepted, and settles every accepted push.
    pub(crate) fn abandon(&mut self, fault: &Fault, effects: &mut Vec<Effect>) {
        for push in self.held.drain(..) {
            push.refuse(fault.clone(), effects);
        }
        self.joined.clear();
        let origins = self.origins.drain().map(|(_, it)| it);
        effects.extend(origins.map(|it| Effect::Tell(it.observer, it.push, PushEvent::Settled)));
    }

    /// Notes that a push caused one more delivery, child thread or request to the tree.
    pub(crate) fn hold(&mut self, root: u64) {
        if let Some(origin) = self.origins.get_mut(&root) {
            origin.open += 1;
        }
    }

    /// Notes that one delivery, child thread or request to the tree that a push caused is done.
    /// After the last one the push is settled.
    pub(crate) fn let_go(&mut self, root: u64, world: &World<'_>, out: &mut Step) {
        if let Some(origin) = self.origins.get_mut(&root) {
            debug_assert!(origin.open > 0, "{}/{root} is let go of once too often", self.id);
            origin.open -= 1;
            self.settle(root, world, out);
        }
    }

    /// Settles a push if all that it caused is done, and tells its observer. If the push got no
    /// answer, `report_end` may add a last entry for the sender. Pushes that are answered together
    /// are settled together.
    pub(crate) fn settle(&mut self, root: u64, world: &World<'_>, out: &mut Step) {
        let all = self.together(root);
        let is_over = |it: &u64| self.origins.get(it).is_some_and(|it| it.open == 0);
        if !all.iter().all(is_over) {
            return;
        }
        for root in all {
            self.report_end(root, world, out);
            self.joined.remove(&root);
            if let Some(origin) = self.origins.remove(&root) {
                out.effects.push(Effect::Tell(origin.observer, origin.push, PushEvent::Settled));
            }
        }
    }
}
