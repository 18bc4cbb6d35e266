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

use pumphouse::listener::ManifestPath;
use pumphouse::prelude::*;
use serde::Deserialize;

use super::text::{clean, lossy};

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "system_monitor";
/// The maximum number of bytes that are read of a file in `/proc`.
const BYTES_MAX: u64 = 64 * 1024;
/// The maximum number of processes that are read, and the maximum number that are shown.
const SEEN_MAX: usize = 50_000;
const SHOWN_MAX: usize = 20;

/// Measures the machine: its load, its memory, its disks and its largest processes.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/system_monitor/v1")]
pub struct Measure {
    /// What to measure; by default all.
    #[payload(example = "memory")]
    pub metrics: Vec<Metric>,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Metric {
    /// The load.
    Cpu,
    /// Memory and swap.
    Memory,
    /// Space on disks.
    Disks,
    /// Running processes.
    Processes,
}

/// The state of the machine.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/system_monitor/v1")]
pub struct Measured {
    /// The load.
    pub load: Option<Load>,
    /// Memory and swap.
    pub memory: Option<Memory>,
    /// Space on each disk.
    pub disk: Vec<Disk>,
    /// How many processes there are.
    #[payload(example = "212")]
    pub processes: Option<u64>,
    /// The largest by memory, at most 20.
    pub process: Vec<Process>,
}

/// How many processes run or wait, on average.
#[derive(Clone, Debug, PartialEq, Payload)]
pub struct Load {
    /// Over 1 minute.
    #[payload(attribute, example = "0.42")]
    pub one: f64,
    /// Over 5 minutes.
    #[payload(attribute, example = "0.40")]
    pub five: f64,
    /// Over 15 minutes.
    #[payload(attribute, example = "0.35")]
    pub fifteen: f64,
    /// How many can run at once.
    #[payload(attribute)]
    pub cpus: u64,
}

/// Memory, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Memory {
    /// Total memory.
    #[payload(attribute)]
    pub total: u64,
    /// Memory available to programs.
    #[payload(attribute)]
    pub available: u64,
    /// Total swap.
    #[payload(attribute)]
    pub swap: u64,
    /// Free swap.
    #[payload(attribute)]
    pub swap_free: u64,
}

/// A file system, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Disk {
    /// A folder on it.
    #[payload(attribute, example = "/")]
    pub path: String,
    /// Total space.
    #[payload(attribute)]
    pub total: u64,
    /// Space available to programs.
    #[payload(attribute)]
    pub available: u64,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Process {
    /// Its process id.
    #[payload(attribute)]
    pub id: u32,
    /// Its name; the kernel shortens long names.
    #[payload(attribute, example = "postgres")]
    pub name: String,
    /// Its resident memory, in bytes.
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

/// The `settings` of `use: system_monitor` in a manifest.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// A folder on each disk that is measured. The default is `/`.
    #[serde(default = "root")]
    pub disks: Vec<ManifestPath>,
}

fn root() -> Vec<ManifestPath> {
    vec!["/".into()]
}

/// Makes the listener `system_monitor`.
///
/// # Errors
/// If a disk's folder doesn't exist, or if the disk can't be measured.
pub fn system_monitor(settings: &Settings) -> Result<Listener, String> {
    for mount in &settings.disks {
        disk(mount)?;
    }
    Ok(Listener::with_state(NAME, Arc::new(settings.disks.clone()))
        .own_namespace()
        .blocking()
        .on(measure)
        .describe("Measures the machine: load, memory, disks and processes.")
        .reader()
        .stateless())
}

async fn measure(
    State(disks): State<Arc<Vec<ManifestPath>>>,
    Measure { metrics }: Measure,
) -> Result<Measured, Unmeasured> {
    let wants = |it: Metric| metrics.is_empty() || metrics.contains(&it);
    all(&disks, wants).map_err(|text| Unmeasured { text: clean(&text) })
}

fn all(disks: &[ManifestPath], wants: impl Fn(Metric) -> bool) -> Result<Measured, String> {
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

fn disk(at: &ManifestPath) -> Result<Disk, String> {
    let path = at.path();
    let shown = path.display().to_string();
    let there = rustix::fs::statvfs(&path).map_err(|error| format!("{shown}: {error}"))?;
    let bytes = |blocks: u64| blocks.saturating_mul(there.f_frsize);
    let (total, available) = (bytes(there.f_blocks), bytes(there.f_bavail));
    Ok(Disk { path: clean(at.text()), total, available })
}

/// Returns all processes, at most `SEEN_MAX`. Processes that end meanwhile are left out.
fn running() -> Result<Vec<Process>, String> {
    let folder = fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
    let ids = folder.flatten().filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let one = |id: u32| read::process(id, &file(&format!("/proc/{id}/status")).ok()?);
    Ok(ids.take(SEEN_MAX).filter_map(one).collect())
}
