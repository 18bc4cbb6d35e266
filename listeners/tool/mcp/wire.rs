//! JSON-RPC with one server over one connection. Requests from the server, except `ping`, are
//! declined.
//!
//! This module knows neither payloads nor how a server is started.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pumphouse::secret::Secrets;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::exchange::{Failure, Shared, Waiter, heard, message};
use super::limits::{
    DEFINITIONS_BYTES_MAX, LINE_BYTES_MAX, PAGES_MAX, SKIPPED_BYTES_MAX, TOOLS_MAX,
};
use super::line::{self, Line};
use super::queue::{Outgoing, Queue, WeakQueue};
use super::remote::{self, Remote};

/// The protocol's revision that the client offers. The server may choose any of `REVISIONS`.
const REVISION: &str = "2025-11-25";
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", REVISION];

/// A handle of a connection. When the last handle is dropped, the connection is closed.
#[derive(Clone)]
pub(super) struct Wire {
    shared: Arc<Shared>,
    queue: Queue,
    /// Tells the driver to end. The guard does so when the last handle is dropped, even while the
    /// driver waits for a server that reads nothing.
    end: CancellationToken,
    _guard: Arc<DropGuard>,
}

/// The driver's part of a connection.
struct DriverParts {
    shared: Arc<Shared>,
    weak: WeakQueue,
    written: mpsc::Receiver<Outgoing>,
    end: CancellationToken,
}

/// What is said of a connection that the pump has closed.
const CLOSED: &str = "the connection is closed";

impl Wire {
    /// Makes a connection over a reader and a writer, and its driver. Calls make progress only
    /// while the driver is polled. If the server ends, `last_words` says what it said of that.
    pub(super) fn new(
        from: impl AsyncRead + Unpin,
        to: impl AsyncWrite + Unpin,
        last_words: impl Future<Output = String>,
        secrets: Secrets,
    ) -> (Wire, impl Future<Output = ()>) {
        let (wire, DriverParts { shared, weak, written, end }) = Wire::parts(secrets);
        let driver = async move {
            let why = tokio::select! {
                why = read(from, &shared, &weak) => why,
                () = write(to, written, &shared) => return shared.end(CLOSED),
                () = end.cancelled() => return shared.end(CLOSED),
            };
            shared.leave(&why);
            let said = last_words.await;
            shared.end(&if said.is_empty() { why } else { format!("{why}: {said}") });
        };
        (wire, driver)
    }

    /// Makes a connection over HTTP, and its driver.
    pub(super) fn remote(
        remote: Arc<Remote>,
        secrets: Secrets,
    ) -> (Wire, impl Future<Output = ()>) {
        let (wire, DriverParts { shared, weak, written, end }) = Wire::parts(secrets);
        let driver = async move {
            let why = remote::drive(&remote, &shared, &weak, written, &end).await;
            shared.end(why.as_deref().unwrap_or(CLOSED));
        };
        (wire, driver)
    }

    fn parts(secrets: Secrets) -> (Wire, DriverParts) {
        let (queue, written) = Queue::new();
        let shared = Arc::new(Shared::hiding(secrets));
        let (weak, end) = (queue.weak(), CancellationToken::new());
        let guard = Arc::new(end.clone().drop_guard());
        let wire = Wire { shared: shared.clone(), queue, end: end.clone(), _guard: guard };
        (wire, DriverParts { shared, weak, written, end })
    }

    /// Closes the connection, and waits until its driver has ended.
    pub(super) async fn close(self) {
        self.end.cancel();
        self.queue.closed().await;
    }

    /// Returns whether two handles are of one connection.
    pub(super) fn is_same(&self, other: &Wire) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns whether the server said that its tools changed since this was asked last.
    pub(super) fn take_other_tools(&self) -> bool {
        self.shared.take_other_tools()
    }

    /// Returns the reason why the connection takes no more requests. `None` while it takes some.
    pub(super) fn over(&self) -> Option<String> {
        self.shared.over()
    }

    /// Lets the connection take no more requests. Those in flight may still be answered.
    pub(super) fn leave(&self, why: &str) {
        self.shared.leave(why);
    }

    /// Opens a session. Fails if the server chooses a revision of the protocol that isn't one of
    /// `REVISIONS`.
    pub(super) async fn begin(&self) -> Result<(), Failure> {
        let client = json!({ "name": "pumphouse", "version": env!("CARGO_PKG_VERSION") });
        let hello =
            json!({ "protocolVersion": REVISION, "capabilities": {}, "clientInfo": client });
        let told = self.ask("initialize", hello).await?;
        let revision = told.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        if !REVISIONS.contains(&revision) {
            let text = format!("it speaks MCP {revision:?}; known are {}", REVISIONS.join(", "));
            return Err(Failure::Nonsense(text));
        }
        self.tell("notifications/initialized", json!({})).await
    }

