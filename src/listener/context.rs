//! The contexts of handlers: arguments beside the payload, such as the sender, a fold or the
//! thread's history. A handler names them by type, and the engine takes them from the message's
//! [`Context`]. Taking a context never waits, since the engine has the folds in memory by then.

use std::any::type_name;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::id::ThreadId;
use crate::limits::Limits;
use crate::listener::emit::aim;
use crate::listener::need::FoldType;
use crate::listener::{
    Apply, Boxed, Charge, Entry, FoldOf, Grant, HandlerCall, IntoEmit, Need, Target,
};
use crate::log::Flags;
use crate::wire::{Code, Fault, Live};

/// An argument that is taken from the message's context. A struct of such arguments can derive this
/// trait:
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::listener::FromContext;
/// use pumphouse::prelude::*;
///
/// #[derive(FromContext)]
/// struct Handling {
///     message: Message,
///     clock: Clock,
/// }
///
/// let late = async |it: Handling, _: Done| -> () { it.message.at_us() < it.clock.now_us(); };
/// # let _ = Listener::new("late").on(late);
/// ```
///
/// If you implement this trait by hand, `needs()` must return the needs of every argument that
/// `from_context` takes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be taken from a message's context",
    label = "no context",
    note = "contexts come first, one payload last; `State<T>` is of the listener's state, `{S}`",
    note = "contexts: Arrivals, Asked, Attempt, Cancel, Capabilities, Clock, Fold, History, \
            Limits, Message, Outbox, Peers, Queue, Random, Role, Sender, State, Thread, View"
)]
pub trait FromContext<S>: Sized {
    /// The needs of the argument. `build()` fails if the listener doesn't meet them.
    #[must_use]
    fn needs() -> Vec<Need> {
        Vec::new()
    }

    /// Takes the argument.
    ///
    /// # Errors
    /// If the argument isn't available. The pump sends the fault to the message's sender.
    fn from_context(context: &Context<S>) -> Result<Self, Fault>;
}

/// The source of a handler's arguments: the listener's state, and the message with its
/// surroundings.
pub struct Context<S> {
    pub(crate) state: S,
    pub(crate) call: Arc<HandlerCall>,
}

impl<S> Context<S> {
    /// The message at hand.
    #[must_use]
    pub fn message(&self) -> &Entry {
        &self.call.message
    }

    /// The name of the listener that handles the message.
    #[must_use]
    pub fn listener(&self) -> &str {
        &self.call.listener
    }

    /// Whether the listener has this grant. `build()` checks only the grants that `needs()`
    /// returns, and a hand-written `needs()` may omit some. So a hand-written argument that needs a
    /// grant should check it here, too.
    #[must_use]
    pub fn is_granted<G: Grant>(&self) -> bool {
        self.call.grants.contains(G::GRANT)
    }

    /// The call, for an argument that reads the log. Fails if the log may not have the message yet.
    /// This happens if the `needs()` of a hand-written argument is incomplete.
    pub(super) fn log(&self, argument: &str) -> Result<Arc<HandlerCall>, Fault> {
        if self.call.is_kept {
            return Ok(self.call.clone());
        }
        let text = format!("{} takes a {argument} that its needs() don't tell of", self.listener());
        Err(Fault::new(Code::Context, text))
    }
}

/// The message at hand, with its thread, number, sender and cause.
#[derive(Clone, Debug)]
pub struct Message(
    /// The message's entry.
    pub Entry,
);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Message {
    fn from_context(context: &Context<S>) -> Result<Message, Fault> {
        Ok(Message(context.call.message.clone()))
    }
}

impl Deref for Message {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.0
    }
}

/// The message's thread.
#[derive(Clone, Debug)]
pub struct Thread(
    /// The thread's id. Its text has no meaning for programs.
    pub ThreadId,
);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Thread {
    fn from_context(context: &Context<S>) -> Result<Thread, Fault> {
        Ok(Thread(context.call.message.thread().clone()))
    }
}

/// The message's sender: a listener, an identity, or `core` for the pump itself.
#[derive(Clone, Debug)]
pub struct Sender(
    /// The name.
    pub Arc<str>,
);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Sender {
    fn from_context(context: &Context<S>) -> Result<Sender, Fault> {
        Ok(Sender(context.call.message.sender().clone()))
    }
}

