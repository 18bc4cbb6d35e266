//! Runs programs, on the pump's side. The pump starts a supervisor, sends it the order to run the
//! program, and reads the supervisor's report.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Pair;
use std::process::Stdio;

use pumphouse::secret::Secrets;
use pumphouse::wire::core::OutputStream;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::runtime::Handle;

use super::super::text::lossy;
use super::attempts::Attempt;
use super::bounds::Bounds;
use super::limits::CommandLimits;
use super::orphans;
use super::scratch::clear_once;
use super::supervise::{SELF, SUPERVISE};
use super::supervisor_messages::{Order, Report};

/// The maximum number of bytes of a report.
const REPORT_BYTES_MAX: u64 = 64 * 1024;
/// The maximum number of bytes of output that one read takes.
const PIECE_BYTES: usize = 16 * 1024;

/// How a program ended, and the output that it wrote.
#[derive(Debug)]
pub(in super::super) struct Outcome {
    pub(in super::super) ended: ExitCause,
    pub(in super::super) out: ClippedOutput,
    pub(in super::super) err: ClippedOutput,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ExitCause {
    Code(i32),
    Signal(i32),
    OutOfTime,
    TooMuchOutput,
}

impl ExitCause {
    /// Says in a sentence how the program ended.
    pub(in super::super) fn sentence(self, name: &str, limits: &CommandLimits) -> String {
        let how = match self {
            ExitCause::Code(code) => return format!("{name} ended with the exit code {code}"),
            ExitCause::Signal(signal) => format!("{name} was ended by the signal {signal}"),
            ExitCause::OutOfTime => {
                let most = limits.seconds_max;
                format!("{name} was ended after {most} s; the limit seconds_max is {most}")
            }
            ExitCause::TooMuchOutput => {
                let most = limits.written_bytes_max;
                format!("{name} was ended; the limit written_bytes_max is {most}")
            }
        };
        format!("{how}; what it had done by then is unknown")
    }
}

/// Why a program has no outcome.
#[derive(Debug)]
pub(in super::super) struct NotRun {
    /// Whether the program may have begun.
    pub(in super::super) has_begun: bool,
    /// The reason, in a sentence.
    pub(in super::super) text: String,
}

/// A function that is called with each piece of output that a program writes.
pub(in super::super) type OutputObserver<'a> = &'a (dyn Fn(OutputStream, &[u8]) + Send + Sync);

/// Runs a program to its end. If the future is dropped earlier, the supervisor ends the program.
/// `key` is that of the call: the program of an earlier attempt with the same key ends first.
///
/// # Errors
/// If the program can't be started, or if its supervisor ended before the program.
pub(in super::super) async fn run(
    bounds: &Bounds,
    program: &str,
    arguments: Vec<String>,
    input: String,
    key: Option<&str>,
    observe: OutputObserver<'_>,
) -> Result<Outcome, NotRun> {
    let order = bounds.order(program, arguments, input);
    let not_begun = |error: String| {
        let text = format!("{program} can't be begun: {error}");
        NotRun { has_begun: false, text }
    };
    let lost = |why: String| {
        let text = format!("{program}: {why}; what it had done by then is unknown");
        NotRun { has_begun: true, text }
    };
    bounds.make_folder().map_err(|it| not_begun(it.to_string()))?;
    let attempt = bounds.attempts.begin(key).await;
    let begun = supervised(Stdio::piped()).map_err(|it| not_begun(it.to_string()))?;
    let (child, ours) = begun;
    let mut supervisor = Supervisor { child: Some(child), attempt };
    let (out, err) = supervisor.outputs();
    // When `hear` is done, it closes the socket, and the supervisor ends. If the supervisor ends
    // first, its end also ends orphans that keep the outputs open.
    let heard = hear(ours, &order, (out, err), bounds, observe);
    let (heard, ended) = tokio::join!(heard, supervisor.end());
    ended.map_err(|it| lost(it.to_string()))?;
    let (report, out, err) = heard.map_err(|it| lost(it.to_string()))?;
    let ended = match report {
        None => ExitCause::TooMuchOutput,
        Some(Report { error: Some(error), .. }) => return Err(not_begun(error)),
        Some(Report { out_of_time: true, .. }) => ExitCause::OutOfTime,
        Some(Report { signal: Some(it), .. }) => ExitCause::Signal(it),
        Some(Report { code: Some(it), .. }) => ExitCause::Code(it),
        Some(_) => return Err(lost("its supervisor ended before it".to_owned())),
    };
    Ok(Outcome { ended, out, err })
}

/// The supervisor of a call's program. If this value is dropped before the supervisor has ended,
/// the call's attempt counts as running until then.
struct Supervisor {
    child: Option<Child>,
    attempt: Option<Attempt>,
}

impl Supervisor {
    /// Takes the program's standard output and standard error.
    fn outputs(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        let child = self.child.as_mut();
        child.map(|it| (it.stdout.take(), it.stderr.take())).unwrap_or_default()
    }

