//! What a handler may return; the type alone says what that may emit.

use std::borrow::Cow;

use crate::id::{EntryId, ThreadId};
use crate::listener::{Charges, Entry, Grant, Need, Outcome, Park, Threads, Timers};
use crate::log::{Flags, State};
use crate::name::Name;
use crate::wire::budget::{self, RaiseBudget};
use crate::wire::{Code, Fault, Payload};
use crate::xml::Element;

/// What a handler may return, and what an [`Outbox`](crate::listener::Outbox) takes.
///
/// `()` emits nothing; a payload, an [`Element`] or a [`Fault`] goes to the sender; [`To`] names
/// a listener, in a [`Request`] one that has to answer; [`Reply`] answers an earlier message;
/// [`Again`] and [`Later`] are for oneself, [`Note`] for nobody but the log; [`Final`]
/// ends the thread, [`Partial`] doesn't, [`Spawn`] opens one below it, [`ThreadControl`] ends or
/// holds some; `Option`, `Result`, `Vec` and tuples hold those. A struct with named fields emits
/// them in their order:
///
/// ```
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
    /// What is emitted.
    fn into_emit(self) -> Emit;
    /// What may be emitted, as the type says.
    fn emits() -> Vec<Need>;
}

/// What a handler came to: any number of emissions, in order.
pub type Emit = Vec<Emission>;

/// One payload on its way out of a handler, or what became of the attempt to write it.
pub struct Emission {
    pub(crate) target: Target,
    pub(crate) what: Result<What, Fault>,
    pub(crate) marks: Marks,
}

/// What is said of an emission beside its payload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    pub(crate) flags: Flags,
    pub(crate) key: Option<String>,
}

/// A payload, and whether a type wrote it, which can't have written another.
pub(crate) struct What {
    pub(crate) element: Element,
    pub(crate) typed: Option<Name>,
}

/// Who an emission is for.
#[derive(Clone, Debug)]
pub enum Target {
    /// The sender of an earlier message.
    Entry(Box<Entry>),
    /// A listener, by name.
    Listener(String),
    /// Oneself, in the same thread.
    Oneself,
    /// The sender of the message at hand.
    Sender,
    /// The sender of the thread's first message: the thread ends with it.
    Opener,
    /// Nobody who would start: it is recorded here and in the thread above, for its opener there.
    Above,
    /// Whoever takes it, in a thread of its own.
    Child {
        /// What the thread is to be called.
        label: String,
        /// Whether it is the sender's message, who hears of it, and not the listener's own.
        for_sender: bool,
    },
    /// Nobody who would start: a listener, or oneself, has it in its thread.
    Note(Option<String>),
    /// Whoever waits for what comes of the thread, which goes on.
    Along,
    /// Oneself, not before a time.
    Later {
        /// Microseconds since the epoch.
        until_us: u64,
        /// Whether whoever pushed what this comes of waits for it too.
        is_awaited: bool,
        /// Whether the time is the wall clock's.
        by_clock: bool,
    },
    /// The senders of these messages: each hears it once.
    Askers(Vec<Entry>, Outcome),
    /// No receiver: it says which messages the listener keeps in its queue.
    Park(Box<Park>),
    /// The budget of the message's tree, of which something is spent.
    Charge,
    /// The budget of the message's tree, of which there is to be more.
    Raise,
    /// A thread at or below the message's, with all below it: each takes this state and records it.
    Threads(ThreadId, State),
}

/// To one listener by name: `To("calculator", Add { … })`.
pub struct To<E, N = &'static str>(
    /// The listener's name: a `&'static str`, or a `String` from run time.
    pub N,
    /// What it is sent.
    pub E,
);

/// To oneself, in the same thread: the next message of a chain.
pub struct Again<E>(
    /// What it is sent.
    pub E,
);

/// To the sender of the thread's first message; the thread ends with it.
///
/// A thread below another hands it up as its result. A listener that returns `Final` ends its
/// threads in no other way: what it answers besides is on the way there.
pub struct Final<E>(
    /// What comes of the thread.
    pub E,
);

/// To the sender of the thread's first message, as [`Final`]; but the thread goes on.
///
/// In a thread below another it is recorded, and wakes nobody there or above.
pub struct Partial<E>(
    /// What came of the thread so far.
    pub E,
);

