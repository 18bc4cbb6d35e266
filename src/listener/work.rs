//! Work of a serial listener on several messages of its queue. With [`Answer`] a handler answers
//! several messages at once, and with [`Park`] it keeps messages unconsumed until its work on them
//! is done.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::listener::emit::aim;
use crate::listener::{Emit, Entry, IntoEmit, Need, Target};
use crate::wire::core::Done;

/// One answer to several messages of the thread. An identity that sent several of the messages gets
/// one entry, which answers the first of them. Each connection that sent any of them is told of
/// this entry once. A listener that sent several of the messages gets an entry for each of them.
///
/// In a child thread, an answer to the thread's first message ends the thread, unless the answer is
/// [`partial`](Answer::partial).
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::listener::Answer;
/// use pumphouse::prelude::*;
///
/// /// Wants a number.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Ask;
///
/// /// A number.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Told {
///     number: u64,
/// }
///
/// async fn tell(message: Message, Queue(more): Queue, _: Ask) -> Answer<Told> {
///     let asked = std::iter::once(message.0).chain(more).collect();
///     Answer::new(asked, Told { number: 42 })
/// }
///
/// let teller = Listener::new("teller").on(tell).serial();
/// assert!(pumphouse::builder().with(teller).build().is_ok());
/// ```
pub struct Answer<E> {
    asked: Vec<Entry>,
    outcome: Outcome,
    payload: E,
}

/// How far the work is when an answer is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Not `non_exhaustive`: the engine derives from each outcome how a child thread ends.
pub enum Outcome {
    /// The work goes on, and more answers follow.
    Partial,
    /// The work is done.
    Completed,
    /// The work failed.
    Failed,
    /// The work was cancelled.
    Cancelled,
}

impl<E> Answer<E> {
    /// The last answer to these messages.
    #[must_use]
    pub fn new(asked: Vec<Entry>, payload: E) -> Answer<E> {
        Answer { asked, outcome: Outcome::Completed, payload }
    }

    /// An answer after which further answers follow.
    #[must_use]
    pub fn partial(asked: Vec<Entry>, payload: E) -> Answer<E> {
        Answer { asked, outcome: Outcome::Partial, payload }
    }

    /// Sets how the work ended.
    #[must_use]
    pub fn outcome(self, outcome: Outcome) -> Answer<E> {
        Answer { outcome, ..self }
    }
}

#[diagnostic::do_not_recommend]
impl<E: IntoEmit> IntoEmit for Answer<E> {
    fn into_emit(self) -> Emit {
        let target = Target::Askers(self.asked, self.outcome);
        aim(self.payload.into_emit(), &target)
    }

    fn emits() -> Vec<Need> {
        [E::emits(), vec![Need::Final]].concat()
    }
}

/// Messages that a serial listener with a [`Queue`](crate::listener::Queue) parks when it returns.
///
/// A parked message stays unconsumed: its sender still waits, and a restart keeps it. Parked
/// messages start no handler by themselves. When the listener gets its next message in the thread,
/// they are in its queue again.
///
/// While a listener has parked messages in a thread, it has unfinished work there. If another
/// listener then sends it a message in this thread, the message opens a child thread.
#[derive(Clone, Debug, Default)]
pub struct Park {
    work: Vec<u64>,
    others: Vec<u64>,
    quiet: bool,
    besides: Option<Besides>,
    settles: bool,
}

/// The function that a listener gives to [`Park::besides`].
#[derive(Clone)]
struct Besides(Arc<dyn Fn(&Entry) -> bool + Send + Sync>);

impl fmt::Debug for Besides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Besides")
    }
}

impl Park {
    /// Sets the messages that the listener is working on, by their numbers. Messages that the
    /// listener sends to itself afterwards belong to the push of the first of these messages.
    #[must_use]
    pub fn work(self, work: Vec<u64>) -> Park {
        Park { work, ..self }
    }

    /// Sets the messages that wait until the current work is done, by their numbers.
    #[must_use]
    pub fn others(self, others: Vec<u64>) -> Park {
        Park { others, ..self }
    }

    /// Asks the pump to send `nothing-under-way` to the listener. The pump sends this payload once
    /// four conditions hold:
    ///
    /// - the thread is neither paused nor over budget,
    /// - every unconsumed message in the thread is parked,
    /// - the thread has no open child thread, and
    /// - no [`Later`](crate::listener::Later) message of the pushes that the work belongs to waits
    ///   in the thread.
    #[must_use]
    pub fn quiet(self) -> Park {
        Park { quiet: true, ..self }
    }

    /// Adds a condition to [`quiet`](Park::quiet). The pump calls `counts` for each
    /// [unawaited](crate::listener::Later::unawaited) message that waits in the thread for its
    /// time. If `counts` returns true, `nothing-under-way` is delayed until this message has come.
    /// An agent counts its own timers in this way. After a restart, no unawaited message counts
    /// until the listener parks messages again.
    #[must_use]
    pub fn besides(self, counts: impl Fn(&Entry) -> bool + Send + Sync + 'static) -> Park {
        Park { besides: Some(Besides(Arc::new(counts))), ..self }
    }

    /// Lets the listener run even if the thread is over budget. This is for a listener that has
    /// nothing left to do but answer the parked messages.
    #[must_use]
    pub fn settles(self) -> Park {
        Park { settles: true, ..self }
    }

    pub(crate) fn keeps(&self, seq: u64) -> bool {
        self.work.contains(&seq) || self.others.contains(&seq)
    }

    /// Whether the message belongs to the current work.
    pub(crate) fn works_on(&self, seq: u64) -> bool {
        self.work.contains(&seq)
    }

    /// The number of the first message of the current work.
    pub(crate) fn first(&self) -> Option<u64> {
        self.work.first().copied()
    }

    /// Whether the listener also runs when the thread is over budget.
    pub(crate) fn goes_on(&self) -> bool {
        self.settles
    }

    /// Whether the listener asked for `nothing-under-way`.
    pub(crate) fn hears_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether an unawaited message that waits delays `nothing-under-way`. If the listener's
    /// function panics, the message doesn't.
    pub(crate) fn counts(&self, waiting: &Entry) -> bool {
        let counts =
            |it: &Besides| catch_unwind(AssertUnwindSafe(|| (it.0)(waiting))).unwrap_or(false);
        self.besides.as_ref().is_some_and(counts)
    }
}

#[diagnostic::do_not_recommend]
impl IntoEmit for Park {
    fn into_emit(self) -> Emit {
        // The pump reads the target alone; the payload is never sent.
        aim(Done {}.into_emit(), &Target::Park(Box::new(self)))
    }

    fn emits() -> Vec<Need> {
        vec![Need::Park]
    }
}
