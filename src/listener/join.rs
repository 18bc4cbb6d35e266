//! Joining threads: a listener that handles a message may open several threads. Once enough of
//! these threads have ended, a handler of the listener gets their answers together, from a
//! [`Join`].

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::marker::PhantomData;

use crate::id::ThreadId;
use crate::listener::need::Need;
use crate::listener::{Apply, Context, Entry, Fold, FromContext, History};
use crate::wire::core::{Huh, ThreadResult, ThreadSpawned, ThreadStatus};
use crate::wire::{Fault, Payload};
use crate::xml::Element;

/// A fold of the branches of a thread. The branches are the child threads that the handling of the
/// thread's messages opened. The fold tells which message opened which branches, and in which order
/// the branches ended. A handler that takes a [`Join`] registers this fold.
#[derive(Clone, Debug, Default)]
pub struct Branches {
    /// Maps the number of a message to the branches that its handling opened.
    groups: BTreeMap<u64, Group>,
    /// Maps the id of a branch to the number of the message whose handling opened it.
    opened_by: BTreeMap<ThreadId, u64>,
    /// Maps the number of a `thread-result` to the number of the message whose handling opened the
    /// branch.
    result_of: BTreeMap<u64, u64>,
}

/// The branches that the handling of one message opened.
#[derive(Clone, Debug, Default)]
struct Group {
    opened: Vec<ThreadId>,
    ended: Vec<ThreadId>,
    /// The numbers of the `thread-result`s of the ended branches, in the order of `ended`.
    results: Vec<u64>,
}

impl Apply for Branches {
    fn apply(&mut self, entry: &Entry) {
        if !entry.is_from_core() {
            return;
        }
        if let Some(spawned) = entry.decode_if::<ThreadSpawned>() {
            let cause = entry.cause().filter(|cause| cause.thread == *entry.thread());
            if let Some(cause) = cause {
                let thread = ThreadId::new(&spawned.assigned_id);
                self.opened_by.insert(thread.clone(), cause.seq);
                self.groups.entry(cause.seq).or_default().opened.push(thread);
            }
        } else if let Some(result) = entry.decode_if::<ThreadResult>() {
            let thread = ThreadId::new(&result.thread);
            let Some(cause) = self.opened_by.get(&thread) else { return };
            let group = self.groups.entry(*cause).or_default();
            group.ended.push(thread);
            group.results.push(entry.seq());
            self.result_of.insert(entry.seq(), *cause);
        }
    }
}

/// The threads that the handling of one request opened. A handler of their
/// [`ThreadResult`](crate::wire::core::ThreadResult)s takes this argument. Only one call of the
/// handler gets the answers: the call for the last result that the join needs. Each answer is read
/// as a `P`.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::prelude::*;
///
/// /// Asks for the length of some words.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Words {
///     word: Vec<String>,
/// }
///
/// /// A word to be measured.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Measure {
///     word: String,
/// }
///
/// /// How long it is.
/// #[derive(Payload)]
/// #[payload(ns = "urn:example")]
/// struct Length {
///     letters: u64,
/// }
///
/// async fn split(Words { word }: Words) -> Vec<Spawn<Measure>> {
///     word.into_iter().map(|word| Spawn::new(Measure { word })).collect()
/// }
///
/// async fn add_up(
///     asked: Asked,
///     join: Join<Length>,
///     _: ThreadResult,
/// ) -> Result<Option<Reply<Length>>, Fault> {
///     let Some(branches) = join.all().await? else { return Ok(None) };
///     let letters = branches.iter().flat_map(|branch| &branch.answer).map(|it| it.letters).sum();
///     Ok(Some(Reply(asked.0, Length { letters })))
/// }
///
/// # fn main() {
/// let words = Listener::new("words")
///     .on(split)
///     .on_reply(add_up)
///     .grant::<Threads>();
/// let measure = async |Measure { word }: Measure| Length { letters: word.len() as u64 };
/// let ruler = Listener::new("ruler").on(measure);
/// assert!(pumphouse::builder().with((words, ruler)).build().is_ok());
/// # }
/// ```
///
/// A join survives a restart, since the log says which threads belong together and which of them
/// have ended. Every thread that the handling of the request opened belongs to the join. A thread
/// may be opened with [`Spawn`](crate::listener::Spawn), or by a call of a listener that has
/// [threads of its own](crate::Listener::own_thread). If the request opens no thread, no
/// `ThreadResult` ever comes, so the request's own handler must answer the request.
pub struct Join<P> {
    branches: Fold<Branches>,
    history: History,
    /// The number of the `thread-result` at hand.
    at: u64,
    answers: PhantomData<fn() -> P>,
}