    /// Waits for the supervisor's end.
    async fn end(&mut self) -> std::io::Result<()> {
        if let Some(child) = &mut self.child {
            let status = child.wait().await?;
            orphans::supervisor_ended(Some(status));
        }
        self.child = None;
        Ok(())
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else { return };
        let attempt = self.attempt.take();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                wait(child).await;
                drop(attempt);
            });
        }
    }
}

/// Waits for a supervisor's end, and ends what it left.
async fn wait(mut child: Child) {
    orphans::supervisor_ended(child.wait().await.ok());
}

/// Starts a supervisor. The returned socket carries the order to the supervisor, and then its
/// report back.
fn supervised(out: Stdio) -> std::io::Result<(Child, UnixStream)> {
    clear_once();
    let (ours, theirs) = pair()?;
    let mut command = Command::new(SELF);
    command.arg(SUPERVISE).env_clear().current_dir("/");
    command.stdin(Stdio::from(theirs)).stdout(out).stderr(Stdio::piped());
    orphans::supervisor_begins();
    Ok((command.spawn()?, ours))
}

fn pair() -> std::io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = Pair::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, OwnedFd::from(theirs)))
}

/// A running program that exchanges messages with the pump. When this value is dropped, the
/// supervisor ends the program.
pub(in super::super) struct Serving {
    /// The program's standard input and standard output.
    pub(in super::super) talk: UnixStream,
    pub(in super::super) err: Option<ChildStderr>,
    /// The socket to the supervisor. When this socket is closed, the supervisor ends the program.
    pub(in super::super) control: UnixStream,
}

/// Starts a program that exchanges messages with the pump. Landlock doesn't confine the program.
///
/// # Errors
/// If the supervisor can't be started, or if the order can't be sent to it.
pub(in super::super) async fn serve(
    bounds: &Bounds,
    program: &str,
    arguments: Vec<String>,
) -> std::io::Result<Serving> {
    serve_order(&bounds.order(program, arguments, String::new()).serving().free()).await
}

/// Starts a program that exchanges messages with the pump, within its bounds.
///
/// # Errors
/// If the supervisor can't be started, or if the order can't be sent to it.
pub(in super::super) async fn serve_confined(
    bounds: &Bounds,
    program: &str,
    arguments: Vec<String>,
) -> std::io::Result<Serving> {
    serve_order(&bounds.order(program, arguments, String::new()).serving()).await
}

async fn serve_order(order: &Order) -> std::io::Result<Serving> {
    let (talk, theirs) = pair()?;
    let (mut supervisor, mut control) = supervised(Stdio::from(theirs))?;
    let err = supervisor.stderr.take();
    Handle::current().spawn(wait(supervisor));
    control.write_all((serde_json::to_string(order)? + "\n").as_bytes()).await?;
    Ok(Serving { talk, err, control })
}

