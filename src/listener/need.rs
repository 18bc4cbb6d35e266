//! Needs: what a handler's signature requires of its listener, and which payloads it takes and
//! emits. `build()` complains if the listener lacks what its handlers require.

use std::borrow::Cow;

use crate::listener::fold::FoldId;
use crate::listener::{Apply, FoldOf};
use crate::schema::Schema;

/// One requirement or promise of a handler's signature. In the variants, "it" is the handler.
#[derive(Clone)]
#[non_exhaustive]
pub enum Need {
    /// It takes this payload.
    Accept(Cow<'static, Schema>),
    /// It may emit this payload.
    Emit(Cow<'static, Schema>),
    /// It takes a fold, which must be registered with [`Listener::fold`](crate::Listener::fold).
    Fold(FoldType),
    /// It takes a fold that is registered automatically.
    Keep(Kept),
    /// It has an argument or a return type that needs this grant.
    Grant(&'static str),
    /// It has an argument that can do more with this grant, which is optional.
    MayGrant(&'static str),
    /// It takes the queue of a serial listener.
    Queue,
    /// It reads the log, which must have the message before the handler begins.
    Log,
    /// It takes an [`Asked`](crate::listener::Asked), so the log is read before the handler begins.
    Asked,
    /// It can only handle replies.
    Reply,
    /// It takes the arrivals that come while it runs.
    Arrivals,
    /// It may return a value that ends the thread, such as [`Final`](crate::listener::Final).
    Final,
    /// It may park messages of its queue.
    Park,
}

/// The type of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoldType(pub(crate) FoldId);

/// A fold that is registered because a handler has an argument that needs it.
#[derive(Clone, Copy)]
pub struct Kept(pub(crate) FoldId, pub(crate) FoldOf);

impl Need {
    /// A fold that is registered automatically. Return this need from the `needs()` of an argument
    /// of your own that is made from a fold:
    ///
    /// ```
    /// use pumphouse::listener::{Context, FromContext, Need};
    /// use pumphouse::prelude::*;
    ///
    /// /// How many messages the thread has had.
    /// #[derive(Clone, Debug, Default)]
    /// struct Count(u64);
    ///
    /// impl Apply for Count {
    ///     fn apply(&mut self, _: &Entry) {
    ///         self.0 += 1;
    ///     }
    /// }
    ///
    /// /// Whether the message is the thread's first.
    /// struct First(bool);
    ///
    /// impl<S> FromContext<S> for First {
    ///     fn needs() -> Vec<Need> {
    ///         vec![Need::keep::<Count>()]
    ///     }
    ///
    ///     fn from_context(it: &Context<S>) -> Result<First, Fault> {
    ///         Ok(First(Fold::<Count>::from_context(it)?.0.0 == 1))
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn keep<T: Apply>() -> Need {
        let (id, fold) = FoldOf::of::<T>();
        Need::Keep(Kept(id, fold))
    }
}
