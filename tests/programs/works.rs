//! An agent that says what a file holds, turn by turn, on a log that stays, with a tool that takes
//! its time. `tests/it/crash` asks it and kills it.
//!
//! `works LOG TURNS`: the turns are separated by lines of `---`. The tokens are `ann` and `bob`.

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;

use pumphouse::clock;
use pumphouse::door::{Options, Tcp, Tokens};
use pumphouse::engine::{Port as _, Tokio};
use pumphouse::listeners;
use pumphouse::listeners::agent::Agent;
use pumphouse::log::{Durability, SqliteLog};
use pumphouse::model::Scripted;
use pumphouse::prelude::*;

/// Work that takes its time.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Work {
    /// What is done.
    what: String,
    /// How long that takes.
    ms: u64,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Worked(String);

/// Says that all is done.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Report {
    summary: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let pump = runtime.block_on(start())?;
    // The test holds the other end: when that is gone, the program ends.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(runtime.block_on(pump.shutdown())?)
}

async fn start() -> Result<Pump, Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [path, turns] = given.as_slice() else { return Err("works LOG TURNS".into()) };
    let turns: Vec<String> =
        std::fs::read_to_string(turns)?.split("\n---\n").map(str::to_owned).collect();
    let model = Arc::new(Scripted::replies(turns));
    let peers = ["tool", "clerk", "timer"];
    let agent = Agent::new("oracle", model).peers(peers).listener();
    let tool = Listener::new("tool").on(work).idempotent();
    let clerk = Listener::new("clerk").on(async |_: Report| {}).idempotent();
    let tokens = Tokens::parse("ann:ann:operator\nbob:bob:operator")?;
    let log = SqliteLog::open(path, Durability::Full)?;
    let door = Tcp::bind("127.0.0.1:0", Options::default().tokens(tokens)).await?;
    let address = door.local_addr();
    let staff = (listeners::standard(), tool, clerk, agent);
    let pump = pumphouse::builder().with((staff, log, door)).build()?.start();
    pump.ready().await?;
    writeln!(std::io::stdout(), "{address}")?;
    Ok(pump)
}

async fn work(it: Work) -> Worked {
    let port = Tokio::current();
    port.sleep_until(clock::now_us().saturating_add(it.ms * 1_000)).await;
    Worked(it.what)
}
