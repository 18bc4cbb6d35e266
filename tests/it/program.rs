//! The built program, run as a user runs it.

use std::io::{BufRead, BufReader, Read as _, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::in_process;

/// Settings of the tester, which no run has.
pub(crate) const OWN_SETTINGS: [&str; 4] = ["RUST_LOG", "NO_COLOR", "PUMPHOUSE_TOKEN", "COLUMNS"];

/// A folder to run the program in.
pub(crate) struct Scene {
    folder: TempDir,
}

/// What a run of the program came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        Scene { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The program in the folder, with nothing of the tester's own settings.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pumphouse"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        for name in OWN_SETTINGS {
            command.env_remove(name);
        }
        command
    }

    /// Runs it: in this process where that is the same, and else in one of its own.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        match in_process::is_same(arguments) {
            true => in_process::run(self.folder.path(), arguments),
            false => Ran::of(&mut self.command(arguments)),
        }
    }

    /// Runs it with an input.
    #[track_caller]
    pub(crate) fn pipe(&self, arguments: &[&str], input: &str) -> Ran {
        let mut command = self.command(arguments);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Ran::from(child.wait_with_output().unwrap())
    }

    /// Starts `run` on a free port of this folder.
    #[track_caller]
    pub(crate) fn serve(&self, arguments: &[&str]) -> Server {
        self.serve_traced(arguments, Stdio::inherit())
    }

    /// The same, with its traces there.
    #[track_caller]
    pub(crate) fn serve_traced(&self, arguments: &[&str], traces: Stdio) -> Server {
        let mut all = vec!["run", "--json", "--listen", "127.0.0.1:0"];
        all.extend(arguments);
        let mut command = self.command(&all);
        Server::begin(command.stderr(traces))
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn of(command: &mut Command) -> Ran {
        Ran::from(command.output().unwrap())
    }

    /// Checks how it ended; what it wrote.
    #[track_caller]
    pub(crate) fn code(self, expected: i32) -> Ran {
        assert_eq!(self.code, expected, "{self:#?}");
        self
    }

    /// Checks that all of this was written, to either output.
    #[track_caller]
    pub(crate) fn says(self, expected: &[&str]) -> Ran {
        for it in expected {
            assert!(self.out.contains(it) || self.err.contains(it), "no {it:?} in {self:#?}");
        }
        self
    }

    /// The lines as objects.
    #[track_caller]
    pub(crate) fn objects(&self) -> Vec<Value> {
        self.out.lines().map(|it| serde_json::from_str(it).expect(it)).collect()
    }
}

impl From<std::process::Output> for Ran {
    fn from(output: std::process::Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A pump that serves; killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    pub(crate) address: String,
    pub(crate) greeting: Value,
}

impl Server {
    /// Begins a command that serves and says so in JSON.
    #[track_caller]
    pub(crate) fn begin(command: &mut Command) -> Server {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let greeting: Value = serde_json::from_str(&line).expect("it says that it accepts");
        let address = greeting["listen"][0].as_str().unwrap().to_owned();
        Server { child, out, address, greeting }
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What its metrics say under a name, with its labels where it has some.
    #[track_caller]
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let page = self.page();
        let line = page.lines().find_map(|it| it.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {page}")).trim().parse().unwrap()
    }

    /// The page of its metrics.
    #[track_caller]
    pub(crate) fn page(&self) -> String {
        let url = self.greeting["metrics"][0].as_str().unwrap();
        let at = url.trim_start_matches("http://").trim_end_matches("/metrics");
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Tells it to stop; its code and what it said.
    pub(crate) fn stop(&mut self, signal: &str) -> (Option<i32>, Vec<Value>) {
        self.stop_at_once([signal])
    }

    /// Tells it to stop, several times; its code and what it said.
    pub(crate) fn stop_at_once<const N: usize>(
        &mut self,
        signals: [&str; N],
    ) -> (Option<i32>, Vec<Value>) {
        for signal in signals {
            // It may be gone after the first.
            let id = self.child.id().to_string();
            Command::new("kill").args([signal, &id]).stderr(Stdio::null()).status().unwrap();
        }
        let status = self.child.wait().unwrap();
        let lines = (&mut self.out).lines().map(|it| serde_json::from_str(&it.unwrap()).unwrap());
        (status.code(), lines.collect())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The log in a data folder.
pub(crate) fn log_in(data: &Path) -> PathBuf {
    data.join("pumphouse.db")
}

/// Waits until a condition holds that other processes bring about. Panics after a minute.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "other processes go by the clock")]
pub(crate) fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "what is waited for didn't come");
        std::thread::sleep(Duration::from_millis(20));
    }
}
