//! Runs a pump inside another program, on the program's own tokio runtime.
//!
//! The program gives the pump a log in a file. It calls `ask`, `tell` and `follow`. Before it ends,
//! it shuts the pump down and reads the log.

#![expect(clippy::print_stdout, reason = "an example says what it does")]

use pumphouse::engine::Followed;
use pumphouse::listeners::echo::{Echo, echo};
use pumphouse::log::{Durability, SqliteLog};
use pumphouse::prelude::*;

/// A new temperature of a room.
#[derive(Payload)]
#[payload(ns = "https://example.org/ns/rooms/v1")]
struct Measured {
    room: String,
    celsius: f64,
}

/// A room is too warm.
#[derive(Payload)]
#[payload(ns = "https://example.org/ns/rooms/v1")]
struct TooWarm {
    room: String,
}

async fn watch(Measured { room, celsius }: Measured) -> Option<TooWarm> {
    (celsius > 30.0).then_some(TooWarm { room })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("pumphouse-embedded-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("pumphouse.db");

    let log = SqliteLog::open(&path, Durability::Full)?;
    let watcher = Listener::new("watcher").on(watch).idempotent();
    let pump = pumphouse::builder().with((log, echo(), watcher)).build()?.start();
    pump.ready().await?;

    // `ask` waits for the answer. An error says why there is none.
    let Echo { text } = pump.ask(Echo { text: "is anybody there?".into() }).await?;
    println!("echo: {text}");

    // Once `tell` returns, the message is on disk, and its handler will run.
    let told = pump.tell(Measured { room: "attic".into(), celsius: 34.5 }).await?;
    println!("told: entry {} of its thread", told.seq);

    // `follow` yields the entries that the thread has, and then each new one.
    let mut thread = pump.follow(&told.thread, 0);
    loop {
        let Followed::Entry(entry) = thread.next().await? else { continue };
        println!("followed: {} from {}", entry.name().local(), entry.from());
        if let Ok(TooWarm { room }) = entry.decode() {
            println!("too warm: {room}");
            break;
        }
    }
    drop(thread);

    // `shutdown` lets running handlers end, and closes the log.
    pump.shutdown().await?;
    let log = SqliteLog::open_read_only(&path)?;
    println!("kept: {} threads", log_threads(&log).await?);
    drop(log);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

async fn log_threads(log: &impl pumphouse::log::Log) -> Result<usize, pumphouse::log::Error> {
    Ok(log.threads(None, 100).await?.len())
}
