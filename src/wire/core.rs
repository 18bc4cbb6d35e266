//! The payloads of the pump itself. Most of them are reserved.

use crate::wire::{Bytes, Checked, Fault, Payload, SignedDuration, Timestamp};
use crate::xml::{Element, writable};

/// A message was accepted: the log has it, under this thread and number.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct Accepted {
    /// The message's thread.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub thread: String,
    /// The message's number in the thread.
    #[payload(attribute)]
    pub seq: u64,
    /// The sender's own id for the message, if any.
    #[payload(attribute)]
    pub id: Option<String>,
}

/// A fault: a message is wrong, or the work on it failed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct Huh {
    /// The number of the fault, such as `P0007`; each has a page in `docs/faults/`.
    #[payload(attribute, example = "P0007")]
    pub code: String,
    /// The line of the mistake in the sender's text, from 1.
    #[payload(attribute)]
    pub line: Option<u32>,
    /// The column in that line, in characters from 1.
    #[payload(attribute)]
    pub column: Option<u32>,
    /// The path of the faulty part in the payload.
    #[payload(attribute, example = "/add/a")]
    pub path: Option<String>,
    /// Whether the same message may succeed when it is sent again.
    #[payload(attribute)]
    pub retry: bool,
    /// The sender's own id for the refused push, if any.
    #[payload(attribute)]
    pub id: Option<String>,
    /// What is wrong.
    #[payload(example = "<a> takes a whole number of 64 bits, not \"one\"")]
    pub message: String,
    /// What to do about it.
    #[payload(example = "Write it as in <a>1</a>.")]
    pub advice: String,
}

impl From<&Fault> for Huh {
    fn from(fault: &Fault) -> Huh {
        Huh {
            code: fault.code.to_string(),
            line: fault.line,
            column: fault.column,
            path: fault.path.as_deref().map(writable),
            retry: fault.retry.unwrap_or(fault.code.retry()),
            id: fault.client_id().map(writable),
            message: writable(&fault.message),
            advice: fault.advice.as_deref().map_or(fault.code.advice().to_owned(), writable),
        }
    }
}

/// A message names a thread that doesn't exist, or that its sender may not use.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct SystemThreadError {
    /// The thread as the message names it.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub unknown_id: String,
    /// Always `unknown_thread`.
    #[payload(attribute, example = "unknown_thread")]
    pub code: String,
    /// What to do.
    #[payload(attribute, example = "Unknown thread; emit <spawn-thread/> to create.")]
    pub message: String,
    /// The sender's own id for the refused push, if any.
    #[payload(attribute)]
    pub id: Option<String>,
}

impl SystemThreadError {
    /// Returns the error for a message that names an unknown thread.
    #[must_use]
    pub fn of(unknown: &str) -> SystemThreadError {
        SystemThreadError {
            unknown_id: writable(unknown),
            code: "unknown_thread".into(),
            message: "Unknown thread; emit <spawn-thread/> to create.".into(),
            id: None,
        }
    }
}

/// Returns the payload that reports a fault: `system-thread-error` for an unknown thread, `huh` for
/// any other fault. If the payload can't be written, the function traces the error and returns
/// `None`.
pub fn said(fault: &Fault) -> Option<Checked> {
    let (name, element) = match &fault.unknown_thread {
        Some(unknown) => {
            let id = fault.client_id().map(writable);
            let error = SystemThreadError { id, ..SystemThreadError::of(unknown) };
            (SystemThreadError::NAME, error.encode())
        }
        None => (Huh::NAME, Huh::from(fault).encode()),
    };
    match element {
        Ok(element) => Some(Checked::typed(name, element)),
        Err(error) => {
            tracing::error!(%fault, %error, "a fault can't be written");
            None
        }
    }
}

/// What the doors refused since the last such report.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", rename = "door-refusals", reserved)]
pub struct DoorRefusals {
    /// When the first refusal came.
    #[payload(attribute)]
    pub since: Timestamp,
    /// When this report was made.
    #[payload(attribute)]
    pub until: Timestamp,
    /// How many refusals there were.
    #[payload(attribute)]
    pub count: u64,
    /// The refusals, counted by sender and fault.
    pub refused: Vec<DoorRefusal>,
}

