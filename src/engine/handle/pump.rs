//! The handle of a running pump, with push, tell, ask, follow and shutdown.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;
use tokio::sync::{oneshot, watch};

use crate::engine::common::counts::Metrics;
use crate::engine::common::inbox::Mail;
use crate::engine::common::lifecycle;
use crate::engine::common::live_queue::LiveQueue;
use crate::engine::common::metrics::Connected;
use crate::engine::common::shared::{Shared, Stage};
use crate::engine::common::unread_bytes::UnreadBytes;
use crate::engine::handle::follow::Follow;
use crate::engine::tree::event::{Push, Pusher, Words};
use crate::engine::tree::lineage::Source;
use crate::engine::tree::observer::{PushEvent, PushObserver, tell};
use crate::engine::tree::route::Addressed;
use crate::id::{EntryId, ThreadId};
use crate::limits::Limits;
use crate::listener::{CONSOLE, Capabilities, Entry};
use crate::log;
use crate::log::{Flags, Log};
use crate::name::CORE_NAME;
use crate::wire::core::{Done, Huh, ThreadFollowed};
use crate::wire::{Checked, Code, Fault, Payload, encode_sent};
use crate::xml::Element;

/// The sender of messages, as established by a door.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a door says both")]
pub struct Identity {
    /// The name. It may be neither the name of a listener nor `core`.
    pub name: Arc<str>,
    /// Whether the identity is an operator. Operators may see every thread and send into it.
    pub operator: bool,
}

impl Identity {
    /// Returns `flags`, with the flag for operators if this identity is one.
    pub(crate) fn marked(&self, flags: Flags) -> Flags {
        if self.operator { flags.with(Flags::FROM_OPERATOR) } else { flags }
    }

    /// Returns this identity as a pusher, with its observer.
    pub fn pusher(
        &self,
        may_know_why: bool,
        observer: Arc<dyn PushObserver>,
        number: u64,
    ) -> Pusher {
        let (identity, operator) = (self.name.clone(), self.operator);
        Pusher { identity, operator, may_know_why, observer, number, is_alone: None }
    }
}

/// A shutdown waits for doors this much longer than twice `linger_time_max`.
const GRACE_US: u64 = 1_000_000;
/// The most followers, each with a thread, that a running pump records.
const FOLLOWED_MAX: usize = 100_000;
/// How long listeners may take to end at a shutdown.
const AT_STOP_US: u64 = 5_000_000;

/// A running pump. Cloning the handle is cheap.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// # use pumphouse::prelude::*;
/// # /// Adds.
/// # #[derive(Payload)]
/// # #[payload(ns = "https://xml-pipeline.org/ns/calculator/v1")]
/// # struct Add { a: i64, b: i64 }
/// # /// A sum.
/// # #[derive(Payload)]
/// # #[payload(ns = "https://xml-pipeline.org/ns/calculator/v1")]
/// # struct Sum { value: i64 }
/// # async fn add(Add { a, b }: Add) -> Sum { Sum { value: a + b } }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pump = pumphouse::builder().with(Listener::new("calculator").on(add)).build()?.start();
/// let Sum { value } = pump.ask(Add { a: 1, b: 2 }).await?;
/// assert_eq!(value, 3);
/// pump.shutdown().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Pump {
    shared: Arc<Shared>,
    identity: Identity,
    pub(super) destination: Destination,
    to: Option<Arc<str>>,
    /// Whether clients without a token may know why no listener takes a payload.
    is_open: bool,
}

