//! What a handler's signature asks for and promises; `build()` compares it with what was given.

use std::borrow::Cow;

use crate::listener::fold::FoldId;
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
    /// It takes something that must be granted.
    Grant(&'static str),
    /// It takes what else waits for a serial listener.
    Queue,
    /// It says itself when a thread ends.
    Final,
}

/// The type of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoldType(pub(crate) FoldId);
