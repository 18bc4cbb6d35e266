//! A worker's inbox, and what may lie in it.

use std::sync::{Mutex, PoisonError};
use std::task::Waker;

use futures_util::task::AtomicWaker;
use tokio::sync::oneshot;

use crate::engine::tree::event::{Event, Key, Left, Push, Ready};
use crate::id::ThreadId;
use crate::listener::Awake;
use crate::wire::Checked;

/// What may lie in a worker's inbox.
pub(crate) enum Mail {
    /// Something for a thread whose tree is awake.
    Event(ThreadId, Event),
    /// Something into a thread that may have to be woken, or made where its id was drawn.
    Push { thread: ThreadId, drawn: bool, push: Box<Push> },
    /// A handler that ran as a task came to its end, whether or not anybody still cares.
    Ended(Key, Option<Vec<Ready>>),
    /// A listener has room for one more handler.
    Room(usize),
    /// What the pump itself says in a thread of its own.
    Note(ThreadId, Vec<Checked>),
    /// Say which folds of a thread are in memory.
    Folds(ThreadId, oneshot::Sender<Cached>),
    /// What a stop left behind in a thread.
    Recover(ThreadId, Vec<Left>),
    /// All that was left behind is here: begin.
    Begin,
    /// Say when nothing is left to do.
    Drain(oneshot::Sender<()>),
    /// Stop now.
    Stop,
}

/// A worker's inbox. Whoever posts never waits: what doors post is bounded by their windows, what
/// handlers post by how many of them run.
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

    /// Puts something in that the worker is to be reminded of.
    pub(crate) fn put(&self, mail: Mail) {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner).push(mail);
    }

    /// Tells the worker that there is something.
    pub(crate) fn remind(&self) {
        self.waker.wake();
    }

    /// How much lies here.
    pub(crate) fn len(&self) -> usize {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Takes all there is; `into` is empty and keeps its room.
    pub(crate) fn take(&self, into: &mut Vec<Mail>) {
        std::mem::swap(&mut *self.mail.lock().unwrap_or_else(PoisonError::into_inner), into);
    }

    pub(crate) fn wake(&self, waker: &Waker) {
        self.waker.register(waker);
    }
}

/// What a worker keeps awake of a thread's folds: of which listener, up to which entry.
pub(crate) type Cached = Vec<(usize, u64, Vec<Awake>)>;
