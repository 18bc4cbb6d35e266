//! The arguments of handlers, which are taken from a message's context. Taking one never waits,
//! since folds are in memory by then.

use std::any::type_name;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use crate::id::ThreadId;
use crate::limits::Limits;
use crate::listener::emit::aim;
use crate::listener::need::FoldType;
use crate::listener::{Apply, Boxed, Entry, FoldOf, Grant, HandlerCall, IntoEmit, Need, Target};
use crate::log::Flags;
use crate::wire::{Code, Fault, Live};

/// An argument taken from the message's context. A struct of arguments derives it:
///
/// ```
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
/// An implementation by hand passes on the `needs()` of what it takes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be taken from a message's context",
    label = "no context",
    note = "contexts come first, one payload last; `State<T>` is of the listener's state, `{S}`",
    note = "contexts: Arrivals, Asked, Attempt, Cancel, Capabilities, Clock, Fold, History, \
            Limits, Message, Outbox, Peers, Queue, Random, Role, Sender, State, Thread, View"
)]
pub trait FromContext<S>: Sized {
    /// What the argument needs. `build()` complains if the listener doesn't have it.
    #[must_use]
    fn needs() -> Vec<Need> {
        Vec::new()
    }

    /// Takes it.
    ///
    /// # Errors
    /// Where it isn't there; the sender is told.
    fn from_context(context: &Context<S>) -> Result<Self, Fault>;
}

/// The context that arguments are taken from: the listener's state, and the message with its
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

    /// The listener that handles it.
    #[must_use]
    pub fn listener(&self) -> &str {
        &self.call.listener
    }

    /// Whether the listener has this grant. Arguments written by hand check it, since their users
    /// may have forgotten `needs()`.
    #[must_use]
    pub fn is_granted<G: Grant>(&self) -> bool {
        self.call.grants.contains(G::GRANT)
    }

    /// Access to the log, which must have the message by now.
    pub(super) fn log(&self, argument: &str) -> Result<Arc<HandlerCall>, Fault> {
        if self.call.is_kept {
            return Ok(self.call.clone());
        }
        let text = format!("{} takes a {argument} that its needs() don't tell of", self.listener());
        Err(Fault::new(Code::Context, text))
    }
}