/// How often one sender was refused with one fault.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct DoorRefusal {
    /// The sender's identity, or its address if it hasn't authenticated. Absent where refusals of
    /// several senders are counted together.
    #[payload(attribute, example = "ada")]
    pub who: Option<String>,
    /// The number of the fault.
    #[payload(attribute, example = "P0011")]
    pub code: String,
    /// How many refusals.
    #[payload(attribute)]
    pub count: u64,
}

/// An image, a document or a file in a thread. Prompts show it if the agent's model takes its media
/// type and the size permits. A tool's answer refers to an attachment by its entry. An attachment
/// starts no turn by itself.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", bookkeeping)]
pub struct Attachment {
    /// Its media type.
    #[payload(attribute, example = "image/png")]
    pub media_type: String,
    /// The BLAKE3 digest of its bytes, in hexadecimal, if the sender gave it.
    #[payload(attribute, no_example)]
    pub digest: Option<String>,
    /// Its bytes.
    #[payload(value)]
    pub content: Bytes,
}

impl Attachment {
    /// Creates an attachment with its digest.
    #[must_use]
    pub fn new(media_type: String, content: Bytes) -> Attachment {
        let digest = Some(blake3::hash(&content).to_hex().to_string());
        Attachment { media_type, digest, content }
    }

    /// Computes the digest of `content`. The field `digest` is ignored.
    #[must_use]
    pub fn computed(&self) -> String {
        blake3::hash(&self.content).to_hex().to_string()
    }

    /// Returns whether `digest` matches `content`. An attachment without a digest counts as intact.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
    /// use pumphouse::wire::core::Attachment;
    ///
    /// let image = Attachment::new("image/gif".into(), b"GIF89a".to_vec().into());
    /// assert!(image.is_intact());
    /// assert!(!Attachment { digest: Some("00".into()), ..image }.is_intact());
    /// ```
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.digest.as_ref().is_none_or(|it| it.eq_ignore_ascii_case(&self.computed()))
    }
}

/// How far a listener is with a message. Followers see it live; it is never in the log.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, live, bookkeeping)]
pub struct Progress {
    /// How much is done, in a unit that the listener chooses.
    #[payload(attribute, example = "3")]
    pub done: Option<f64>,
    /// How much there is to do, in the same unit.
    #[payload(attribute, example = "4")]
    pub total: Option<f64>,
    /// What the listener is doing.
    #[payload(text, example = "reading notes.txt")]
    pub text: String,
}

/// A piece of a running program's output. Followers see it live; it is never in the log.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, live, bookkeeping)]
pub struct ProgramOutput {
    /// The output stream.
    #[payload(attribute)]
    pub stream: OutputStream,
    /// The piece: whole lines, unless they are too long.
    #[payload(text, example = "test adds ... ok\n")]
    pub text: String,
}

/// An output of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum OutputStream {
    /// Its standard output.
    Out,
    /// Its standard error.
    Err,
}

/// All work that a message caused is done, without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct Done {}

/// For a listener that parked messages: nothing that these messages caused is left to do in the
/// thread.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", rename = "nothing-under-way", reserved)]
pub struct NothingUnderWay {}

/// A child thread was opened.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ThreadSpawned {
    /// The thread that was opened.
    #[payload(attribute, example = "sess-k3v9x2ma.research")]
    pub assigned_id: String,
    /// Its parent thread.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub parent_id: String,
}

/// A child thread ended.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ThreadResult {
    /// The thread that ended.
    #[payload(attribute, example = "sess-k3v9x2ma.research")]
    pub thread: String,
    /// How it ended.
    #[payload(attribute)]
    pub status: ThreadStatus,
    /// Its answer, or its error.
    pub payload: Option<Element>,
}

