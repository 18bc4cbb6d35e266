//! The processes of this machine, as `/proc` lists them.

use rustix::process::Pid;

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) id: i32,
    pub(super) parent: i32,
    pub(super) session: i32,
    /// When the process started, in ticks of the system's clock.
    pub(super) started: u64,
}

impl Process {
    /// Reads what is known of a process. `None` if it has ended.
    pub(super) fn read(id: i32) -> Option<Process> {
        let stat = std::fs::read(format!("/proc/{id}/stat")).ok()?;
        Process::parse(id, &String::from_utf8_lossy(&stat))
    }

    /// Reads a process's line in `/proc/PID/stat`. In this line, the process's name may contain any
    /// character, even `)`.
    pub(super) fn parse(id: i32, stat: &str) -> Option<Process> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        Some(Process { id, parent, session, started: fields.nth(15)?.parse().ok()? })
    }
}

/// Returns all processes.
pub(super) fn all() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|it| it.file_name().to_str()?.parse().ok());
    ids.filter_map(Process::read).collect()
}

/// Returns these processes and all their descendants.
pub(super) fn below(all: &[Process], roots: &[i32]) -> Vec<Pid> {
    let mut found = roots.to_vec();
    let mut next = 0;
    while let Some(one) = found.get(next).copied() {
        found.extend(all.iter().filter(|it| it.parent == one).map(|it| it.id));
        next += 1;
    }
    found.into_iter().filter_map(Pid::from_raw).collect()
}
