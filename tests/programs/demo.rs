//! The organism of `pumphouse demo agent`, with its log in a file and with its waits divided by
//! SPEED. Each query of its library adds a line to a file that no crash of the pump takes back.
//! `tests/it/crash` sends messages to the program and kills it.
//!
//! `demo LOG LEDGER SPEED`

#![expect(clippy::expect_used, reason = "a test's program may fail where it stands")]

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

use pumphouse::clock;
use pumphouse::door::{Options, Tcp};
use pumphouse::engine::{Port as _, Tokio};
use pumphouse::listeners::{self, demo::LookUp};
use pumphouse::log::{Durability, SqliteLog};
use pumphouse::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let pump = runtime.block_on(start())?;
    // Whoever started it holds the other end, and when that is gone, so are we.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(runtime.block_on(pump.shutdown())?)
}

async fn start() -> Result<Pump, Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [path, ledger, speed] = given.as_slice() else {
        return Err("demo LOG LEDGER SPEED".into());
    };
    let speed: u32 = speed.parse()?;
    let sleep = move |time: Duration| async move {
        let us = u64::try_from((time / speed).as_micros()).unwrap_or(u64::MAX);
        Tokio::current().sleep_until(clock::now_us().saturating_add(us)).await;
    };
    let ledger = OpenOptions::new().append(true).create(true).open(ledger)?;
    let note = move |key: &str, it: &LookUp| {
        let line = format!("{key}\t{:?}\n", it.shelf);
        // In one piece, so that it is there whole or not at all.
        (&ledger).write_all(line.as_bytes()).expect("the ledger can be written");
    };
    let log = SqliteLog::open(path, Durability::Full)?;
    let door = Tcp::bind("127.0.0.1:0", Options::default()).await?;
    let address = door.local_addr();
    let troupe = listeners::demo::demo(sleep, note);
    let pump =
        pumphouse::builder().with((listeners::standard(), troupe, log, door)).build()?.start();
    pump.ready().await?;
    writeln!(std::io::stdout(), "{address}")?;
    Ok(pump)
}
