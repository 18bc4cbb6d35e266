//! Runs `pumphouse` as a server in a process of its own.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use pumphouse::log::Durability;
use pumphouse_bench::executable;

use crate::output::Failure;

/// Why a row about memory has no figure.
pub(crate) const NO_PROC: &str = "this system has no /proc";

/// The beginning of the server's manifest.
const MANIFEST: &str = "name: bench\nlisteners:\n  - use: echo\n";

/// The path of `pumphouse`.
pub(crate) struct Program(PathBuf);

/// A server process, which is killed when this value is dropped.
pub(crate) struct Running {
    child: Child,
    address: String,
}

impl Program {
    pub(crate) fn find() -> Result<Program, Failure> {
        Ok(Program(executable().map_err(|it| Failure::Untried(it.to_string()))?))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Starts a server on a data folder, with `more` at the end of its manifest. Returns once the
    /// server listens.
    pub(crate) fn run(
        &self,
        folder: &Path,
        durability: Durability,
        more: &str,
    ) -> io::Result<Running> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("organism.yaml"), format!("{MANIFEST}{more}"))?;
        let mut command = Command::new(&self.0);
        command.args(["run", "--json", "--listen", "127.0.0.1:0", "--data", "."]);
        command.args(["--durability", durability.as_str()]).current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut running = Running { child: command.spawn()?, address: String::new() };
        let mut line = String::new();
        if let Some(out) = running.child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let greeting: serde_json::Value = serde_json::from_str(&line)?;
        let address = greeting["listen"][0].as_str();
        running.address = address.ok_or_else(|| io::Error::other("it doesn't say where"))?.into();
        Ok(running)
    }

    /// Starts a server, pushes one message to it, and returns its memory as [`Running::memory`]
    /// does.
    pub(crate) fn idle(&self, folder: &Path, durability: Durability) -> io::Result<Option<u64>> {
        let running = self.run(folder, durability, "")?;
        running.ask()?;
        Ok(running.memory())
    }
}

impl Running {
    /// Opens a connection, and returns a half to write to and a half to read from.
    pub(crate) fn connect(&self) -> io::Result<(TcpStream, BufReader<TcpStream>)> {
        let writer = TcpStream::connect(&self.address)?;
        writer.set_nodelay(true)?;
        let reader = BufReader::with_capacity(64 * 1_024, writer.try_clone()?);
        Ok((writer, reader))
    }

    /// Pushes a message, and waits for the first line from the server.
    pub(crate) fn ask(&self) -> io::Result<()> {
        let (mut writer, mut reader) = self.connect()?;
        writer.write_all(echo(None).as_bytes())?;
        heard(&mut reader).map(drop)
    }

    /// Returns the server's resident memory in bytes, or None if the system has no `/proc`.
    pub(crate) fn memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kib * 1_024)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An error means that the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a message for `echo` in a thread. Without a thread, the message opens a session.
pub(crate) fn echo(thread: Option<&str>) -> String {
    let thread = thread.map_or(String::new(), |it| format!("<thread>{it}</thread>"));
    format!(
        "<message xmlns=\"{}\"><meta>{thread}</meta>\
         <echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>hello</text></echo></message>\n",
        pumphouse::name::ENVELOPE
    )
}

/// Returns the next line from a pump. Fails if the pump has closed the connection.
pub(crate) fn heard(reader: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    match reader.read_line(&mut line)? {
        0 => Err(io::Error::other("it closed the connection")),
        _ => Ok(line),
    }
}

/// Makes the failure of a row whose server process doesn't start or doesn't answer.
pub(crate) fn unserved(error: &io::Error) -> Failure {
    Failure::Wrong(format!("`run` doesn't serve: {error}"))
}
