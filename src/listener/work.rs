//! Work of a serial listener on several messages: which messages of its queue it parks, and which
//! of them an answer answers.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::listener::emit::aim;
use crate::listener::{Emit, Entry, IntoEmit, Need, Target};
use crate::wire::core::Done;

/// Answers messages that the listener handles now, had parked, or handled before. An identity gets
/// the answer once, with the first of its messages, and each of its connections hears it once. A
/// listener gets it for each of its messages.
///
/// In a child thread the answer to the first message ends the thread, unless it is
/// [`partial`](Answer::partial).
///
/// ```
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

/// The state of the work that an answer is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Exhaustive, since a thread's end depends on each.
pub enum Outcome {
    /// More follows.
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

    /// An answer after which more follows.
    #[must_use]
    pub fn partial(asked: Vec<Entry>, payload: E) -> Answer<E> {
        Answer { asked, outcome: Outcome::Partial, payload }
    }

    /// Says how the work ended.
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
/// They stay unconsumed: their senders still wait, a restart keeps them, and they are in the queue
/// again with the listener's next message. They start no handler by themselves.
///
/// A listener with parked messages has unfinished work in the thread. Until it has none, calls of
/// it there run in child threads.
#[derive(Clone, Debug, Default)]
pub struct Park {
    work: Vec<u64>,
    others: Vec<u64>,
    quiet: bool,
    besides: Option<Besides>,
    settles: bool,
}

/// Which deliveries that no push waits for count as under way.
#[derive(Clone)]
struct Besides(Arc<dyn Fn(&Entry) -> bool + Send + Sync>);

impl fmt::Debug for Besides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Besides")
    }
}

impl Park {
    /// The messages that the listener is working on, by their numbers. What it does next is done
    /// for the sender of the first of them.
    #[must_use]
    pub fn work(self, work: Vec<u64>) -> Park {
        Park { work, ..self }
    }

    /// The messages that wait until that work is done.
    #[must_use]
    pub fn others(self, others: Vec<u64>) -> Park {
        Park { others, ..self }
    }

    /// Has the pump send `nothing-under-way` once nothing else is unconsumed or running in the
    /// thread, and no delivery of the same push as the work waits for its time there.
    #[must_use]
    pub fn quiet(self) -> Park {
        Park { quiet: true, ..self }
    }

    /// With [`quiet`](Park::quiet): a delivery that waits for its time in the thread and that
    /// [nobody awaits](crate::listener::Later::unawaited) counts, too, if `counts` says so. An
    /// agent names its own timers. After a restart none counts until the listener parks again.
    #[must_use]
    pub fn besides(self, counts: impl Fn(&Entry) -> bool + Send + Sync + 'static) -> Park {
        Park { besides: Some(Besides(Arc::new(counts))), ..self }
    }

    /// Lets the listener continue in a thread that is over budget, too, since its work there only
    /// settles these messages.
    #[must_use]
    pub fn settles(self) -> Park {
        Park { settles: true, ..self }
    }

    pub(crate) fn keeps(&self, seq: u64) -> bool {
        self.work.contains(&seq) || self.others.contains(&seq)
    }

    /// Whether the message belongs to the work.
    pub(crate) fn works_on(&self, seq: u64) -> bool {
        self.work.contains(&seq)
    }

    /// The first message of the work.
    pub(crate) fn first(&self) -> Option<u64> {
        self.work.first().copied()
    }

    /// Whether the listener continues over budget.
    pub(crate) fn goes_on(&self) -> bool {
        self.settles
    }

    /// Whether the listener wants `nothing-under-way`.
    pub(crate) fn hears_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether a waiting delivery that no push waits for counts as under way. It doesn't if the
    /// listener's function panics.
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
