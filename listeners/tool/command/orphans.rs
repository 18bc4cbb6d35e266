//! Orphans, on the pump's side. A supervisor ends all that its program began. If a supervisor is
//! killed, what is left has no parent any more: the kernel gives it to this process, which ends it.
//!
//! Each launcher lowers a limit that the kernel doesn't use any more, that of file locks. What it
//! becomes and all that this begins inherits the limit, and only a process with the capability
//! `CAP_SYS_RESOURCE` can raise it. So children of this process with a lower limit are orphans of
//! programs, and all its other children aren't.

use std::fs;
use std::io;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, waitpid};
#[cfg(target_os = "linux")]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::processes::{Process, all, below};

/// How often the orphans are killed, and looked for again.
const ROUNDS_MAX: u32 = 500;
/// The time that a round waits for killed processes to end.
const ROUND: Duration = Duration::from_millis(10);

/// The limit of programs' file locks if the pump's own is unlimited.
#[cfg(target_os = "linux")]
const LOCKS: u64 = 1 << 62;

/// Whether orphans come to this process, and are ended by it.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// Whether this process has begun a supervisor.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// Makes this process the parent of orphans among its descendants, until the returned value is
/// dropped. Programs whose supervisor was killed are then ended by this process, also when the
/// value is dropped. `pumphouse::cli()` does so; a program of your own may, too. Its own children
/// aren't ended, nor what these leave.
///
/// On systems other than Linux, this does nothing.
///
/// ```
/// # extern crate pumphouse_tools as pumphouse;
/// let orphans = pumphouse::listeners::tool::adopt_orphans();
/// // Here the pump is started, and shut down again.
/// drop(orphans);
/// ```
#[must_use]
pub fn adopt_orphans() -> Orphans {
    match adopt() {
        Ok(adopts) => ADOPTS.store(adopts, Ordering::Relaxed),
        Err(error) => tracing::warn!(%error, "orphans of programs can't be adopted"),
    }
    Orphans
}

#[cfg(target_os = "linux")]
fn adopt() -> io::Result<bool> {
    // The first process of a PID namespace has all orphans anyway.
    if !getpid().is_init() {
        rustix::process::set_child_subreaper(Some(getpid()))?;
    }
    Ok(true)
}

#[cfg(not(target_os = "linux"))]
fn adopt() -> io::Result<bool> {
    Ok(false)
}

/// Ends the orphans of programs when it is dropped. See [`adopt_orphans`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Orphans;

impl Drop for Orphans {
    fn drop(&mut self) {
        if ADOPTS.swap(false, Ordering::Relaxed) && HAS_BEGUN.load(Ordering::Relaxed) {
            end_orphans();
        }
    }
}

/// Notes that a supervisor begins.
pub(super) fn supervisor_begins() {
    HAS_BEGUN.store(true, Ordering::Relaxed);
}

/// Ends what a supervisor has left, if it was killed. The status is `None` if it isn't known.
pub(super) fn supervisor_ended(status: Option<ExitStatus>) {
    let is_well = status.is_some_and(|it| it.success());
    if !is_well && ADOPTS.load(Ordering::Relaxed) {
        std::thread::spawn(end_orphans);
    }
}

/// Marks this process, which becomes a program, and all that it begins.
#[cfg(target_os = "linux")]
pub(super) fn mark_program() -> io::Result<()> {
    // The program may be a pump, whose programs have a lower limit still.
    let lower = getrlimit(Resource::Locks).maximum.map_or(LOCKS, |it| it.saturating_sub(1));
    Ok(setrlimit(Resource::Locks, Rlimit { current: Some(lower), maximum: Some(lower) })?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn mark_program() -> io::Result<()> {
    Ok(())
}

/// Whether a process has the mark of a program that this process began.
#[cfg(target_os = "linux")]
fn is_marked(process: &Process) -> bool {
    let own = getrlimit(Resource::Locks).maximum.unwrap_or(u64::MAX);
    let limits = fs::read_to_string(format!("/proc/{}/limits", process.id));
    limits.ok().and_then(|it| locks_max(&it)).is_some_and(|it| it < own)
}

#[cfg(not(target_os = "linux"))]
fn is_marked(_: &Process) -> bool {
    false
}

/// Reads the limit of file locks in `/proc/PID/limits`, which no process may exceed.
#[cfg(target_os = "linux")]
fn locks_max(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|it| it.strip_prefix("Max file locks"))?;
    match line.split_ascii_whitespace().nth(1)? {
        "unlimited" => Some(u64::MAX),
        it => it.parse().ok(),
    }
}

/// Kills the orphans of programs, and all that they began, until none is left.
#[expect(clippy::disallowed_methods, reason = "the thread has nothing else to do")]
fn end_orphans() {
    let own = getpid().as_raw_nonzero().get();
    for _ in 0..ROUNDS_MAX {
        let all = all();
        let orphans = all.iter().filter(|it| it.parent == own && is_marked(it));
        let ids: Vec<i32> = orphans.map(|it| it.id).collect();
        if ids.is_empty() {
            return;
        }
        tracing::debug!(?ids, "ending what a killed supervisor has left");
        // A stopped process can't begin others.
        for signal in [Signal::STOP, Signal::KILL] {
            below(&all, &ids).iter().for_each(|it| it.signal(signal));
        }
        std::thread::sleep(ROUND);
        for id in ids.into_iter().filter_map(Pid::from_raw) {
            let _ = waitpid(Some(id), WaitOptions::NOHANG);
        }
    }
    tracing::warn!("what a killed supervisor has left can't be ended");
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_limit_of_locks_is_read() {
        let limits = |hard: &str| format!("Max nice  0  0  \nMax file locks  5  {hard}  locks\n");
        assert_eq!(locks_max(&limits("unlimited")), Some(u64::MAX));
        assert_eq!(locks_max(&limits("7")), Some(7));
        assert_eq!(locks_max("Max nice  0  0"), None);
        assert_eq!(locks_max(&fs::read_to_string("/proc/self/limits").unwrap()), Some(u64::MAX));
    }

    /// A child of a program that embeds the pump isn't ended, in whatever session it is.
    #[test]
    fn what_no_supervisor_began_is_left_alone() {
        let begin = |script: &str| {
            let mut command = Command::new("setsid");
            command.args(["bash", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n", "{script}");
            let process = Process::read(child.id().cast_signed()).unwrap();
            (child, process)
        };
        let (mut own, own_process) = begin("echo ready; exec cat");
        let (mut left, left_process) = begin("ulimit -x 5 && echo ready; setsid cat & exec cat");
        assert!(is_marked(&left_process) && !is_marked(&own_process));
        end_orphans();
        assert!(Process::read(left_process.id).is_err(), "it is reaped");
        assert!(left.wait().is_err());
        assert!(own.try_wait().unwrap().is_none());
        own.kill().unwrap();
        own.wait().unwrap();
    }
}
