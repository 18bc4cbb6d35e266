//! Ends handlers whose time is up. A handler that waits somewhere is dropped there. A handler that
//! blocks its thread can't be ended: its place is free again, and it is counted until it ends by
//! itself. A listener with too many of them refuses messages, so that they don't take all threads.

use std::task::Context;

use crate::engine::common::inbox::Mail;
use crate::engine::runtime_port::Port;
use crate::engine::tree::event::{Event, Key, Ready};
use crate::engine::worker::driver::{Phase, TaskStage, Worker};
use crate::wire::{Code, Fault};

/// While a delivery waits for a time of the wall clock, that clock is read at least this often.
const LOOK_AT_CLOCK_US: u64 = 500_000;

/// How long a handler whose time is up may take to stop before it counts as stuck.
const GRACE_US: u64 = 1_000_000;

impl<P: Port> Worker<P> {
    /// Ends the handlings whose time is up, and passes the deliveries that are due to their trees.
    pub(crate) fn check_time(&mut self, context: &mut Context<'_>) -> bool {
        if self.tasks.is_empty() {
            self.soonest_us = u64::MAX;
        }
        let due = self.waits.next_us().filter(|_| self.is_open());
        let mut next = self.soonest_us.min(due.unwrap_or(u64::MAX));
        if self.is_open() && self.waits.go_by_clock() {
            next = next.min(self.now_us.saturating_add(LOOK_AT_CLOCK_US));
        }
        if next == u64::MAX {
            self.timer = None;
            return false;
        }
        if self.timer.as_ref().is_none_or(|(at, _)| *at > next) {
            self.timer = Some((next, Box::pin(self.port.sleep_until(next))));
        }
        let Some((_, timer)) = &mut self.timer else { return false };
        if timer.as_mut().poll(context).is_pending() {
            return false;
        }
        self.timer = None;
        let now = self.now_us.max(self.port.now_us());
        let (mut over, mut stuck) = (Vec::new(), Vec::new());
        for (key, task) in self.tasks.iter_mut().filter(|(_, it)| it.deadline_us <= now) {
            match task.stage {
                TaskStage::InTime => {
                    (task.stage, task.deadline_us) = (TaskStage::Late, now + GRACE_US);
                    over.push(key.clone());
                }
                TaskStage::Late | TaskStage::Stuck => {
                    (task.stage, task.deadline_us) = (TaskStage::Stuck, u64::MAX);
                    stuck.push(key.listener);
                }
            }
        }
        self.soonest_us = self.tasks.values().map(|it| it.deadline_us).min().unwrap_or(u64::MAX);
        stuck.into_iter().for_each(|it| self.free_stuck(it));
        over.sort_unstable_by(|a, b| (&a.thread, a.seq).cmp(&(&b.thread, b.seq)));
        for key in over {
            self.give(&key.thread.clone(), Event::Overtime(key));
        }
        let due = if self.is_open() { self.waits.due(now) } else { Vec::new() };
        for key in due {
            let (tree, thread) = (key.thread.tree(), key.thread.clone());
            if self.trees.contains_key(&tree) {
                self.give(&thread, Event::Due(key));
            } else {
                self.wake(tree, Mail::Event(thread, Event::Due(key)));
            }
        }
        true
    }

    /// Whether the worker handles whatever comes.
    fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Frees the place of a handler that can't be ended, and counts the handler.
    fn free_stuck(&self, listener: usize) {
        let stuck = self.shared.workers.gates[listener].count_stuck();
        let (name, most) = (&self.shared.routes.listeners[listener].name, self.most_stuck());
        tracing::error!(%name, stuck, most, "a handler blocks its thread after its time");
        self.leave(listener);
    }

    /// Returns the fault of a listener that begins no handler, because too many can't be ended.
    pub(crate) fn refuses_as_stuck(&self, listener: usize) -> Option<Fault> {
        let stuck = self.shared.workers.gates[listener].stuck();
        if stuck < self.most_stuck() {
            return None;
        }
        let name = &self.shared.routes.listeners[listener].name;
        let most = self.most_stuck();
        let text = format!(
            "{name} takes no message now: {stuck} of its handlers ran out of time and still block; \
             the limit is stuck_handlers_max, {most}"
        );
        Some(Fault::new(Code::Stuck, text))
    }

    fn most_stuck(&self) -> usize {
        self.shared.limits.stuck_handlers_max
    }

    /// Takes the outcome of a handler that ended. What a handler returns after its time is dropped.
    pub(crate) fn ended(&mut self, key: Key, ready: Option<Vec<Ready>>) {
        let Some(task) = self.tasks.remove(&key) else { return };
        let listener = key.listener;
        match task.stage {
            TaskStage::InTime => {
                if let Some(ready) = ready {
                    self.give(&key.thread.clone(), Event::Return(key, ready));
                }
                self.leave(listener);
            }
            TaskStage::Late => self.leave(listener),
            TaskStage::Stuck => self.shared.workers.gates[listener].release_stuck(),
        }
    }
}
