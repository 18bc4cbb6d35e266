//! What a handler may return: emissions, which are payloads with their receivers.

use std::borrow::Cow;

use crate::id::{EntryId, ThreadId};
use crate::listener::{Entry, Grant, Need, Outcome, Park, Threads, Timers};
use crate::log::{Flags, State};
use crate::name::Name;
use crate::wire::budget;
use crate::wire::{Code, Fault, Payload};
use crate::xml::Element;

/// What a handler may return, and what an [`Outbox`](crate::listener::Outbox) takes.
///
/// `()` emits nothing. A payload, an [`Element`] or a [`Fault`] answers the sender of the message.
/// [`To`] names another receiver, [`Request`](crate::listener::Request) wants an answer, and
/// [`Reply`](crate::listener::Reply) answers an earlier message. [`Again`] and [`Later`] go to the
/// listener itself; a [`Note`] is only recorded. [`Final`] ends a child thread, [`Partial`]
/// doesn't. [`Spawn`] and [`ThreadControl`] open and steer threads; a
/// [`Withdraw`](crate::listener::Withdraw) takes a message back. `Option`, `Result`, `Vec` and
/// tuples hold any of these. A struct that derives this trait emits its fields in order:
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::listener::IntoEmit;
/// use pumphouse::prelude::*;
///
/// #[derive(IntoEmit)]
/// struct Ended {
///     answers: Vec<Reply<Done>>,
///     note: Option<Note<Done>>,
/// }
///
/// # async fn end(_: Done) -> Ended {
/// Ended { answers: Vec::new(), note: Some(Note(Done {})) }
/// # }
/// # let _ = Listener::new("end").on(end);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be emitted",
    note = "return (), a payload, To(name, it), Again(it), or an Option, Result, Vec or tuple of \
            these; errors are payloads too: derive `Payload` for them"
)]
pub trait IntoEmit {
    /// The emissions.
    fn into_emit(self) -> Emit;
    /// What a value of this type may emit, and the grants that it needs.
    fn emits() -> Vec<Need>;
}

/// A handler's emissions, in order.
pub type Emit = Vec<Emission>;

/// An emission: a payload with its target, or a fault in the payload's place.
pub struct Emission {
    pub(crate) target: Target,
    pub(crate) payload: Result<EmittedPayload, Fault>,
    pub(crate) marks: Marks,
}

/// Further properties of an emission: its flags, and a request's key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    pub(crate) flags: Flags,
    pub(crate) key: Option<String>,
}

/// A payload. `typed` is its name if a Rust type encoded it. Others are checked by their schemas.
pub(crate) struct EmittedPayload {
    pub(crate) element: Element,
    pub(crate) typed: Option<Name>,
}

/// The target of an emission.
#[derive(Clone, Debug)]
pub enum Target {
    /// The sender of an earlier message.
    Entry(Box<Entry>),
    /// A listener, by name.
    Listener(String),
    /// The listener itself, in the same thread.
    Oneself,
    /// The sender of the message.
    Sender,
    /// The parent thread, as [`Final`] says. In a session, the identity that pushed.
    Opener,
    /// The payload is recorded here, and the parent thread gets a copy in a note.
    Above,
    /// The listeners that take the payload, in a child thread.
    Child {
        /// A label for the thread's id.
        label: String,
        /// Whether the child is opened for the sender of the message, and not for the listener.
        for_sender: bool,
    },
    /// No handler starts. The payload is a note for a named listener, or for the listener itself.
    Note(Option<String>),
    /// No receiver in a child thread, as [`Partial`] says. In a session, the identity that pushed.
    Along,
    /// The listener itself, at a later time.
    Later {
        /// The time, in microseconds since the epoch. [`u64::MAX`] is never reached.
        until_us: u64,
        /// Whether the push that caused this message is settled only once this message is consumed.
        is_awaited: bool,
        /// Whether the time is a time of the wall clock.
        by_clock: bool,
    },
    /// The senders of these messages, as [`Answer`](crate::listener::Answer) says.
    Askers(Vec<Entry>, Outcome),
    /// No receiver: the emission says which messages the listener parks.
    Park(Box<Park>),
    /// No receiver: the emission charges these amounts to the budget of the message's tree.
    Charge(Box<budget::Charge>),
    /// No receiver: the emission raises a budget of the message's tree.
    Raise,
    /// Tries stopped listeners again.
    Retry,
    /// No receiver: a message of the listener's own is taken back.
    Withdraw(EntryId),
    /// The message's thread or one below it, with its descendants, gets the given state. Each
    /// thread whose state changes records the payload.
    Threads(ThreadId, State),
}

