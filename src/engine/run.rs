//! Running a handler: its call, its task, its end, and the road its arguments walk.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::engine::follow::Showing;
use crate::engine::held::Slot;
use crate::engine::metrics::Outcome;
use crate::engine::port::Port;
use crate::engine::route::Routes;
use crate::engine::shared::{Mail, Shared};
use crate::engine::tree::{CORE_NAME, Event, Key, Ready, Start};
use crate::engine::unread::unread;
use crate::engine::worker::{Task, Worker};
use crate::engine::yields;
use crate::id::{EntryId, ThreadId};
use crate::limits::{Limits, XmlLimits};
use crate::listener::{self, Awake, Boxed, Call, Capabilities, Emit, Entry, Run, Target, key_meta};
use crate::log::{self, Log};
use crate::name::Name;
use crate::wire::core::{ThreadResult, ThreadSpawned};
use crate::wire::{Checked, Code, Fault, Payload};
use crate::xml::Element;

/// How many entries are read at a time.
const PAGE: usize = 1_024;

/// What arguments ask of the engine, answered.
pub(crate) struct Road(pub(crate) Arc<Shared>);

impl<P: Port> Worker<P> {
    /// Calls a handler: an inline one is polled here and now, the others become tasks.
    pub(crate) fn launch(&mut self, start: Start, folds: Vec<Awake>, is_kept: bool) {
        let registered = &self.shared.routes.listeners[start.receiver.listener];
        let listener = start.receiver.listener;
        let key = Key { thread: start.entry.thread().clone(), seq: start.entry.seq(), listener };
        let call = Arc::new(Call {
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
            is_kept,
            folds,
            asked: OnceLock::new(),
            key: self.shared.key,
            sent: AtomicU32::new(0),
            road: self.road.clone(),
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
                // What it sent lies in the inbox, and must be taken before its return.
                if call.sent.load(Ordering::Relaxed) == 0 {
                    self.give(&tree, event);
                } else {
                    self.shared.inboxes[self.number].post(Mail::Event(tree, event));
                }
            }
            Err(future) => {
                let cancel = CancellationToken::new();
                if let Some(Slot::Awake(held)) = self.trees.get_mut(key.thread.tree_str())
                    && let Some(thread) = held.tree.thread(&key.thread)
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
        let task = Task { deadline_us, late: false };
        self.tasks.insert(key.clone(), task);
        self.soonest_us = self.soonest_us.min(deadline_us);
        let (shared, worker, listener) = (self.shared.clone(), self.number, key.listener);
        let task = async move {
            let handler = AssertUnwindSafe(future).catch_unwind();
            // One that was told to stop before it began doesn't begin; later, it gets to see it.
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
            shared.inboxes[worker].post(Mail::Ended(key, ended));
        };
        if blocking {
            self.port.spawn_blocking(task);
        } else {
            let shared = self.shared.clone();
            self.port.spawn(async move { yields::yielding(&shared, task).await });
        }
    }
}

/// How a handler came to its end: it returned, failed before it ran, or panicked.
pub(crate) type Ended = Result<Result<Emit, Fault>, Box<dyn Any + Send>>;

/// Polls a handler once; most inline ones are done then. The rest goes on as a task.
fn poll_once(shared: &Shared, run: &Run, call: &Arc<Call>) -> Result<Ended, Boxed<'static, Emit>> {
    let mut context = Context::from_waker(Waker::noop());
    let polled = catch_unwind(AssertUnwindSafe(|| {
        let _polling = yields::Polling::new(shared, context.waker());
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

/// Looks at what a handler came to: every payload is held against its schema, unless its own type
/// wrote it.
fn ready(shared: &Shared, listener: usize, ended: Ended) -> Vec<Ready> {
    let outcome = match &ended {
        Ok(Ok(_)) => Outcome::Returned,
        Ok(Err(_)) => Outcome::Failed,
        Err(_) => Outcome::Panicked,
    };
    shared.counts.handled(listener, outcome);
    came_to(&shared.routes, shared.limits.inside, listener, ended)
}

/// What a handler came to, without counting it.
pub(crate) fn came_to(
    routes: &Routes,
    inside: XmlLimits,
    listener: usize,
    ended: Ended,
) -> Vec<Ready> {
    let fault = |fault| vec![Ready::fault(fault)];
    match ended {
        Ok(Ok(emit)) => check(routes, inside, emit),
        Ok(Err(it)) => fault(it),
        Err(panic) => {
            let text = panic
                .downcast_ref::<&str>()
                .map(ToString::to_string)
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no text".to_owned());
            let name = &routes.listeners[listener].name;
            tracing::error!(listener = %name, panic = text, "a handler panicked");
            fault(Fault::new(Code::Panic, format!("{name} panicked")))
        }
    }
}

/// Holds each payload against its schema, unless its own type wrote it.
pub(crate) fn check(routes: &Routes, inside: XmlLimits, emit: Emit) -> Vec<Ready> {
    let look = |it: listener::Emission| {
        let is_for_sender = matches!(it.target, Target::Child { for_sender: true, .. });
        let name = it.what.as_ref().ok().filter(|_| is_for_sender).map(|it| it.element.name());
        let what = it.what.and_then(|what| match what.typed {
            Some(name) => Ok(Checked::typed(name, what.element)),
            // What is passed on for somebody else may lack its namespace, as at a door.
            None if is_for_sender => routes.check(what.element, inside),
            None => routes.catalog.check(what.element).map_err(|fault| {
                let text = format!("what was emitted is not valid: {fault}");
                Fault::new(Code::InvalidReturn, text)
            }),
        });
        let meta = it.marks.key.as_deref().map(key_meta);
        let is_unknown = what.as_ref().is_err_and(|it| it.code == Code::Undeliverable);
        let sought = name.filter(|_| is_unknown);
        Ready { target: it.target, what, flags: it.marks.flags, meta, sought }
    };
    emit.into_iter().map(look).collect()
}

impl listener::Road for Road {
    fn commit(&self, call: &Arc<Call>, emit: Emit) -> Boxed<'static, ()> {
        let (done, kept) = oneshot::channel();
        let message = call.message.id();
        let thread = message.thread.clone();
        let key = Key { thread: thread.clone(), seq: message.seq, listener: call.index };
        let ready = check(&self.0.routes, self.0.limits.inside, emit);
        let event = Event::Sent(key, ready, done);
        yields::post(&self.0, &thread.clone(), Mail::Event(thread, event));
        let (shared, mut kept) = (self.0.clone(), kept);
        Box::pin(poll_fn(move |context| {
            let kept = kept.poll_unpin(context);
            if kept.is_pending() {
                yields::waits(&shared, context);
            }
            let late = || Fault::new(Code::Late, "the pump has stopped");
            kept.map(|it| it.unwrap_or_else(|_| Err(late())))
        }))
    }

    fn ahead_us(&self) -> i64 {
        self.0.ahead_us.load(Ordering::Relaxed)
    }

    fn live(&self, call: &Call, element: Element) {
        if self.0.followers.are_there() {
            let (from, cause) = (call.listener.clone(), call.message.id().clone());
            self.0.followers.live(Showing { from, cause, payload: element });
        }
    }

    fn read<'a>(&'a self, call: &'a Call, after: u64, limit: usize) -> Boxed<'a, Vec<Entry>> {
        Box::pin(history(&*self.0.log, call, after, limit))
    }

    fn cause<'a>(&'a self, call: &'a Call) -> Boxed<'a, Option<Entry>> {
        Box::pin(cause(&*self.0.log, call))
    }

    fn asked<'a>(&'a self, call: &'a Call) -> Boxed<'a, Option<Entry>> {
        Box::pin(asked(&*self.0.log, call))
    }

    fn sent<'a>(&'a self, call: &'a Call) -> Boxed<'a, Vec<Entry>> {
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

/// The entries of a message's thread after a number, up to the message.
pub(crate) async fn history(
    log: &dyn Log,
    call: &Call,
    after: u64,
    limit: usize,
) -> Result<Vec<Entry>, Fault> {
    let page = log.read(call.message().thread(), after, call.as_of, limit.min(PAGE)).await;
    let page = page.map_err(|it| unread(&it))?;
    Ok(page.iter().map(|it| Entry::kept(it)).collect())
}

/// The entry that a message comes of, if its listener may see that.
pub(crate) async fn cause(log: &dyn Log, call: &Call) -> Result<Option<Entry>, Fault> {
    let message = &call.message;
    let own = |thread: &ThreadId| {
        let woken = message.from() == call.listener() && !message.is_from_identity();
        woken && thread.tree_str() == message.thread().tree_str() || thread == message.thread()
    };
    let Some(id) = message.cause().filter(|it| own(&it.thread)) else { return Ok(None) };
    entry(log, id).await
}

/// The message whose handling sent the request that a message answers, if its listener sent that.
pub(crate) async fn asked(log: &dyn Log, call: &Call) -> Result<Option<Entry>, Fault> {
    let message = &call.message;
    let own = |it: &Entry| it.from() == call.listener() && !it.is_from_identity();
    let is_word = |name: &Name| message.from() == CORE_NAME && message.name() == name;
    let by = match message.reply_to() {
        Some(request) => match entry(log, request).await?.filter(own) {
            Some(request) => request.cause().cloned(),
            None => None,
        },
        // A thread that the listener opened comes of the same message, and answers nothing.
        None if is_word(&ThreadSpawned::NAME) => message.cause().cloned(),
        None => None,
    };
    let Some(by) = by else { return Ok(None) };
    let asked = entry(log, &by).await?;
    // Where the listener asked `thread` to open it, this is that request: its cause is meant.
    let is_request = |it: &Entry| own(it) && it.to().is_some_and(|to| to != call.listener());
    let request = asked.as_ref().filter(|it| is_word(&ThreadResult::NAME) && is_request(it));
    match request.and_then(|it| it.cause()) {
        Some(by) => entry(log, by).await,
        None => Ok(asked),
    }
}

/// An entry, where the log has it.
async fn entry(log: &dyn Log, id: &EntryId) -> Result<Option<Entry>, Fault> {
    let found = log.read(&id.thread, id.seq - 1, id.seq, 1).await;
    let found = found.map_err(|it| unread(&it))?;
    Ok(found.first().map(|it| Entry::kept(it)))
}

/// What was sent while a message was being handled, in order.
pub(crate) async fn sent_for(shared: &Shared, message: &Entry) -> Result<Vec<Entry>, log::Error> {
    came_after(shared, message, |it| it.cause.as_ref() == Some(message.id())).await
}

/// What came into a thread after a message and is wanted, in order.
pub(crate) async fn came_after(
    shared: &Shared,
    message: &Entry,
    is_wanted: impl Fn(&log::Entry) -> bool,
) -> Result<Vec<Entry>, log::Error> {
    let (mut after, mut came) = (message.seq(), Vec::new());
    loop {
        let page = shared.log.read(message.thread(), after, u64::MAX, PAGE).await?;
        let Some(last) = page.last() else { return Ok(came) };
        after = last.id.seq;
        came.extend(page.iter().filter(|it| is_wanted(it)).map(|it| Entry::kept(it)));
    }
}
