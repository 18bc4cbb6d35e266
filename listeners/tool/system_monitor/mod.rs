//! The listener `system_monitor`: measures the machine's load, memory, disks and processes, as the
//! kernel counts them.
//!
//! ```yaml
//! listeners:
//!   - {use: system_monitor, settings: {disks: [/, /var]}}
//! ```
//!
//! Of a process, the listener shows the name, the id and the memory. It doesn't read the process's
//! arguments and environment, which may contain secrets.

mod read;

use std::fs;
use std::io::Read as _;
use std::sync::Arc;

use pumphouse::listener::{Beside, Effects};
use pumphouse::prelude::*;
use serde::Deserialize;

use super::text::{clean, lossy};

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "system_monitor";
/// At most this many bytes are read of a file in `/proc`.
const BYTES_MAX: u64 = 64 * 1024;
/// How many processes are looked at, and how many are shown, at most.
const SEEN_MAX: usize = 50_000;
const SHOWN_MAX: usize = 20;

/// Measures the machine: its load, its memory, its disks and its largest processes.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/system_monitor/v1")]
pub struct Measure {
    /// What is measured; all of it unless said.
    #[payload(example = "memory")]
    pub metrics: Vec<Metric>,
}

/// What may be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Metric {
    /// How much work waits.
    Cpu,
    /// How much memory there is.
    Memory,
    /// How much room disks have.
    Disks,
    /// What runs.
    Processes,
}

/// How the machine is.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/system_monitor/v1")]
pub struct Measured {
    /// How much work waits.
    pub load: Option<Load>,
    /// How much memory there is.
    pub memory: Option<Memory>,
    /// How much room each disk has.
    pub disk: Vec<Disk>,
    /// How many processes there are.
    #[payload(example = "212")]
    pub processes: Option<u64>,
    /// The largest of them.
    pub process: Vec<Process>,
}

/// How many processes run or wait, on the average of 1, 5 and 15 minutes.
#[derive(Clone, Debug, PartialEq, Payload)]
pub struct Load {
    /// Of a minute.
    #[payload(attribute, example = "0.42")]
    pub one: f64,
    /// Of 5 minutes.
    #[payload(attribute, example = "0.40")]
    pub five: f64,
    /// Of 15 minutes.
    #[payload(attribute, example = "0.35")]
    pub fifteen: f64,
    /// How many can run at once.
    #[payload(attribute)]
    pub cpus: u64,
}

/// Memory, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Memory {
    /// All of it.
    #[payload(attribute)]
    pub total: u64,
    /// What a program could have.
    #[payload(attribute)]
    pub available: u64,
    /// All swap.
    #[payload(attribute)]
    pub swap: u64,
    /// What is free of that.
    #[payload(attribute)]
    pub swap_free: u64,
}

/// A file system, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Disk {
    /// A folder on it.
    #[payload(attribute, example = "/")]
    pub path: String,
    /// All of it.
    #[payload(attribute)]
    pub total: u64,
    /// What a program could have.
    #[payload(attribute)]
    pub available: u64,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Process {
    /// Its number.
    #[payload(attribute)]
    pub id: u32,
    /// What it is called, cut by the kernel.
    #[payload(attribute, example = "postgres")]
    pub name: String,
    /// Bytes of memory that it holds.
    #[payload(attribute)]
    pub memory: u64,
}

/// The machine can't be measured.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/system_monitor/v1")]
pub struct Unmeasured {
    /// Why.
    #[payload(value, example = "/proc/meminfo: no such file or directory")]
    pub text: String,
}

/// What stands under `settings` of `use: system_monitor`.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// A folder on each disk that is measured.
    #[serde(default = "root")]
    pub disks: Vec<Beside>,
}

fn root() -> Vec<Beside> {
    vec!["/".into()]
}

/// Makes the listener `system_monitor`.
///
/// # Errors
/// A disk's folder doesn't exist, or the disk can't be measured.
pub fn system_monitor(settings: &Settings) -> Result<Listener, String> {
    for mount in &settings.disks {
        disk(mount)?;
    }
    Ok(Listener::with_state(NAME, Arc::new(settings.disks.clone()))
        .own_namespace()
        .blocking()
        .on(measure)
        .describe("Measures the machine: load, memory, disks and processes.")
        .effects(Effects::Reads)
        .idempotent()
        .stateless())
}

async fn measure(
    State(disks): State<Arc<Vec<Beside>>>,
    Measure { metrics }: Measure,
) -> Result<Measured, Unmeasured> {
    let wants = |it: Metric| metrics.is_empty() || metrics.contains(&it);
    all(&disks, wants).map_err(|text| Unmeasured { text: clean(&text) })
}

fn all(disks: &[Beside], wants: impl Fn(Metric) -> bool) -> Result<Measured, String> {
    let (mut load, mut memory, mut processes) = (None, None, None);
    let (mut disk_all, mut process) = (Vec::new(), Vec::new());
    if wants(Metric::Cpu) {
        let cpus = std::thread::available_parallelism().map_or(1, |it| it.get() as u64);
        load = Some(read::load(&file("/proc/loadavg")?, cpus).ok_or("/proc/loadavg is odd")?);
    }
    if wants(Metric::Memory) {
        memory = Some(read::memory(&file("/proc/meminfo")?).ok_or("/proc/meminfo is odd")?);
    }
    if wants(Metric::Disks) {
        disk_all = disks.iter().map(disk).collect::<Result<_, _>>()?;
    }
    if wants(Metric::Processes) {
        process = running()?;
        processes = Some(process.len() as u64);
        process.sort_by_key(|it| (std::cmp::Reverse(it.memory), it.id));
        process.truncate(SHOWN_MAX);
    }
    Ok(Measured { load, memory, disk: disk_all, processes, process })
}

fn file(path: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|it| it.take(BYTES_MAX).read_to_end(&mut bytes));
    read.map(|_| lossy(&bytes)).map_err(|error| format!("{path}: {error}"))
}

fn disk(at: &Beside) -> Result<Disk, String> {
    let path = at.path();
    let shown = path.display().to_string();
    let there = rustix::fs::statvfs(&path).map_err(|error| format!("{shown}: {error}"))?;
    let bytes = |blocks: u64| blocks.saturating_mul(there.f_frsize);
    let (total, available) = (bytes(there.f_blocks), bytes(there.f_bavail));
    Ok(Disk { path: clean(at.text()), total, available })
}

/// All processes, at most `SEEN_MAX`, without those that end meanwhile.
fn running() -> Result<Vec<Process>, String> {
    let folder = fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
    let ids = folder.flatten().filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let one = |id: u32| read::process(id, &file(&format!("/proc/{id}/status")).ok()?);
    Ok(ids.take(SEEN_MAX).filter_map(one).collect())
}