/// The message: thread, sequence, cause, what it replies to.
#[derive(Clone, Debug)]
pub struct Message(
    /// Its entry in the log.
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

/// The thread's id, opaque.
#[derive(Clone, Debug)]
pub struct Thread(
    /// The id.
    pub ThreadId,
);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Thread {
    fn from_context(context: &Context<S>) -> Result<Thread, Fault> {
        Ok(Thread(context.call.message.thread().clone()))
    }
}

/// Who sent the message: a listener, an identity, or `core`.
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

/// The identity of embedding programs, and of clients without a token.
pub const CONSOLE: &str = "console";

/// How well the pump knows the sender of the message. A greater role may do more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
// Exhaustive, since code that admits roles must consider each.
pub enum Role {
    /// A client without a token: [`CONSOLE`].
    Anyone,
    /// A listener, or an identity that was proved.
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

/// The listeners that this one may address; `None` is every one.
#[derive(Clone, Debug)]
pub struct Peers(
    /// Their names.
    pub Option<Arc<[String]>>,
);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Peers {
    fn from_context(context: &Context<S>) -> Result<Peers, Fault> {
        Ok(Peers(context.call.peers.clone()))
    }
}

/// Tells when the handler should stop, since its time is up or the pump is stopping. The handler is
/// polled once more and then dropped, so it must finish what matters before its next `.await`. An
/// inline handler is never told, since it ends first.
#[derive(Clone, Debug)]
pub struct Cancel(Option<CancellationToken>);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Cancel {
    fn from_context(context: &Context<S>) -> Result<Cancel, Fault> {
        Ok(Cancel(context.call.cancel.clone()))
    }
}

impl Cancel {
    /// Whether it should stop now.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    /// Waits until it should stop.
    pub async fn cancelled(&self) {
        match &self.0 {
            Some(it) => it.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

/// The time of the message, so that a replay reads the same clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    now_us: u64,
    ahead_us: i64,
}

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Clock {
    fn from_context(context: &Context<S>) -> Result<Clock, Fault> {
        Ok(Clock { now_us: context.call.message.at_us(), ahead_us: context.call.host.ahead_us() })
    }
}

impl Clock {
    /// Microseconds since the epoch, as in the log. They go by a monotonic clock, so setting the
    /// wall clock changes nothing here.
    #[must_use]
    pub fn now_us(self) -> u64 {
        self.now_us
    }

    /// The same moment by the wall clock. A replay doesn't know how that was set, and has
    /// [`now_us`](Clock::now_us) here.
    #[must_use]
    pub fn wall_us(self) -> u64 {
        self.now_us.saturating_add_signed(self.ahead_us)
    }
}

/// Random numbers that a replay repeats. They are derived from the log's key, the message and the
/// listener.
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

/// Which attempt at this message this is, from 1: more after a crash.
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

/// In a replay: the entries that this listener emitted for this message then. None if this is no
/// replay. A [`recorded`](crate::Listener::recorded) listener reads from them what it had heard
/// from elsewhere.
#[derive(Clone, Debug)]
pub struct Record(
    /// The entries, in order.
    pub Option<Vec<Entry>>,
);

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Record {
    fn from_context(context: &Context<S>) -> Result<Record, Fault> {
        Ok(Record(context.call.host.record()))
    }
}

/// The other messages that wait for a serial listener in this thread. They are consumed together
/// with this message. History and folds include the last of them, and the listener's own last
/// emission.
#[derive(Clone, Debug)]
pub struct Queue(
    /// The entries, in order.
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

/// The thread's entries up to the message at hand, read from the log as needed: all of them. What
/// a prompt would show is a [`View`](crate::listener::View).
pub struct History(Arc<HandlerCall>);

/// How many entries [`History::all`] reads at a time.
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

/// Reads page after page, each from the last entry of the one before.
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
    /// Up to `limit` entries whose number is greater than `after`, up to the message at hand.
    ///
    /// # Errors
    /// Where the log can't be read.
    pub async fn read(&self, after: u64, limit: usize) -> Result<Vec<Entry>, Fault> {
        self.0.host.read(&self.0, after, limit).await
    }

    /// Every entry up to the message at hand, it included.
    ///
    /// # Errors
    /// Where the log can't be read.
    pub async fn all(&self) -> Result<Vec<Entry>, Fault> {
        all(|after| Box::pin(self.read(after, PAGE))).await
    }

    /// The entry that the message at hand comes of, if there is one. What woke a
    /// [`Later`](crate::listener::Later) may be of any thread of the tree; what others sent from
    /// another thread is theirs.
    ///
    /// # Errors
    /// Where the log can't be read.
    pub async fn cause(&self) -> Result<Option<Entry>, Fault> {
        self.0.host.cause(&self.0).await
    }
}

/// What bounds the organism: a listener holds to the bounds that it has a use for.
#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Limits {
    fn from_context(context: &Context<S>) -> Result<Limits, Fault> {
        Ok(context.call.host.limits().clone())
    }
}

/// A fold of the thread, as of the message at hand.
pub struct Fold<T>(
    /// Its state.
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

/// The listener's state: handles only, such as pools and clients. What messages change is a fold.
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

/// Emits before the handler returns: only what `E` says; `Outbox<Element>` leaves that to run
/// time.
pub struct Outbox<E: IntoEmit>(Arc<HandlerCall>, PhantomData<fn(E)>);

impl<S, E: IntoEmit> FromContext<S> for Outbox<E> {
    fn needs() -> Vec<Need> {
        E::emits()
    }

    fn from_context(context: &Context<S>) -> Result<Outbox<E>, Fault> {
        Ok(Outbox(context.call.clone(), PhantomData))
    }
}

impl<E: IntoEmit> Outbox<E> {
    /// Takes its place at once and keeps it whatever the handler comes to. It goes on when the
    /// handler next yields: await it to be sure that it is in the log.
    pub fn send(&self, payload: E) -> Boxed<'static, ()> {
        self.0.sent.fetch_add(1, Ordering::Relaxed);
        self.0.host.commit(&self.0, payload.into_emit())
    }

    /// Answers an earlier message of this thread.
    pub fn reply_to(&self, message: &Entry, payload: E) -> Boxed<'static, ()> {
        self.0.sent.fetch_add(1, Ordering::Relaxed);
        let target = Target::Entry(Box::new(message.clone()));
        self.0.host.commit(&self.0, aim(payload.into_emit(), &target))
    }

    /// Reaches followers only and may be dropped, so there is nothing to await.
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

    /// What this listener has already sent for this message, in an earlier attempt too.
    ///
    /// # Errors
    /// Where the log can't be read.
    pub async fn sent(&self) -> Result<Vec<Entry>, Fault> {
        self.0.host.sent(&self.0).await
    }
}
