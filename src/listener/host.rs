//! The interface between a handler's arguments and the engine. The engine makes a [`HandlerCall`]
//! for each message and implements [`Host`]; the arguments use both.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::id::ThreadId;
use crate::limits::Limits;
use crate::listener::{ArrivalSignal, Awake, Capabilities, Emit, Entry};
use crate::name::Name;
use crate::wire::Fault;
use crate::wire::budget::Charge;
use crate::xml::Element;

/// A boxed future that is `Send` and may fail.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'a>>;

/// The settlement that the pump books if it stops a handler before the handler settles what it has
/// reserved. The handler keeps the settlement up to date.
pub(crate) type StopCharge = Arc<Mutex<Option<Charge>>>;

/// One call of a handler: the message, and the values from which the handler's arguments are made.
pub struct HandlerCall {
    pub(crate) message: Entry,
    pub(crate) listener: Arc<str>,
    /// The listener's index in the organism, for the engine.
    pub(crate) index: usize,
    pub(crate) attempt: u32,
    pub(crate) queue: Vec<Entry>,
    /// The number of the last entry that history and folds include.
    pub(crate) as_of: u64,
    /// Whether the message was in the log before the handler began.
    pub(crate) is_kept: bool,
    pub(crate) grants: Arc<BTreeSet<String>>,
    pub(crate) peers: Option<Arc<[String]>>,
    pub(crate) cancel: Option<CancellationToken>,
    /// The signal for [`Arrivals`](crate::listener::Arrivals), if the listener takes that argument.
    pub(crate) arrivals: Option<ArrivalSignal>,
    /// The settlement for the case that the handler is stopped, if the listener may charge budgets.
    pub(crate) stop_charge: Option<StopCharge>,
    pub(crate) folds: Vec<Awake>,
    /// The message that [`Asked`](crate::listener::Asked) gives. The cell is empty until the log
    /// has been read. None in the cell means that there is no such message.
    pub(crate) asked: OnceLock<Option<Entry>>,
    /// The log's key. [`Random`](crate::listener::Random) derives its numbers from it.
    pub(crate) key: [u8; 32],
    /// How many times the handler has sent with an `Outbox`.
    pub(crate) sent: AtomicU32,
    pub(crate) host: Arc<dyn Host>,
}

impl HandlerCall {
    /// The message.
    #[must_use]
    pub fn message(&self) -> &Entry {
        &self.message
    }

    /// The name of the listener that handles the message.
    #[must_use]
    pub fn listener(&self) -> &str {
        &self.listener
    }
}

/// A page of the threads in other trees of the identity that opened the message's tree.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OtherThreads {
    /// The threads, in the order in which they were opened.
    pub threads: Vec<ThreadId>,
    /// How many threads of the log this page examined.
    pub looked_at: usize,
    /// The thread after which the next page begins. It may belong to another identity. None if this
    /// page examined no thread: the log has no more threads, or the listener may not read any.
    pub next: Option<ThreadId>,
}

/// The engine, as a handler's arguments see it.
pub trait Host: Send + Sync {
    /// Takes emissions that a handler sends before it returns. The order of these calls is the
    /// order of the handler's emissions. The returned future ends once the emissions are in the log
    /// or were refused.
    fn commit(&self, call: &Arc<HandlerCall>, emit: Emit) -> Boxed<'static, ()>;
    /// Shows a live payload to the thread's followers. The payload may be lost.
    fn live(&self, call: &HandlerCall, element: Element);
    /// Reads up to `limit` entries of the thread whose number is greater than `after`. Entries
    /// after the message are left out. If the handler takes its [`Queue`](crate::listener::Queue),
    /// the last entry is instead the queue's last message or the listener's last emission,
    /// whichever is later. If the listener is [up to date](crate::Listener::up_to_date), it is the
    /// thread's last entry when the handler was started.
    fn read<'a>(&'a self, call: &'a HandlerCall, after: u64, limit: usize)
    -> Boxed<'a, Vec<Entry>>;
    /// The threads of the message's tree, in the order in which they were opened.
    fn tree<'a>(&'a self, call: &'a HandlerCall) -> Boxed<'a, Vec<ThreadId>>;
    /// The next page of threads in other trees that the same identity opened, after the thread
    /// `after`. Empty if the listener has no right to read them, or if the log has no thread
    /// `after`.
    fn others<'a>(
        &'a self,
        call: &'a HandlerCall,
        after: Option<&'a ThreadId>,
    ) -> Boxed<'a, OtherThreads>;
    /// Reads up to `limit` entries of a thread of [`tree`](Host::tree) or [`others`](Host::others)
    /// whose number is greater than `after`. Entries that the log got after the message are left
    /// out. For the message's own thread, this reads the same entries as [`read`](Host::read).
    fn read_thread<'a>(
        &'a self,
        call: &'a HandlerCall,
        thread: &'a ThreadId,
        after: u64,
        limit: usize,
    ) -> Boxed<'a, Vec<Entry>>;
    /// Records a payload of the pump itself in the organism's own thread. The returned future ends
    /// once the log has the payload.
    fn record_in_organism(
        &self,
        call: &HandlerCall,
        name: Name,
        payload: Element,
    ) -> Boxed<'static, ()>;
    /// Reads up to `limit` entries of the organism's own thread whose number is greater than
    /// `after`. Entries that the log got after the message are left out.
    fn read_organism<'a>(
        &'a self,
        call: &'a HandlerCall,
        after: u64,
        limit: usize,
    ) -> Boxed<'a, Vec<Entry>>;
    /// Reads the message's cause. None if there is no cause, or if the cause is in another thread
    /// and this listener didn't send the message itself.
    fn cause<'a>(&'a self, call: &'a HandlerCall) -> Boxed<'a, Option<Entry>>;
    /// If the message answers a request of this listener: reads the message that the listener was
    /// handling when it sent the request.
    fn asked<'a>(&'a self, call: &'a HandlerCall) -> Boxed<'a, Option<Entry>>;
    /// Reads the entries that this listener has already sent for this message, in an earlier
    /// attempt or in this one.
    fn sent<'a>(&'a self, call: &'a HandlerCall) -> Boxed<'a, Vec<Entry>>;
    /// In a replay: the entries that the listener emitted for the message in the original run. None
    /// otherwise.
    fn record(&self) -> Option<Vec<Entry>> {
        None
    }
    /// How many microseconds the wall clock is ahead of the log's time. Negative if the wall clock
    /// is behind.
    fn ahead_us(&self) -> i64 {
        0
    }
    /// The time now, in microseconds since the epoch, as the log counts it. None in a replay.
    fn live_us(&self) -> Option<u64> {
        None
    }
    /// The organism's listeners and payloads.
    fn capabilities(&self) -> &Capabilities;
    /// The organism's limits.
    fn limits(&self) -> &Limits;
}
