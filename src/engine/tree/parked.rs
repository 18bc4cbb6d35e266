//! Ends handlings: consumes the finished messages, and parks the others. The listener keeps parked
//! messages for later handlings. When nothing that its messages caused is left to do in the thread,
//! the listener gets `nothing-under-way`, if its `Park` asked for this payload. A listener whose
//! parked messages were loaded from the log gets the payload, too.

use std::collections::BTreeSet;

use crate::engine::tree::effect::{Step, World};
use crate::engine::tree::event::Ready;
use crate::engine::tree::loop_guard::Chain;
use crate::engine::tree::route::Receiver;
use crate::engine::tree::sending::{Sending, word};
use crate::engine::tree::thread::{Delivery, Later, Parked, Running, Thread};
use crate::listener::{Park, Target};
use crate::log::{Flags, Mark, State};
use crate::wire::Payload;
use crate::wire::core::NothingUnderWay;

/// In the log, a parked message waits until this time, which never comes.
const NEVER: u64 = u64::MAX;

/// The time of a parked message whose listener continues in a thread that is over budget.
const SETTLES: u64 = NEVER - 1;

/// The time of a parked message that waits until the listener's present work is done.
const OTHER: u64 = NEVER - 2;

/// Takes the `Park`s out of the emissions that a handler returned. Returns what is left, and the
/// last `Park`.
pub(crate) fn split(mut ready: Vec<Ready>) -> (Vec<Ready>, Option<Park>) {
    let is_park = |it: &mut Ready| matches!(it.target, Target::Park(_));
    let last = ready.extract_if(.., is_park).last();
    let park = last.and_then(|it| match it.target {
        Target::Park(park) => Some(*park),
        _ => None,
    });
    (ready, park)
}

impl Running {
    /// Returns the messages that the handler is working on.
    pub(crate) fn hand(&self) -> impl Iterator<Item = &Delivery> {
        std::iter::once(&self.first).chain(&self.more)
    }

    /// Returns the pushes of the handler's messages, without that of the first message.
    pub(crate) fn taken(&self) -> Vec<u64> {
        self.more.iter().map(|it| it.root).collect()
    }

    /// Returns the push that the first parked message belongs to. The listener's next message to
    /// itself belongs to this push, too.
    pub(crate) fn next_root(&self, park: Option<&Park>) -> Option<u64> {
        let first = park?.first()?;
        self.hand().find(|it| it.entry.seq() == first).map(|it| it.root)
    }
}

impl Thread {
    /// Ends a handling: consumes its finished messages, parks the others, and starts the next
    /// handler. Without a `park` the handler failed or its time was up. In that case messages that
    /// were parked before stay parked, and a listener with `parks` also parks the messages that the
    /// handler took from the queue.
    pub(crate) fn consume(
        &mut self,
        done: Running,
        listener: usize,
        park: Option<Park>,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let registered = &world.routes.listeners[listener];
        if done.emitted == 0 && !registered.parks {
            self.join_silent(done.root, listener);
        }
        let next_root = done.next_root(park.as_ref());
        let goes_on = park.as_ref().is_some_and(Park::goes_on);
        let until_us = |seq| match &park {
            Some(park) if !park.works_on(seq) => OTHER,
            _ if goes_on => SETTLES,
            _ => NEVER,
        };
        let mut parked = Vec::new();
        for (at, mut delivery) in std::iter::once(done.first).chain(done.more).enumerate() {
            let seq = delivery.entry.seq();
            // Without a `park`, the handling's first message is finished.
            let is_left = delivery.parked.is_some() || registered.parks && at > 0;
            if park.as_ref().map_or(is_left, |park| park.keeps(seq)) {
                let until_us = match delivery.parked {
                    Some(before) if park.is_none() => before,
                    _ => until_us(seq),
                };
                if delivery.parked.replace(until_us) != Some(until_us) {
                    out.batch.marks.push(Mark::Waits {
                        entry: self.entry(seq),
                        listener: registered.name.clone(),
                        until_us,
                    });
                }
                parked.push(delivery);
                continue;
            }
            out.batch.marks.push(Mark::Consumed {
                entry: self.entry(seq),
                listener: registered.name.clone(),
                attempt: delivery.attempt,
            });
            debug_assert!(self.unconsumed > 0, "{}/{seq} is consumed twice", self.id);
            self.unconsumed -= 1;
            self.note_done(seq, listener, world, out);
            self.let_go(delivery.root, world, out);
        }
        self.parked += parked.len();
        if let Some(lane) = self.deliveries.get_mut(&listener) {
            lane.running -= 1;
            // Messages that `park_again` parked while the handler ran stay parked.
            lane.parked.all.extend(parked);
            if let Some(park) = park {
                (lane.parked.root, lane.parked.settles) = (next_root, goes_on);
                lane.parked.quiet = park.hears_quiet();
                lane.parked.park = Some(park);
            }
            if lane.is_empty() {
                self.deliveries.remove(&listener);
            } else {
                self.start(listener, world, out);
            }
        }
        while self.unconsumed < world.limits.unconsumed_max {
            let Some(push) = self.held.pop_front() else { return };
            self.accept(*push, world, out);
        }
    }

