//! Processes of this machine, as `/proc` lists them.

use std::fs;
use std::io;

use rustix::process::{Pid, Signal, kill_process};

/// A process. Two processes with the same number differ in their start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) id: i32,
    pub(super) parent: i32,
    pub(super) session: i32,
    /// When the process started, in ticks of the system's clock.
    pub(super) started: u64,
}

impl Process {
    /// Reads what is known of a process.
    ///
    /// # Errors
    /// If the process has ended, or can't be seen.
    pub(super) fn read(id: i32) -> io::Result<Process> {
        let stat = fs::read(format!("/proc/{id}/stat"))?;
        let process = Process::parse(id, &String::from_utf8_lossy(&stat));
        process.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Reads a process's line in `/proc/PID/stat`. In this line, the process's name may contain any
    /// character, even `)`.
    fn parse(id: i32, stat: &str) -> Option<Process> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        Some(Process { id, parent, session, started: fields.nth(15)?.parse().ok()? })
    }

    /// Sends a signal to this process, and to no later one with the same number. Nothing happens if
    /// the process has ended.
    pub(super) fn signal(&self, signal: Signal) {
        let Some(id) = Pid::from_raw(self.id) else { return };
        // Errors are ignored, because the process may have ended meanwhile.
        #[cfg(target_os = "linux")]
        match rustix::process::pidfd_open(id, rustix::process::PidfdFlags::empty()) {
            Ok(handle) if self.is_there() => {
                let _ = rustix::process::pidfd_send_signal(handle, signal);
                return;
            }
            Ok(_) | Err(rustix::io::Errno::SRCH) => return,
            // The kernel has no such handle, or this process has no room for one.
            Err(_) => {}
        }
        if self.is_there() {
            let _ = kill_process(id, signal);
        }
    }

    fn is_there(&self) -> bool {
        Process::read(self.id).is_ok_and(|it| it.started == self.started)
    }
}

/// Returns all processes.
pub(super) fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|it| it.file_name().to_str()?.parse().ok());
    ids.filter_map(|id| Process::read(id).ok()).collect()
}

/// Returns the processes with these numbers and all their descendants.
pub(super) fn below(all: &[Process], roots: &[i32]) -> Vec<Process> {
    let mut found: Vec<Process> = all.iter().filter(|it| roots.contains(&it.id)).copied().collect();
    let mut next = 0;
    while let Some(one) = found.get(next).copied() {
        found.extend(all.iter().filter(|it| it.parent == one.id));
        next += 1;
    }
    found
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_may_be_called_anything() {
        let rest = "7 8 0 -1 4 1 0 0 0 0 0 0 0 20 0 1 0 99 5";
        let read = |stat: &str| {
            let found = Process::parse(7, &format!("{stat} {rest}"));
            found.map(|it| (it.parent, it.session, it.started))
        };
        assert_eq!(read("7 (cat) S 3"), Some((3, 8, 99)));
        assert_eq!(read("7 (a) S 9 (b)) Z 4"), Some((4, 8, 99)));
        assert_eq!(Process::parse(7, "7"), None);
    }

    #[test]
    fn a_later_process_with_the_same_number_gets_no_signal() {
        let mut command = Command::new("cat");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let process = Process::read(child.id().cast_signed()).unwrap();
        Process { started: process.started - 1, ..process }.signal(Signal::KILL);
        process.signal(Signal::TERM);
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
    }

    #[test]
    fn what_descends_from_a_process_is_found_once() {
        let it = |id, parent| Process { id, parent, session: 1, started: id.unsigned_abs().into() };
        let all = [it(1, 0), it(2, 1), it(3, 2), it(4, 1), it(5, 3), it(6, 0)];
        let ids = |roots: &[i32]| below(&all, roots).iter().map(|it| it.id).collect::<Vec<i32>>();
        assert_eq!(ids(&[2]), [2, 3, 5]);
        assert_eq!(ids(&[4, 6]), [4, 6]);
        assert_eq!(ids(&[7]), [0; 0]);
    }
}
