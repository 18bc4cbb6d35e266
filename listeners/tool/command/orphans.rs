//! Orphans, on the pump's side. A supervisor ends all that its program began. If a supervisor is
//! killed, what is left has no parent any more: the kernel gives it to this process, which ends it.

use std::collections::BTreeMap;
use std::io;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use tokio::process::{Child, Command};

use super::processes::{Process, all, below};

/// How often the orphans are killed, and looked for again.
const ROUNDS_MAX: u32 = 500;
/// The time that a round waits for killed processes to end.
const ROUND: Duration = Duration::from_millis(10);

/// Whether orphans come to this process, and are ended by it.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// When the first supervisor started. What started before is none of this process's programs.
static FIRST: AtomicU64 = AtomicU64::new(u64::MAX);

/// The supervisors whose end isn't known, by their process ids, and when they started.
static SUPERVISORS: Mutex<BTreeMap<i32, u64>> = Mutex::new(BTreeMap::new());

/// Makes this process the parent of orphans among its descendants, until the returned value is
/// dropped. Programs whose supervisor was killed are then ended by this process, also when the
/// value is dropped. [`pumphouse::cli()`] does so; a program of your own may, if it begins no
/// processes in sessions of their own beside the pump's.
///
/// On systems other than Linux, and in the first process of a PID namespace, this does nothing: the
/// first process has all orphans anyway, and they end with it.
///
/// ```
/// let orphans = pumphouse::listeners::tool::adopt_orphans();
/// // Here the pump is started, and shut down again.
/// drop(orphans);
/// ```
#[must_use]
pub fn adopt_orphans() -> Orphans {
    if getpid().is_init() {
        return Orphans;
    }
    #[cfg(target_os = "linux")]
    match rustix::process::set_child_subreaper(Some(getpid())) {
        Ok(()) => ADOPTS.store(true, Ordering::Relaxed),
        Err(error) => tracing::warn!(%error, "orphans of programs can't be adopted"),
    }
    Orphans
}

/// Ends the orphans of programs when it is dropped. See [`adopt_orphans`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Orphans;

impl Drop for Orphans {
    fn drop(&mut self) {
        let first = FIRST.load(Ordering::Relaxed);
        if ADOPTS.swap(false, Ordering::Relaxed) && first != u64::MAX {
            end_orphans(first);
        }
    }
}

/// A supervisor that runs. If this value is dropped, the supervisor's end stays unknown.
#[derive(Clone, Copy)]
pub(super) struct Running {
    id: i32,
    started: u64,
}

impl Running {
    /// Starts a supervisor, and notes that it runs. The second value is `None` if the system's list
    /// of processes can't be read.
    ///
    /// # Errors
    /// If the system doesn't start the supervisor.
    pub(super) fn begin(command: &mut Command) -> io::Result<(Child, Option<Running>)> {
        // A search for orphans waits for this lock, so it finds the new supervisor noted.
        let mut supervisors = supervisors();
        let child = command.spawn()?;
        let id = child.id().map(u32::cast_signed);
        let process = id.and_then(Process::read);
        let running = process.map(|it| Running { id: it.id, started: it.started });
        if let Some(Running { id, started }) = running {
            FIRST.fetch_min(started, Ordering::Relaxed);
            supervisors.insert(id, started);
        }
        Ok((child, running))
    }

    /// Ends what the supervisor has left, if it was killed.
    pub(super) fn ended(self, status: Option<ExitStatus>) {
        supervisors().remove(&self.id);
        let is_well = status.is_some_and(|it| it.success());
        if !is_well && ADOPTS.load(Ordering::Relaxed) {
            std::thread::spawn(move || end_orphans(self.started));
        }
    }
}

fn supervisors() -> MutexGuard<'static, BTreeMap<i32, u64>> {
    SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills the orphans that began at `since` or later, and all that they began, until none is left.
#[expect(clippy::disallowed_methods, reason = "the thread has nothing else to do")]
fn end_orphans(since: u64) {
    let own = getpid();
    for _ in 0..ROUNDS_MAX {
        let all = all();
        let orphans = orphans(&all, own.as_raw_nonzero().get(), since);
        if orphans.is_empty() {
            return;
        }
        let ids: Vec<i32> = orphans.iter().map(|it| it.id).collect();
        tracing::debug!(?ids, "ending what a killed supervisor has left");
        // A stopped process can't begin others.
        for signal in [Signal::STOP, Signal::KILL] {
            for id in below(&all, &ids) {
                // Errors are ignored, because the process may have ended meanwhile.
                let _ = kill_process(id, signal);
            }
        }
        std::thread::sleep(ROUND);
        for id in ids.into_iter().filter_map(Pid::from_raw) {
            let _ = waitpid(Some(id), WaitOptions::NOHANG);
        }
    }
    tracing::warn!("what a killed supervisor has left can't be ended");
}

/// The children of this process that were programs' or were begun by programs. Each program has a
/// session of its own, and so has each supervisor. A supervisor ends by itself.
fn orphans(all: &[Process], own: i32, since: u64) -> Vec<Process> {
    let session = all.iter().find(|it| it.id == own).map(|it| it.session);
    let running = supervisors();
    let is_orphan = |it: &&Process| {
        it.parent == own
            && Some(it.session) != session
            && it.started >= since
            && running.get(&it.id) != Some(&it.started)
    };
    all.iter().filter(is_orphan).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orphan_is_a_child_in_another_session_that_is_no_supervisor() {
        let it = |id, parent, session, started| Process { id, parent, session, started };
        supervisors().insert(4_000_001, 6);
        let all = [
            it(4_000_000, 1, 4_000_000, 5),
            it(4_000_001, 4_000_000, 4_000_001, 6),
            it(4_000_002, 4_000_000, 4_000_000, 7),
            it(4_000_003, 4_000_000, 4_000_003, 8),
            it(4_000_004, 4_000_003, 4_000_003, 9),
            it(4_000_005, 4_000_000, 4_000_005, 4),
        ];
        let found = |since| orphans(&all, 4_000_000, since).iter().map(|it| it.id).collect();
        let found: [Vec<i32>; 2] = [found(6), found(0)];
        assert_eq!(found, [vec![4_000_003], vec![4_000_003, 4_000_005]]);
        supervisors().remove(&4_000_001);
        assert_eq!(orphans(&all, 4_000_000, 6).len(), 2);
    }
}