/// Sends a payload to one listener by name: `To("calculator", Add { … })`.
pub struct To<E, N = &'static str>(
    /// The listener's name: a `&'static str`, or a `String` made at run time.
    pub N,
    /// The payload.
    pub E,
);

/// Sends a message to the listener itself, in the same thread, for example to continue its work.
pub struct Again<E>(
    /// The payload.
    pub E,
);

/// Ends a child thread with its result.
///
/// The parent gets the payload in a `thread-result`. A session sends it to the identity that
/// pushed, and stays open. If a listener may return `Final`, its plain answers end no thread.
pub struct Final<E>(
    /// The result of the thread.
    pub E,
);

/// Sends part of a result. Unlike [`Final`], it doesn't end a child thread.
///
/// A child thread only records the payload. A session sends it to the identity that pushed.
pub struct Partial<E>(
    /// The part of the result.
    pub E,
);

/// Records a payload without starting a handler. The note is for the listener itself, or, with
/// [`To`] inside it, for another listener. The receiver can read the note in the thread's history.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::prelude::*;
///
/// /// Wants to be thought about.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Ponder;
///
/// /// What somebody thought.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Thought {
///     text: String,
/// }
///
/// async fn ponder(_: Ponder) -> Note<Thought> {
///     Note(Thought { text: "It may rain.".into() })
/// }
///
/// let thinker = Listener::new("thinker").on(ponder);
/// assert!(pumphouse::builder().with(thinker).build().is_ok());
/// ```
pub struct Note<E>(
    /// The payload.
    pub E,
);

/// Opens a child thread with this message. It needs a [grant](Threads).
///
/// The opener gets `thread-spawned`, and `thread-result` when the thread ends.
pub struct Spawn<E> {
    first: E,
    label: String,
    for_sender: bool,
}

impl<E> Spawn<E> {
    /// A thread that begins with `first`, for the listeners that take it.
    pub fn new(first: E) -> Spawn<E> {
        Spawn { first, label: String::new(), for_sender: false }
    }

    /// Suggests the end of the thread's id. Characters except `A-Za-z0-9_` become `-`.
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Spawn<E> {
        Spawn { label: label.into(), ..self }
    }

    /// Makes the sender of the message the opener of the thread.
    #[must_use]
    pub fn for_sender(self) -> Spawn<E> {
        Spawn { for_sender: true, ..self }
    }
}

/// Cancels, pauses or resumes a thread and its descendants. It needs a [grant](Threads).
///
/// Each thread whose state changes records `why`. The sender of the message gets `why`, too. The
/// thread must be the message's own thread or one of its descendants.
pub struct ThreadControl<E> {
    thread: ThreadId,
    state: State,
    why: E,
}

impl<E> ThreadControl<E> {
    /// Cancels threads: running handlers are told to stop, waiting messages are consumed, and no
    /// handler begins.
    pub fn cancel(thread: ThreadId, why: E) -> ThreadControl<E> {
        ThreadControl { thread, state: State::Cancelled, why }
    }

    /// Pauses threads: running handlers may end, but no handler begins, except those of listeners
    /// with the grant.
    pub fn pause(thread: ThreadId, why: E) -> ThreadControl<E> {
        ThreadControl { thread, state: State::Paused, why }
    }

    /// Resumes paused threads.
    pub fn resume(thread: ThreadId, why: E) -> ThreadControl<E> {
        ThreadControl { thread, state: State::Open, why }
    }
}