impl Pump {
    pub(crate) fn new(shared: Arc<Shared>) -> Pump {
        let identity = Identity { name: CONSOLE.into(), operator: false };
        Pump { shared, identity, destination: Destination::Session, to: None, is_open: false }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns a handle whose faults may name listeners and payloads to clients without a token,
    /// unless a door of the pump asks for tokens. Doors use this handle if only this machine can
    /// reach them.
    pub fn without_secrets(&self) -> Pump {
        Pump { is_open: !self.shared.clients.has_tokens, ..self.clone() }
    }

    /// Returns whether a sender may know why no listener takes a payload.
    pub fn may_know_why(&self, who: &Identity) -> bool {
        who.operator || self.is_open && *who.name == *CONSOLE
    }

    /// Returns a handle of the same pump, with this identity as the sender.
    #[must_use]
    pub fn speaking_as(&self, identity: Identity) -> Pump {
        Pump { identity, ..self.clone() }
    }

    /// Returns a handle of the same pump, for messages into this thread. With a handle that names
    /// no thread, each message opens a session.
    #[must_use]
    pub fn in_thread(&self, thread: &ThreadId) -> Pump {
        Pump { destination: Destination::Thread(thread.clone()), ..self.clone() }
    }

    /// Returns a handle of the same pump, for messages to this listener.
    #[must_use]
    pub fn to(&self, listener: &str) -> Pump {
        Pump { to: Some(listener.into()), ..self.clone() }
    }

    /// Returns the listener that messages of this handle are for, if it names one.
    pub(crate) fn receiver(&self) -> Option<Arc<str>> {
        self.to.clone()
    }

    /// Sends a payload and waits until it is in the log.
    ///
    /// # Errors
    /// The fault with which the payload was refused.
    pub async fn tell(&self, payload: impl Payload) -> Result<EntryId, Fault> {
        self.tell_checked(typed(&payload)).await
    }

    /// Sends a payload whose type is known only at run time, and waits until it is in the log.
    ///
    /// # Errors
    /// The fault with which the payload was refused.
    pub async fn tell_element(&self, payload: Element) -> Result<EntryId, Fault> {
        self.tell_checked(self.check(payload)).await
    }

    async fn tell_checked(&self, payload: Result<Checked, Fault>) -> Result<EntryId, Fault> {
        let (observer, heard) = acceptance();
        self.send(payload, Flags::NONE, observer).await;
        heard.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Sends a payload and waits for its answer.
    ///
    /// # Errors
    /// If the payload was refused, its handling failed, the answer is another payload, or no answer
    /// came.
    pub async fn ask<R: Payload>(&self, payload: impl Payload) -> Result<R, AskError> {
        let entry = self.ask_checked(typed(&payload)).await?;
        if entry.is::<R>() {
            return entry.decode().map_err(AskError::Refused);
        }
        let other = failed(entry)?;
        Err(AskError::Other(other.element().map_err(AskError::Refused)?.clone()))
    }

    /// Sends a payload whose type is known only at run time, and waits for its answer.
    ///
    /// # Errors
    /// If the payload was refused, its handling failed, or no answer came.
    pub async fn ask_element(&self, payload: Element) -> Result<Entry, AskError> {
        failed(self.ask_checked(self.check(payload)).await?)
    }

    async fn ask_checked(&self, payload: Result<Checked, Fault>) -> Result<Entry, AskError> {
        let (first, heard) = First::of(|news| match news {
            PushEvent::Accepted { .. } => None,
            PushEvent::Refused(fault) => Some(Err(AskError::Refused(fault))),
            PushEvent::Lost(fault) => Some(Err(AskError::Lost(fault))),
            PushEvent::Reply(entry) => Some(Ok(entry)),
            PushEvent::Settled => Some(Err(AskError::Unanswered)),
        });
        self.send(payload, Flags::ANSWER_WANTED, first).await;
        heard.await.unwrap_or_else(|_| Err(AskError::Refused(stopped())))
    }

    /// Sends a payload. The observer receives the events of the push until the push is settled.
    pub async fn send_observed(&self, payload: Element, observer: Arc<dyn PushObserver>) {
        self.send(self.check(payload), Flags::NONE, observer).await;
    }

    async fn send(
        &self,
        payload: Result<Checked, Fault>,
        flags: Flags,
        observer: Arc<dyn PushObserver>,
    ) {
        let checked = self.checked_name().and(payload);
        let flags = self.identity.marked(flags);
        let by = self.identity.pusher(self.identity.operator, observer, 0);
        match self.addressed(checked, flags).await {
            Err(fault) => tell(&*by.observer, 0, PushEvent::Refused(fault)),
            Ok((message, source)) => {
                self.post(&self.destination, Box::new(Push { source, ..Push::new(by, message) }));
            }
        }
    }

    /// Returns a payload with its receivers. If the destination is a fork, also returns the entry
    /// that the fork continues from.
    async fn addressed(
        &self,
        payload: Result<Checked, Fault>,
        flags: Flags,
    ) -> Result<(Addressed, Option<Source>), Fault> {
        let checked = payload?;
        let name = checked.name().clone();
        let message = self.route(checked, self.to.clone(), flags).map_err(|fault| {
            match self.identity.operator {
                true => self.shared.routes.explained(fault, self.to.as_deref(), &name),
                false => fault,
            }
        })?;
        let source = match &self.destination {
            Destination::Fork(at) => Some(self.source(&self.identity, at).await?),
            Destination::Session | Destination::Thread(_) => None,
        };
        Ok((message, source))
    }

    /// Refuses an identity whose name is that of a listener or of the pump: the sender of a message
    /// would be ambiguous.
    pub fn checked_name(&self) -> Result<(), Fault> {
        let name = &*self.identity.name;
        if name == CORE_NAME || self.has_listener(name) {
            let text = format!("{name} is no identity: a listener or the pump has this name");
            return Err(Fault::new(Code::ForgedSender, text));
        }
        Ok(())
    }

    /// Checks a payload against its schema. A payload without a namespace gets one if listeners
    /// take exactly one payload with its local name.
    pub(crate) fn check(&self, element: Element) -> Result<Checked, Fault> {
        self.shared.routes.check(element, self.shared.limits.door)
    }

    pub(crate) fn route(
        &self,
        checked: Checked,
        to: Option<Arc<str>>,
        flags: Flags,
    ) -> Result<Addressed, Fault> {
        match self.shared.closed() {
            Some(fault) => Err(fault),
            None => self.shared.routes.addressed(checked, to, flags),
        }
    }

    pub(crate) fn post(&self, destination: &Destination, push: Box<Push>) {
        let (thread, drawn) = match destination {
            Destination::Thread(thread) => (thread.clone(), false),
            Destination::Session | Destination::Fork(_) => (self.shared.draw(), true),
        };
        tracing::debug!(%thread, payload = %push.message.checked.name(), "routed");
        let mail = Mail::Push { thread: thread.clone(), drawn, push };
        self.shared.workers.post(&thread, mail);
    }

    /// Counts a refusal that a door made itself, and adds it to the report about refusals. `who` is
    /// the sender's identity or address.
    pub fn refused(&self, who: &str, fault: &Fault) {
        self.shared.counts.refused(fault);
        self.told_refusal(who, fault);
    }

    /// Adds a refusal that is counted already to the report about refusals. The door has told the
    /// client of the refusal.
    pub fn told_refusal(&self, who: &str, fault: &Fault) {
        self.shared.refusals.note(who, fault, self.shared.runtime.now_us());
    }

    /// Maps a fault's number to the number of refusals with this fault so far.
    #[must_use]
    pub fn refusals(&self) -> BTreeMap<Code, u64> {
        self.shared.counts.refusals()
    }

    /// Returns the counters and the state of the pump, for programs that show them elsewhere.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.shared.metrics()
    }

    /// Returns the unread bytes of all connections, at all doors.
    pub fn unread(&self) -> &Arc<UnreadBytes> {
        &self.shared.clients.unread
    }

    /// Counts a connection until the returned value is dropped.
    pub fn connected(&self) -> Connected {
        Connected::new(self.shared.clone())
    }

    /// Checks that an identity may follow a thread: it owns the thread, or it is an operator.
    /// Returns the number of the thread's last entry.
    ///
    /// # Errors
    /// `P0012` if there is no such thread or another identity owns it; `P0019` or `P0027` if the
    /// log can't be read.
    pub async fn may_follow(&self, who: &Identity, thread: &ThreadId) -> Result<u64, Fault> {
        Ok(self.permitted(who, thread).await?.last_seq)
    }

    /// Follows a thread with its live payloads. The first entry is the one after the number
    /// `after`.
    #[must_use]
    pub fn follow(&self, thread: &ThreadId, after: u64) -> Follow {
        self.follow_log(thread, after).and_live()
    }

    /// Follows a thread without live payloads. The first entry is the one after the number `after`.
    #[must_use]
    pub fn follow_log(&self, thread: &ThreadId, after: u64) -> Follow {
        Follow::new(self.shared.clone(), thread.clone(), after)
    }

    /// Records a payload of the pump itself in the organism's own thread, if the organism has a
    /// name.
    pub fn record_in_organism<P: Payload>(&self, payload: &P) {
        if self.shared.life.is_some() {
            let mut words = Words::default();
            words.say(payload);
            words.post(&self.shared);
        }
    }

    /// Records that an identity follows a thread, unless that is recorded since the start.
    pub fn record_follower(&self, by: &str, thread: &ThreadId) {
        let key = (by.into(), thread.as_str().into());
        let followed = &self.shared.clients.followed;
        if followed.len() < FOLLOWED_MAX && followed.insert(key) {
            let (by, thread) = (by.to_owned(), thread.to_string());
            self.record_in_organism(&ThreadFollowed { by, thread });
        }
    }

    /// Adds a follower of the whole log, which stays as long as the pump. The returned queue is
    /// told when the log has grown, and gets live payloads if the follower wants them.
    pub fn live_queue(&self, wants_live: bool) -> Arc<LiveQueue> {
        self.shared.clients.followers.join_all(wants_live)
    }

    /// Returns the organism's capabilities: its listeners and their payloads.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.shared.routes.capabilities
    }

