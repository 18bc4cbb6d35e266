//! A worker's batches. The worker steps trees into a batch, the log writes the batch, and then the
//! worker carries out the batch's effects.

use std::sync::atomic::Ordering;
use std::task::Context;

use crate::engine::common::shared::Shared;
use crate::engine::runtime_port::Port;
use crate::engine::tree::effect::{Effect, Step, Timing};
use crate::engine::tree::event::Event;
use crate::engine::worker::driver::{FreePlaces, Phase, Worker, drop_effects, world};
use crate::engine::worker::log_lanes::{Flight, Landed, Lane};
use crate::engine::worker::tree_slot::TreeSlot;
use crate::id::ThreadId;
use crate::limits::HURRY_US;
use crate::wire::{Code, Fault};

/// How many steps a batch in the priority lane may have. The lane is for light trees, which
/// `run_queue` describes. This number is enough for many of them, and small compared with a batch
/// of the lower lane.
const STEPS_AHEAD: usize = 32;

/// How many batches may be in the priority lane at once.
const BATCHES_AHEAD: usize = 2;

/// The smallest quota of steps per turn, however many other trees wait. After a tree's first step
/// its data is in the processor's cache. With a smaller quota, the data would be loaded more often.
const STEPS_IN_TURN_MIN: usize = 16;

/// The smallest quota while the priority lane is in use. Two steps are a push and its follow-up.
const STEPS_IN_TURN_HURRIED: usize = 2;

impl<P: Port> Worker<P> {
    /// Steps trees, a few events each, and sends the batches to the log. If the lower lane has
    /// batches on their way, light trees are stepped into a batch of the priority lane. Then the
    /// next trees of the run queue are stepped into a batch of the lower lane. Returns whether a
    /// batch was made.
    pub(crate) fn turn(&mut self) -> bool {
        if self.phase == Phase::Waiting {
            return false;
        }
        let shared = self.shared.clone();
        let went = self.turn_ahead(&shared) | self.turn_behind(&shared);
        if went {
            self.forget();
            let awake = self.trees.len() as u64;
            shared.workers.awake[self.number].store(awake, Ordering::Relaxed);
        }
        went
    }

    /// Sends a batch of light trees in the priority lane, if the lower lane has a batch to
    /// overtake.
    fn turn_ahead(&mut self, shared: &Shared) -> bool {
        let alone = self.lanes.len(Lane::Behind) == 0;
        if alone || self.dead.is_some() || self.lanes.len(Lane::Ahead) >= BATCHES_AHEAD {
            return false;
        }
        let mut step = Step::with_room(self.room);
        let mut steps = 0;
        while steps < STEPS_AHEAD {
            let Some(id) = self.run_queue.next_light() else { break };
            match self.trees.get(&id) {
                Some(TreeSlot::Awake(slot)) if self.lanes.is_behind(slot.last_batches) => {
                    self.run_queue.add(id, false);
                }
                _ => steps += self.step(id, STEPS_AHEAD - steps, Lane::Ahead, shared, &mut step),
            }
        }
        self.room = step.room();
        if steps > 0 {
            shared
                .workers
                .hurry_until_us
                .store(self.now_us.saturating_add(HURRY_US), Ordering::Relaxed);
            self.send(Lane::Ahead, step, steps);
        }
        steps > 0
    }

    /// Sends a batch of the next trees in the lower lane, as far as the flow-control window has
    /// room.
    fn turn_behind(&mut self, shared: &Shared) -> bool {
        let limits = &shared.limits;
        let until_us = shared.workers.hurry_until_us.load(Ordering::Relaxed);
        // Another worker may have read the clock a little later than this one. Then `until_us` is
        // more than `HURRY_US` ahead, and doesn't count yet.
        let is_hurried = (1..=HURRY_US).contains(&until_us.saturating_sub(self.now_us));
        let most = if is_hurried { self.window.hurried_room() } else { usize::MAX };
        let room = self.window.room().min(limits.steps_in_batch_max).min(most);
        let full = room == 0 || self.lanes.len(Lane::Behind) >= limits.batches_in_flight_max;
        let dying = self.dead.is_some() && !self.lanes.is_empty();
        if full || dying || self.run_queue.is_empty() {
            return false;
        }
        let mut step = Step::with_room(self.room);
        // The more trees have something to do, the fewer steps each takes in its turn.
        let least = if is_hurried { STEPS_IN_TURN_HURRIED } else { STEPS_IN_TURN_MIN };
        let each = (room / self.run_queue.len()).max(least).min(limits.steps_in_turn_max);
        let mut steps = 0;
        while steps < room {
            let Some(id) = self.run_queue.next() else { break };
            steps += self.step(id, each.min(room - steps), Lane::Behind, shared, &mut step);
        }
        self.room = step.room();
        self.send(Lane::Behind, step, steps);
        true
    }