    /// Asks the server for its tools. Returns their definitions.
    pub(super) async fn list(&self) -> Result<Vec<Value>, Failure> {
        let (mut tools, mut cursor, mut bytes) = (Vec::new(), None::<Value>, 0);
        for _ in 0..PAGES_MAX {
            let asked = cursor.as_ref().map_or(json!({}), |it| json!({ "cursor": it }));
            let mut page = self.ask("tools/list", asked).await?;
            let Some(Value::Array(all)) = page.get_mut("tools").map(Value::take) else {
                return Err(Failure::Nonsense("its list has no tools".to_owned()));
            };
            bytes += all.iter().map(|it| it.to_string().len()).sum::<usize>();
            tools.extend(all);
            if tools.len() > TOOLS_MAX {
                let text = format!("it has more than {TOOLS_MAX} tools");
                return Err(Failure::Nonsense(text));
            }
            if bytes > DEFINITIONS_BYTES_MAX {
                let text = format!("its tools take more than {DEFINITIONS_BYTES_MAX} bytes to say");
                return Err(Failure::Nonsense(text));
            }
            cursor = page.get_mut("nextCursor").map(Value::take).filter(|it| !it.is_null());
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        Err(Failure::Nonsense(format!("its list of tools has more than {PAGES_MAX} pages")))
    }

    /// Asks the server for a sign of life. An error is one.
    pub(super) async fn ping(&self) -> Result<(), Failure> {
        match self.ask("ping", json!({})).await {
            Ok(_) | Err(Failure::Error(_) | Failure::Nonsense(_)) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Calls a tool, and passes on the messages about the call's progress. If the future is
    /// dropped, the server is told that the call is cancelled.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Value,
        progress: mpsc::Sender<Value>,
    ) -> Result<Value, Failure> {
        let params = json!({ "name": tool, "arguments": arguments });
        self.ask_for("tools/call", params, Some(progress)).await
    }

    async fn ask(&self, method: &str, params: Value) -> Result<Value, Failure> {
        self.ask_for(method, params, None).await
    }

    async fn ask_for(
        &self,
        method: &str,
        mut params: Value,
        progress: Option<mpsc::Sender<Value>>,
    ) -> Result<Value, Failure> {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let is_call = progress.is_some();
        if is_call {
            params["_meta"] = json!({ "progressToken": id });
        }
        let (to, answer) = oneshot::channel();
        {
            let mut waiting = self.shared.waiting();
            if let Some(why) = &waiting.over {
                return Err(Failure::Unreachable(why.clone()));
            }
            waiting.answers.insert(id, Waiter { to, progress });
        }
        let mut asked = Asked { wire: self, id, is_open: is_call };
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.put(message).await?;
        let answer = answer.await.unwrap_or_else(|_| Err(Failure::Lost(GONE.to_owned())));
        asked.is_open = false;
        answer
    }

    async fn tell(&self, method: &str, params: Value) -> Result<(), Failure> {
        self.put(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await
    }

    async fn put(&self, message: Value) -> Result<(), Failure> {
        match self.queue.put(&message).await {
            true => Ok(()),
            false => Err(Failure::Unreachable(self.over().unwrap_or_else(|| GONE.to_owned()))),
        }
    }
}

/// What is said of a server that has closed its output.
const GONE: &str = "the server has ended";

/// A request in flight.
struct Asked<'a> {
    wire: &'a Wire,
    id: u64,
    is_open: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.wire.shared.waiting().answers.remove(&self.id);
        if self.is_open {
            let params = json!({ "requestId": self.id, "reason": "nobody waits any more" });
            let method = "notifications/cancelled";
            let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
            // If the queue of messages to the server is full, this message is dropped.
            self.wire.queue.try_put(&message);
        }
    }
}

/// Writes the messages to the server. Returns once every handle of the connection is dropped.
async fn write(
    mut to: impl AsyncWrite + Unpin,
    mut written: mpsc::Receiver<Outgoing>,
    shared: &Shared,
) {
    let mut is_heard = true;
    while let Some(mut message) = written.recv().await {
        message.text.push('\n');
        is_heard = is_heard && to.write_all(message.text.as_bytes()).await.is_ok();
        if is_heard {
            continue;
        }
        // The server reads no more messages, but it may still write some, so the connection stays
        // open. Of the message that failed, the server has no whole line.
        let why = "the server reads no more messages";
        shared.leave(why);
        if let Some(id) = message.request() {
            shared.fail(id, Failure::Unreachable(why.to_owned()));
        }
    }
}

async fn read(from: impl AsyncRead + Unpin, shared: &Shared, queue: &WeakQueue) -> String {
    let mut from = BufReader::new(from);
    loop {
        let line = match line::next(&mut from, LINE_BYTES_MAX).await {
            Ok(Line::Whole(it)) => it,
            Ok(Line::End) => return GONE.to_owned(),
            Ok(Line::TooLong(begun)) => {
                let text = format!("the server wrote a line of more than {LINE_BYTES_MAX} bytes");
                shared.fail_answer(&String::from_utf8_lossy(&begun), &text, None);
                match line::skip(&mut from, SKIPPED_BYTES_MAX).await {
                    Ok(true) => continue,
                    _ => return text,
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                return GONE.to_owned();
            }
            Err(error) => return format!("the server can't be read: {error}"),
        };
        // Lines that are no JSON are ignored, because some servers write a greeting first.
        let text = String::from_utf8_lossy(&line);
        if text.trim_start().starts_with(['{', '['])
            && let Some(message) = message(&text, shared, None)
        {
            heard(message, shared, queue);
        }
    }
}
