//! Requests of a thread to its tree: to open, end and steer threads, and to change budgets.

use crate::engine::tree::budget::Short;
use crate::engine::tree::route::Receiver;
use crate::engine::tree::sending::Part;
use crate::id::{EntryId, ThreadId};
use crate::log::State;
use crate::wire::Checked;
use crate::wire::budget::RaiseBudget;
use crate::wire::core::ThreadStatus;
use crate::xml::Element;

/// A request of a thread to its tree.
pub(crate) enum TreeRequest {
    /// Open a child of the part's thread.
    Open(Box<Opening>),
    /// The thread has ended with this entry.
    Ended(Ended),
    /// The thread has a note for its opener, and continues.
    Said(Said),
    /// Give a branch of threads another state.
    Steer(Box<Steering>),
    /// A budget is spent.
    Spent(Spent),
    /// Raise a budget for an operator.
    Raise(Box<Raising>),
}

/// A child thread that is to be opened.
pub(crate) struct Opening {
    /// The handling that opens it.
    pub(crate) part: Part,
    pub(crate) label: String,
    pub(crate) first: Checked,
    pub(crate) how: How,
}

/// Why a child is opened. This decides who is told of it.
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

/// A branch of threads, its new state, and the entry that says why.
pub(crate) struct Steering {
    pub(crate) part: Part,
    pub(crate) thread: ThreadId,
    pub(crate) state: State,
    pub(crate) why: Checked,
}

/// A budget that is spent, of the whole tree or of one thread.
pub(crate) struct Spent {
    pub(crate) short: Short,
    pub(crate) thread: Option<ThreadId>,
}

/// An operator's request for more, and its handling.
pub(crate) struct Raising {
    pub(crate) part: Part,
    pub(crate) raise: RaiseBudget,
}
