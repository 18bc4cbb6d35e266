//! Waits for child threads: for all of them, for the first few, or for the first one. The wait is a
//! message to `thread`, which waits in the log until the wait is over.

use std::collections::{BTreeMap, BTreeSet};

use pumphouse::prelude::*;
use pumphouse::wire::SignedDuration;
use pumphouse::wire::core::{SystemThreadError, ThreadResult, ThreadSpawned, ThreadStatus};

use super::super::schedule::CurrentThread;

/// Waits for child threads of this thread. The answer is `threads-awaited`.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct AwaitThreads {
    /// How many must end: all (default), any one, or the first `count`.
    #[payload(attribute)]
    pub mode: Option<Mode>,
    /// For the mode `first`: how many must end; default 1.
    #[payload(attribute, min = 1)]
    pub count: Option<u32>,
    /// How long to wait at most; no limit by default.
    #[payload(attribute, example = "PT30S")]
    pub timeout: Option<SignedDuration>,
    /// The threads; by default all child threads.
    #[payload(no_example)]
    pub thread: Vec<String>,
}

/// How many of the threads must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Mode {
    /// Every one.
    All,
    /// The first one that ends.
    Any,
    /// The first `count` that end.
    First,
}

/// A wait that isn't over.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, bookkeeping)]
pub struct AwaitingThreads {
    /// The number of the entry that asked for it.
    #[payload(attribute)]
    pub asked: u64,
    /// How many have to end.
    #[payload(attribute)]
    pub enough: u32,
    /// When it ends at the latest, in microseconds since the epoch.
    #[payload(attribute)]
    pub until: Option<u64>,
    /// The threads.
    pub thread: Vec<String>,
}

/// The result of a wait. Threads that end later still send their `thread-result`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ThreadsAwaited {
    /// Whether enough threads ended in time.
    #[payload(attribute)]
    pub complete: bool,
    /// The threads.
    pub thread: Vec<AwaitedThread>,
}

/// A thread that was waited for.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct AwaitedThread {
    /// Its id.
    #[payload(attribute, example = "sess-k3v9x2ma.research")]
    pub id: String,
    /// How it ended; absent if it hasn't.
    #[payload(attribute)]
    pub status: Option<ThreadStatus>,
}

/// The threads that were opened from a thread, and how they ended. A fork has no part in threads
/// that hadn't ended when it began: their results go to the original thread. A fold.
#[derive(Clone, Debug, Default)]
pub struct Children {
    opened: BTreeSet<String>,
    ended: BTreeMap<String, ThreadStatus>,
    thread: CurrentThread,
}

impl Apply for Children {
    fn apply(&mut self, entry: &Entry) {
        if self.thread.enter(entry) {
            self.opened.retain(|it| self.ended.contains_key(it));
        }
        if !entry.is_from_core() {
            return;
        }
        if entry.is::<ThreadSpawned>() {
            self.opened.extend(entry.decode().map(|it: ThreadSpawned| it.assigned_id));
        } else if entry.is::<ThreadResult>()
            && let Ok(ThreadResult { thread, status, .. }) = entry.decode()
        {
            self.ended.insert(thread, status);
        }
    }
}

impl Children {
    fn look_at(&self, threads: &[String]) -> Vec<AwaitedThread> {
        let look =
            |id: &String| AwaitedThread { id: id.clone(), status: self.ended.get(id).copied() };
        threads.iter().map(look).collect()
    }
}

/// The outcome of a request to wait: a message that waits in the log, or the answer. The error says
/// that one of the threads isn't a child of this thread.
type Waited = Result<(Option<Later<AwaitingThreads>>, Option<ThreadsAwaited>), SystemThreadError>;

pub(super) async fn wait(
    message: Message,
    children: Fold<Children>,
    clock: Clock,
    awaited: AwaitThreads,
) -> Waited {
    let mut threads: Vec<String> = if awaited.thread.is_empty() {
        children.opened.iter().cloned().collect()
    } else {
        awaited.thread
    };
    // A thread that is named twice ends once.
    let mut named = BTreeSet::new();
    threads.retain(|it| named.insert(it.clone()));
    if let Some(unknown) = threads.iter().find(|it| !children.opened.contains(*it)) {
        return Err(SystemThreadError::of(unknown));
    }
    let all = u32::try_from(threads.len()).unwrap_or(u32::MAX);
    let enough = match awaited.mode.unwrap_or(Mode::All) {
        Mode::All => all,
        Mode::Any => 1,
        Mode::First => awaited.count.unwrap_or(1),
    };
    let until = awaited.timeout.map(|timeout| match u64::try_from(timeout.as_micros()) {
        Ok(us) => clock.now_us().saturating_add(us),
        Err(_) if timeout.is_negative() => clock.now_us(),
        Err(_) => u64::MAX,
    });
    let asked = message.seq();
    let wait = AwaitingThreads { asked, enough: enough.min(all), until, thread: threads };
    Ok(match answer(&wait, &children, clock.now_us()) {
        Some(answer) => (None, Some(answer)),
        None => (Some(Later::at(until.unwrap_or(u64::MAX), wait)), None),
    })
}

pub(super) async fn look(
    history: History,
    children: Fold<Children>,
    clock: Clock,
    out: Outbox<ThreadsAwaited>,
    wait: AwaitingThreads,
) -> Result<Option<Later<AwaitingThreads>>, Fault> {
    let Some(answer) = answer(&wait, &children, clock.now_us()) else {
        return Ok(Some(Later::at(wait.until.unwrap_or(u64::MAX), wait)));
    };
    let asked = history.read(wait.asked - 1, 1).await?;
    if let Some(asked) = asked.first() {
        out.reply_to(asked, answer).await?;
    }
    Ok(None)
}

/// The answer to a wait. None until enough of the threads have ended or the time is up.
fn answer(wait: &AwaitingThreads, children: &Children, now_us: u64) -> Option<ThreadsAwaited> {
    let threads = children.look_at(&wait.thread);
    let ended = threads.iter().filter(|it| it.status.is_some()).count();
    let complete = ended >= wait.enough as usize;
    let late = wait.until.is_some_and(|until| until <= now_us);
    (complete || late).then_some(ThreadsAwaited { complete, thread: threads })
}

/// Whether the entry `came` causes the early delivery of a waiting `awaiting-threads` message. Such
/// an entry reports the end of one of the message's threads.
pub(super) fn wakes(waiting: &Entry, came: &Entry) -> bool {
    waiting.is::<AwaitingThreads>()
        && came.is::<ThreadResult>()
        && came.is_from_core()
        && came.thread() == waiting.thread()
        && match (waiting.decode::<AwaitingThreads>(), came.decode::<ThreadResult>()) {
            (Ok(waiting), Ok(came)) => waiting.thread.contains(&came.thread),
            _ => false,
        }
}
