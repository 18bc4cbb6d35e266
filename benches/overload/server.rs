//! The pump under load: the built program, run as a user runs it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use pumphouse_bench::executable;

/// A running pump; killed when this value is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Server {
    /// Starts `pumphouse run` in a folder, on a free port, with the options `more`.
    pub(crate) fn start(folder: &Path, durability: &str, more: &[&str]) -> Server {
        let mut command = Command::new(executable().expect("it is built"));
        command.args(["run", "--json", "--listen", "127.0.0.1:0", "--durability", durability]);
        command.args(more);
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program is there");
        let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("it says that it accepts");
        let greeting: serde_json::Value = serde_json::from_str(&line).expect("an object");
        let address = greeting["listen"][0].as_str().expect("it listens").to_owned();
        Server { child, address }
    }

    /// Returns the process id.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Stops the pump with SIGTERM. Checks that it ends with success.
    pub(crate) fn stop(mut self) {
        let id = self.process().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status().expect("kill is there");
        assert!(told.success(), "it was still there");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "it ended well: {status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` the process has already ended, and these calls do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