    /// Parks a message again that was parked before the pump stopped, without starting a handler.
    pub(crate) fn park_again(&mut self, receiver: Receiver, until_us: u64, delivery: Delivery) {
        self.unconsumed += 1;
        self.parked += 1;
        self.hold(delivery.root);
        let root = delivery.root;
        let lane = self.deliveries.entry(receiver.listener).or_default();
        lane.parked.all.push(Delivery { parked: Some(until_us), ..delivery });
        lane.parked.settles |= until_us == SETTLES;
        // The listener's emissions for its work belong to the push of the work's oldest message.
        if until_us != OTHER {
            lane.parked.root.get_or_insert(root);
        }
        lane.parked.quiet = true;
    }

    /// Returns whether a listener has unfinished work in the thread.
    pub(crate) fn has_unfinished(&self, listener: usize) -> bool {
        self.deliveries.contains_key(&listener)
    }

    /// Sends `nothing-under-way` to each listener that has parked messages and wants this payload,
    /// if nothing that its messages caused is left to do in the thread. After that, the listener
    /// gets the payload again only once it has had another message, or its messages were loaded
    /// from the log.
    pub(crate) fn tell_quiet(&mut self, world: &World<'_>, out: &mut Step) {
        let is_busy = self.unconsumed > self.parked || !self.children.is_empty();
        if self.parked == 0 || is_busy || self.state != State::Open {
            return;
        }
        let timed = self.later.values();
        let timed = timed.filter(|it| !it.entry.flags().contains(Flags::WATCHES));
        let roots: BTreeSet<u64> = timed.clone().map(|it| it.root).collect();
        let is_quiet = |parked: &Parked| {
            // A delivery in `timed` delays `nothing-under-way` if it belongs to the same push as
            // any message that the listener works on.
            let work = parked.all.iter().filter(|it| it.parked != Some(OTHER));
            let mut own = work.map(|it| it.root).chain(parked.root);
            let mut besides = timed.clone().filter(|it| it.root == Later::FOR_NONE);
            let counts =
                |later: &Later| parked.park.as_ref().is_some_and(|it| it.counts(&later.entry));
            parked.quiet
                && !parked.is_told
                && !parked.all.is_empty()
                && !own.any(|it| roots.contains(&it))
                && !besides.any(counts)
        };
        let quiet = self.deliveries.iter().filter(|(_, it)| is_quiet(&it.parked));
        let mut quiet: Vec<usize> = quiet.map(|(listener, _)| *listener).collect();
        quiet.sort_unstable();
        for listener in quiet {
            self.tell_of_quiet(listener, world, out);
        }
    }

    fn tell_of_quiet(&mut self, listener: usize, world: &World<'_>, out: &mut Step) {
        let Some(lane) = self.deliveries.get(&listener) else { return };
        let root = lane.parked.root.unwrap_or(0);
        let cause = lane.parked.all.first().map(|it| it.entry.id().clone());
        let receiver = world.routes.reply(listener, &NothingUnderWay::NAME);
        let receivers: Vec<Receiver> = receiver.into_iter().collect();
        if receivers.is_empty() {
            return;
        }
        let Some(checked) = word(&NothingUnderWay {}) else { return };
        let sending = Sending {
            from: world.core,
            to: Some(world.routes.listeners[listener].name.clone()),
            checked,
            // The entry is a reply to a parked message, so it goes to the handler of replies even
            // if the listener has a route for this payload.
            reply_to: cause.clone(),
            cause,
            flags: Flags::NONE,
            receivers: &receivers,
            client_id: None,
            meta: None,
            root,
            chain: Chain::default(),
            until: None,
        };
        self.append(sending, world, out);
        if let Some(lane) = self.deliveries.get_mut(&listener) {
            lane.parked.is_told = true;
        }
        self.start_all_of(&receivers, world, out);
    }
}
