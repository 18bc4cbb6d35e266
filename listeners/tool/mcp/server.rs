//! The MCP server of a listener. The server is started at the first call, and again if it has
//! ended.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::BufReader;
use tokio::process::ChildStderr;
use tokio::sync::{Mutex, mpsc, watch};

use super::super::command::Bounds;
use super::super::command::run::{Serving, serve};
use super::super::text::lossy;
use super::super::time::pass_time;
use super::exchange::{Failure, within};
use super::limits::{ERROR_BYTES_MAX, WAIT_SECONDS_MAX};
use super::line::{self, Line};
use super::remote::Remote;
use super::wire::Wire;

/// The maximum time to wait for the end of a server's standard error, once its output has ended.
const LAST_WORDS_TIME: Duration = Duration::from_millis(500);
/// The maximum time to wait until a connection is closed.
const CLOSE_TIME: Duration = Duration::from_secs(3);

/// The tools that a server describes otherwise than its record, once the server has answered.
pub(super) type Compared = watch::Receiver<Option<BTreeSet<String>>>;

/// The name of a server, and how the server is started or reached.
#[derive(Clone)]
pub(super) struct Launch {
    /// The server's name, for people.
    pub(super) name: String,
    pub(super) start_time: Duration,
    pub(super) transport: Transport,
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
                let (wire, driver) = Wire::remote(remote.clone());
                beside(driver);
                wire
            }
        };
        wire.begin().await?;
        Ok(wire)
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
        let (wire, driver) = Wire::new(from, to, last_words);
        let name = self.name.clone();
        beside(async move { told(err, &name, line).await });
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
async fn told(err: Option<ChildStderr>, server: &str, last: watch::Sender<String>) {
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
        let text: String = lossy(&line).escape_debug().collect();
        tracing::debug!(server, text, "standard error");
        if !text.trim().is_empty() {
            last.send_replace(text.trim().to_owned());
        }
    }
}

/// A server that can be called.
pub(super) struct Server {
    pub(super) launch: Launch,
    /// The tools that changed, if the server hadn't answered yet when its listener was made.
    compared: Option<Compared>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    wire: Option<Wire>,
    failures: u32,
    /// While this channel is open, the server may not be started again. Its value is how many
    /// seconds that is in all. If there is no channel, the server may be started at any time.
    wait: Option<watch::Receiver<u64>>,
}

impl Server {
    pub(super) fn new(launch: Launch, compared: Option<Compared>) -> Arc<Server> {
        Arc::new(Server { launch, compared, state: Mutex::default() })
    }

    /// Returns whether the server describes a tool otherwise than its record. If the server hasn't
    /// answered yet, this waits for its answer, or for the end of its time.
    pub(super) async fn has_changed(&self, tool: &str) -> bool {
        let Some(mut compared) = self.compared.clone() else { return false };
        let changed = compared.wait_for(Option::is_some).await;
        changed.is_ok_and(|it| it.as_ref().is_some_and(|it| it.contains(tool)))
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
        let wire = self.state.lock().await.wire.take();
        if let Some(wire) = wire {
            wire.close().await;
        }
    }

    /// Returns the connection to the server. If the server hasn't been started yet or has ended, it
    /// is started first.
    pub(super) async fn wire(&self) -> Result<Wire, Failure> {
        let mut state = self.state.lock().await;
        match state.wire.take() {
            Some(wire) if wire.over().is_none() => return Ok(state.wire.insert(wire).clone()),
            Some(_) => self.fail(&mut state),
            None => {}
        }
        if let Some(wait) = state.wait.as_ref().filter(|it| it.has_changed().is_ok()) {
            let (failures, seconds) = (state.failures, *wait.borrow());
            let text = format!(
                "it failed {failures} times in a row; it is begun again {seconds} s after the last"
            );
            return Err(Failure::Unreachable(text));
        }
        match within(self.launch.start_time, self.launch.begin()).await {
            Ok(wire) => Ok(state.wire.insert(wire).clone()),
            Err(failure) => {
                self.fail(&mut state);
                Err(Failure::Unreachable(failure.to_string()))
            }
        }
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