/// An interim message of a child thread, recorded in the parent thread. The message starts only
/// handlers of listeners that take `thread-note`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, bookkeeping)]
pub struct ThreadNote {
    /// The child thread, which goes on.
    #[payload(attribute, example = "sess-k3v9x2ma.research")]
    pub thread: String,
    /// The message.
    pub payload: Element,
}

/// How a thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum ThreadStatus {
    /// With an answer.
    Completed,
    /// Without an answer: nothing was left to do in it.
    Empty,
    /// With a fault, or with an error that its listener returned.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// A thread was cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ThreadCancelled {
    /// The thread; all threads below it are cancelled, too.
    #[payload(attribute, example = "sess-k3v9x2ma.research")]
    pub thread: String,
    /// The identity or listener that cancelled it, or the pump itself.
    #[payload(attribute, example = "ada")]
    pub by: String,
    /// Why.
    #[payload(attribute)]
    pub reason: Option<String>,
}

/// A fold of a listener panicked, so the listener is stopped in this thread: it keeps its messages,
/// and handles none before it is tried again.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, bookkeeping)]
pub struct ListenerStopped {
    /// The listener.
    #[payload(attribute, example = "wallet")]
    pub listener: String,
    /// The entry that the fold was to take in.
    #[payload(attribute, example = "sess-k3v9x2ma/32")]
    pub entry: String,
    /// What the panic said.
    #[payload(text)]
    pub reason: String,
}

/// Tries the listeners again that are stopped in a thread or below it, since one of their folds
/// panicked.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct RetryListeners {
    /// The thread; by default this one.
    #[payload(attribute, no_example, example = "sess-k3v9x2ma.research")]
    pub thread: Option<String>,
    /// Why.
    #[payload(attribute)]
    pub reason: Option<String>,
}

/// Stopped listeners of a thread are tried again.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ListenersRetried {
    /// The thread; those of all threads below it are tried again, too.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub thread: String,
    /// The identity or listener that asked for it.
    #[payload(attribute, example = "ada")]
    pub by: String,
    /// The listeners. None if none was stopped.
    #[payload(example = "wallet")]
    pub listener: Vec<String>,
}

/// From here on, prompts hide some of the thread's messages; the log keeps them all.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ContextCleared {
    /// How many messages were to stay in view, by the request: the first and the newest.
    #[payload(attribute, min = 1, example = "10")]
    pub kept_messages: u64,
    /// Entries 2 up to this number are hidden, without those in `except`.
    #[payload(attribute, example = "9")]
    pub upto: u64,
    /// Entries up to `upto` that stay in view, such as open questions and summaries.
    #[payload(attribute, list, no_example)]
    pub except: Option<Vec<u64>>,
    /// How many messages are hidden now, by this clear and by earlier ones that weren't undone.
    #[payload(attribute, example = "4")]
    pub hidden: u64,
}

/// The newest `context-cleared` is undone: prompts show the messages again that it hid.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ContextRestored {
    /// Whether there was a clear to undo.
    #[payload(attribute)]
    pub was_cleared: bool,
}

/// Authenticates a connection by a token. If sent, it is the first element on the connection.
#[derive(Clone, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct Authenticate {
    /// The token as the operator listed it.
    #[payload(attribute)]
    pub token: String,
}

impl std::fmt::Debug for Authenticate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authenticate { token: (hidden) }")
    }
}

/// The token is known: from here on the connection sends as this identity.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct Authenticated {
    /// The identity.
    #[payload(attribute, example = "ada")]
    pub identity: String,
}

/// The organism starts. Messages are accepted only after this entry.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct Boot {
    /// The organism's name.
    #[payload(rename = "organism-name", example = "sums")]
    pub organism_name: String,
    /// When.
    pub timestamp: Timestamp,
    /// How many listeners it has.
    #[payload(rename = "listener-count")]
    pub listener_count: u64,
    /// The version of the pump.
    #[payload(example = "0.1.0")]
    pub version: String,
    /// A BLAKE3 digest of the XSDs of all payloads that the organism knows.
    #[payload(example = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262")]
    pub catalogue: String,
    /// The version of the IANA time zone database that the program carries.
    #[payload(rename = "time-zones", example = "2026f")]
    pub time_zones: String,
}