/// A thread that was joined.
#[derive(Debug)]
pub struct Branch<P> {
    /// The thread's id.
    pub thread: ThreadId,
    /// What the thread answered.
    pub answer: Result<P, NoAnswer>,
}

/// Why a thread has no answer of the expected type.
#[derive(Clone, Debug)]
pub struct NoAnswer {
    /// The thread's id.
    pub thread: ThreadId,
    /// How the thread ended. `Completed` means that it answered with a payload of another type, or
    /// with one that can't be read.
    pub status: ThreadStatus,
    /// The payload that the thread ended with, such as a fault.
    pub payload: Option<Element>,
}

impl Display for NoAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let how = match self.status {
            ThreadStatus::Completed => "answered with another payload",
            ThreadStatus::Empty => "ended without an answer",
            ThreadStatus::Failed => "failed",
            ThreadStatus::Cancelled => "was cancelled",
        };
        let huh = self.payload.as_ref().and_then(|it| Huh::decode(it).ok());
        let text = match (huh, &self.payload) {
            (Some(Huh { code, message, .. }), _) => format!(": {code} {message}"),
            (None, Some(payload)) => format!(", with {}", payload.name()),
            (None, None) => String::new(),
        };
        write!(f, "{} {how}{text}", self.thread)
    }
}

impl Error for NoAnswer {}

#[diagnostic::do_not_recommend]
impl<S, P: Payload> FromContext<S> for Join<P> {
    fn needs() -> Vec<Need> {
        let mut needs = <History as FromContext<S>>::needs();
        needs.push(Need::keep::<Branches>());
        needs
    }

    fn from_context(context: &Context<S>) -> Result<Join<P>, Fault> {
        let branches = Fold::from_context(context)?;
        let history = History::from_context(context)?;
        Ok(Join { branches, history, at: context.message().seq(), answers: PhantomData })
    }
}

impl<P: Payload> Join<P> {
    /// All branches, in the order in which they ended, if the result at hand was the last missing
    /// one. None otherwise.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn all(&self) -> Result<Option<Vec<Branch<P>>>, Fault> {
        self.first(usize::MAX).await
    }

    /// The branch that ended first, if the result at hand is the result of that branch. None
    /// otherwise.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn any(&self) -> Result<Option<Branch<P>>, Fault> {
        Ok(self.first(1).await?.and_then(|mut it| it.pop()))
    }

    /// The first `count` branches, in the order in which they ended, if the result at hand is the
    /// result of the last of these branches. None otherwise. If fewer branches were opened, all of
    /// them are needed. A `count` of 0 means 1. A branch that failed has ended, too; its
    /// [`answer`](Branch::answer) is then an `Err`.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn first(&self, count: usize) -> Result<Option<Vec<Branch<P>>>, Fault> {
        let Some(group) = self.group() else { return Ok(None) };
        let enough = count.clamp(1, group.opened.len());
        let Some(results) = group.results.get(..enough) else { return Ok(None) };
        if results.last() != Some(&self.at) {
            return Ok(None);
        }
        let mut branches = Vec::with_capacity(enough);
        for seq in results {
            for entry in self.history.read(seq - 1, 1).await? {
                branches.push(branch(&entry)?);
            }
        }
        Ok(Some(branches))
    }

    /// The branches of the request that haven't ended, in the order in which they were opened. A
    /// handler may [cancel](crate::listener::ThreadControl::cancel) them, for example.
    #[must_use]
    pub fn unfinished(&self) -> Vec<ThreadId> {
        let Some(group) = self.group() else { return Vec::new() };
        let opened = group.opened.iter();
        opened.filter(|thread| !group.ended.contains(thread)).cloned().collect()
    }

    /// The group of branches to which the result at hand belongs.
    fn group(&self) -> Option<&Group> {
        let cause = self.branches.result_of.get(&self.at)?;
        self.branches.groups.get(cause)
    }
}

fn branch<P: Payload>(entry: &Entry) -> Result<Branch<P>, Fault> {
    let ThreadResult { thread, status, payload } = entry.decode()?;
    let thread = ThreadId::new(&thread);
    let is_answer = status == ThreadStatus::Completed;
    let answer = payload.as_ref().filter(|_| is_answer).and_then(|it| P::decode(it).ok());
    let answer = answer.ok_or_else(|| NoAnswer { thread: thread.clone(), status, payload });
    Ok(Branch { thread, answer })
}
