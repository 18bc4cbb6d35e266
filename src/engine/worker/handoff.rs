//! Posts a handler's emissions to their workers, and wakes these workers only when the handler
//! yields. A worker that is woken earlier would wait until the handler frees its OS thread, or
//! another OS thread would have to be woken for the worker.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::ptr;
use std::task::{Context, Waker};

use crate::engine::common::inbox::Mail;
use crate::engine::common::shared::Shared;
use crate::id::ThreadId;

thread_local! {
    /// The handler that is being polled on this OS thread.
    static POLLED: Cell<Option<Polled>> = const { Cell::new(None) };
}

/// A handler that is being polled: its pump, the task that it runs in, and, as bits, the workers
/// that got mail from the handler.
#[derive(Clone, Copy)]
struct Polled {
    pump: *const Shared,
    task: *const (),
    workers: u64,
}

/// While this value exists, emissions on this OS thread wake no worker. Dropping the value wakes
/// the workers that got mail.
pub(crate) struct Polling<'a> {
    shared: &'a Shared,
    before: Option<Polled>,
}

impl<'a> Polling<'a> {
    pub(crate) fn new(shared: &'a Shared, waker: &Waker) -> Polling<'a> {
        let polled = Polled { pump: ptr::from_ref(shared), task: waker.data(), workers: 0 };
        Polling { shared, before: POLLED.replace(Some(polled)) }
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        remind(self.shared, POLLED.replace(self.before).map_or(0, |it| it.workers));
    }
}

fn remind(shared: &Shared, workers: u64) {
    let each = shared.workers.inboxes.iter().enumerate();
    each.filter(|(at, _)| workers & (1 << at) != 0).for_each(|(_, it)| it.remind());
}

/// Returns the handler that is being polled on this OS thread, if it is one of this pump.
fn polled(shared: &Shared) -> Option<Polled> {
    POLLED.get().filter(|it| ptr::eq(it.pump, shared))
}

/// Runs a handler, and wakes the workers that got its emissions each time it yields.
pub(crate) async fn yielding<T>(shared: &Shared, handler: impl Future<Output = T>) -> T {
    let mut handler = pin!(handler);
    poll_fn(|context| {
        let _polling = Polling::new(shared, context.waker());
        handler.as_mut().poll(context)
    })
    .await
}

/// Posts an emission to the worker of its thread. If no handler is being polled here, the caller is
/// a blocking handler or a task that a handler has spawned. Such a task may never yield, and a
/// worker that the task wakes would have to wait for it. So the worker is moved to another OS
/// thread.
pub(crate) fn post(shared: &Shared, thread: &ThreadId, mail: Mail) {
    let worker = shared.workers.owner(thread);
    if let Some(polled) = polled(shared) {
        shared.workers.inboxes[worker].put(mail);
        POLLED.set(Some(Polled { workers: polled.workers | 1 << worker, ..polled }));
    } else {
        shared.workers.inboxes[worker].post(mail);
        shared.runtime.pass_on();
    }
}

/// Wakes the workers that got a handler's emissions, if the waker in `context` isn't that of the
/// handler's task. Such a handler may block on an executor of its own, and never yield.
pub(crate) fn waits(shared: &Shared, context: &Context<'_>) {
    if let Some(polled) = polled(shared).filter(|it| it.task != context.waker().data()) {
        POLLED.set(Some(Polled { workers: 0, ..polled }));
        remind(shared, polled.workers);
        shared.runtime.pass_on();
    }
}
