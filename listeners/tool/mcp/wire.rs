//! JSON-RPC with one server over one connection: what is asked, what is answered, what is declined.
//!
//! It knows neither payloads nor how a server is begun.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{mpsc, oneshot};

use super::limits::{DEFINITIONS_BYTES_MAX, LINE_BYTES_MAX, PAGES_MAX, TOOLS_MAX};
use super::line::{self, Line};
use super::remote::{self, Remote};

/// The revision that is offered; a server may answer with any of the others.
const REVISION: &str = "2025-11-25";
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", REVISION];
/// Messages that wait to be written.
const WRITES_MAX: usize = 64;
/// What JSON-RPC calls a method that isn't there.
const NO_METHOD: i64 = -32601;

/// Why a server didn't answer as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The connection is over.
    Gone(String),
    /// It answered with an error.
    Error(String),
    /// What it answered makes no sense, or is too much.
    Nonsense(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Gone(it) | Failure::Error(it) | Failure::Nonsense(it)) = self;
        f.write_str(it)
    }
}

/// One connection. Where the last of it is dropped, the connection is closed.
#[derive(Clone)]
pub(super) struct Wire {
    shared: Arc<Shared>,
    writes: mpsc::Sender<Value>,
}

/// What the two ends of a connection share.
#[derive(Default)]
pub(super) struct Shared {
    next: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    answers: BTreeMap<u64, Waiter>,
    /// Why nothing comes any more.
    over: Option<Failure>,
}

/// Who waits for an answer, and hears how far it is.
struct Waiter {
    to: oneshot::Sender<Result<Value, Failure>>,
    progress: Option<mpsc::Sender<Value>>,
}

impl Shared {
    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why it is over, if it is.
    pub(super) fn over(&self) -> Option<Failure> {
        self.waiting().over.clone()
    }

    /// Whether an answer to this is waited for.
    pub(super) fn waits(&self, id: u64) -> bool {
        self.waiting().answers.contains_key(&id)
    }

    /// Answers one request.
    pub(super) fn fail(&self, id: u64, why: Failure) {
        if let Some(waiter) = self.waiting().answers.remove(&id) {
            let _ = waiter.to.send(Err(why));
        }
    }

    /// Answers all who wait.
    pub(super) fn end(&self, why: &Failure) {
        let mut waiting = self.waiting();
        waiting.over.get_or_insert_with(|| why.clone());
        for (_, waiter) in std::mem::take(&mut waiting.answers) {
            let _ = waiter.to.send(Err(why.clone()));
        }
    }
}

impl Wire {
    /// A connection over two ends, and what drives it: it must be polled beside the calls.
    pub(super) fn new(
        from: impl AsyncRead + Unpin,
        to: impl AsyncWrite + Unpin,
    ) -> (Wire, impl Future<Output = ()>) {
        let (wire, shared, weak, written) = Wire::parts();
        let driver = async move {
            let why = tokio::select! {
                why = read(from, &shared, &weak) => why,
                why = write(to, written) => why,
            };
            shared.end(&why);
        };
        (wire, driver)
    }

    /// A connection over HTTP, and what drives it.
    pub(super) fn remote(remote: Arc<Remote>) -> (Wire, impl Future<Output = ()>) {
        let (wire, shared, weak, written) = Wire::parts();
        let driver = async move {
            let why = remote::drive(&remote, &shared, &weak, written).await;
            shared.end(&why);
        };
        (wire, driver)
    }

    fn parts() -> (Wire, Arc<Shared>, mpsc::WeakSender<Value>, mpsc::Receiver<Value>) {
        let (writes, written) = mpsc::channel(WRITES_MAX);
        let shared = Arc::<Shared>::default();
        let weak = writes.downgrade();
        (Wire { shared: shared.clone(), writes }, shared, weak, written)
    }

    /// Ends it, and waits until the server has heard so.
    pub(super) async fn close(self) {
        let _ = self.writes.send(Value::Null).await;
        self.writes.closed().await;
    }

    /// Why it is over, if it is.
    pub(super) fn over(&self) -> Option<Failure> {
        self.shared.over()
    }

    /// Says hello. A server that speaks no revision of ours is refused.
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

    /// The tools of the server, as it describes them.
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

