//! Listeners that are stopped in a thread, since one of their folds panicked. A stopped listener
//! keeps its messages, and starts no handler. It is tried again at the next start of the pump, or
//! when a listener that steers threads asks for that.

use rustc_hash::FxHashSet;

use crate::engine::tree::effect::{Step, World};
use crate::engine::tree::event::{FoldPanic, Key};
use crate::engine::tree::request::{RetryRequest, TreeRequest};
use crate::engine::tree::sending::{Part, word};
use crate::engine::tree::step::Tree;
use crate::engine::tree::thread::Thread;
use crate::id::ThreadId;
use crate::log::{Flags, Mark};
use crate::wire::core::{ListenerStopped, ListenersRetried, RetryListeners};
use crate::wire::{Checked, Fault, Payload as _};

impl Thread {
    /// Takes back the start of a handler, since a fold of its listener panicked, and stops the
    /// listener in this thread. The handler's messages wait again. The first such panic is
    /// recorded and traced; several handlers may have been about to start.
    pub(crate) fn stop_listener(
        &mut self,
        key: &Key,
        panic: &FoldPanic,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let Some(running) = self.running.remove(&(key.seq, key.listener)) else { return };
        let Some(lane) = self.deliveries.get_mut(&key.listener) else { return };
        let name = &world.routes.listeners[key.listener].name;
        lane.running -= 1;
        let was_stopped = std::mem::replace(&mut lane.stopped, true);
        let message = running.first.entry.id().clone();
        for delivery in std::iter::once(running.first).chain(running.more) {
            if delivery.parked.is_some() {
                self.parked += 1;
                lane.parked.all.push(delivery);
                continue;
            }
            let (entry, listener) = (delivery.entry.id().clone(), name.clone());
            out.batch.marks.push(Mark::Stopped { entry, listener });
            lane.waiting.push_back(delivery);
        }
        lane.waiting.make_contiguous().sort_by_key(|it| it.entry.seq());
        if was_stopped {
            return;
        }
        let FoldPanic { entry, text } = panic;
        tracing::warn!(
            listener = %name,
            thread = %self.id,
            %entry,
            panic = text,
            "a fold panicked, so the listener is stopped in this thread; it is tried again at the \
             next start, or by `pumphouse retry`"
        );
        let what = ListenerStopped {
            listener: name.to_string(),
            entry: entry.to_string(),
            reason: text.clone(),
        };
        self.record(&what, Flags::ERROR, Some(message), world, out);
    }

    /// Lets the stopped listeners of this thread start handlers again. Returns their names.
    fn retry_listeners(&mut self, world: &World<'_>, out: &mut Step) -> Vec<String> {
        let stopped = self.deliveries.iter_mut().filter(|(_, lane)| lane.stopped);
        let mut listeners: Vec<usize> = stopped
            .map(|(listener, lane)| {
                lane.stopped = false;
                *listener
            })
            .collect();
        listeners.sort_unstable();
        for listener in &listeners {
            self.start(*listener, world, out);
        }
        listeners.iter().map(|it| world.routes.listeners[*it].name.to_string()).collect()
    }

    /// Asks the tree to try stopped listeners again.
    pub(super) fn ask_for_retry(&mut self, part: &Part, checked: &Checked, out: &mut Step) {
        let Ok(retry) = RetryListeners::decode(checked.element()) else { return };
        self.hold(part.root);
        let thread = retry.thread.map_or_else(|| self.id.clone(), |it| ThreadId::new(&it));
        let request = RetryRequest { part: part.clone(), thread };
        out.requests.push_back(TreeRequest::Retry(Box::new(request)));
    }
}

impl Tree {
    /// Tries the stopped listeners of a thread and of all threads below it again, and answers with
    /// their names. The thread must be the one of the request, or below it.
    pub(super) fn retry(&mut self, request: &RetryRequest, world: &World<'_>, out: &mut Step) {
        let RetryRequest { part, thread } = request;
        let own = part.message.thread().clone();
        let within: FxHashSet<ThreadId> = self.branch([&own]).into_iter().collect();
        let is_there = within.contains(thread) && self.threads.contains_key(thread);
        let mut listener = Vec::new();
        for id in self.branch([thread]).into_iter().filter(|_| is_there) {
            if let Some(thread) = self.threads.get_mut(&id) {
                listener.extend(thread.retry_listeners(world, out));
            }
        }
        let Some(at) = self.threads.get_mut(&own) else { return };
        if !is_there {
            let fault = Fault::unknown_thread(thread.as_str());
            return at.complain(part, &fault, world, out);
        }
        let by = part.message.sender().to_string();
        let retried = ListenersRetried { thread: thread.to_string(), by, listener };
        if let Some(checked) = word(&retried) {
            at.reply_to_message(part, checked, world, out);
        }
    }
}
