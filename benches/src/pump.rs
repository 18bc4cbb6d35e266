//! Starts pumps to measure. A [`Served`] pump has one listener, one door, and a log of a given
//! durability.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use pumphouse::door::{Options, Tcp};
use pumphouse::engine::{Builder, Pump};
use pumphouse::id::ThreadId;
use pumphouse::listener::Listener;
use pumphouse::log::{Durability, Log, MemoryLog, SqliteLog};
use pumphouse::wire::{Fault, Payload};

use crate::output::Failure;

/// How many threads the pushes are spread over.
const THREADS: u64 = 100;

/// The payload that is pushed.
#[derive(Clone, Debug, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/bench/v1")]
pub(crate) struct Sink {
    /// A number.
    pub(crate) a: u64,
    /// Some text.
    pub(crate) text: String,
}

/// A running pump, and its door's address.
pub(crate) struct Served {
    pub(crate) pump: Pump,
    pub(crate) address: SocketAddr,
}

impl Served {
    /// Starts a pump with a listener for `Sink`, on a free port.
    pub(crate) async fn start(
        folder: &Path,
        name: &str,
        durability: Durability,
        listener: Listener,
    ) -> Result<Served, Failure> {
        let door = Tcp::bind("127.0.0.1:0", Options::default()).await;
        let door = door.map_err(|error| Failure::Untried(error.to_string()))?;
        let address = door.local_addr();
        let log = log(folder, name, durability)?;
        let builder = Builder::default().with(listener).with(door);
        let pump = started(builder.with(|it: &mut Builder| it.log(log)))?;
        pump.ready().await?;
        Ok(Served { pump, address })
    }

    /// Opens the threads to push into.
    pub(crate) async fn threads(&self) -> Result<Vec<ThreadId>, Failure> {
        let mut threads = Vec::new();
        for a in 0..THREADS {
            let opened = self.pump.tell(Sink { a, text: String::new() }).await;
            threads.push(opened.map_err(|fault: Fault| Failure::Wrong(fault.to_string()))?.thread);
        }
        Ok(threads)
    }

    /// Stops the pump. Fails if the pump refused a push, because the row then measured something
    /// else.
    pub(crate) async fn stop(self) -> Result<(), Failure> {
        let refused: u64 = self.pump.refusals().values().sum();
        self.pump.shutdown().await?;
        match refused {
            0 => Ok(()),
            _ => Err(Failure::Wrong(format!("{refused} pushes were refused"))),
        }
    }
}

/// Builds a pump and starts it.
pub(crate) fn started(builder: Builder) -> Result<Pump, Failure> {
    Ok(builder.build().map_err(|error| Failure::Wrong(error.to_string()))?.start())
}

/// Opens a new log, in a folder or in memory.
pub(crate) fn log(
    folder: &Path,
    name: &str,
    durability: Durability,
) -> Result<Arc<dyn Log>, Failure> {
    if durability == Durability::Memory {
        return Ok(Arc::new(MemoryLog::new()));
    }
    let file = folder.join(format!("{name}-{durability}.db"));
    Ok(Arc::new(SqliteLog::open(file, durability)?))
}
