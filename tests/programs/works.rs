//! An agent that says what a file holds, turn by turn, on a log that stays, with a tool that takes
//! its time, and a workflow. `tests/it/crash` asks it and kills it.
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
use pumphouse::listeners::workflow::Workflow;
use pumphouse::log::{Durability, SqliteLog};
use pumphouse::model::Scripted;
use pumphouse::prelude::*;
use serde_json::json;

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

/// Work that can't be done.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Break;

/// Why it can't.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Broken(String);

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
    let broken = Listener::new("broken").on(fail).idempotent();
    let workflow = Workflow::from_json(order())?.listener();
    let tokens = Tokens::parse("ann:ann:operator\nbob:bob:operator")?;
    let log = SqliteLog::open(path, Durability::Full)?;
    let door = Tcp::bind("127.0.0.1:0", Options::default().tokens(tokens)).await?;
    let address = door.local_addr();
    let staff = (listeners::standard(), tool, broken, clerk, agent, workflow);
    let pump = pumphouse::builder().with((staff, log, door)).build()?.start();
    pump.ready().await?;
    writeln!(std::io::stdout(), "{address}")?;
    Ok(pump)
}

/// A workflow that retries, takes a branch, goes on after a failure, fails, and undoes.
fn order() -> serde_json::Value {
    let step = |name: &str, ms: u64| {
        // Equal calls one after another would be taken for a loop.
        let undo = json!({"what": format!("undo {name}"), "ms": 5});
        let undo = json!({"target": "tool", "parameters": undo});
        let parameters = json!({"what": name, "ms": ms});
        json!({"name": name, "target": "tool", "parameters": parameters, "compensate": undo})
    };
    let grouped = |name: &str, ms: u64| {
        let mut step = step(name, ms);
        step["parallel_group"] = json!("pack");
        step
    };
    let retried = json!({"max_attempts": 2, "backoff": "none", "initial_delay": "20ms"});
    json!({
        "name": "order",
        "steps": [
            step("reserve", 10),
            grouped("wrap", 20),
            grouped("label", 400),
            {"name": "stamp", "target": "broken", "on_failure": "continue",
             "retry_policy": retried},
            {"name": "is_large", "type": "decision", "condition": "trigger.n > 3",
             "then": [step("weigh", 10)], "else": [step("fold", 10)]},
            {"name": "praise", "target": "tool", "condition": "previous_steps_success",
             "parameters": {"what": "praise", "ms": 5}},
            {"name": "ship", "target": "broken"},
        ],
    })
}

async fn fail(_: Break) -> Result<Worked, Broken> {
    Err(Broken("no stamps".to_owned()))
}

async fn work(it: Work) -> Worked {
    let port = Tokio::current();
    port.sleep_until(clock::now_us().saturating_add(it.ms * 1_000)).await;
    Worked(it.what)
}
