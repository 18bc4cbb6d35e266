//! A worker's inbox and its kinds of mail.

use std::sync::{Mutex, PoisonError};
use std::task::Waker;

use futures_util::task::AtomicWaker;
use tokio::sync::oneshot;

use crate::engine::tree::event::{Event, Key, Push, Ready, Unfinished, Words};
use crate::engine::tree::folds::FoldVersion;
use crate::id::ThreadId;

/// A message to a worker.
pub(crate) enum Mail {
    /// An event of a thread. If the thread's tree is neither in memory nor being loaded, the event
    /// is dropped.
    Event(ThreadId, Event),
    /// A push. Its tree may have to be loaded first. With `drawn`, the push opens a session, and
    /// the thread's id is a new random id for it.
    Push { thread: ThreadId, drawn: bool, push: Box<Push> },
    /// A handler that ran as a task has ended with these emissions. None if the handler was
    /// stopped.
    Ended(Key, Option<Vec<Ready>>),
    /// A listener has a free place for one more handler.
    Room(usize),
    /// Payloads for the organism's own thread.
    Note(ThreadId, Words),
    /// Asks which folds of a thread are in memory.
    Folds(ThreadId, oneshot::Sender<Cached>),
    /// Entries of a thread that were unfinished when the pump stopped.
    Resume(ThreadId, Vec<Unfinished>),
    /// The worker may handle what was posted so far. Pushes and timers wait for [`Mail::Begin`].
    BeginUnfinished,
    /// Every unfinished entry has been posted, so the worker may begin.
    Begin,
    /// Asks the worker to answer when nothing is left to do. The answer is how much mail the worker
    /// has read since its start.
    Drain(oneshot::Sender<u64>),
    /// Tells the worker to stop now.
    Stop,
}

/// A worker's inbox. Posting never waits. The back-pressure windows of connections bound how much
/// mail doors post. The number of running handlers bounds how much mail handlers post.
#[derive(Default)]
pub(crate) struct Inbox {
    mail: Mutex<Vec<Mail>>,
    waker: AtomicWaker,
}

impl Inbox {
    pub(crate) fn post(&self, mail: Mail) {
        self.put(mail);
        self.remind();
    }

    /// Adds mail without waking the worker: the caller calls `remind` later.
    pub(crate) fn put(&self, mail: Mail) {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner).push(mail);
    }

    /// Wakes the worker.
    pub(crate) fn remind(&self) {
        self.waker.wake();
    }

    /// Returns how many messages wait in the inbox.
    pub(crate) fn len(&self) -> usize {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Moves all mail into `into`, which must be empty.
    pub(crate) fn take(&self, into: &mut Vec<Mail>) {
        std::mem::swap(&mut *self.mail.lock().unwrap_or_else(PoisonError::into_inner), into);
    }

    pub(crate) fn wake(&self, waker: &Waker) {
        self.waker.register(waker);
    }
}

/// The newest states of a thread's folds that a worker has in memory.
pub(crate) type Cached = Vec<FoldVersion>;
