//! The host: what arguments ask of the engine. The engine implements it.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::id::ThreadId;
use crate::limits::Limits;
use crate::listener::{ArrivalSignal, Awake, Capabilities, Emit, Entry};
use crate::wire::Fault;
use crate::xml::Element;

/// A boxed future that is `Send` and may fail.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'a>>;

/// A message on its way into a handler, with everything that its arguments are made of.
pub struct HandlerCall {
    pub(crate) message: Entry,
    pub(crate) listener: Arc<str>,
    /// The listener's index in the organism, for the engine.
    pub(crate) index: usize,
    pub(crate) attempt: u32,
    pub(crate) queue: Vec<Entry>,
    /// The last entry that history and folds include.
    pub(crate) as_of: u64,
    /// Whether the log has the message.
    pub(crate) is_kept: bool,
    pub(crate) grants: Arc<BTreeSet<String>>,
    pub(crate) peers: Option<Arc<[String]>>,
    pub(crate) cancel: Option<CancellationToken>,
    /// The arrivals, if the handler takes them.
    pub(crate) arrivals: Option<ArrivalSignal>,
    pub(crate) folds: Vec<Awake>,
    /// The asked message of a reply, once it has been read.
    pub(crate) asked: OnceLock<Option<Entry>>,
    /// The log's key, from which random numbers are derived.
    pub(crate) key: [u8; 32],
    /// How often `Outbox::send` was called.
    pub(crate) sent: AtomicU32,
    pub(crate) host: Arc<dyn Host>,
}

impl HandlerCall {
    /// The message.
    #[must_use]
    pub fn message(&self) -> &Entry {
        &self.message
    }

    /// The listener that handles it.
    #[must_use]
    pub fn listener(&self) -> &str {
        &self.listener
    }
}

/// A page of the threads that an identity opened, in other trees than the message's.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OtherThreads {
    /// The threads, in the order in which they were opened.
    pub threads: Vec<ThreadId>,
    /// How many threads of the log were examined.
    pub looked_at: usize,
    /// The thread after which the next page begins, whoever its owner is. None if this is the last
    /// page.
    pub next: Option<ThreadId>,
}

/// The engine, as arguments see it.
pub trait Host: Send + Sync {
    /// Takes what a handler sends before it returns. It has its place in the order once this is
    /// called; the future says when the log has it.
    fn commit(&self, call: &Arc<HandlerCall>, emit: Emit) -> Boxed<'static, ()>;
    /// Shows a live payload to the thread's followers. It may be dropped.
    fn live(&self, call: &HandlerCall, element: Element);
    /// Reads the thread's entries after a number, up to the message.
    fn read<'a>(&'a self, call: &'a HandlerCall, after: u64, limit: usize)
    -> Boxed<'a, Vec<Entry>>;
    /// The threads of the message's tree, in the order in which they were opened.
    fn tree<'a>(&'a self, call: &'a HandlerCall) -> Boxed<'a, Vec<ThreadId>>;
    /// The next threads of other trees of the identity that opened the message's, where the
    /// listener may read them.
    fn others<'a>(
        &'a self,
        call: &'a HandlerCall,
        after: Option<&'a ThreadId>,
    ) -> Boxed<'a, OtherThreads>;
    /// Reads the entries of such a thread after a number, up to the message.
    fn read_thread<'a>(
        &'a self,
        call: &'a HandlerCall,
        thread: &'a ThreadId,
        after: u64,
        limit: usize,
    ) -> Boxed<'a, Vec<Entry>>;
    /// Reads the entry that the message comes of, if this listener sent the message itself or the
    /// entry is of the same thread.
    fn cause<'a>(&'a self, call: &'a HandlerCall) -> Boxed<'a, Option<Entry>>;
    /// Reads the message whose handling sent the request that the message answers, where it is a
    /// reply to this listener.
    fn asked<'a>(&'a self, call: &'a HandlerCall) -> Boxed<'a, Option<Entry>>;
    /// Reads what this listener has already sent while handling this message, in an earlier
    /// attempt or in this one.
    fn sent<'a>(&'a self, call: &'a HandlerCall) -> Boxed<'a, Vec<Entry>>;
    /// In a replay: what came of the message then.
    fn record(&self) -> Option<Vec<Entry>> {
        None
    }
    /// By how much the wall clock is ahead of the log's time; less than 0 where it is behind.
    fn ahead_us(&self) -> i64 {
        0
    }
    /// What the organism can do.
    fn capabilities(&self) -> &Capabilities;
    /// The organism's limits.
    fn limits(&self) -> &Limits;
}