    /// Returns the log.
    #[must_use]
    pub fn log(&self) -> &Arc<dyn Log> {
        &self.shared.log
    }

    /// Returns the limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Returns whether a listener has this name. No identity may have the name of a listener.
    #[must_use]
    pub fn has_listener(&self, name: &str) -> bool {
        self.shared.routes.find(name).is_some()
    }

    /// Waits until the entries that were unfinished at the last stop have been given back to their
    /// trees.
    ///
    /// # Errors
    /// If the log can't be read. The pump can't work in that case.
    pub async fn ready(&self) -> Result<(), log::Error> {
        let mut ready = self.shared.state.ready.subscribe();
        let ready = ready.wait_for(Option::is_some).await;
        ready.map_or(Err(log::Error::Closed), |it| it.clone().unwrap_or(Ok(())))
    }

    /// Stops the pump: it accepts nothing more, lets work that is under way end for up to
    /// `drain_time_max`, and closes the log. Work that hasn't ended continues at the next start.
    ///
    /// # Errors
    /// If the log can't be closed.
    pub async fn shutdown(&self) -> Result<(), log::Error> {
        if self.advance(Stage::Stopping) {
            lifecycle::end(&self.shared);
        }
        let until = self.shared.limits.drain_time_max.as_micros();
        let until = self.shared.runtime.now_us() + u64::try_from(until).unwrap_or(u64::MAX / 2);
        tokio::select! {
            biased;
            () = self.shared.drained() => {}
            () = self.shared.runtime.sleep_until(until) => {
                tracing::warn!("handlers still ran at the end of drain_time_max");
            }
        }
        if self.advance(Stage::Drained) {
            self.end_listeners().await;
        }
        let us = |it: std::time::Duration| u64::try_from(it.as_micros()).unwrap_or(u64::MAX / 8);
        let until =
            self.shared.runtime.now_us() + 2 * us(self.shared.limits.linger_time_max) + GRACE_US;
        tokio::select! {
            biased;
            () = self.shared.state.doors.closed() => {}
            () = self.shared.runtime.sleep_until(until) => {
                tracing::warn!("a door was still open at the end of linger_time_max");
            }
        }
        self.shared.workers.inboxes.iter().for_each(|it| it.post(Mail::Stop));
        let closed = self.shared.log.close().await;
        self.shared.state.over.store(true, Ordering::Relaxed);
        closed
    }

