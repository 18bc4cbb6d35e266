//! The engine's side of handler arguments: sends emissions, shows live payloads, and reads history
//! for handlers.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use tokio::sync::oneshot;

use crate::engine::common::inbox::Mail;
use crate::engine::common::live_queue::Showing;
use crate::engine::common::shared::Shared;
use crate::engine::read_fault::unread;
use crate::engine::tree::event::{Event, Key, ORGANISM, Words};
use crate::engine::worker::handoff;
use crate::engine::worker::hide_secrets::without_secrets;
use crate::engine::worker::history::{asked, cause, history, sent_for};
use crate::engine::worker::outcome::check;
use crate::engine::worker::tree_history;
use crate::id::ThreadId;
use crate::limits::Limits;
use crate::listener;
use crate::listener::{Boxed, Capabilities, Emit, Entry, HandlerCall, OtherThreads};
use crate::name::Name;
use crate::wire::{Checked, Code, Fault};
use crate::xml::Element;

/// The `Host` of running handlers, which serves their arguments.
pub(crate) struct EngineHost(pub(crate) Arc<Shared>);

impl listener::Host for EngineHost {
    fn commit(&self, call: &Arc<HandlerCall>, emit: Emit) -> Boxed<'static, ()> {
        let (done, kept) = oneshot::channel();
        let message = call.message.id();
        let thread = message.thread.clone();
        let key = Key { thread: thread.clone(), seq: message.seq, listener: call.index };
        let ready = check(&self.0.routes, self.0.limits.inside, emit);
        let event = Event::Sent(key, ready, done);
        handoff::post(&self.0, &thread.clone(), Mail::Event(thread, event));
        let (shared, mut kept) = (self.0.clone(), kept);
        Box::pin(poll_fn(move |context| {
            let kept = kept.poll_unpin(context);
            if kept.is_pending() {
                handoff::waits(&shared, context);
            }
            let late = || Fault::new(Code::Late, "the pump has stopped");
            kept.map(|it| it.unwrap_or_else(|_| Err(late())))
        }))
    }

    fn record_in_organism(
        &self,
        call: &HandlerCall,
        name: Name,
        payload: Element,
    ) -> Boxed<'static, ()> {
        let (done, kept) = oneshot::channel();
        let thread = ThreadId::new(ORGANISM);
        let words = Words {
            all: vec![Checked::typed(name, without_secrets(&self.0.routes.secrets, payload))],
            cause: Some(call.message.id().clone()),
            done: Some(done),
        };
        self.0.workers.post(&thread, Mail::Note(thread.clone(), words));
        let late = || Fault::new(Code::Late, "the pump has stopped");
        Box::pin(async move { kept.await.unwrap_or_else(|_| Err(late())) })
    }

    fn read_organism<'a>(
        &'a self,
        call: &'a HandlerCall,
        after: u64,
        limit: usize,
    ) -> Boxed<'a, Vec<Entry>> {
        Box::pin(tree_history::organism(&*self.0.log, call, after, limit))
    }

    fn ahead_us(&self) -> i64 {
        self.0.workers.ahead_us.load(Ordering::Relaxed)
    }

    fn live_us(&self) -> Option<u64> {
        Some(self.0.runtime.now_us())
    }

    fn live(&self, call: &HandlerCall, element: Element) {
        if self.0.clients.followers.are_there() {
            let (from, cause) = (call.listener.clone(), call.message.id().clone());
            let payload = without_secrets(&self.0.routes.secrets, element);
            self.0.clients.followers.live(Showing { from, cause, payload });
        }
    }

    fn read<'a>(
        &'a self,
        call: &'a HandlerCall,
        after: u64,
        limit: usize,
    ) -> Boxed<'a, Vec<Entry>> {
        Box::pin(history(&*self.0.log, call, after, limit))
    }

    fn tree<'a>(&'a self, call: &'a HandlerCall) -> Boxed<'a, Vec<ThreadId>> {
        Box::pin(tree_history::tree(&*self.0.log, call))
    }

    fn others<'a>(
        &'a self,
        call: &'a HandlerCall,
        after: Option<&'a ThreadId>,
    ) -> Boxed<'a, OtherThreads> {
        Box::pin(tree_history::others(&*self.0.log, call, after))
    }

    fn read_thread<'a>(
        &'a self,
        call: &'a HandlerCall,
        thread: &'a ThreadId,
        after: u64,
        limit: usize,
    ) -> Boxed<'a, Vec<Entry>> {
        Box::pin(tree_history::read(&*self.0.log, call, thread, after, limit))
    }

    fn cause<'a>(&'a self, call: &'a HandlerCall) -> Boxed<'a, Option<Entry>> {
        Box::pin(cause(&*self.0.log, call))
    }

    fn asked<'a>(&'a self, call: &'a HandlerCall) -> Boxed<'a, Option<Entry>> {
        Box::pin(asked(&*self.0.log, call))
    }

    fn sent<'a>(&'a self, call: &'a HandlerCall) -> Boxed<'a, Vec<Entry>> {
        let of = |it: &Entry| it.from() == call.listener();
        Box::pin(async move {
            let sent = sent_for(&self.0, &call.message).await.map_err(|it| unread(&it))?;
            Ok(sent.into_iter().filter(of).collect())
        })
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0.routes.capabilities
    }

    fn limits(&self) -> &Limits {
        &self.0.limits
    }
}
