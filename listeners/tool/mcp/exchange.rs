//! The requests that wait for a server's answer, and the handling of the server's messages.
//! Connections over standard input and output and connections over HTTP both use this module.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pumphouse::schema::json;
use pumphouse::secret::Secrets;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::limits::{METHOD_CHARACTERS_MAX, PROGRESS_BYTES_MAX};
use super::queue::WeakQueue;

/// The error code of JSON-RPC for a method that doesn't exist.
const NO_METHOD: i64 = -32601;

/// The reason why a request to a server failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The request wasn't sent, because the server isn't there.
    Unreachable(String),
    /// The server doesn't know the session any more, so it did nothing.
    Forgotten(String),
    /// The request was sent, and no answer came.
    Lost(String),
    /// The server answered with an error.
    Error(String),
    /// The server's answer is invalid or too large.
    Nonsense(String),
    /// The server describes the tool otherwise than its record, so nothing was sent.
    Changed(String),
}

impl Failure {
    /// Whether the server did nothing, so that the request may be sent again.
    pub(super) fn is_unsent(&self) -> bool {
        matches!(self, Failure::Unreachable(_) | Failure::Forgotten(_))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Unreachable(text)
        | Failure::Forgotten(text)
        | Failure::Lost(text)
        | Failure::Error(text)
        | Failure::Nonsense(text)
        | Failure::Changed(text)) = self;
        f.write_str(text)
    }
}

/// The part of a connection that its handles share with its driver.
#[derive(Default)]
pub(super) struct Shared {
    /// The id of the next request.
    pub(super) next: AtomicU64,
    waiting: Mutex<Pending>,
    /// Whether the server said that its tools changed, and hasn't been asked for them since.
    has_other_tools: AtomicBool,
    /// The secrets that the server knows. They are hidden in each of its messages.
    pub(super) secrets: Secrets,
}

/// The requests in flight.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) answers: BTreeMap<u64, Waiter>,
    /// The reason why the connection takes no more requests. `None` while it takes some.
    pub(super) over: Option<String>,
}

/// The channels for the answer to a request, and for the messages about its progress.
pub(super) struct Waiter {
    pub(super) to: oneshot::Sender<Result<Value, Failure>>,
    pub(super) progress: Option<mpsc::Sender<Value>>,
}

impl Shared {
    pub(super) fn hiding(secrets: Secrets) -> Shared {
        Shared { secrets, ..Shared::default() }
    }

    pub(super) fn waiting(&self) -> MutexGuard<'_, Pending> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reason why the connection takes no more requests. `None` while it takes some.
    pub(super) fn over(&self) -> Option<String> {
        self.waiting().over.clone()
    }

    /// Returns whether the server said that its tools changed since this was asked last.
    pub(super) fn take_other_tools(&self) -> bool {
        self.has_other_tools.swap(false, Ordering::Relaxed)
    }

    /// Lets the connection take no more requests. Those in flight may still be answered.
    pub(super) fn leave(&self, why: &str) {
        self.waiting().over.get_or_insert_with(|| why.to_owned());
    }

    /// Returns the only request that waits for its answer. `None` if there are none or several.
    fn only(&self) -> Option<u64> {
        let waiting = self.waiting();
        let mut all = waiting.answers.keys();
        all.next().copied().filter(|_| all.next().is_none())
    }

    /// Returns the only waiting request whose id a text has anywhere. `None` if there are none or
    /// several.
    fn named(&self, text: &str) -> Option<u64> {
        let word = "\"id\"";
        let all =
            text.match_indices(word).filter_map(|(at, _)| number_behind(&text[at + word.len()..]));
        let ids: BTreeSet<u64> = all.filter(|id| self.waits(*id)).collect();
        ids.first().copied().filter(|_| ids.len() == 1)
    }

    /// Returns whether the request with this id still waits for its answer.
    pub(super) fn waits(&self, id: u64) -> bool {
        self.waiting().answers.contains_key(&id)
    }

    /// Makes one request fail.
    pub(super) fn fail(&self, id: u64, why: Failure) {
        if let Some(waiter) = self.waiting().answers.remove(&id) {
            let _ = waiter.to.send(Err(why));
        }
    }

    /// Makes the request fail that an unreadable message answers: `of`, or else the request whose
    /// id the message shows, or else the only waiting request. If there are several, they go on.
    pub(super) fn fail_answer(&self, text: &str, why: &str, of: Option<u64>) {
        let own = own_id(text).filter(|id| self.waits(*id));
        match of.or(own).or_else(|| self.named(text)).or_else(|| self.only()) {
            Some(id) => self.fail(id, Failure::Nonsense(why.to_owned())),
            None => tracing::warn!(why, "a server's message answers no request that is known"),
        }
    }

    /// Returns whether the request with this id is the call of a tool.
    fn is_call(&self, id: u64) -> bool {
        self.waiting().answers.get(&id).is_some_and(|it| it.progress.is_some())
    }

    /// Ends the connection. All waiting requests fail.
    pub(super) fn end(&self, why: &str) {
        let mut waiting = self.waiting();
        waiting.over.get_or_insert_with(|| why.to_owned());
        for (_, waiter) in std::mem::take(&mut waiting.answers) {
            let _ = waiter.to.send(Err(Failure::Lost(why.to_owned())));
        }
    }
}

