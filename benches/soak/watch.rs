//! Samples of the pump's use of the machine, one per second.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::server::Server;

/// How often a sample is taken.
const EVERY: Duration = Duration::from_secs(1);

/// The pump's use of the machine at one time.
#[derive(Default)]
pub(crate) struct Sample {
    pub(crate) memory_kib: u64,
    pub(crate) threads: u64,
    pub(crate) descriptors: u64,
    pub(crate) tasks: u64,
    pub(crate) trees: u64,
    pub(crate) wal_bytes: u64,
}

/// Takes samples from the pump's process, its metrics and its write-ahead log.
pub(crate) struct Watch {
    process: PathBuf,
    metrics: String,
    wal: PathBuf,
}

impl Watch {
    pub(crate) fn new(server: &Server, metrics: &str, folder: &Path) -> Watch {
        Watch {
            process: Path::new("/proc").join(server.process().to_string()),
            metrics: metrics.to_owned(),
            wal: folder.join("data/pumphouse.db-wal"),
        }
    }

    /// Takes samples until `over` is set.
    pub(crate) fn during(&self, over: &AtomicBool) -> Vec<Sample> {
        let mut samples = Vec::new();
        while !over.load(Relaxed) {
            std::thread::sleep(EVERY);
            samples.push(self.look());
        }
        samples
    }

    fn look(&self) -> Sample {
        let status = std::fs::read_to_string(self.process.join("status")).expect("it is there");
        let of = |name: &str| {
            let line = status.lines().find_map(|it| it.strip_prefix(name)).expect("it says so");
            line.split_whitespace().next().and_then(|it| it.parse().ok()).expect("a number")
        };
        let metrics = self.metrics();
        let shown = |name: &str| {
            let line = metrics.lines().find_map(|it| it.strip_prefix(name)).expect("it is shown");
            line.trim().parse().expect("a number")
        };
        let descriptors = std::fs::read_dir(self.process.join("fd")).expect("it is there");
        Sample {
            memory_kib: of("VmRSS:"),
            threads: of("Threads:"),
            descriptors: descriptors.count() as u64,
            tasks: shown("pumphouse_tasks "),
            trees: shown("pumphouse_trees_awake "),
            wal_bytes: std::fs::metadata(&self.wal).map_or(0, |it| it.len()),
        }
    }

    fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(&self.metrics).expect("the pump shows metrics");
        let asked = "GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
        stream.write_all(asked.as_bytes()).expect("it listens");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("it answers");
        page
    }
}
