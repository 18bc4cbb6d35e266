//! The listener `thread` opens child threads of the thread in which it is asked. It also cancels,
//! pauses, resumes and awaits threads, raises budgets, tries stopped listeners again, and records
//! forks.

pub mod fork;
pub mod wait;

use pumphouse::listener::{Raise, Retry};
use pumphouse::prelude::*;
use pumphouse::wire::budget::RaiseBudget;
use pumphouse::wire::core::{RetryListeners, ThreadCancelled};

use super::metadata::words::Handed;

/// Opens a child thread of this thread. The answer is `thread-spawned`; when the thread ends,
/// `thread-result` follows.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct SpawnThread {
    /// The end of the thread's id; a number is added if it is taken.
    #[payload(attribute, example = "image-analysis")]
    pub suggested_sub_id: Option<String>,
    /// What an agent in the thread gets of the sender's metadata; default `none`.
    #[payload(attribute, no_example)]
    pub metadata: Option<Handed>,
    /// The thread's first message.
    #[payload(rename = "initial-payload")]
    pub initial_payload: InitialPayload,
}

/// The first message of a thread.
#[derive(Clone, Debug, PartialEq, Payload)]
pub struct InitialPayload {
    /// A payload of the listener that is to work in the thread.
    pub payload: Element,
}

/// Cancels a thread and all below it: running handlers are told to stop, waiting messages are
/// answered.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct CancelThread {
    /// The thread; by default this one.
    #[payload(attribute, no_example, example = "sess-k3v9x2ma.research")]
    pub thread: Option<String>,
    /// Why.
    #[payload(attribute)]
    pub reason: Option<String>,
}

/// Pauses a thread and all below it: running handlers finish, and none starts.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct PauseThread {
    /// The thread; by default this one.
    #[payload(attribute, no_example, example = "sess-k3v9x2ma.research")]
    pub thread: Option<String>,
    /// Why.
    #[payload(attribute)]
    pub reason: Option<String>,
}

/// Resumes a paused thread and all below it.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct ResumeThread {
    /// The thread; by default this one.
    #[payload(attribute, no_example, example = "sess-k3v9x2ma.research")]
    pub thread: Option<String>,
    /// Why.
    #[payload(attribute)]
    pub reason: Option<String>,
}

/// A thread was paused.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ThreadPaused {
    /// The thread; all threads below it pause, too.
    #[payload(attribute, example = "sess-k3v9x2ma.research")]
    pub thread: String,
    /// The identity or listener that paused it.
    #[payload(attribute, example = "ada")]
    pub by: String,
    /// Why.
    #[payload(attribute)]
    pub reason: Option<String>,
}

/// A thread was resumed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ThreadResumed {
    /// The thread; all threads below it resume, too.
    #[payload(attribute, example = "sess-k3v9x2ma.research")]
    pub thread: String,
    /// The identity or listener that resumed it.
    #[payload(attribute, example = "ada")]
    pub by: String,
    /// Why.
    #[payload(attribute)]
    pub reason: Option<String>,
}

/// The listener `thread`.
#[must_use]
pub fn thread() -> Listener {
    Listener::new("thread")
        .on(spawn)
        .on(cancel)
        .on(pause)
        .on(resume)
        .on(retry)
        .on(raise)
        .on(fork::fork)
        .on(wait::wait)
        .on(wait::look)
        .fold::<wait::Children>()
        .wakes(wait::wakes)
        .inline()
        .idempotent()
        .grant::<Threads>()
        .grant::<Timers>()
        .grant::<EmitCore>()
        .describe("Opens threads below this one, and ends, pauses, resumes and awaits them.")
}

async fn spawn(spawn: SpawnThread) -> Spawn<Element> {
    let label = spawn.suggested_sub_id.unwrap_or_default();
    Spawn::new(spawn.initial_payload.payload).label(label).for_sender()
}

async fn cancel(
    here: Thread,
    sender: Sender,
    cancel: CancelThread,
) -> ThreadControl<ThreadCancelled> {
    let (thread, by) = (meant(&here, cancel.thread), sender.0.to_string());
    let why = ThreadCancelled { thread: thread.to_string(), by, reason: cancel.reason };
    ThreadControl::cancel(thread, why)
}

async fn pause(here: Thread, sender: Sender, pause: PauseThread) -> ThreadControl<ThreadPaused> {
    let (thread, by) = (meant(&here, pause.thread), sender.0.to_string());
    let why = ThreadPaused { thread: thread.to_string(), by, reason: pause.reason };
    ThreadControl::pause(thread, why)
}

async fn resume(
    here: Thread,
    sender: Sender,
    resume: ResumeThread,
) -> ThreadControl<ThreadResumed> {
    let (thread, by) = (meant(&here, resume.thread), sender.0.to_string());
    let why = ThreadResumed { thread: thread.to_string(), by, reason: resume.reason };
    ThreadControl::resume(thread, why)
}

async fn retry(retry: RetryListeners) -> Retry {
    Retry(retry)
}

async fn raise(raise: RaiseBudget) -> Raise {
    Raise(raise)
}

/// The thread that a message names. Without a name, the thread of the message.
fn meant(here: &Thread, named: Option<String>) -> ThreadId {
    named.map_or_else(|| here.0.clone(), |it| ThreadId::new(&it))
}