/// Sends the order to the supervisor, then collects the program's output and the report. There is
/// no report if the program wrote too much.
async fn hear(
    mut ours: UnixStream,
    order: &Order,
    (out, err): (Option<impl AsyncRead + Unpin>, Option<impl AsyncRead + Unpin>),
    Bounds { limits, hidden, .. }: &Bounds,
    observe: OutputObserver<'_>,
) -> std::io::Result<(Option<Report>, ClippedOutput, ClippedOutput)> {
    let line = serde_json::to_string(order)? + "\n";
    ours.write_all(line.as_bytes()).await?;
    let kept = |most| ClippedOutput::new(most, hidden.clone());
    let (mut kept_out, mut kept_err) =
        (kept(limits.output_bytes_max), kept(limits.error_bytes_max));
    let most = limits.written_bytes_max;
    // If one output is too long, the other isn't read to its end.
    let both = tokio::try_join!(
        kept_out.fill(out, most, |it| observe(OutputStream::Out, it)),
        kept_err.fill(err, most, |it| observe(OutputStream::Err, it)),
    );
    match both {
        Ok(_) => {}
        Err(ReadError::TooMuch) => return Ok((None, kept_out, kept_err)),
        Err(ReadError::Failed(error)) => return Err(error),
    }
    let mut line = String::new();
    BufReader::new(ours).take(REPORT_BYTES_MAX).read_line(&mut line).await?;
    let report = serde_json::from_str(&line).unwrap_or_default();
    Ok((Some(report), kept_out, kept_err))
}

/// The reason why an output isn't read to its end.
enum ReadError {
    TooMuch,
    Failed(std::io::Error),
}

/// The beginning and the end of an output. The middle of a long output is left out.
#[derive(Debug)]
pub(in super::super) struct ClippedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// The maximum number of bytes of `head`. The same limit holds for `tail`.
    half: usize,
    left_out: u64,
    /// The secrets that are hidden in the text.
    hidden: Secrets,
}

impl ClippedOutput {
    fn new(most: usize, hidden: Secrets) -> ClippedOutput {
        let (head, tail, half) = (Vec::new(), VecDeque::new(), most / 2);
        ClippedOutput { head, tail, half, left_out: 0, hidden }
    }

    /// Reads an output to its end. Fails if the output has more than `most` bytes.
    async fn fill(
        &mut self,
        from: Option<impl AsyncRead + Unpin>,
        most: u64,
        observe: impl Fn(&[u8]),
    ) -> Result<(), ReadError> {
        let Some(mut from) = from else { return Ok(()) };
        let (mut piece, mut all) = (vec![0; PIECE_BYTES], 0_u64);
        loop {
            let read = from.read(&mut piece).await.map_err(ReadError::Failed)?;
            if read == 0 {
                return Ok(());
            }
            all += read as u64;
            self.add(&piece[..read]);
            observe(&piece[..read]);
            if all > most {
                return Err(ReadError::TooMuch);
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..over);
        self.left_out += over as u64;
    }

    /// Returns the whole output and `false`. If a part of the output is left out, returns the
    /// beginning and `true`.
    pub(in super::super) fn beginning(&self) -> (Vec<u8>, bool) {
        match self.left_out {
            0 => (self.head.iter().chain(&self.tail).copied().collect(), false),
            _ => (self.head.clone(), true),
        }
    }

    /// Returns the output as text, without secrets. In place of a left-out part, a line says how
    /// many bytes are left out.
    pub(in super::super) fn text(&self, most: usize) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.left_out == 0 {
            return self.hidden.hide_in(lossy(&[&self.head[..], &tail].concat()));
        }
        let left_out = self.left_out;
        let line = format!("\n[… {left_out} bytes left out; {most} are shown …]\n");
        let head = self.hidden.hide_cut(&lossy(&self.head)).into_owned();
        head + &line + &self.hidden.hide(&lossy(&tail))
    }
}