    /// Runs the functions that listeners registered for the stop.
    async fn end_listeners(&self) {
        let all = self.shared.routes.listeners.iter().flat_map(|it| &it.at_stop);
        let ends: Vec<_> = all.map(|end| end()).collect();
        let until = self.shared.runtime.now_us() + AT_STOP_US;
        tokio::select! {
            biased;
            _ = join_all(ends) => {}
            () = self.shared.runtime.sleep_until(until) => {
                tracing::warn!("listeners took more than 5 s to end, and are left");
            }
        }
    }

    /// Returns the stage of the pump, which doors watch.
    #[must_use]
    pub fn stage(&self) -> watch::Receiver<Stage> {
        self.shared.state.stage.subscribe()
    }

    fn advance(&self, to: Stage) -> bool {
        self.shared.state.stage.send_if_modified(|stage| {
            let is_later = *stage < to;
            *stage = to.max(*stage);
            is_later
        })
    }
}

/// Returns an observer of a push, and a receiver. The receiver gets the entry of the push, or the
/// fault with which the push is refused.
pub(crate) fn acceptance() -> (Arc<dyn PushObserver>, oneshot::Receiver<Result<EntryId, Fault>>) {
    First::of(|news| match news {
        PushEvent::Accepted { id, .. } => Some(Ok(id)),
        PushEvent::Refused(fault) => Some(Err(fault)),
        PushEvent::Lost(_) | PushEvent::Reply(_) | PushEvent::Settled => None,
    })
}