    /// Calls a tool, and passes on what it says of its progress. Where this is dropped, the server
    /// hears that nobody waits any more.
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
                return Err(why.clone());
            }
            waiting.answers.insert(id, Waiter { to, progress });
        }
        let mut asked = Asked { wire: self, id, is_open: is_call };
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.put(message).await?;
        let answer = answer.await.unwrap_or_else(|_| Err(gone()));
        asked.is_open = false;
        answer
    }

    async fn tell(&self, method: &str, params: Value) -> Result<(), Failure> {
        self.put(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await
    }

    async fn put(&self, message: Value) -> Result<(), Failure> {
        let put = self.writes.send(message).await;
        put.map_err(|_| self.over().unwrap_or_else(gone))
    }
}

fn gone() -> Failure {
    Failure::Gone("the server has ended".to_owned())
}

/// A request that is under way.
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
            // A server that takes nothing in is told nothing more.
            let _ = self.wire.writes.try_send(message);
        }
    }
}

async fn write(mut to: impl AsyncWrite + Unpin, mut written: mpsc::Receiver<Value>) -> Failure {
    while let Some(message) = written.recv().await {
        if message.is_null() {
            break;
        }
        let line = message.to_string() + "\n";
        if to.write_all(line.as_bytes()).await.is_err() {
            // What it still says is read to its end.
            std::future::pending::<()>().await;
        }
    }
    gone()
}

async fn read(
    from: impl AsyncRead + Unpin,
    shared: &Shared,
    writes: &mpsc::WeakSender<Value>,
) -> Failure {
    let mut from = BufReader::new(from);
    loop {
        let line = match line::next(&mut from, LINE_BYTES_MAX).await {
            Ok(Line::Whole(it)) => it,
            Ok(Line::End) => return gone(),
            Ok(Line::TooLong) => {
                let text = format!("the server wrote a line of more than {LINE_BYTES_MAX} bytes");
                return Failure::Gone(text);
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return gone(),
            Err(error) => return Failure::Gone(format!("the server can't be read: {error}")),
        };
        // Some servers greet on their standard output.
        let Ok(text) = std::str::from_utf8(&line) else { continue };
        match pumphouse::schema::json::read(text) {
            Ok(message) => heard(message, shared, writes),
            // Whose answer it is can't be known.
            Err(error) if text.starts_with('{') => {
                return Failure::Gone(format!("the server wrote JSON that can't be read: {error}"));
            }
            Err(_) => {}
        }
    }
}

/// Takes in a message of the server's.
pub(super) fn heard(mut message: Value, shared: &Shared, writes: &mpsc::WeakSender<Value>) {
    let id = message.get("id").filter(|it| !it.is_null()).cloned();
    match (message.get("method").and_then(Value::as_str), id) {
        (Some("ping"), Some(id)) => answer(writes, json!({ "id": id, "result": {} })),
        // Roots, sampling and elicitation: nothing was offered.
        (Some(method), Some(id)) => {
            let error = json!({ "code": NO_METHOD, "message": format!("{method} isn't offered") });
            answer(writes, json!({ "id": id, "error": error }));
        }
        (Some("notifications/progress"), None) => {
            let params = message.get_mut("params").map(Value::take).unwrap_or_default();
            let of = params.get("progressToken").and_then(Value::as_u64);
            let waiting = shared.waiting();
            let waiter = of.and_then(|it| waiting.answers.get(&it));
            // Of a server that says more than is shown, some is left out.
            if let Some(to) = waiter.and_then(|it| it.progress.as_ref()) {
                let _ = to.try_send(params);
            }
        }
        (Some(_), None) => {}
        (None, id) => {
            let to = id.as_ref().and_then(Value::as_u64);
            // What nobody asked for is nobody's answer.
            let Some(to) = to.and_then(|it| shared.waiting().answers.remove(&it)) else { return };
            let error = message.get("error").filter(|it| !it.is_null());
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

/// A server that asks faster than it takes answers in gets none.
fn answer(writes: &mpsc::WeakSender<Value>, mut message: Value) {
    message["jsonrpc"] = "2.0".into();
    if let Some(writes) = writes.upgrade() {
        let _ = writes.try_send(message);
    }
}
