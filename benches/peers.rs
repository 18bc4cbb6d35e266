//! Compares our pushes with what other servers do with a message of the same 250 bytes, on the same
//! machine and in the same run. The servers are NATS, JetStream, Redis and Prosody, as far as they
//! are in `PATH`. Run it with `just peers`.
#![expect(clippy::expect_used, reason = "a benchmark may fail where it stands")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "that is what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time, and waits for servers")]

#[path = "peers/nats.rs"]
mod nats;
#[path = "peers/pipeline.rs"]
mod pipeline;
#[path = "peers/prosody.rs"]
mod prosody;
#[path = "peers/redis.rs"]
mod redis;
#[path = "peers/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Stdio};

use clap::Parser as _;

/// Measures our pushes and those of other servers, which it starts itself.
#[derive(clap::Parser)]
struct Peers {
    /// How often each is measured, one after another; the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How much each does: 1 takes about half a minute a round.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Only the peers whose name holds this.
    #[arg(long, default_value = "")]
    only: String,
    /// What `cargo bench` says to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A measurement of another server.
struct Peer {
    what: &'static str,
    /// What an acknowledged message survives with this server.
    durability: &'static str,
    /// How many messages are sent at scale 1.
    count: f64,
    measure: fn(u64) -> io::Result<f64>,
    /// The durabilities of ours that are compared with this server, and whether being at least as
    /// fast is a goal.
    ours: &'static [(&'static str, bool)],
}

/// The possible answers to what an acknowledged message survives.
const NOTHING: &str = "nothing";
const PROCESS: &str = "a killed process";
const POWER: &str = "a power cut";

const PEERS: [Peer; 5] = [
    Peer {
        what: "NATS core, to a subscriber",
        durability: NOTHING,
        count: 300_000.0,
        measure: nats::core,
        ours: &[("memory", false)],
    },
    Peer {
        what: "Prosody, component to component",
        durability: NOTHING,
        count: 50_000.0,
        measure: prosody::components,
        ours: &[("memory", false)],
    },
    Peer {
        what: "JetStream, file, acknowledged",
        durability: PROCESS,
        count: 200_000.0,
        measure: nats::jetstream,
        ours: &[("normal", true), ("full", true)],
    },
    Peer {
        what: "Redis stream, AOF everysec",
        durability: PROCESS,
        count: 300_000.0,
        measure: |count| redis::stream(count, "everysec"),
        ours: &[("normal", false)],
    },
    Peer {
        what: "Redis stream, AOF always",
        durability: POWER,
        count: 100_000.0,
        measure: |count| redis::stream(count, "always"),
        ours: &[("full", true)],
    },
];

/// The rates of several rounds, in messages per second.
#[derive(Default)]
struct Rates(Vec<f64>);

fn main() {
    let peers = Peers::parse();
    let wanted: Vec<&Peer> = PEERS.iter().filter(|it| it.what.contains(&peers.only)).collect();
    let mut ours: BTreeMap<String, Rates> = BTreeMap::new();
    let mut theirs: Vec<Result<Rates, String>> =
        wanted.iter().map(|_| Ok(Rates::default())).collect();
    for round in 1..=peers.rounds.max(1) {
        eprintln!("round {round} of {}", peers.rounds.max(1));
        for (peer, rates) in wanted.iter().zip(&mut theirs) {
            let count = (peer.count * peers.scale).max(1.0) as u64;
            match (&mut *rates, (peer.measure)(count)) {
                (Ok(rates), Ok(rate)) => rates.0.push(rate),
                (Ok(_), Err(error)) => *rates = Err(error.to_string()),
                (Err(_), _) => {}
            }
        }
        for (durability, rate) in pushes(peers.scale) {
            ours.entry(durability).or_default().0.push(rate);
        }
    }
    let head = ["what", "survives", "a second", "ours beside it", "ratio", "goal"];
    row(head);
    row(["-"; 6].map(|it| it.repeat(3)).each_ref().map(|it| &**it));
    for (durability, survives) in [("memory", NOTHING), ("normal", PROCESS), ("full", POWER)] {
        let what = format!("ours: push, one connection, `{durability}`");
        row([&what, survives, &ours[durability].text(), "", "", ""]);
    }
    for (peer, theirs) in wanted.iter().zip(&theirs) {
        compare(peer, theirs, &ours);
    }
}

/// Prints a row for each of our durabilities that the peer is compared with.
fn compare(peer: &Peer, theirs: &Result<Rates, String>, ours: &BTreeMap<String, Rates>) {
    let theirs = match theirs {
        Ok(theirs) => theirs,
        Err(why) => {
            return row([peer.what, peer.durability, &format!("skipped: {why}"), "", "", ""]);
        }
    };
    for (durability, is_goal) in peer.ours {
        let ours = &ours[*durability];
        let ratio = ours.median() / theirs.median();
        let goal = match (is_goal, ratio >= 1.0) {
            (false, _) => "",
            (true, true) => "≥ 1: met",
            (true, false) => "≥ 1: **missed**",
        };
        let beside = format!("`{durability}` {:.0}", ours.median());
        let ratio = format!("{ratio:.2}");
        row([peer.what, peer.durability, &theirs.text(), &beside, &ratio, goal]);
    }
}

fn row([what, survives, rate, ours, ratio, goal]: [&str; 6]) {
    println!("| {what:42} | {survives:16} | {rate:30} | {ours:16} | {ratio:5} | {goal} |");
}

impl Rates {
    fn text(&self) -> String {
        let (least, most) = self
            .0
            .iter()
            .fold((f64::MAX, 0.0_f64), |(least, most), it| (least.min(*it), most.max(*it)));
        format!("{:.0} ({least:.0}–{most:.0})", self.median())
    }

    fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

/// Runs `pumphouse-bench` for pushes, and returns their rate per second by durability.
fn pushes(scale: f64) -> Vec<(String, f64)> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pumphouse-bench"));
    command.args(["--json", "--only", "push, one", "--scale", &scale.to_string()]);
    let output = command.stderr(Stdio::inherit()).output().expect("the program is there");
    assert!(output.status.success(), "it measures: {}", output.status);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let rows = text.lines().map(|line| {
        let row: serde_json::Value = serde_json::from_str(line).expect("an object");
        let durability = row["durability"].as_str().expect("it has one").to_owned();
        (durability, row["per_second"].as_f64().expect("it has a rate"))
    });
    rows.collect()
}
