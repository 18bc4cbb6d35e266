//! One of a router's models, with its health: whether it may be asked, and how often it failed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock;
use crate::limits::RouterLimits;
use crate::model::error::{Error, Kind};
use crate::model::interface::{Boxed, Model, Reply};
use crate::model::load::Asking;
use crate::model::piece::{Answering, Piece};
use crate::model::prompt::Prompt;
use crate::model::retry_pause;

/// One of a router's models.
#[derive(Debug)]
pub(super) struct Backend {
    pub(super) name: String,
    pub(super) model: Arc<dyn Model>,
    health: Mutex<Health>,
}

/// The health of a model.
#[derive(Debug, Default)]
struct Health {
    under_way: usize,
    /// Failures since the model's last complete reply. Failures that may be retried after a wait
    /// that the server asked for don't count. Nor do prompts that were too long.
    failures: usize,
    /// The end of the pause after the model's latest failure. Until then, models without such a
    /// pause are asked first.
    failing_until_us: u64,
    /// The end of the wait that the model asked for. Until then, the model isn't asked.
    out_until_us: u64,
    answered: u64,
    failed: u64,
    failed_over: u64,
}

impl Backend {
    pub(super) fn new(name: String, model: Arc<dyn Model>) -> Backend {
        Backend { name, model, health: Mutex::default() }
    }

    /// Locks `health`. Poisoning is ignored, because no code that holds the lock panics halfway.
    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the model once. An error gets the model's name.
    pub(super) async fn ask(&self, prompt: Prompt) -> Result<Box<dyn Reply>, Error> {
        let _under_way = UnderWay::on(self);
        let asked = self.model.turn_once(prompt).await;
        asked.map_err(|error| Error { model: Some(self.name.as_str().into()), ..error })
    }

    /// Records a failure, and the time for which the model is then asked last, or not at all.
    pub(super) fn fails(&self, error: &Error, limits: &RouterLimits) {
        let now_us = clock::now_us();
        let mut health = self.health();
        health.failed += 1;
        // A prompt that is too long says nothing about the model's health.
        if error.kind == Kind::PromptTooLong {
            return;
        }
        let until = |time: Duration| now_us.saturating_add(micros(time));
        if let Some(rest) = error.retry_after.filter(|_| error.retry) {
            health.out_until_us = until(rest);
            return;
        }
        let pause =
            retry_pause::pause(health.failures, limits.retry_time_min, limits.retry_time_max);
        health.failing_until_us = until(pause);
        health.failures += 1;
    }

    /// Records that a reply has come to its end.
    fn is_well(&self) {
        let mut health = self.health();
        (health.failures, health.failing_until_us) = (0, 0);
    }

    /// Records that another model answered a turn in which this one had failed.
    pub(super) fn fails_over(&self) {
        self.health().failed_over += 1;
    }

    /// Whether the wait that the model asked for still lasts.
    pub(super) fn is_out(&self, now_us: u64) -> bool {
        self.health().out_until_us > now_us
    }

    /// The rest of the wait that the model asked for, in microseconds. None if the model may be
    /// asked.
    pub(super) fn rest_us(&self, now_us: u64) -> Option<u64> {
        self.health().out_until_us.checked_sub(now_us).filter(|rest| *rest > 0)
    }

    /// Whether the pause after the model's latest failure still lasts.
    pub(super) fn is_failing(&self, now_us: u64) -> bool {
        self.health().failing_until_us > now_us
    }

    pub(super) fn under_way(&self) -> usize {
        self.health().under_way
    }

    pub(super) fn asking(&self) -> Asking {
        let Health { answered, failed, failed_over, .. } = *self.health();
        Asking { name: self.name.clone(), answered, failed, failed_over }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Counts a request or a reply of a model as under way until this guard is dropped.
#[derive(Debug)]
struct UnderWay<T: std::borrow::Borrow<Backend>>(T);

impl<T: std::borrow::Borrow<Backend>> UnderWay<T> {
    fn on(backend: T) -> UnderWay<T> {
        backend.borrow().health().under_way += 1;
        UnderWay(backend)
    }
}

impl<T: std::borrow::Borrow<Backend>> Drop for UnderWay<T> {
    fn drop(&mut self) {
        self.0.borrow().health().under_way -= 1;
    }
}

/// A reply of one of a router's models.
#[derive(Debug)]
pub(super) struct Routed {
    /// The pieces before those of `reply`: the failed attempts, and the model that answers.
    first: VecDeque<Piece>,
    reply: Box<dyn Reply>,
    backend: UnderWay<Arc<Backend>>,
    limits: RouterLimits,
}

impl Routed {
    pub(super) fn new(
        reply: Box<dyn Reply>,
        backend: Arc<Backend>,
        tried: Vec<Error>,
        limits: RouterLimits,
    ) -> Routed {
        backend.health().answered += 1;
        let answering = Piece::Answering(Answering {
            name: backend.name.clone(),
            model: backend.model.describe(),
            price: backend.model.price(),
        });
        let first = tried.into_iter().map(Piece::Tried).chain([answering]).collect();
        Routed { first, reply, backend: UnderWay::on(backend), limits }
    }
}

impl Reply for Routed {
    fn next(&mut self) -> Boxed<'_, Option<Piece>> {
        Box::pin(async {
            if let Some(piece) = self.first.pop_front() {
                return Ok(Some(piece));
            }
            let (next, backend) = (self.reply.next().await, &self.backend.0);
            match &next {
                Ok(Some(Piece::Stop(_))) => backend.is_well(),
                Err(error) => backend.fails(error, &self.limits),
                Ok(_) => {}
            }
            next.map_err(|error| Error { model: Some(backend.name.as_str().into()), ..error })
        })
    }
}