/// Sends a message to the listener itself, in the same thread, at a later time. It needs a
/// [grant](Timers).
///
/// The message is in the log at once and survives a restart. A listener with
/// [`wakes`](crate::Listener::wakes) may get it earlier.
pub struct Later<E> {
    payload: E,
    until_us: u64,
    is_awaited: bool,
    by_clock: bool,
}

impl<E> Later<E> {
    /// A message that comes when [`Clock::now_us`](crate::listener::Clock::now_us) is `until_us`.
    /// Setting the wall clock doesn't shift this moment, unless the pump restarts meanwhile.
    pub fn at(until_us: u64, payload: E) -> Later<E> {
        Later { payload, until_us, is_awaited: true, by_clock: false }
    }

    /// Makes the time a time of the wall clock. If the clock is set back by a second or more, the
    /// message comes at once, and its handler must wait again.
    #[must_use]
    pub fn by_clock(self) -> Later<E> {
        Later { by_clock: true, ..self }
    }

    /// A message without a time. It comes once the listener's [`wakes`](crate::Listener::wakes)
    /// returns true.
    pub fn woken(payload: E) -> Later<E> {
        Later::at(u64::MAX, payload)
    }

    /// Lets the push that caused this message be settled before the message comes. If the message
    /// is also [`woken`](Later::woken), its thread may end before it comes.
    #[must_use]
    pub fn unawaited(self) -> Later<E> {
        Later { is_awaited: false, ..self }
    }
}

impl Emission {
    fn new(payload: Result<EmittedPayload, Fault>) -> Emission {
        Emission { target: Target::Sender, payload, marks: Marks::default() }
    }
}

#[diagnostic::do_not_recommend]
impl<P: Payload> IntoEmit for P {
    fn into_emit(self) -> Emit {
        let payload = self.encode().map(|element| EmittedPayload { element, typed: Some(P::NAME) });
        vec![Emission::new(payload.map_err(|it| invalid(&P::NAME, &it)))]
    }

    fn emits() -> Vec<Need> {
        vec![Need::Emit(Cow::Borrowed(P::schema()))]
    }
}

fn invalid(name: &Name, fault: &Fault) -> Fault {
    Fault::new(Code::InvalidReturn, format!("what was emitted as {name} is not valid: {fault}"))
}

#[diagnostic::do_not_recommend]
impl IntoEmit for Element {
    fn into_emit(self) -> Emit {
        vec![Emission::new(Ok(EmittedPayload { element: self, typed: None }))]
    }

    fn emits() -> Vec<Need> {
        Vec::new()
    }
}

#[diagnostic::do_not_recommend]
impl IntoEmit for Fault {
    fn into_emit(self) -> Emit {
        vec![Emission::new(Err(self))]
    }

    fn emits() -> Vec<Need> {
        Vec::new()
    }
}

#[diagnostic::do_not_recommend]
impl IntoEmit for () {
    fn into_emit(self) -> Emit {
        Vec::new()
    }

    fn emits() -> Vec<Need> {
        Vec::new()
    }
}

#[diagnostic::do_not_recommend]
impl<T: IntoEmit> IntoEmit for Option<T> {
    fn into_emit(self) -> Emit {
        self.map_or_else(Vec::new, T::into_emit)
    }

    fn emits() -> Vec<Need> {
        T::emits()
    }
}

#[diagnostic::do_not_recommend]
impl<T: IntoEmit> IntoEmit for Vec<T> {
    fn into_emit(self) -> Emit {
        self.into_iter().flat_map(T::into_emit).collect()
    }

    fn emits() -> Vec<Need> {
        T::emits()
    }
}

#[diagnostic::do_not_recommend]
impl<T: IntoEmit, E: IntoEmit> IntoEmit for Result<T, E> {
    fn into_emit(self) -> Emit {
        self.map_or_else(|error| wrong(error.into_emit()), T::into_emit)
    }

    fn emits() -> Vec<Need> {
        [T::emits(), E::emits()].concat()
    }
}

#[diagnostic::do_not_recommend]
impl<E: IntoEmit, N: Into<String>> IntoEmit for To<E, N> {
    fn into_emit(self) -> Emit {
        aim(self.1.into_emit(), &Target::Listener(self.0.into()))
    }

