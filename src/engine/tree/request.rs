//! Requests of a thread to its tree: to open, end and steer threads, and to change budgets.

use crate::engine::tree::budget_ledger::Short;
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
    /// Open a child of the thread in which the handling runs.
    Open(Box<ChildRequest>),
    /// The thread has ended with this entry.
    Ended(ThreadEnd),
    /// The thread has a note for its opener, and continues.
    Note(OpenerNote),
    /// Give another state to a thread and to all threads below it.
    Steer(Box<Steering>),
    /// A budget is spent: hold the threads that it bounds.
    Spent(SpentBudget),
    /// Raise a budget for an operator.
    Raise(Box<RaiseRequest>),
    /// Try the stopped listeners of a thread and of all threads below it again.
    Retry(Box<RetryRequest>),
}

/// A child thread that is to be opened.
pub(crate) struct ChildRequest {
    /// The handling that opens the child.
    pub(crate) part: Part,
    pub(crate) label: String,
    pub(crate) first: Checked,
    pub(crate) purpose: ChildPurpose,
}

/// Why a child is opened. The purpose decides which sender or listener is told of the child and of
/// its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildPurpose {
    /// The sender of the message asked for the child.
    ForSender,
    /// The listener itself wants the child.
    Spawn,
    /// The listener calls another listener, whose work needs a child thread.
    Call(Receiver),
}

/// The end of a thread: its last entry, its status and its result.
pub(crate) struct ThreadEnd {
    pub(crate) thread: ThreadId,
    pub(crate) entry: EntryId,
    pub(crate) status: ThreadStatus,
    pub(crate) element: Option<Element>,
}

/// A thread's note for its opener.
pub(crate) struct OpenerNote {
    pub(crate) thread: ThreadId,
    pub(crate) entry: EntryId,
    pub(crate) element: Element,
}

/// A thread that gets a new state together with all threads below it, and the payload that says
/// why.
pub(crate) struct Steering {
    pub(crate) part: Part,
    pub(crate) thread: ThreadId,
    pub(crate) state: State,
    pub(crate) why: Checked,
}

/// A budget that is spent. If `thread` is None, the budget bounds the whole tree; otherwise only
/// this thread.
pub(crate) struct SpentBudget {
    pub(crate) short: Short,
    pub(crate) thread: Option<ThreadId>,
}

/// A thread whose stopped listeners are to be tried again, and the handling that asks for that.
pub(crate) struct RetryRequest {
    pub(crate) part: Part,
    pub(crate) thread: ThreadId,
}

/// A request to raise a budget, and the handling that sent it.
pub(crate) struct RaiseRequest {
    pub(crate) part: Part,
    pub(crate) raise: RaiseBudget,
}
