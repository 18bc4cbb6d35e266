//! Readers of the log while it grows. One follows the log's file, one follows a thread over a
//! socket, and one shows that thread again and again.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use pumphouse_bench::executable;

use crate::load::{attribute, envelope};

/// How often the thread gets a message and is shown.
const EVERY: Duration = Duration::from_secs(2);

/// The readers, with the pump's folder and its address.
pub(crate) struct Readers<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) address: &'a str,
}

impl Readers<'_> {
    /// Reads until `over` is set. Returns how often the thread was shown, plus one for each of the
    /// two followers.
    pub(crate) fn during(&self, over: &AtomicBool) -> u64 {
        let mut tail = self.program(&["tail", "--follow", "--json"]).spawn().expect("it runs");
        let stream = TcpStream::connect(self.address).expect("the pump listens");
        let thread = self.followed(&stream);
        let mut readings = 2;
        let lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
        std::thread::scope(|scope| {
            scope.spawn(move || lines.map_while(Result::ok).count());
            while !over.load(Relaxed) {
                std::thread::sleep(EVERY);
                let own = envelope(&format!("<thread>{thread}</thread>"), "again");
                (&stream).write_all(own.as_bytes()).expect("the pump reads");
                let shown = self.program(&["show", &thread]).status().expect("it runs");
                assert!(shown.success(), "{thread} is shown: {shown}");
                readings += 1;
            }
            stream.shutdown(Shutdown::Both).expect("a socket");
        });
        tail.kill().expect("it went on until now");
        tail.wait().expect("it is gone");
        readings
    }

    /// Opens a thread, follows it, and returns its id.
    fn followed(&self, mut stream: &TcpStream) -> String {
        stream.write_all(envelope("", "begin").as_bytes()).expect("the pump reads");
        let mut line = String::new();
        let mut lines = BufReader::new(stream.try_clone().expect("a socket"));
        lines.read_line(&mut line).expect("an answer comes");
        let thread = attribute(&line, "thread").expect("it is accepted").to_owned();
        lines.read_line(&mut line).expect("what was said comes back");
        let follow =
            format!("<follow xmlns=\"https://xml-pipeline.org/ns/meta/v1\" thread=\"{thread}\"/>");
        stream.write_all(follow.as_bytes()).expect("the pump reads");
        thread
    }

    fn program(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(executable().expect("it is built"));
        command.args(arguments).current_dir(self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}

/// Runs `pumphouse verify` over the whole log. Returns whether the log is as it was written.
pub(crate) fn verify(folder: &Path) -> bool {
    let mut command = Command::new(executable().expect("it is built"));
    let verified = command.arg("verify").current_dir(folder).stdout(Stdio::null()).status();
    verified.expect("it runs").success()
}
