//! This program as a server: how soon it answers, what it takes of memory, how large it is.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::measure::{Waits, number};
use super::row::{Figure, Row};
use super::sitting::Sitting;
use crate::cli::screen::Failure;
use crate::clock;
use crate::log::Durability;

const START: &str = "start to the first push answered";
const MEMORY: &str = "memory of an idle server";
const BINARY: &str = "stripped binary";

/// What is aimed at.
const START_US_MAX: f64 = 50_000.0;
const BYTES_MAX: f64 = 20.0 * 1_048_576.0;

pub(super) fn rows(sitting: &mut Sitting<'_, '_>) -> Result<(), Failure> {
    let program = std::env::current_exe();
    let program = program.map_err(|it| Failure::Untried(format!("where is this program? {it}")))?;
    let (durability, folder) = (Some(Durability::Full), sitting.folder().to_owned());
    let wrong = |error: io::Error| Failure::Wrong(format!("`run` doesn't serve: {error}"));
    if sitting.wants(START, durability) {
        let starts = (0..sitting.times(20.0)).map(|number| {
            let since = clock::now_us();
            Server::start(&program, &folder.join(format!("start-{number}")))?.ask()?;
            Ok(clock::now_us().saturating_sub(since))
        });
        let waits = Waits::of(starts.collect::<io::Result<_>>().map_err(wrong)?);
        let (median, most) = (Figure::P50(waits.at(50)), Figure::Most(waits.at(100)));
        let row = Row::new(START, durability).figure(median).figure(most);
        sitting.show(&row.goal("< 50 ms", waits.at(100) < START_US_MAX))?;
    }
    if sitting.wants(MEMORY, durability) {
        let server = Server::start(&program, &folder.join("memory")).map_err(wrong)?;
        server.ask().map_err(wrong)?;
        sitting.show(&match server.memory() {
            Some(it) => sized(Row::new(MEMORY, durability), it),
            None => Row::missing(MEMORY, "this system has no /proc".to_owned()),
        })?;
    }
    if sitting.wants(BINARY, None) {
        sitting.show(&match stripped(&program, &folder.join("stripped")) {
            Ok(bytes) => sized(Row::new(BINARY, None), bytes),
            Err(error) => Row::missing(BINARY, format!("strip doesn't: {error}")),
        })?;
    }
    Ok(())
}

fn sized(row: Row, bytes: u64) -> Row {
    let bytes = number(bytes);
    row.figure(Figure::Size(bytes)).goal("< 20 MiB", bytes < BYTES_MAX)
}

/// A server; killed when it is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Starts one on a folder that isn't there yet.
    fn start(program: &Path, folder: &Path) -> io::Result<Server> {
        fs::create_dir(folder)?;
        let mut command = Command::new(program);
        command.args(["run", "--json", "--listen", "127.0.0.1:0", "--durability", "full"]);
        command.arg("--data").arg(folder).current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = Server { child: command.spawn()?, address: String::new() };
        let mut line = String::new();
        if let Some(out) = server.child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let greeting: serde_json::Value = serde_json::from_str(&line)?;
        let address = greeting["listen"][0].as_str();
        server.address = address.ok_or_else(|| io::Error::other("it doesn't say where"))?.into();
        Ok(server)
    }

    /// Pushes, and waits for the first that comes of it.
    fn ask(&self) -> io::Result<()> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.write_all(b"<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\">")?;
        stream.write_all(b"<text>hello</text></echo>\n")?;
        let read = BufReader::new(stream).read_line(&mut String::new())?;
        if read > 0 { Ok(()) } else { Err(io::Error::other("nothing was answered")) }
    }

    /// What it takes of memory, in bytes, where the system says so.
    fn memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kib * 1_024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, and was told then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How large a program is without what only a debugger reads.
fn stripped(program: &Path, to: &Path) -> io::Result<u64> {
    let status = Command::new("strip").arg("-o").arg(to).arg(program).status()?;
    match status.success() {
        true => Ok(fs::metadata(to)?.len()),
        false => Err(io::Error::other(status.to_string())),
    }
}
