//! The supervisor: a process between the pump and a program. The supervisor ends the program and
//! all its descendants when the time is up, when the call ends, and when the pump ends.
//!
//! The supervisor's standard input is a socket to the pump. From this socket, the supervisor reads
//! the order, which is one line. It writes back the report, which is one line, too. If the pump
//! dies in any way, the kernel closes the socket. Orphans among the program's descendants become
//! children of the supervisor, so that no process escapes.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, setsid, wait};

use super::confine;
use super::processes::{Process, all, below};
use super::scratch::Scratch;
use super::supervisor_messages::{Confinement, Order, Report};

/// The path of this executable. The path works even if the executable file was replaced meanwhile.
#[cfg(target_os = "linux")]
pub(in super::super) const SELF: &str = "/proc/self/exe";
#[cfg(not(target_os = "linux"))]
pub(in super::super) const SELF: &str = "pumphouse";

/// The argument with which the executable runs as a supervisor.
pub(super) const SUPERVISE: &str = "supervise-a-command";
/// The argument with which the executable runs as a launcher.
const LAUNCH: &str = "launch-a-command";

/// The time that a program gets to end after SIGTERM.
const FAREWELL: Duration = Duration::from_secs(2);
/// Remaining processes are killed in rounds. This is the time that a round waits for the killed
/// processes to end.
const ROUND: Duration = Duration::from_millis(10);
/// The maximum number of rounds.
const ROUNDS_MAX: u32 = 1_000;
/// The maximum number of times that all descendants are stopped before they are killed. A stopped
/// process can't start others. Each repetition stops the processes that were started meanwhile.
const STOPS_MAX: u32 = 5;
/// The capacity of the queue of events. There are three events: the end of the call, the end of the
/// program, and the end of all its processes.
const EVENTS_MAX: usize = 4;

/// Runs this process as a supervisor or as a launcher, if its first argument is [`SUPERVISE`] or
/// [`LAUNCH`], and returns the exit code. Otherwise returns `None`.
pub(in super::super) fn child_process(
    arguments: impl IntoIterator<Item = OsString>,
) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    match arguments.next()?.to_str()? {
        SUPERVISE => Some(supervise()),
        LAUNCH => Some(confine::launch(arguments)),
        _ => None,
    }
}

fn supervise() -> ExitCode {
    let socket = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    let Ok(mut pump) = socket else { return ExitCode::FAILURE };
    let report = heard(&pump).and_then(|order| run(&pump, order));
    let report = report
        .unwrap_or_else(|error| Report { error: Some(error.to_string()), ..Report::default() });
    let line = serde_json::to_string(&report).unwrap_or_default() + "\n";
    // The write fails if the pump has ended already.
    match pump.write_all(line.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Reads the pump's order.
fn heard(pump: &UnixStream) -> io::Result<Order> {
    let mut line = String::new();
    BufReader::new(pump).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// An event while a program runs.
#[derive(Clone, Copy)]
enum Event {
    /// The pump has closed the socket: the call or the pump itself has ended.
    Gone,
    /// The program has ended.
    Ended(WaitStatus),
    /// The program and all processes that it started have ended.
    AllEnded,
}

fn run(pump: &UnixStream, order: Order) -> io::Result<Report> {
    // In a session of its own, the supervisor gets no signal that is meant for the pump's process
    // group, such as the SIGINT of Ctrl-C.
    setsid()?;
    adopt()?;
    let folder = Scratch::new()?;
    let mut child = begin(&order, folder.path())?;
    let (events, happened) = sync_channel(EVENTS_MAX);
    if let Some(mut input) = child.stdin.take() {
        // Errors are ignored, because a program needn't read its input.
        std::thread::spawn(move || drop(input.write_all(order.input.as_bytes())));
    }
    watch(pump.try_clone()?, events.clone());
    reap(Pid::from_child(&child), events);
    let mut report = Report::default();
    let mut is_over = false;
    match happened.recv_timeout(Duration::from_secs(order.seconds)) {
        Ok(it) => is_over = note(it, &mut report),
        Err(RecvTimeoutError::Disconnected) => {}
        Err(RecvTimeoutError::Timeout) => {
            report.out_of_time = true;
            signal_all(Signal::TERM);
            if let Ok(event) = happened.recv_timeout(FAREWELL) {
                is_over = note(event, &mut report);
            }
        }
    }
    end_all(&happened, is_over, &mut report);
    Ok(report)
}

/// Starts the launcher, which is then replaced by the program.
fn begin(order: &Order, scratch: &Path) -> io::Result<std::process::Child> {
    let mut confinement =
        Confinement { supervisor: getpid().as_raw_nonzero().get(), ..order.confinement.clone() };
    confinement.write.push(scratch.display().to_string());
    Command::new(SELF)
        .arg(LAUNCH)
        .arg(serde_json::to_string(&confinement)?)
        .arg(&order.program)
        .args(&order.arguments)
        .env_clear()
        .env("TMPDIR", scratch)
        .envs(&order.environment)
        .current_dir(&order.folder)
        .stdin(match order.is_server {
            true => Stdio::from(io::stdout().as_fd().try_clone_to_owned()?),
            false => Stdio::piped(),
        })
        .spawn()
}

/// Makes this process the parent of orphans among its descendants.
#[cfg(target_os = "linux")]
fn adopt() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(getpid()))?)
}

#[cfg(not(target_os = "linux"))]
fn adopt() -> io::Result<()> {
    Ok(())
}

/// Starts a thread that waits until the pump closes its end of the socket, and then reports this.
fn watch(mut pump: UnixStream, events: SyncSender<Event>) {
    std::thread::spawn(move || {
        let mut piece = [0; 64];
        while pump.read(&mut piece).is_ok_and(|it| it > 0) {}
        let _ = events.send(Event::Gone);
    });
}

/// Starts a thread that reaps all child processes. The thread reports the end of the program and
/// the end of the last process.
fn reap(program: Pid, events: SyncSender<Event>) {
    std::thread::spawn(move || {
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((id, status))) if id == program => {
                    let _ = events.send(Event::Ended(status));
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        let _ = events.send(Event::AllEnded);
    });
}

/// Records an event in the report. Returns true if no process is left.
fn note(event: Event, report: &mut Report) -> bool {
    if let Event::Ended(status) = event {
        report.code = status.exit_status();
        report.signal = status.terminating_signal();
    }
    matches!(event, Event::AllEnded)
}

/// Kills the remaining processes until none is left, in at most `ROUNDS_MAX` rounds.
fn end_all(happened: &Receiver<Event>, mut is_over: bool, report: &mut Report) {
    for _ in 0..ROUNDS_MAX {
        if is_over {
            return;
        }
        kill_all();
        if let Ok(event) = happened.recv_timeout(ROUND) {
            is_over = note(event, report);
        }
    }
}

/// Stops all descendants, so that they can't start others, and then kills them.
fn kill_all() {
    let mut stopped = Vec::new();
    for _ in 0..STOPS_MAX {
        let all = descendants();
        if all.iter().all(|it| stopped.contains(&(it.id, it.started))) {
            break;
        }
        all.iter().for_each(|it| it.signal(Signal::STOP));
        stopped = all.iter().map(|it| (it.id, it.started)).collect();
    }
    signal_all(Signal::KILL);
}

fn signal_all(signal: Signal) {
    descendants().iter().for_each(|it| it.signal(signal));
}

/// Returns all descendants of this process.
fn descendants() -> Vec<Process> {
    let own = getpid().as_raw_nonzero().get();
    let mut found = below(&all(), &[own]);
    found.retain(|it| it.id != own);
    found
}
