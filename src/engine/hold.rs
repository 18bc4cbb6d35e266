//! What a handler sends is passed on once it yields: a worker that it woke earlier would wait for
//! the handler's own thread, and another thread would have to be woken to come to its help.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::ptr;

use crate::engine::shared::{Mail, Shared};
use crate::id::ThreadId;

thread_local! {
    /// The handler that is polled on this thread.
    static POLLED: Cell<Option<Polled>> = const { Cell::new(None) };
}

/// Whose handler is being polled, and which of the pump's workers have mail of it, a bit for each.
#[derive(Clone, Copy)]
struct Polled {
    pump: *const Shared,
    workers: u64,
}

/// While it is there, what is posted on this thread wakes nobody; at its end they are woken.
struct Held<'a> {
    shared: &'a Shared,
    before: Option<Polled>,
}

impl<'a> Held<'a> {
    fn new(shared: &'a Shared) -> Held<'a> {
        let polled = Polled { pump: ptr::from_ref(shared), workers: 0 };
        Held { shared, before: POLLED.replace(Some(polled)) }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let polled = POLLED.replace(self.before);
        let workers = polled.map_or(0, |it| it.workers);
        if workers != 0 {
            let each = self.shared.inboxes.iter().enumerate();
            each.filter(|(at, _)| workers & (1 << at) != 0).for_each(|(_, it)| it.remind());
        }
    }
}

/// Does something in which a handler may send.
pub(crate) fn held<T>(shared: &Shared, what: impl FnOnce() -> T) -> T {
    let _held = Held::new(shared);
    what()
}

/// A handler, and at each of its yields what it sent.
pub(crate) async fn yielding<T>(shared: &Shared, handler: impl Future<Output = T>) -> T {
    let mut handler = pin!(handler);
    poll_fn(|context| held(shared, || handler.as_mut().poll(context))).await
}

/// Posts what a handler sends. Whoever sends beside its handler may never yield, and what it woke
/// last would wait for that: it runs elsewhere.
pub(crate) fn post(shared: &Shared, thread: &ThreadId, mail: Mail) {
    let worker = shared.worker_of(thread);
    let polled = POLLED.get().filter(|it| ptr::eq(it.pump, shared));
    match polled {
        Some(it) => {
            shared.inboxes[worker].put(mail);
            POLLED.set(Some(Polled { workers: it.workers | 1 << worker, ..it }));
        }
        None => {
            shared.inboxes[worker].post(mail);
            (shared.pass_on)();
        }
    }
}