    /// Steps a tree for its turn. Returns how many events the tree handled.
    fn step(
        &mut self,
        id: ThreadId,
        most: usize,
        lane: Lane,
        shared: &Shared,
        step: &mut Step,
    ) -> usize {
        let (mut steps, mut most) = (0, most);
        while steps < most
            && let Some(TreeSlot::Awake(slot)) = self.trees.get_mut(&id)
            && let Some(event) = slot.queue.pop_front()
        {
            let (waiting, is_push) = (slot.queue.len(), matches!(event, Event::Push(..)));
            let before = step.effects.len();
            let places = FreePlaces { gates: &shared.workers.gates, promised: &self.promised };
            let world = world(shared, &places, (self.now_us, self.ahead_us));
            slot.tree.step(event, &world, step);
            steps += 1;
            self.start_early(before, shared, step);
            // A push may add events to the queue at once: returns of handlers that ran early. These
            // returns move to the front of the queue. Events that follow from the returns stay at
            // the end.
            if let Some(TreeSlot::Awake(slot)) = self.trees.get_mut(&id).filter(|_| is_push) {
                let came = slot.queue.len() - waiting;
                slot.queue.rotate_right(came);
                // The first of these returns is in the same batch as the push, even if the turn is
                // over.
                most = most.max(steps + came.min(1));
            }
        }
        let Some(TreeSlot::Awake(slot)) = self.trees.get_mut(&id) else { return steps };
        slot.usage.add(steps, self.now_us);
        self.typical_usage.add(&slot.usage);
        self.lanes.join(lane, &mut slot.last_batches);
        slot.is_ready = !slot.queue.is_empty();
        if slot.is_ready {
            self.run_queue.requeue(id);
        } else if slot.tree.is_at_rest() {
            slot.tree.trim();
            if !std::mem::replace(&mut slot.is_resting, true) {
                self.resting.push_back(id);
            }
        }
        steps
    }

    /// Runs pure inline handlers that don't read the log, before the log has their message. Such a
    /// handler does nothing but answer. Clients get the message and the answer only once the log
    /// has them.
    fn start_early(&mut self, before: usize, shared: &Shared, step: &mut Step) {
        let is_early = |it: &mut Effect| match it {
            Effect::Start(start) => shared.routes.is_early(start.receiver) && start.attempt == 1,
            _ => false,
        };
        let early: Vec<Effect> = step.effects.extract_if(before.., is_early).collect();
        for effect in early {
            let Effect::Start(start) = effect else { continue };
            if !self.is_wanted(&start) {
                self.note_unwanted(&start);
                continue;
            }
            if !shared.routes.handler(start.receiver).takes_folds {
                self.launch(*start, Vec::new(), false);
            } else if !self.has_folds(&start) {
                step.effects.push(Effect::Start(start));
            } else if let Some((start, folds)) = self.fold(start) {
                self.launch(*start, folds, false);
            }
        }
    }

    fn send(&mut self, lane: Lane, step: Step, steps: usize) {
        for (listener, count) in step.promised {
            self.promised[listener] += count;
        }
        for (listener, thread) in step.starving {
            self.shared.hold_up(listener);
            self.starving.entry(listener).or_default().push_back(thread);
            self.await_room(listener);
        }
        for timing in step.later {
            match timing {
                Timing::Until(until, key) => self.waits.add(until, key),
                Timing::Over(key) => self.waits.remove(&key),
                Timing::Asked(..) | Timing::Done(_) => {}
            }
        }
        debug_assert!(step.batch.is_in_order(), "a thread's entries go to the log in their order");
        let append = match (&self.dead, step.batch.is_empty()) {
            (None, false) => Some(match lane {
                Lane::Ahead => self.shared.log.append_ahead(step.batch),
                Lane::Behind => self.shared.log.append(step.batch),
            }),
            (None, true) if step.effects.is_empty() => return,
            (None, true) => None,
            (Some(fault), _) => return drop_effects(step.effects, fault),
        };
        if lane == Lane::Behind {
            self.window.sent(steps);
        }
        let flight = Flight { append, effects: step.effects, steps, sent_us: self.now_us };
        self.lanes.send(lane, flight);
    }

    /// Carries out the effects of every batch that has landed by now. If the log has failed, the
    /// senders of the pushes in these batches are told instead.
    pub(crate) fn land(&mut self, context: &mut Context<'_>) -> bool {
        let mut busy = false;
        while let Some(Landed { lane, number, last, flight, kept }) = self.lanes.land(context) {
            busy = true;
            if lane == Lane::Behind {
                let took_us = self.now_us.saturating_sub(flight.sent_us);
                if let Ok(Some(receipt)) = &kept {
                    self.window.note_commit(receipt.shared_us);
                }
                self.window.landed(number, flight.steps, took_us, last);
            }
            match kept {
                Ok(receipt) => self.happen(receipt, flight.effects),
                Err(error) => {
                    let text = "the log can't be written any more";
                    let fault = Fault::new(Code::LogFailed, text);
                    tracing::error!(%error, "the log failed; nothing more is accepted");
                    drop_effects(flight.effects, &fault);
                    self.dead = Some(fault);
                }
            }
            // First the senders of pushes in batches on their way are told, then the senders of
            // pushes that still wait.
            if let (Some(fault), true) = (self.dead.clone(), self.lanes.is_empty()) {
                self.abandon(&fault);
            }
        }
        busy
    }
}