/// Reads a message of the server, with secrets hidden. A message that can't be read makes its own
/// request fail: `of`, if that is known. The answer to a call is read strictly, since nothing in it
/// may be guessed or rounded.
pub(super) fn message(text: &str, shared: &Shared, of: Option<u64>) -> Option<Value> {
    let text = &*shared.secrets.hide(text);
    let error = match json::read(text) {
        Ok(message) => return Some(message),
        Err(error) => error,
    };
    let why = format!("the server's JSON can't be read: {error}");
    let lenient = serde_json::from_str::<Value>(&json::mended(text)).ok();
    let id = lenient.as_ref().filter(|it| it.get("method").is_none());
    let id = id.and_then(|it| request_id(it.get("id")?));
    match (lenient, id.filter(|it| shared.is_call(*it))) {
        (Some(_), Some(id)) => {
            shared.fail(id, Failure::Nonsense(why));
            None
        }
        (Some(message), None) => Some(message),
        (None, _) => {
            shared.fail_answer(text, &why, of);
            None
        }
    }
}

/// Finds the property `id` of the outermost object in a text that may be no JSON.
fn own_id(text: &str) -> Option<u64> {
    let (mut depth, mut rest) = (0_usize, text);
    while let Some(at) = rest.find(['{', '}', '[', ']', '"']) {
        let found = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        match found {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {
                let mut is_escaped = false;
                let end = rest.find(|it| {
                    let is_end = it == '"' && !is_escaped;
                    is_escaped = it == '\\' && !is_escaped;
                    is_end
                })?;
                let (word, behind) = (&rest[..end], &rest[end + 1..]);
                rest = behind;
                if depth == 1 && word == "id" && behind.trim_start().starts_with(':') {
                    return number_behind(behind);
                }
            }
        }
    }
    None
}

/// Returns the number after the colon with which a text begins: `7` of `: "7", …`.
fn number_behind(text: &str) -> Option<u64> {
    let value = text.trim_start().strip_prefix(':')?.trim_start().trim_start_matches('"');
    let digits = value.find(|it: char| !it.is_ascii_digit());
    value[..digits.unwrap_or(value.len())].parse().ok()
}

/// Handles a message from the server.
pub(super) fn heard(mut message: Value, shared: &Shared, queue: &WeakQueue) {
    let id = message.get("id").filter(|it| !it.is_null()).cloned();
    match (message.get("method").and_then(Value::as_str), id) {
        (Some("ping"), Some(id)) => answer(queue, json!({ "id": id, "result": {} })),
        // A server may ask for roots, sampling or elicitation. The client offers none of them.
        (Some(method), Some(id)) => {
            let method: String = method.chars().take(METHOD_CHARACTERS_MAX).collect();
            let error = json!({ "code": NO_METHOD, "message": format!("{method} isn't offered") });
            answer(queue, json!({ "id": id, "error": error }));
        }
        (Some("notifications/progress"), None) => {
            let params = message.get_mut("params").map(Value::take).unwrap_or_default();
            let of = params.get("progressToken").and_then(request_id);
            let waiting = shared.waiting();
            let waiter = of.and_then(|it| waiting.answers.get(&it));
            // If a server reports progress faster than it is shown, some messages are left out.
            if let Some(to) = waiter.and_then(|it| it.progress.as_ref()) {
                let _ = to.try_send(shortened(&params));
            }
        }
        (Some("notifications/tools/list_changed"), None) => {
            shared.has_other_tools.store(true, Ordering::Relaxed);
        }
        (Some(_), None) => {}
        (None, id) => {
            let error = message.get("error").filter(|it| !it.is_null());
            let to = match &id {
                Some(id) => request_id(id),
                // A server that can't read a request answers an error without an id.
                None => error.and_then(|_| shared.only()),
            };
            // An answer is ignored if no request waits for it.
            let Some(to) = to.and_then(|it| shared.waiting().answers.remove(&it)) else { return };
            let answer = match error {
                Some(error) => {
                    let text = error.get("message").and_then(Value::as_str);
                    Err(Failure::Error(text.unwrap_or("it says no more").to_owned()))
                }
                None => Ok(message.get_mut("result").map(Value::take).unwrap_or_default()),
            };
            let _ = to.to.send(answer);
        }
    }
}

/// Returns the number of a request, as an answer has it. Some servers send it back as a text, or as
/// a number with a fraction of zero.
fn request_id(id: &Value) -> Option<u64> {
    match id {
        Value::String(text) => text.parse().ok(),
        id => id.as_u64().or_else(|| {
            let text = id.as_f64()?.to_string();
            text.parse().ok()
        }),
    }
}

/// Returns what is shown of a message about progress, since some of them wait to be shown.
fn shortened(params: &Value) -> Value {
    let number = |key: &str| params.get(key).filter(|it| it.is_number());
    let text = params.get("message").and_then(Value::as_str).unwrap_or_default();
    let text = &text[..text.floor_char_boundary(PROGRESS_BYTES_MAX)];
    json!({ "progress": number("progress"), "total": number("total"), "message": text })
}

/// Answers a request of the server. If the queue of messages to the server is full, the answer is
/// dropped.
fn answer(queue: &WeakQueue, mut message: Value) {
    message["jsonrpc"] = "2.0".into();
    queue.try_put(&message);
}

/// Returns the future's result, or a failure if the future takes longer than `time`.
#[expect(clippy::disallowed_methods, reason = "a server's own time, which no log depends on")]
pub(super) async fn within<T>(
    time: Duration,
    future: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let seconds = time.as_secs();
    let late = |_| Failure::Lost(format!("it didn't answer within {seconds} s"));
    tokio::time::timeout(time, future).await.map_err(late)?
}