/// Recorded, and wakes nobody: for oneself, or with [`To`] for another, who reads it in the
/// thread's history when there is another reason to look.
///
/// ```
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
    /// What is recorded.
    pub E,
);

/// A thread of its own below the message's, opened with this: it takes a [grant](Threads).
///
/// Whoever opens it hears `thread-spawned`, and `thread-result` when it ends.
pub struct Spawn<E> {
    first: E,
    label: String,
    for_sender: bool,
}

impl<E> Spawn<E> {
    /// A thread that begins with `first`, sent to whoever takes it.
    pub fn new(first: E) -> Spawn<E> {
        Spawn { first, label: String::new(), for_sender: false }
    }

    /// Suggests what its id ends with: letters, digits, `_` and `-`.
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Spawn<E> {
        Spawn { label: label.into(), ..self }
    }

    /// Opens it in the name of whoever sent the message at hand.
    #[must_use]
    pub fn for_sender(self) -> Spawn<E> {
        Spawn { for_sender: true, ..self }
    }
}

/// Ends, holds or lets go on a thread and all below it: it takes a [grant](Threads).
///
/// Each of them records `why`; the sender of the message at hand hears it. The thread must be the
/// message's own or below it.
pub struct ThreadControl<E> {
    thread: ThreadId,
    state: State,
    why: E,
}

impl<E> ThreadControl<E> {
    /// Cancels: handlers at work are told to stop, what waits is answered, nothing runs after.
    pub fn cancel(thread: ThreadId, why: E) -> ThreadControl<E> {
        ThreadControl { thread, state: State::Cancelled, why }
    }

    /// Pauses: handlers at work come to their end, and none begins.
    pub fn pause(thread: ThreadId, why: E) -> ThreadControl<E> {
        ThreadControl { thread, state: State::Paused, why }
    }

    /// Lets what pauses go on.
    pub fn resume(thread: ThreadId, why: E) -> ThreadControl<E> {
        ThreadControl { thread, state: State::Open, why }
    }
}

/// To oneself, in the same thread, but not before a time: it takes a [grant](Timers).
///
/// It is in the log at once and survives a stop. A listener with
/// [`wakes`](crate::Listener::wakes) may get it earlier.
pub struct Later<E> {
    payload: E,
    until_us: u64,
    is_awaited: bool,
    by_clock: bool,
}

impl<E> Later<E> {
    /// At a time, in microseconds since the epoch: once the time from [`Clock::now_us`] to there
    /// has passed, whether the wall clock is set meanwhile or not. A restart goes by the wall
    /// clock.
    ///
    /// [`Clock::now_us`]: crate::listener::Clock::now_us
    pub fn at(until_us: u64, payload: E) -> Later<E> {
        Later { payload, until_us, is_awaited: true, by_clock: false }
    }

    /// The time is the wall clock's, as [`Clock::wall_us`] says it, wherever that is set. Where it
    /// is set back, what waits comes at once: look at the clock, and wait again.
    ///
    /// [`Clock::wall_us`]: crate::listener::Clock::wall_us
    #[must_use]
    pub fn by_clock(self) -> Later<E> {
        Later { by_clock: true, ..self }
    }

    /// Once the listener's [`wakes`](crate::Listener::wakes) says so.
    pub fn woken(payload: E) -> Later<E> {
        Later::at(u64::MAX, payload)
    }

    /// Nobody waits for it: a push that it comes of is done without it. If it has no time either,
    /// its thread may come to its end without it.
    #[must_use]
    pub fn unawaited(self) -> Later<E> {
        Later { is_awaited: false, ..self }
    }
}

/// What something costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "whoever charges says each")]
pub struct Cost {
    /// Turns of the listener in the message's thread.
    pub turns: u64,
    /// Tokens of models.
    pub tokens: u64,
    /// Millionths of whatever money the operator counts in.
    pub micros: u64,
}