/// The identity of the program that runs the pump, and of clients without a token.
pub const CONSOLE: &str = "console";

/// How far the pump trusts the sender of the message. A greater role may do more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
// Not `non_exhaustive`: code that checks a role must handle each of them.
pub enum Role {
    /// The identity [`CONSOLE`], which needs no proof.
    Anyone,
    /// A listener, the pump itself, or an identity other than [`CONSOLE`].
    Authenticated,
    /// An identity that may send into the threads of others.
    Operator,
}

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Role {
    fn from_context(context: &Context<S>) -> Result<Role, Fault> {
        let message = &context.call.message;
        Ok(match message.is_from_identity() {
            _ if message.flags().contains(Flags::FROM_OPERATOR) => Role::Operator,
            true if message.from() == CONSOLE => Role::Anyone,
            _ => Role::Authenticated,
        })
    }
}

/// The listeners that this one may address by name.
#[derive(Clone, Debug)]
pub struct Peers(
    /// The names of these listeners. `None` means every listener.
    pub Option<Arc<[String]>>,
);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Peers {
    fn from_context(context: &Context<S>) -> Result<Peers, Fault> {
        Ok(Peers(context.call.peers.clone()))
    }
}

/// Tells a handler to stop, because its time is up, its thread was cancelled or the pump is
/// stopping. After that the handler is polled once more and then dropped, so it must finish what
/// matters before its next `.await`. The `Cancel` of an inline handler is never cancelled.
#[derive(Clone, Debug)]
pub struct Cancel(Option<CancellationToken>);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Cancel {
    fn from_context(context: &Context<S>) -> Result<Cancel, Fault> {
        Ok(Cancel(context.call.cancel.clone()))
    }
}