/// The organism was told to stop.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ShutdownSignal {
    /// Always `graceful`: running work may finish.
    #[payload(example = "graceful")]
    pub mode: String,
    /// How long running work may take, in seconds.
    #[payload(rename = "timeout-seconds")]
    pub timeout_seconds: u64,
    /// When.
    pub timestamp: Timestamp,
}

/// The organism is alive; sent at intervals.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct Heartbeat {
    /// The heartbeat's number, from 1 at each start.
    pub sequence: u64,
    /// Seconds since the start.
    #[payload(rename = "uptime-seconds")]
    pub uptime_seconds: u64,
    /// How many events wait for the workers.
    #[payload(rename = "queue-depth")]
    pub queue_depth: u64,
    /// How many trees of threads are in memory.
    #[payload(rename = "active-threads")]
    pub active_threads: u64,
    /// When.
    pub timestamp: Timestamp,
}

/// The wall clock was set while the pump ran. Until the next start, times in the log ignore the new
/// setting: they go on from the old one.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ClockSet {
    /// How far the wall clock was set forwards. Negative if it was set back.
    #[payload(attribute, example = "PT3600S")]
    pub by: SignedDuration,
    /// The time that the wall clock shows now.
    #[payload(attribute)]
    pub clock: Timestamp,
}

/// What governs the organism from now on: its manifest, the names of its tokens, the prices of its
/// models, and its limits. It has what differs from earlier entries of this kind, and no secrets.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct RulesInForce {
    /// What they hold since: `start`, or `reload` for tokens that were read again.
    #[payload(attribute, example = "start")]
    pub since: String,
    /// The program's version, and the commit that it was built from.
    #[payload(attribute, example = "0.1.0 (commit 0123456789ab)")]
    pub version: String,
    /// BLAKE3 of the manifest's text, in hexadecimal.
    #[payload(attribute)]
    pub digest: Option<String>,
    /// The rules that are new, or have a new value.
    pub rule: Vec<RuleInForce>,
    /// The rules that hold no longer.
    #[payload(no_example)]
    pub gone: Vec<RuleGone>,
}

/// A rule: a value of the manifest, a token's name, a price or a limit.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct RuleInForce {
    /// Its name.
    #[payload(attribute, example = "limits/tree_tokens_max")]
    pub name: String,
    /// Its value. Of a long text, its digest.
    #[payload(text, example = "50000")]
    pub value: String,
}

/// A rule that holds no longer.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct RuleGone {
    /// Its name.
    #[payload(attribute, example = "tokens/bob")]
    pub name: String,
}

/// An identity follows a thread, for the first time since the pump was started.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ThreadFollowed {
    /// The identity.
    #[payload(attribute, example = "ada")]
    pub by: String,
    /// The thread.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub thread: String,
}

/// The log was copied while the pump ran, or since it was last started.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct LogBackedUp {
    /// The file with the copy.
    #[payload(attribute, example = "backup/pumphouse.db")]
    pub file: String,
    /// The head of the copy: NUMBER:DIGEST.
    #[payload(attribute, example = "28:c3ad35da9121895a")]
    pub head: String,
    /// When the copy was complete.
    #[payload(attribute)]
    pub timestamp: Timestamp,
}

/// The organism has a listener that it didn't have at its last start.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ListenerJoined {
    /// Its name.
    #[payload(example = "calculate")]
    pub name: String,
    /// The payloads that it takes.
    #[payload(rename = "root-tag", example = "{https://xml-pipeline.org/ns/echo/v1}echo")]
    pub root_tag: Vec<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether its calls run in threads of their own.
    #[payload(rename = "is-agent")]
    pub is_agent: bool,
    /// When.
    pub timestamp: Timestamp,
}

/// The organism no longer has a listener.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ListenerLeft {
    /// Its name.
    #[payload(example = "calculate")]
    pub name: String,
    /// Why.
    pub reason: Option<String>,
    /// When.
    pub timestamp: Timestamp,
}