pub(crate) fn typed<P: Payload>(payload: &P) -> Result<Checked, Fault> {
    encode_sent(payload).map(|element| Checked::typed(P::NAME, element))
}

/// Returns an answer, or the error that the answer stands for.
fn failed(answer: Entry) -> Result<Entry, AskError> {
    if answer.is::<Huh>() {
        let huh = answer.decode().map_err(AskError::Refused)?;
        return Err(AskError::Failed(Box::new(huh)));
    }
    if answer.is::<Done>() {
        return Err(AskError::Unanswered);
    }
    Ok(answer)
}

pub(crate) fn stopped() -> Fault {
    Fault::new(Code::Stopping, "the pump has stopped")
}

/// An observer that waits for the first event that `is_it` accepts.
struct First<T> {
    is_it: fn(PushEvent) -> Option<T>,
    done: Mutex<Option<oneshot::Sender<T>>>,
}

impl<T: Send + 'static> First<T> {
    fn of(is_it: fn(PushEvent) -> Option<T>) -> (Arc<dyn PushObserver>, oneshot::Receiver<T>) {
        let (done, heard) = oneshot::channel();
        (Arc::new(First { is_it, done: Mutex::new(Some(done)) }), heard)
    }
}

impl<T: Send> PushObserver for First<T> {
    fn hear(&self, _: u64, news: PushEvent) {
        if let Some(event) = (self.is_it)(news) {
            let done = self.done.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(done) = done {
                // An error means that the caller no longer waits.
                let _ = done.send(event);
            }
        }
    }
}

/// The reason why an `ask` returns no answer of the wanted type.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AskError {
    /// The message was refused, or its answer can't be read.
    Refused(Fault),
    /// The pump answered with a fault, since the delivery or the handling of the message failed.
    Failed(Box<Huh>),
    /// The answer is another payload, such as an error that the listener returned.
    Other(Element),
    /// The message is in the log, but then the log failed. The outcome is known once the pump has
    /// been started again.
    Lost(Fault),
    /// The message is settled, and no listener answered it.
    Unanswered,
}

impl AskError {
    /// Returns the answer as a `P`, if it was another payload of this type.
    #[must_use]
    pub fn other<P: Payload>(&self) -> Option<P> {
        match self {
            AskError::Other(element) if element.is(P::NAME.namespace(), P::NAME.local()) => {
                P::decode(element).ok()
            }
            _ => None,
        }
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::Refused(fault) => write!(f, "refused: {fault}"),
            AskError::Failed(huh) => write!(f, "{}: {}", huh.code, huh.message),
            AskError::Other(element) => write!(f, "another answer: {element:?}"),
            AskError::Lost(fault) => write!(f, "accepted, but its answer is lost: {fault}"),
            AskError::Unanswered => f.write_str("nobody answered"),
        }
    }
}

impl std::error::Error for AskError {}

/// The destination of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// A session that the message opens.
    Session,
    /// A thread that exists.
    Thread(ThreadId),
    /// A session that continues from this entry.
    Fork(EntryId),
}

impl Destination {
    /// Returns the destination that the text of a `<thread>` names. A text with a slash and a
    /// number is an entry, since no thread's id has a slash.
    pub(crate) fn named(text: Option<&str>) -> Destination {
        match (text, text.and_then(|it| it.parse().ok())) {
            (None, _) => Destination::Session,
            (Some(_), Some(entry)) => Destination::Fork(entry),
            (Some(thread), None) => Destination::Thread(ThreadId::new(thread)),
        }
    }
}
