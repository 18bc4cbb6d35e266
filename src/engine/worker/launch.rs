//! Calls handlers, and takes their outcomes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::engine::common::counts::Outcome;
use crate::engine::common::inbox::Mail;
use crate::engine::common::shared::Shared;
use crate::engine::runtime_port::Port;
use crate::engine::tree::event::{Event, Key, Ready, Start};
use crate::engine::worker::driver::{Task, TaskStage, Worker};
use crate::engine::worker::handoff;
use crate::engine::worker::outcome::{Ended, outcome_of};
use crate::engine::worker::tree_slot::TreeSlot;
use crate::listener::{Awake, Boxed, Emit, HandlerCall, Run};
use crate::wire::Fault;

impl<P: Port> Worker<P> {
    /// Calls a handler. An inline handler is polled at once. Any other handler becomes a task.
    pub(crate) fn launch(&mut self, start: Start, folds: Vec<Awake>, is_kept: bool) {
        let registered = &self.shared.routes.listeners[start.receiver.listener];
        let listener = start.receiver.listener;
        let key = Key { thread: start.entry.thread().clone(), seq: start.entry.seq(), listener };
        if let Some(fault) = self.refuses_as_stuck(listener) {
            self.shared.counts.handled(listener, Outcome::Failed);
            self.leave(listener);
            let event = Event::Return(key.clone(), vec![Ready::fault(fault)]);
            return self.give(&key.thread, event);
        }
        let call = Arc::new(HandlerCall {
            message: start.entry,
            listener: registered.name.clone(),
            index: listener,
            attempt: start.attempt,
            queue: start.queue,
            as_of: start.as_of,
            grants: registered.grants.clone(),
            peers: registered.peers.clone(),
            cancel: start.cancel.clone(),
            arrivals: start.arrivals,
            stop_charge: start.stop_charge,
            is_kept,
            folds,
            asked: OnceLock::new(),
            key: self.shared.log.identity().key,
            sent: AtomicU32::new(0),
            host: self.host.clone(),
        });
        let run = self.shared.routes.handler(start.receiver).run.clone();
        let (name, message) = (&*registered.name, call.message.id());
        let span = tracing::debug_span!("handler", listener = name, %message);
        if !registered.traits.inline {
            let blocking = registered.traits.blocking;
            let future = async move { run(call).await };
            let future = future.instrument(span);
            return self.spawn(key, future, start.cancel.unwrap_or_default(), blocking);
        }
        match span.in_scope(|| poll_once(&self.shared, &run, &call)) {
            Ok(ended) => {
                let ready = ready(&self.shared, listener, ended);
                let tree = key.thread.clone();
                let event = Event::Return(key, ready);
                // Emissions that the handler sent before it returned are in the inbox, and must be
                // handled before the return.
                if call.sent.load(Ordering::Relaxed) == 0 {
                    self.give(&tree, event);
                } else {
                    self.shared.workers.inboxes[self.number].post(Mail::Event(tree, event));
                }
            }
            Err(future) => {
                let cancel = CancellationToken::new();
                if let Some(TreeSlot::Awake(slot)) = self.trees.get_mut(key.thread.tree_str())
                    && let Some(thread) = slot.tree.thread(&key.thread)
                {
                    thread.cancel_by(&key, cancel.clone());
                }
                self.spawn(key, future.instrument(span), cancel, false);
            }
        }
    }

    fn spawn(
        &mut self,
        key: Key,
        future: impl Future<Output = Result<Emit, Fault>> + Send + 'static,
        cancel: CancellationToken,
        blocking: bool,
    ) {
        let limit_us = self.shared.routes.listeners[key.listener].timeout_us;
        let deadline_us = self.port.now_us().saturating_add(limit_us);
        let task = Task { deadline_us, stage: TaskStage::InTime };
        self.tasks.insert(key.clone(), task);
        self.soonest_us = self.soonest_us.min(deadline_us);
        let (shared, worker, listener) = (self.shared.clone(), self.number, key.listener);
        let task = async move {
            let handler = AssertUnwindSafe(future).catch_unwind();
            // A handler that was told to stop before its first poll doesn't begin. A running
            // handler that is told to stop is polled once more, and then dropped.
            let ended = if cancel.is_cancelled() {
                None
            } else {
                match select(Box::pin(handler), Box::pin(cancel.cancelled())).await {
                    Either::Left((ended, _)) => Some(ready(&shared, listener, ended)),
                    Either::Right(_) => {
                        shared.counts.handled(listener, Outcome::Stopped);
                        None
                    }
                }
            };
            shared.workers.inboxes[worker].post(Mail::Ended(key, ended));
        };
        if blocking {
            self.port.spawn_blocking(task);
        } else {
            let shared = self.shared.clone();
            self.port.spawn(async move { handoff::yielding(&shared, task).await });
        }
    }
}

/// Polls a handler once. Most inline handlers are done after one poll. If this handler isn't, the
/// call returns its future, which continues as a task.
fn poll_once(
    shared: &Shared,
    run: &Run,
    call: &Arc<HandlerCall>,
) -> Result<Ended, Boxed<'static, Emit>> {
    let mut context = Context::from_waker(Waker::noop());
    let polled = catch_unwind(AssertUnwindSafe(|| {
        let _polling = handoff::Polling::new(shared, context.waker());
        let mut future = run(call.clone());
        match future.as_mut().poll(&mut context) {
            Poll::Ready(emit) => Ok(emit),
            Poll::Pending => Err(future),
        }
    }));
    match polled {
        Ok(Ok(emit)) => Ok(Ok(emit)),
        Ok(Err(future)) => Err(future),
        Err(panic) => Ok(Err(panic)),
    }
}

/// Counts how a handler ended, and checks its emissions.
fn ready(shared: &Shared, listener: usize, ended: Ended) -> Vec<Ready> {
    let outcome = match &ended {
        Ok(Ok(_)) => Outcome::Returned,
        Ok(Err(_)) => Outcome::Failed,
        Err(_) => Outcome::Panicked,
    };
    shared.counts.handled(listener, outcome);
    outcome_of(&shared.routes, shared.limits.inside, listener, ended)
}