    fn emits() -> Vec<Need> {
        E::emits()
    }
}

#[diagnostic::do_not_recommend]
impl<E: IntoEmit> IntoEmit for Again<E> {
    fn into_emit(self) -> Emit {
        aim(self.0.into_emit(), &Target::Oneself)
    }

    fn emits() -> Vec<Need> {
        E::emits()
    }
}

#[diagnostic::do_not_recommend]
impl<E: IntoEmit> IntoEmit for Final<E> {
    fn into_emit(self) -> Emit {
        aim(self.0.into_emit(), &Target::Opener)
    }

    fn emits() -> Vec<Need> {
        [E::emits(), vec![Need::Final]].concat()
    }
}

#[diagnostic::do_not_recommend]
impl<E: IntoEmit> IntoEmit for Partial<E> {
    fn into_emit(self) -> Emit {
        aim(self.0.into_emit(), &Target::Along)
    }

    fn emits() -> Vec<Need> {
        E::emits()
    }
}

#[diagnostic::do_not_recommend]
impl<E: IntoEmit> IntoEmit for Note<E> {
    fn into_emit(self) -> Emit {
        let mut emit = self.0.into_emit();
        for emission in emit.iter_mut().filter(|it| it.payload.is_ok()) {
            emission.target =
                Target::Note(match std::mem::replace(&mut emission.target, Target::Sender) {
                    Target::Listener(to) => Some(to),
                    _ => None,
                });
        }
        emit
    }

    fn emits() -> Vec<Need> {
        E::emits()
    }
}

#[diagnostic::do_not_recommend]
impl<E: IntoEmit> IntoEmit for Spawn<E> {
    fn into_emit(self) -> Emit {
        let target = Target::Child { label: self.label, for_sender: self.for_sender };
        aim(self.first.into_emit(), &target)
    }

    fn emits() -> Vec<Need> {
        [E::emits(), vec![Need::Grant(Threads::GRANT)]].concat()
    }
}

#[diagnostic::do_not_recommend]
impl<E: IntoEmit> IntoEmit for ThreadControl<E> {
    fn into_emit(self) -> Emit {
        aim(self.why.into_emit(), &Target::Threads(self.thread, self.state))
    }

    fn emits() -> Vec<Need> {
        [E::emits(), vec![Need::Grant(Threads::GRANT)]].concat()
    }
}

#[diagnostic::do_not_recommend]
impl<E: IntoEmit> IntoEmit for Later<E> {
    fn into_emit(self) -> Emit {
        let Later { payload, until_us, is_awaited, by_clock } = self;
        aim(payload.into_emit(), &Target::Later { until_us, is_awaited, by_clock })
    }

    fn emits() -> Vec<Need> {
        [E::emits(), vec![Need::Grant(Timers::GRANT)]].concat()
    }
}

/// Marks the payloads of an `Err` as failures in the log.
fn wrong(mut emit: Emit) -> Emit {
    for emission in emit.iter_mut().filter(|it| it.payload.is_ok()) {
        emission.marks.flags = emission.marks.flags.with(Flags::ERROR);
    }
    emit
}

/// Gives emissions a target. A fault in place of an answer goes to those who asked, who wait for
/// it. Any other fault goes to the sender of the message.
pub(crate) fn aim(mut emit: Emit, target: &Target) -> Emit {
    let answers = matches!(target, Target::Entry(_) | Target::Askers(..));
    for emission in emit.iter_mut().filter(|it| answers || it.payload.is_ok()) {
        emission.target = target.clone();
    }
    emit
}

impl std::fmt::Debug for Emission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let payload = self.payload.as_ref().map(|it| &it.element);
        f.debug_struct("Emission").field("target", &self.target).field("payload", &payload).finish()
    }
}

impl Target {
    pub(crate) fn answered<'a>(&'a self, message: &'a Entry) -> Option<&'a EntryId> {
        match self {
            Target::Entry(it) => Some(it.id()),
            Target::Sender => Some(message.id()),
            _ => None,
        }
    }
}
