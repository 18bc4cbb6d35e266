//! An agent whose replies are in a file, turn by turn. The pump has its log in a file, a tool that
//! takes its time, and a workflow of fifty steps. `tests/it/crash` sends messages to the program
//! and kills it.
//!
//! `works LOG TURNS`: TURNS is the file of the replies, separated by lines of `---`. The tokens are
//! `ann` and `bob`. The file `effects` beside the log has a line `try KEY` for each attempt of the
//! tool, and a line `did KEY WHAT` for each completed effect.

#![expect(clippy::expect_used, reason = "a test's program may fail where it stands")]

mod fifty;

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pumphouse::clock;
use pumphouse::door::{Options, Tcp, Tokens};
use pumphouse::engine::{Port as _, Tokio};
use pumphouse::listeners;
use pumphouse::listeners::agent::Agent;
use pumphouse::listeners::workflow::Workflow;
use pumphouse::log::{Durability, SqliteLog};
use pumphouse::model::Scripted;
use pumphouse::prelude::*;

use fifty::{Broke, Work, Worked};

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
        fs::read_to_string(turns)?.split("\n---\n").map(str::to_owned).collect();
    let model = Arc::new(Scripted::replies(turns));
    let peers = ["tool", "clerk", "timer"];
    let agent = Agent::new("oracle", model).peers(peers).listener();
    let effects = PathBuf::from(path).with_file_name("effects");
    let tool = Listener::with_state("tool", effects).on(work).idempotent().stateless();
    let clerk = Listener::new("clerk").on(async |_: Report| {}).idempotent();
    let order = Workflow::from_json(fifty::order())?.listener();
    let pack = Workflow::from_json(fifty::pack())?.listener();
    let tokens = Tokens::parse("ann:ann:operator\nbob:bob:operator")?;
    let log = SqliteLog::open(path, Durability::Full)?;
    let door = Tcp::bind("127.0.0.1:0", Options::default().tokens(tokens)).await?;
    let address = door.local_addr();
    let staff = (listeners::standard(), tool, clerk, agent, order, pack);
    let pump = pumphouse::builder().with((staff, log, door)).build()?.start();
    pump.ready().await?;
    writeln!(std::io::stdout(), "{address}")?;
    Ok(pump)
}

async fn work(State(effects): State<PathBuf>, message: Message, it: Work) -> Result<Worked, Broke> {
    let key = message.key().unwrap_or_default();
    let tried = format!("try {key}");
    note(&effects, &tried);
    let all = fs::read_to_string(&effects).expect("the effects can be read");
    let tries = all.lines().filter(|it| *it == tried).count() as u64;
    let port = Tokio::current();
    port.sleep_until(clock::now_us().saturating_add(it.ms * 1_000)).await;
    if tries <= it.fails.unwrap_or(0) {
        return Err(Broke);
    }
    note(&effects, &format!("did {key} {}", it.what));
    Ok(Worked(it.what))
}

/// A line, whole, which outlives the process.
fn note(effects: &Path, line: &str) {
    let file = OpenOptions::new().append(true).create(true).open(effects);
    let mut file = file.expect("the effects can be opened");
    file.write_all(format!("{line}\n").as_bytes()).expect("the effects can be written");
}
