//! The MCP server of a listener. The server is started at the first call, and again if it has
//! ended.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pumphouse::secret::{Secret, Secrets};
use serde_json::{Map, Value};
use tokio::io::BufReader;
use tokio::process::ChildStderr;
use tokio::sync::{Mutex, mpsc, watch};

use super::super::command::Bounds;
use super::super::command::run::{Serving, serve};
use super::super::text::{lossy, shown};
use super::super::time::pass_time;
use super::exchange::{Failure, within};
use super::limits::{ERROR_BYTES_MAX, PING_TIME_MAX, WAIT_SECONDS_MAX};
use super::line::{self, Line};
use super::remote::Remote;
use super::tools::{changes, pinned};
use super::wire::Wire;

/// The maximum time to wait for the end of a server's standard error, once its output has ended.
const LAST_WORDS_TIME: Duration = Duration::from_millis(500);
/// The maximum time to wait until a connection is closed.
const CLOSE_TIME: Duration = Duration::from_secs(3);

/// The name of a server, and how the server is started or reached.
#[derive(Clone)]
pub(super) struct Launch {
    /// The server's name, for people.
    pub(super) name: String,
    pub(super) start_time: Duration,
    pub(super) transport: Transport,
    /// The secrets that the server is given. They are hidden in all that it says.
    pub(super) secrets: Vec<Secret>,
}

/// The transport to a server.
#[derive(Clone)]
pub(super) enum Transport {
    /// A program that the pump starts.
    Program { path: String, arguments: Vec<String>, bounds: Box<Bounds> },
    /// A server at a URL.
    Remote(Arc<Remote>),
}

impl Launch {
    /// Opens a connection to the server, asks for the tools, and closes the connection. If the
    /// server is a program, it is started and ended. The calling thread is blocked meanwhile.
    pub(super) fn tools(&self) -> Result<Vec<Value>, String> {
        let launch = self.clone();
        let asked = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            runtime.block_on(async {
                let tools = async {
                    let wire = launch.begin().await?;
                    let tools = wire.list().await;
                    let closed = async {
                        wire.close().await;
                        Ok(())
                    };
                    // If the connection isn't closed in time, nothing waits for it any longer.
                    let _ = within(CLOSE_TIME, closed).await;
                    tools
                };
                within(launch.start_time, tools).await.map_err(|it| it.to_string())
            })
        });
        asked.join().unwrap_or_else(|_| Err("it can't be asked".to_owned()))
    }

    /// Starts or reaches the server and opens a session.
    async fn begin(&self) -> Result<Wire, Failure> {
        let wire = match &self.transport {
            Transport::Program { path, arguments, bounds } => {
                self.begin_program(path, arguments, bounds).await?
            }
            Transport::Remote(remote) => {
                let (wire, driver) = Wire::remote(remote.clone(), self.hidden());
                beside(driver);
                wire
            }
        };
        wire.begin().await?;
        Ok(wire)
    }

    fn hidden(&self) -> Secrets {
        Secrets::new(self.secrets.iter().cloned())
    }

    async fn begin_program(
        &self,
        path: &str,
        arguments: &[String],
        bounds: &Bounds,
    ) -> Result<Wire, Failure> {
        let begun = serve(bounds, path, arguments.to_vec()).await;
        let begun =
            begun.map_err(|error| Failure::Unreachable(format!("it can't be begun: {error}")))?;
        let Serving { talk, err, control } = begun;
        let (from, to) = talk.into_split();
        let (line, mut last) = watch::channel(String::new());
        let last_words = async move {
            // Standard error is closed once the server's processes have ended.
            let closed = async {
                while last.changed().await.is_ok() {}
                Ok(())
            };
            let _ = within(LAST_WORDS_TIME, closed).await;
            last.borrow().clone()
        };
        let (wire, driver) = Wire::new(from, to, last_words, self.hidden());
        let name = self.name.clone();
        let secrets = self.hidden();
        beside(async move { told(err, &name, &secrets, line).await });
        beside(async move {
            // The driver ends when the server has ended, or when every handle of the connection is
            // dropped. Then `control` is dropped, which ends the server.
            driver.await;
            drop(control);
        });
        Ok(wire)
    }
}

/// Writes a server's standard error into the traces, to its end. `last` gets each line that isn't
/// empty.
async fn told(
    err: Option<ChildStderr>,
    server: &str,
    secrets: &Secrets,
    last: watch::Sender<String>,
) {
    let Some(err) = err else { return };
    let mut err = BufReader::new(err);
    loop {
        let line = match line::next(&mut err, ERROR_BYTES_MAX).await {
            Ok(Line::Whole(line)) => line,
            Ok(Line::TooLong(head)) => match line::skip(&mut err, usize::MAX).await {
                Ok(_) => head,
                Err(_) => return,
            },
            Ok(Line::End) | Err(_) => return,
        };
        let text: String = secrets.hide_cut(&lossy(&line)).escape_debug().collect();
        tracing::debug!(server, text, "standard error");
        if !text.trim().is_empty() {
            last.send_replace(text.trim().to_owned());
        }
    }
}

/// A server that can be called.
pub(super) struct Server {
    launch: Launch,
    /// The accepted definitions of the server's tools, by the tools' names. `None` if every
    /// definition is accepted.
    accepted: Option<Map<String, Value>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    failures: u32,
    /// While this channel is open, the server may not be started again. Its value is how many
    /// seconds that is in all. If there is no channel, the server may be started at any time.
    wait: Option<watch::Receiver<u64>>,
}