impl Cancel {
    /// Whether the handler should stop now.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    /// Waits until the handler should stop.
    pub async fn cancelled(&self) {
        match &self.0 {
            Some(it) => it.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

/// The message's time in the log, which is the same in a replay.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    now_us: u64,
    ahead_us: i64,
    live_us: Option<u64>,
}

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Clock {
    fn from_context(context: &Context<S>) -> Result<Clock, Fault> {
        let (now_us, host) = (context.call.message.at_us(), &context.call.host);
        Ok(Clock { now_us, ahead_us: host.ahead_us(), live_us: host.live_us() })
    }
}

impl Clock {
    /// The message's time in the log, in microseconds since the Unix epoch. The pump counts it with
    /// a monotonic clock, so setting the wall clock doesn't change it while the pump runs.
    #[must_use]
    pub fn now_us(self) -> u64 {
        self.now_us
    }

    /// The time at which the handler began, in microseconds since the Unix epoch. This is later
    /// than [`now_us`](Clock::now_us) if the message has waited. A replay doesn't know this time,
    /// and returns `now_us`. A handler whose results depend on this time should, in a replay, read
    /// them from its [`Record`](crate::listener::Record).
    #[must_use]
    pub fn begun_us(self) -> u64 {
        self.live_us.unwrap_or(self.now_us).max(self.now_us)
    }

    /// The time of [`now_us`](Clock::now_us) by the wall clock, in microseconds since the Unix
    /// epoch. A replay doesn't know how the wall clock was set, and returns `now_us`.
    #[must_use]
    pub fn wall_us(self) -> u64 {
        self.now_us.saturating_add_signed(self.ahead_us)
    }
}

/// Random numbers that are the same in a replay. They are derived from the log's key, the message's
/// id and the listener's name.
pub struct Random(blake3::OutputReader);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Random {
    fn from_context(context: &Context<S>) -> Result<Random, Fault> {
        let id = context.call.message.id();
        let mut hasher = blake3::Hasher::new_keyed(&context.call.key);
        let thread = id.thread.as_str().as_bytes();
        hasher.update(&(thread.len() as u64).to_le_bytes()).update(thread);
        hasher.update(&id.seq.to_le_bytes()).update(context.call.listener.as_bytes());
        Ok(Random(hasher.finalize_xof()))
    }
}

impl Random {
    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

/// The mark of the message's thread: `#` and six hexadecimal digits. They are made from the log's
/// secret and the thread, so they are the same in each handling and in a replay, and nobody guesses
/// them. A text that carries the mark can be told from texts of others that look alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadMark(
    /// The mark.
    pub String,
);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for ThreadMark {
    fn from_context(context: &Context<S>) -> Result<ThreadMark, Fault> {
        let thread = context.call.message.id().thread.as_str();
        let mut hasher = blake3::Hasher::new_keyed(&context.call.key);
        hasher.update(b"mark of a thread").update(thread.as_bytes());
        let hash = hasher.finalize();
        let [first, second, third, ..] = *hash.as_bytes();
        Ok(ThreadMark(format!("#{first:02x}{second:02x}{third:02x}")))
    }
}

/// The number of this attempt to handle the message, from 1. If the pump stops or crashes during an
/// attempt, the next attempt has a higher number. After more attempts than three a number may come
/// again, so it is no id of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct Attempt(
    /// The number.
    pub u32,
);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Attempt {
    fn from_context(context: &Context<S>) -> Result<Attempt, Fault> {
        Ok(Attempt(context.call.attempt))
    }
}

/// In a replay: the entries that this listener emitted for this message in the original run. They
/// hold the answers that a [`recorded`](crate::Listener::recorded) listener got in that run, for
/// example from a model.
#[derive(Clone, Debug)]
pub struct Record(
    /// The entries, in the order of their numbers. None if this is no replay.
    pub Option<Vec<Entry>>,
);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Record {
    fn from_context(context: &Context<S>) -> Result<Record, Fault> {
        Ok(Record(context.call.host.record()))
    }
}

/// The other messages that wait for a serial listener in this thread, including those that it
/// parked. They are consumed together with the message at hand, except those that the handler keeps
/// with a [`Park`](crate::listener::Park). History and folds go up to the last of these messages or
/// to the listener's last emission, whichever is later.
#[derive(Clone, Debug)]
pub struct Queue(
    /// The entries, in the order of their numbers.
    pub Vec<Entry>,
);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Queue {
    fn needs() -> Vec<Need> {
        vec![Need::Queue]
    }

    fn from_context(context: &Context<S>) -> Result<Queue, Fault> {
        Ok(Queue(context.call.queue.clone()))
    }
}

/// The thread's entries up to the message at hand, or further if the handler takes its [`Queue`].
/// They are read from the log when you ask for them. A [`View`](crate::listener::View) has only the
/// entries that a prompt shows.
pub struct History(Arc<HandlerCall>);

/// How many entries [`all`] reads in one page.
pub(super) const PAGE: usize = 1_024;

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for History {
    fn needs() -> Vec<Need> {
        vec![Need::Log]
    }

    fn from_context(context: &Context<S>) -> Result<History, Fault> {
        Ok(History(context.log("History")?))
    }
}

/// Reads page after page, until a page is empty. Each page begins after the last entry of the one
/// before.
pub(super) async fn all<'a>(
    read: impl Fn(u64) -> Boxed<'a, Vec<Entry>>,
) -> Result<Vec<Entry>, Fault> {
    let mut all: Vec<Entry> = Vec::new();
    loop {
        let page = read(all.last().map_or(0, Entry::seq)).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

impl History {
    /// Up to `limit` entries whose number is greater than `after`, and never more than 1024.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn read(&self, after: u64, limit: usize) -> Result<Vec<Entry>, Fault> {
        self.0.host.read(&self.0, after, limit).await
    }

    /// All entries of the [history](History).
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn all(&self) -> Result<Vec<Entry>, Fault> {
        all(|after| Box::pin(self.read(after, PAGE))).await
    }

    /// The cause of the message at hand: the entry whose handling sent it. The delivery of a
    /// [`Later`](crate::listener::Later) is a new entry. Its cause is the entry that woke the
    /// `Later` or, if the time came, the entry that recorded the `Later` when it was sent. None if
    /// there is no cause, or if the cause is in another thread and this listener didn't send the
    /// message itself.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn cause(&self) -> Result<Option<Entry>, Fault> {
        self.0.host.cause(&self.0).await
    }
}

