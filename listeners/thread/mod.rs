//! The listener `thread` opens child threads of the thread that it is asked in. It also cancels,
//! pauses, resumes and awaits threads, raises budgets, and records forks.

pub mod fork;
pub mod wait;

use pumphouse::listener::Raise;
use pumphouse::prelude::*;
use pumphouse::wire::budget::RaiseBudget;
use pumphouse::wire::core::ThreadCancelled;

/// Opens a thread below this one. The answer is `thread-spawned`; when the thread ends,
/// `thread-result` follows.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct SpawnThread {
    /// What the thread's id is to end with; a number follows where that is taken.
    #[payload(attribute, example = "image-analysis")]
    pub suggested_sub_id: Option<String>,
    /// What the thread begins with.
    #[payload(rename = "initial-payload")]
    pub initial_payload: InitialPayload,
}

/// What a thread begins with.
#[derive(Clone, Debug, PartialEq, Payload)]
pub struct InitialPayload {
    /// A payload of whoever is to work in the thread.
    pub payload: Element,
}

/// Ends a thread and all below it: what runs is told to stop, what waits is answered.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct CancelThread {
    /// The thread; this one unless said.
    #[payload(attribute, no_example, example = "sess-k3v9x2ma.research")]
    pub thread: Option<String>,
    /// Why.
    #[payload(attribute)]
    pub reason: Option<String>,
}

/// Holds a thread and all below it: what runs comes to its end, and nothing begins.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct PauseThread {
    /// The thread; this one unless said.
    #[payload(attribute, no_example, example = "sess-k3v9x2ma.research")]
    pub thread: Option<String>,
    /// Why.
    #[payload(attribute)]
    pub reason: Option<String>,
}

/// Lets a thread that pauses go on, with all below it.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct ResumeThread {
    /// The thread; this one unless said.
    #[payload(attribute, no_example, example = "sess-k3v9x2ma.research")]
    pub thread: Option<String>,
    /// Why.
    #[payload(attribute)]
    pub reason: Option<String>,
}

/// A thread pauses from here on.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ThreadPaused {
    /// The thread that was to pause, with all below it.
    #[payload(attribute, example = "sess-k3v9x2ma.research")]
    pub thread: String,
    /// Who wanted it.
    #[payload(attribute, example = "ada")]
    pub by: String,
    /// Why.
    #[payload(attribute)]
    pub reason: Option<String>,
}

/// A thread goes on from here.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ThreadResumed {
    /// The thread that was to go on, with all below it.
    #[payload(attribute, example = "sess-k3v9x2ma.research")]
    pub thread: String,
    /// Who wanted it.
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

async fn raise(raise: RaiseBudget) -> Raise {
    Raise(raise)
}

/// The thread that a message names. Without a name, the thread of the message.
fn meant(here: &Thread, named: Option<String>) -> ThreadId {
    named.map_or_else(|| here.0.clone(), |it| ThreadId::new(&it))
}
