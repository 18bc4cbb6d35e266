//! Needs: what a handler's signature requires and promises. `build()` compares it with the
//! listener.

use std::borrow::Cow;

use crate::listener::fold::FoldId;
use crate::listener::{Apply, FoldOf};
use crate::schema::Schema;

/// One requirement or promise of a signature.
#[derive(Clone)]
#[non_exhaustive]
pub enum Need {
    /// It takes this payload.
    Accept(Cow<'static, Schema>),
    /// It may emit this payload.
    Emit(Cow<'static, Schema>),
    /// It takes a fold, which must be registered.
    Fold(FoldType),
    /// It takes a fold that is registered automatically.
    Keep(Kept),
    /// It takes an argument that needs a grant.
    Grant(&'static str),
    /// It takes an argument that can do more with this grant.
    MayGrant(&'static str),
    /// It takes the queue of a serial listener.
    Queue,
    /// It reads the log, which must have the message by then.
    Log,
    /// It reads the asked message of a reply, and so the log.
    Asked,
    /// Its message must be a reply.
    Reply,
    /// It hears of arrivals while it runs.
    Arrivals,
    /// It decides itself when a thread ends.
    Final,
    /// It parks messages of its queue until its work on them is done.
    Park,
}

/// The type of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoldType(pub(crate) FoldId);

/// A fold that is registered because of an argument.
#[derive(Clone, Copy)]
pub struct Kept(pub(crate) FoldId, pub(crate) FoldOf);

impl Need {
    /// A fold that nobody has to register: for arguments of one's own that are made of one.
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