/// The organism's limits, for listeners that respect some of them in their own work.
#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Limits {
    fn from_context(context: &Context<S>) -> Result<Limits, Fault> {
        Ok(context.call.host.limits().clone())
    }
}

/// A fold of the thread. It includes the entries up to the message at hand, or further if the
/// handler takes its [`Queue`].
pub struct Fold<T>(
    /// The fold's state.
    pub Arc<T>,
);

impl<S, T: Apply> FromContext<S> for Fold<T> {
    fn needs() -> Vec<Need> {
        vec![Need::Fold(FoldType(FoldOf::id::<T>()))]
    }

    fn from_context(context: &Context<S>) -> Result<Fold<T>, Fault> {
        let found = context.call.folds.iter().find_map(|it| it.clone().downcast().ok());
        let missing = || format!("{} has no .fold::<{}>()", context.listener(), type_name::<T>());
        Ok(Fold(found.ok_or_else(|| Fault::new(Code::Context, missing()))?))
    }
}

impl<T> Deref for Fold<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The listener's state, such as connection pools and clients. State that messages change belongs
/// in a [`Fold`].
#[derive(Clone, Debug)]
pub struct State<T>(
    /// The state.
    pub T,
);

impl<S: Clone> FromContext<S> for State<S> {
    fn from_context(context: &Context<S>) -> Result<State<S>, Fault> {
        Ok(State(context.state.clone()))
    }
}

/// Sends payloads of the type `E` before the handler returns. An `Outbox<Element>` sends any
/// payload, and the pump checks it at run time.
pub struct Outbox<E: IntoEmit>(Arc<HandlerCall>, PhantomData<fn(E)>);

impl<S, E: IntoEmit> FromContext<S> for Outbox<E> {
    fn needs() -> Vec<Need> {
        E::emits()
    }

    fn from_context(context: &Context<S>) -> Result<Outbox<E>, Fault> {
        Ok(Outbox(context.call.clone(), PhantomData))
    }
}

impl Outbox<Charge> {
    /// Sets the settlement that the pump books if it stops this handler before the handler settles
    /// its reservation itself, such as when the thread is cancelled. Each call replaces the
    /// settlement before. Without one, the whole reservation counts as spent.
    pub fn if_stopped(&self, settlement: Charge) {
        if let Some(it) = &self.0.stop_charge {
            *it.lock().unwrap_or_else(PoisonError::into_inner) = Some(settlement.into_budget());
        }
    }
}

impl<E: IntoEmit> Outbox<E> {
    /// Sends a payload, even if the handler fails later. The order of these calls is the order of
    /// the handler's emissions. Until the handler's next `.await`, the log may lack the payload.
    /// The returned future resolves once the payload is in the log or was refused.
    pub fn send(&self, payload: E) -> Boxed<'static, ()> {
        self.0.sent.fetch_add(1, Ordering::Relaxed);
        self.0.host.commit(&self.0, payload.into_emit())
    }

    /// Sends a payload as [`send`](Outbox::send) does, but as the answer to an earlier message of
    /// this thread.
    pub fn reply_to(&self, message: &Entry, payload: E) -> Boxed<'static, ()> {
        self.0.sent.fetch_add(1, Ordering::Relaxed);
        let target = Target::Entry(Box::new(message.clone()));
        self.0.host.commit(&self.0, aim(payload.into_emit(), &target))
    }

    /// Shows a live payload to followers. The log doesn't get the payload, and followers may miss
    /// it, so there is nothing to await.
    pub fn live(&self, payload: &E)
    where
        E: Live,
    {
        match payload.encode() {
            Ok(element) => self.0.host.live(&self.0, element),
            Err(fault) => {
                let (listener, fault) = (&*self.0.listener, fault.code);
                tracing::debug!(listener, %fault, "no live payload");
            }
        }
    }

    /// The entries that this listener has already sent for this message, in this attempt or an
    /// earlier one.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn sent(&self) -> Result<Vec<Entry>, Fault> {
        self.0.host.sent(&self.0).await
    }
}
