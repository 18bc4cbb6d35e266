//! The program `tests/programs/effects.rs` as a process: the places of its files, and how it ends.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pumphouse::clock;
use pumphouse::log::SqliteLog;

use crate::examples::example;

/// Where a pump keeps its log, and where its effects and heads are kept from its crashes.
pub(super) struct Place {
    pub(super) log: PathBuf,
    pub(super) ledger: PathBuf,
    pub(super) heads: PathBuf,
}

impl Place {
    /// A log in one folder, the rest in another.
    pub(super) fn new(log: &Path, beside: &Path) -> Place {
        Place {
            log: log.join("pumphouse.db"),
            ledger: beside.join("ledger"),
            heads: beside.join("heads"),
        }
    }

    /// How to start a pump there; `dies` says at which batch it ends by itself, if so.
    pub(super) fn command(&self, durability: &str, dies: Option<(&str, u64)>) -> Command {
        let mut command = Command::new(example("effects"));
        command.args([&self.log, &self.ledger, &self.heads]).arg(durability);
        if let Some((far, number)) = dies {
            command.arg(far).arg(number.to_string());
        }
        command
    }

    /// The same, watched or disturbed by strace; none, where that isn't to be had.
    pub(super) fn traced(&self, durability: &str, options: &[&str]) -> Option<Command> {
        let tried = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
        if !tried.is_ok_and(|it| it.status.success()) {
            crate::skipped("strace isn't here, or may not trace");
            return None;
        }
        let pump = self.command(durability, None);
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-y", "-e", "signal=none"]).args(options).arg("--");
        command.arg(pump.get_program()).args(pump.get_args());
        Some(command)
    }

    /// The log, for reading.
    pub(super) fn log(&self) -> SqliteLog {
        SqliteLog::open_read_only(&self.log).unwrap()
    }
}

/// A pump that runs; killed when it is dropped.
pub(super) struct Process {
    child: Child,
    began_us: u64,
}

impl Process {
    pub(super) fn spawn(command: &mut Command) -> Process {
        let began_us = clock::now_us();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        Process { child, began_us }
    }

    /// Waits until it is ready: where it listens, and how long that took; none, where it is gone.
    pub(super) fn ready(&mut self) -> Option<(String, Duration)> {
        let mut line = String::new();
        let mut out = BufReader::new(self.child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let took = Duration::from_micros(clock::now_us() - self.began_us);
        line.ends_with('\n').then(|| (line.trim_end().to_owned(), took))
    }

    /// Holds it where it is: once this returns, none of its threads does anything.
    pub(super) fn hold(&self) {
        self.signal("-STOP");
        let threads = || std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let stands = |it: std::io::Result<std::fs::DirEntry>| {
            let told = std::fs::read_to_string(it.unwrap().path().join("stat"));
            // A thread that is gone does nothing either.
            told.map_or(true, |it| it.rsplit(") ").next().is_some_and(|it| it.starts_with('T')))
        };
        crate::until(|| threads().all(stands));
    }

    /// Lets it go on.
    pub(super) fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Whether it is still there.
    pub(super) fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends it at once.
    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Tells it to stop, and waits until it has.
    pub(super) fn stop(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }

    /// Tells one to stop that can't do so well.
    pub(super) fn stop_somehow(mut self) {
        drop(self.child.stdin.take());
        assert!(!self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
