//! Needs: the requirements of a handler's signature, and the payloads that the handler takes and
//! emits. `build()` fails if the listener lacks what its handlers require.

use std::borrow::Cow;

use crate::listener::fold::FoldId;
use crate::listener::{Apply, FoldOf};
use crate::schema::Schema;

/// One requirement or promise of a handler's signature.
#[derive(Clone)]
#[non_exhaustive]
pub enum Need {
    /// The handler takes this payload.
    Accept(Cow<'static, Schema>),
    /// The handler may emit this payload.
    Emit(Cow<'static, Schema>),
    /// The handler takes a fold, which must be registered with
    /// [`Listener::fold`](crate::Listener::fold).
    Fold(FoldType),
    /// The handler takes a fold that is registered automatically.
    Keep(Kept),
    /// The handler has an argument or a return type that needs this grant.
    Grant(&'static str),
    /// The handler has an argument that can do more with this optional grant.
    MayGrant(&'static str),
    /// The handler takes the queue of a serial listener.
    Queue,
    /// The handler reads the log, which must have the message before the handler begins.
    Log,
    /// The handler takes an [`Asked`](crate::listener::Asked), so the log is read before the
    /// handler begins.
    Asked,
    /// The handler can only handle replies.
    Reply,
    /// The handler takes [`Arrivals`](crate::listener::Arrivals).
    Arrivals,
    /// The handler may return a value that ends the thread, such as
    /// [`Final`](crate::listener::Final).
    Final,
    /// The handler may park messages of its queue.
    Park,
}

/// The type of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoldType(pub(crate) FoldId);

/// A fold that is registered because a handler has an argument that needs it.
#[derive(Clone, Copy)]
pub struct Kept(pub(crate) FoldId, pub(crate) FoldOf);

impl Need {
    /// A fold that is registered automatically. If an argument of your own is made from a fold,
    /// return this need from its `needs()`:
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
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
