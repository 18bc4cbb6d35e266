//! The properties of a listener that decide how its handlers are run.

use crate::listener::Listener;

impl<S: Clone + Send + Sync + 'static> Listener<S> {
    /// Makes the listener handle a thread's messages in order, one at a time. Folds and history
    /// still end at the message at hand; [`up_to_date`](Listener::up_to_date) lets them reach
    /// further.
    #[must_use]
    pub fn serial(mut self) -> Listener<S> {
        self.spec.traits.serial = true;
        self
    }

    /// Lets folds and history of a [serial](Listener::serial) listener reach as far as the thread
    /// does when a handler starts. That includes what the listener's handling before emitted, so
    /// a handler can decide by it. Without this, folds and history end at the message at hand, and
    /// messages that came at the same time see the same state.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
    /// use pumphouse::prelude::*;
    ///
    /// /// Takes a ticket.
    /// #[derive(Payload)]
    /// #[payload(ns = "urn:tickets")]
    /// struct Take;
    ///
    /// /// A ticket.
    /// #[derive(Payload)]
    /// #[payload(ns = "urn:tickets")]
    /// struct Ticket {
    ///     number: u64,
    /// }
    ///
    /// #[derive(Clone, Debug, Default)]
    /// struct Last(u64);
    ///
    /// impl Apply for Last {
    ///     fn apply(&mut self, entry: &Entry) {
    ///         if let Ok(Ticket { number }) = entry.decode() {
    ///             self.0 = number;
    ///         }
    ///     }
    /// }
    ///
    /// async fn take(last: Fold<Last>, _: Take) -> Ticket {
    ///     Ticket { number: last.0.0 + 1 }
    /// }
    ///
    /// let tickets = Listener::new("tickets").fold::<Last>().on(take).serial().up_to_date();
    /// let plan = pumphouse::builder().with(tickets).build()?;
    /// assert!(plan.warnings().is_empty());
    /// # Ok::<(), pumphouse::engine::Complaints>(())
    /// ```
    #[must_use]
    pub fn up_to_date(mut self) -> Listener<S> {
        self.spec.traits.up_to_date = true;
        self
    }

    /// Says that folds and history of a serial listener are meant to end at the message at hand,
    /// although a fold takes in what the listener itself answers. `build()` doesn't warn then.
    #[must_use]
    pub fn as_of_message(mut self) -> Listener<S> {
        self.spec.traits.at_message = true;
        self
    }

    /// Declares that the handlers depend on nothing but their arguments, and do nothing but emit. A
    /// replay runs pure and [recorded](Listener::recorded) listeners again, and reads the emissions
    /// of all other listeners from the log. A pure listener is idempotent, too.
    #[must_use]
    pub fn pure(mut self) -> Listener<S> {
        self.spec.traits.pure = true;
        self.idempotent()
    }

    /// Declares that the handlers depend only on their arguments and on outside answers, such as a
    /// model's. They must emit each of these answers. A replay runs the handlers with a
    /// [`Record`](crate::listener::Record), which holds these emissions.
    #[must_use]
    pub fn recorded(mut self) -> Listener<S> {
        self.spec.traits.recorded = true;
        self
    }

    /// Lets the listener run in a thread that is over budget, too. Messages to it aren't refused
    /// for lack of budget. This is for listeners that only pass on results of earlier messages.
    #[must_use]
    pub fn settles(mut self) -> Listener<S> {
        self.spec.traits.settles = true;
        self
    }

    /// Runs the handlers within the worker, without a task of their own. This is for handlers that
    /// take microseconds. A handler that has to wait becomes a task after all.
    #[must_use]
    pub fn inline(mut self) -> Listener<S> {
        self.spec.traits.inline = true;
        self
    }

    /// Declares an agent, which waits for a model most of its time. Its [kind](Listener::kind) is
    /// `agent`, and up to `agents_at_once` of its handlers run at the same time, in place of
    /// `handlers_max`.
    #[must_use]
    pub fn agent(mut self) -> Listener<S> {
        self.spec.traits.agent = true;
        self.kind("agent")
    }

    /// Runs the handlers on operating system threads that they may block.
    #[must_use]
    pub fn blocking(mut self) -> Listener<S> {
        self.spec.traits.blocking = true;
        self
    }

    /// Lets several listeners have handlers of the same payload, if all of them are shared. Each of
    /// them gets every message with this payload.
    #[must_use]
    pub fn shared(mut self) -> Listener<S> {
        self.spec.traits.shared = true;
        self
    }
}