/// A connection to the server, which was asked for its tools over this connection.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) wire: Wire,
    /// The tools that the server describes otherwise than accepted.
    changed: Arc<BTreeSet<String>>,
}

impl Connection {
    /// Returns whether the server describes a tool otherwise than accepted.
    pub(super) fn has_changed(&self, tool: &str) -> bool {
        self.changed.contains(tool)
    }
}

impl Server {
    pub(super) fn new(launch: Launch, accepted: Option<Map<String, Value>>) -> Arc<Server> {
        Arc::new(Server { launch, accepted, state: Mutex::default() })
    }

    /// Calls a tool.
    pub(super) async fn call(
        &self,
        wire: &Wire,
        tool: &str,
        arguments: Value,
        progress: mpsc::Sender<Value>,
    ) -> Result<Value, Failure> {
        let answer = wire.call(tool, arguments, progress).await;
        let is_there = |it: &Failure| matches!(it, Failure::Error(_) | Failure::Nonsense(_));
        if answer.as_ref().err().is_none_or(is_there) {
            self.state.lock().await.failures = 0;
        }
        answer
    }

    /// Closes the connection and waits until its driver has ended. Does nothing if there is no
    /// connection.
    pub(super) async fn close(&self) {
        let connection = self.state.lock().await.connection.take();
        if let Some(Connection { wire, .. }) = connection {
            wire.close().await;
        }
    }

    /// Asks for a sign of life, after a call took too long. A server that gives none is left: it
    /// ends once its other calls have ended, and the next call begins another.
    pub(super) async fn check_life(&self, wire: &Wire) {
        // While the server is asked, no call is sent to it.
        let mut state = self.state.lock().await;
        if !state.connection.as_ref().is_some_and(|it| it.wire.is_same(wire)) {
            return;
        }
        if within(PING_TIME_MAX, wire.ping()).await.is_err() {
            wire.leave("the server answers nothing any more");
            state.connection = None;
            self.fail(&mut state);
        }
    }

    /// Returns the connection to the server. If the server hasn't been started yet or has ended, it
    /// is started first, and asked for its tools. It is also asked again if it said that they
    /// changed.
    pub(super) async fn connection(&self) -> Result<Connection, Failure> {
        let mut state = self.state.lock().await;
        if let Some(mut there) = state.connection.take() {
            if there.wire.over().is_none() && there.wire.take_other_tools() {
                match within(self.launch.start_time, self.changed(&there.wire)).await {
                    Ok(changed) => there.changed = Arc::new(changed),
                    Err(failure) => there.wire.leave(&failure.to_string()),
                }
            }
            if there.wire.over().is_none() {
                return Ok(state.connection.insert(there).clone());
            }
            self.fail(&mut state);
        }
        if let Some(wait) = state.wait.as_ref().filter(|it| it.has_changed().is_ok()) {
            let (failures, seconds) = (state.failures, *wait.borrow());
            let text = format!(
                "it failed {failures} times in a row; it is begun again {seconds} s after the last"
            );
            return Err(Failure::Unreachable(text));
        }
        let begun = async {
            let wire = self.launch.begin().await?;
            let changed = Arc::new(self.changed(&wire).await?);
            Ok(Connection { wire, changed })
        };
        match within(self.launch.start_time, begun).await {
            Ok(connection) => Ok(state.connection.insert(connection).clone()),
            Err(failure) => {
                self.fail(&mut state);
                Err(Failure::Unreachable(failure.to_string()))
            }
        }
    }

    /// Asks the server for its tools. Returns the names of those that it describes otherwise than
    /// accepted.
    async fn changed(&self, wire: &Wire) -> Result<BTreeSet<String>, Failure> {
        let Some(accepted) = &self.accepted else { return Ok(BTreeSet::new()) };
        let changed = changes(accepted, &pinned(&wire.list().await?));
        let server = &self.launch.name;
        if !changed.is_empty() {
            let names: Vec<String> = changed.keys().map(|it| shown(it)).collect();
            tracing::warn!(server, "Refused, since they changed: {}", names.join(", "));
        }
        Ok(changed.into_iter().map(|(name, _)| name).collect())
    }

    /// Counts a failure. After the first failure, the server may be started again at once. After
    /// the second failure, it may be started after a second. Each further failure doubles this
    /// delay, up to `WAIT_SECONDS_MAX`.
    fn fail(&self, state: &mut State) {
        state.failures = state.failures.saturating_add(1);
        let server = &self.launch.name;
        tracing::warn!(server, failures = state.failures, "the connection to an MCP server ended");
        // To look whether a server at a URL is there again costs nothing.
        let is_program = matches!(self.launch.transport, Transport::Program { .. });
        let Some(doublings) = state.failures.checked_sub(2).filter(|_| is_program) else { return };
        let seconds = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX).min(WAIT_SECONDS_MAX);
        let (open, wait) = watch::channel(seconds);
        state.wait = Some(wait);
        beside(async move {
            pass_time(Duration::from_secs(seconds)).await;
            drop(open);
        });
    }
}

#[expect(clippy::disallowed_methods, reason = "it ends with its connection, and sends no message")]
fn beside(future: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::task::spawn(future));
}
