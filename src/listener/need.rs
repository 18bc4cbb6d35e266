//! What a handler's signature asks for and promises; `build()` compares it with what was given.

use std::borrow::Cow;

use crate::listener::fold::FoldId;
use crate::listener::{Apply, FoldOf};
use crate::schema::Schema;

/// One thing that a signature says.
#[derive(Clone)]
#[non_exhaustive]
pub enum Need {
    /// It takes this payload.
    Accept(Cow<'static, Schema>),
    /// It may emit this payload.
    Emit(Cow<'static, Schema>),
    /// It takes a fold, which must be registered.
    Fold(FoldType),
    /// It takes a fold that is kept because it does.
    Keep(Kept),
    /// It takes something that must be granted.
    Grant(&'static str),
    /// It takes something that does more where this is granted.
    MayGrant(&'static str),
    /// It takes what else waits for a serial listener.
    Queue,
    /// It reads the log, which must have the message by then.
    Log,
    /// It reads what its message comes of, where that is a reply, and so the log.
    Asked,
    /// Its message must be a reply.
    Reply,
    /// It hears of what comes while it is at work.
    Arrivals,
    /// It says itself when a thread ends.
    Final,
    /// It keeps messages of its queue until its work on them is done.
    Park,
}

/// The type of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoldType(pub(crate) FoldId);

/// A fold that is kept for the sake of an argument.
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
