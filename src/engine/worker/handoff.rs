//! What a handler sends is passed on once it yields: a worker that it woke earlier would wait for
//! the handler's own thread, and another thread would have to be woken to come to its help.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::ptr;
use std::task::{Context, Waker};

use crate::engine::common::inbox::Mail;
use crate::engine::common::shared::Shared;
use crate::id::ThreadId;

thread_local! {
    /// The handler that is polled on this thread.
    static POLLED: Cell<Option<Polled>> = const { Cell::new(None) };
}

/// Whose handler is being polled, what its yield gives the thread back to, and which of the pump's
/// workers have mail of it, a bit for each.
#[derive(Clone, Copy)]
struct Polled {
    pump: *const Shared,
    task: *const (),
    workers: u64,
}

/// While it is there, what is sent on this thread wakes nobody; at its end they are woken.
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

/// The handler of this pump that is being polled here.
fn polled(shared: &Shared) -> Option<Polled> {
    POLLED.get().filter(|it| ptr::eq(it.pump, shared))
}

/// A handler, and at each of its yields what it sent.
pub(crate) async fn yielding<T>(shared: &Shared, handler: impl Future<Output = T>) -> T {
    let mut handler = pin!(handler);
    poll_fn(|context| {
        let _polling = Polling::new(shared, context.waker());
        handler.as_mut().poll(context)
    })
    .await
}

/// Posts what a handler sends. Whoever sends beside its handler may never yield, and what it woke
/// last would wait for that: it runs elsewhere.
pub(crate) fn post(shared: &Shared, thread: &ThreadId, mail: Mail) {
    let worker = shared.workers.owner(thread);
    if let Some(it) = polled(shared) {
        shared.workers.inboxes[worker].put(mail);
        POLLED.set(Some(Polled { workers: it.workers | 1 << worker, ..it }));
    } else {
        shared.workers.inboxes[worker].post(mail);
        shared.runtime.pass_on();
    }
}

/// Passes on what a handler sent, where it waits for that without a yield: whatever it blocks on
/// polls with a waker of its own.
pub(crate) fn waits(shared: &Shared, context: &Context<'_>) {
    if let Some(it) = polled(shared).filter(|it| it.task != context.waker().data()) {
        POLLED.set(Some(Polled { workers: 0, ..it }));
        remind(shared, it.workers);
        shared.runtime.pass_on();
    }
}