/// Spends something of the budget of the message's tree: it takes a [grant](Charges).
///
/// Reserve before, settle after. Sent with `out.send`, what doesn't fit is `Err` with `P0042` and
/// the numbers, and none of it is spent.
///
/// ```
/// use pumphouse::listener::{Charge, Charges, Cost};
/// use pumphouse::prelude::*;
///
/// /// Wants an answer.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Ask;
///
/// async fn think(out: Outbox<Charge>, _: Ask) -> Result<(), Fault> {
///     let reserved = Cost { turns: 1, tokens: 4_000, micros: 0 };
///     out.send(Charge::reserve(reserved)).await?;
///     let spent = Cost { tokens: 3_120, ..reserved };
///     out.send(Charge::settle(reserved, spent)).await
/// }
///
/// let thinker = Listener::new("thinker").on(think).grant::<Charges>();
/// assert!(pumphouse::builder().with(thinker).build().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Charge(budget::Charge);

impl Charge {
    /// Spends so much, if there is so much.
    #[must_use]
    pub fn reserve(cost: Cost) -> Charge {
        let whole = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
        Charge(budget::Charge {
            turns: whole(cost.turns),
            tokens: whole(cost.tokens),
            cost_micros: whole(cost.micros),
            ..budget::Charge::default()
        })
    }

    /// Says what was spent of what had been reserved: the rest is given back, and what is more
    /// counts, whatever there is.
    #[must_use]
    pub fn settle(reserved: Cost, spent: Cost) -> Charge {
        let (was, is) = (Charge::reserve(reserved).0, Charge::reserve(spent).0);
        Charge(budget::Charge {
            turns: is.turns - was.turns,
            tokens: is.tokens - was.tokens,
            cost_micros: is.cost_micros - was.cost_micros,
            settled: true,
            ..budget::Charge::default()
        })
    }
}

/// One that says more: which model is asked, and what its tokens are.
impl From<budget::Charge> for Charge {
    fn from(charge: budget::Charge) -> Charge {
        Charge(charge)
    }
}

/// Raises a budget of the message's tree, if an operator sent the message: it takes a
/// [grant](Threads). The operator hears `budget-raised`, and what had run out goes on.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "it says what the operator said")]
pub struct Raise(
    /// What, and how far.
    pub RaiseBudget,
);

impl Emission {
    fn new(what: Result<What, Fault>) -> Emission {
        Emission { target: Target::Sender, what, marks: Marks::default() }
    }
}

#[diagnostic::do_not_recommend]
impl<P: Payload> IntoEmit for P {
    fn into_emit(self) -> Emit {
        let what = self.encode().map(|element| What { element, typed: Some(P::NAME) });
        vec![Emission::new(what.map_err(|it| invalid(&P::NAME, &it)))]
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
        vec![Emission::new(Ok(What { element: self, typed: None }))]
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
        for emission in emit.iter_mut().filter(|it| it.what.is_ok()) {
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

#[diagnostic::do_not_recommend]
impl IntoEmit for Charge {
    fn into_emit(self) -> Emit {
        aim(self.0.into_emit(), &Target::Charge)
    }

    fn emits() -> Vec<Need> {
        vec![Need::Grant(Charges::GRANT)]
    }
}

#[diagnostic::do_not_recommend]
impl IntoEmit for Raise {
    fn into_emit(self) -> Emit {
        aim(self.0.into_emit(), &Target::Raise)
    }

    fn emits() -> Vec<Need> {
        vec![Need::Grant(Threads::GRANT)]
    }
}

/// Marks what an `Err` holds as a failure in the log, whichever receiver it has.
fn wrong(mut emit: Emit) -> Emit {
    for emission in emit.iter_mut().filter(|it| it.what.is_ok()) {
        emission.marks.flags = emission.marks.flags.with(Flags::ERROR);
    }
    emit
}

/// Gives what is emitted a target. A fault goes to the sender, whatever holds it.
pub(crate) fn aim(mut emit: Emit, target: &Target) -> Emit {
    for emission in emit.iter_mut().filter(|it| it.what.is_ok()) {
        emission.target = target.clone();
    }
    emit
}

impl std::fmt::Debug for Emission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = self.what.as_ref().map(|it| &it.element);
        f.debug_struct("Emission").field("target", &self.target).field("what", &what).finish()
    }
}

/// The entry that an emission answers, where it answers one.
impl Target {
    pub(crate) fn answered<'a>(&'a self, message: &'a Entry) -> Option<&'a EntryId> {
        match self {
            Target::Entry(it) => Some(it.id()),
            Target::Sender => Some(message.id()),
            _ => None,
        }
    }
}
