//! What a thread asks of its tree: to open, end and steer threads, and to settle budgets.

use crate::engine::tree::budget::Short;
use crate::engine::tree::route::Receiver;
use crate::engine::tree::sending::Part;
use crate::id::{EntryId, ThreadId};
use crate::log::State;
use crate::wire::Checked;
use crate::wire::budget::RaiseBudget;
use crate::wire::core::ThreadStatus;
use crate::xml::Element;

/// What a thread's step asks of its tree.
pub(crate) enum Beyond {
    /// A child of the part's thread.
    Open(Box<Opening>),
    /// The thread ended with this entry.
    Ended(Ended),
    /// The thread has a note for its opener, and goes on.
    Said(Said),
    /// A branch becomes so.
    Steer(Box<Steering>),
    /// Nothing is left of something.
    Spent(Spent),
    /// An operator allows more.
    Raise(Box<Raising>),
}

/// A child to be.
pub(crate) struct Opening {
    /// The handling that opens it.
    pub(crate) part: Part,
    pub(crate) label: String,
    pub(crate) first: Checked,
    pub(crate) how: How,
}

/// Why a child is opened, and so who hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The sender of the message asked for it.
    ForSender,
    /// The listener wants it.
    Spawn,
    /// The listener calls one that wants its own threads.
    Call(Receiver),
}

/// A thread's end.
pub(crate) struct Ended {
    pub(crate) thread: ThreadId,
    pub(crate) entry: EntryId,
    pub(crate) status: ThreadStatus,
    pub(crate) element: Option<Element>,
}

/// A thread's note for its opener.
pub(crate) struct Said {
    pub(crate) thread: ThreadId,
    pub(crate) entry: EntryId,
    pub(crate) element: Element,
}

/// A branch of the tree, what it becomes, and the entry that says why.
pub(crate) struct Steering {
    pub(crate) part: Part,
    pub(crate) thread: ThreadId,
    pub(crate) state: State,
    pub(crate) why: Checked,
}

/// Nothing is left of something: in the whole tree, or in one of its threads.
pub(crate) struct Spent {
    pub(crate) short: Short,
    pub(crate) thread: Option<ThreadId>,
}

/// An operator's word, and the handling that it comes with.
pub(crate) struct Raising {
    pub(crate) part: Part,
    pub(crate) it: RaiseBudget,
}
