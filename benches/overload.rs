//! Offers a pump ten times the load that it can take, for minutes, while a well-behaved neighbour
//! keeps sending. Measures how long the neighbour waits and how much memory the pump takes. Checks
//! that every refusal is reported and that no accepted message is lost. Run it with `just
//! overload`. The pump is a process of its own, as in production.
#![expect(clippy::expect_used, reason = "a benchmark may fail where it stands")]
#![expect(clippy::print_stdout, reason = "that is what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time, and keeps a pace")]

#[path = "overload/crowd.rs"]
mod crowd;
#[path = "overload/endless.rs"]
mod endless;
#[path = "overload/kept.rs"]
mod kept;
#[path = "overload/neighbour.rs"]
mod neighbour;
#[path = "overload/server.rs"]
mod server;
#[path = "overload/silent.rs"]
mod silent;
#[path = "overload/unread.rs"]
mod unread;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use crowd::{Crowd, Pace, Told};
use endless::Endless;
use kept::Kept;
use neighbour::{Neighbour, Waits};
use server::Server;
use silent::Silent;
use unread::Unread;

/// The most memory that the pump may take, in KiB.
const MEMORY_MAX: u64 = 512 * 1024;
/// The highest allowed ratio of the neighbour's p99 under load to its p99 without load.
const WAIT_RATIO_MAX: f64 = 3.0;
/// How many times the rate that the pump can take is offered.
const OVER: f64 = 10.0;
/// Unanswered pushes per connection while the rate that the pump can take is measured.
const WINDOW: usize = 512;

/// The most memory that the pump may take, in KiB, and the longest that the neighbour may wait, if
/// clients never read or replies never end.
const UNREAD_MEMORY_MAX: u64 = 300 * 1024;
const UNREAD_WAIT_MAX_US: f64 = 500e3;
/// The longest that a new connection may wait beside silent connections.
const NEWCOMER_WAIT_MAX_US: f64 = 1e6;

/// Drives a pump at ten times what it can take.
#[derive(clap::Parser)]
struct Overload {
    /// How long the load lasts; what comes before takes about a quarter of that.
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// How many connections it comes over.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// What an acknowledged message survives.
    #[arg(long, default_value = "full")]
    durability: String,
    /// How many messages a second the neighbour sends.
    #[arg(long, default_value_t = 20)]
    neighbour: u32,
    /// Instead: so many clients send messages of 1 MB and never read.
    #[arg(long)]
    unread: Option<usize>,
    /// Instead: so many connections say nothing, and newcomers come from the same address.
    #[arg(long)]
    silent: Option<usize>,
    /// Instead: so many replies of models never end.
    #[arg(long)]
    endless: Option<usize>,
    /// What `cargo bench` says to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Prints the pump's memory and the neighbour's waits, and returns whether both are within bounds.
fn bears(memory_kib: u64, waits: &Waits) -> bool {
    let (p50, p99, longest) = (waits.p50_us / 1e3, waits.p99_us / 1e3, waits.longest_us / 1e3);
    println!("  the pump's memory at its most: {} MiB, at most 300", memory_kib / 1024);
    println!(
        "  the neighbour: p50 {p50:.2} ms, p99 {p99:.1} ms, longest {longest:.0} ms, at most 500"
    );
    memory_kib <= UNREAD_MEMORY_MAX && waits.longest_us <= UNREAD_WAIT_MAX_US
}

/// All measurements of a run.
struct Seen {
    rate: f64,
    idle: Waits,
    loaded: Waits,
    told: Told,
    memory_kib: u64,
    kept: Kept,
}

fn main() -> ExitCode {
    let overload = Overload::parse();
    let is_well = match &overload {
        Overload { unread: Some(clients), .. } => overload.run_unread(*clients),
        Overload { silent: Some(connections), .. } => overload.run_silent(*connections),
        Overload { endless: Some(replies), .. } => overload.run_endless(*replies),
        _ => overload.report(&overload.run()),
    };
    match is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

impl Overload {
    fn run(&self) -> Seen {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let server = Server::start(folder.path(), &self.durability, &[]);
        let (load, before) = (Duration::from_secs(self.seconds), self.seconds.div_ceil(8));
        let before = Duration::from_secs(before.max(2));
        let neighbour = Neighbour::come(&server.address, self.neighbour);
        neighbour.during(Duration::from_secs(1));
        let idle = neighbour.during(before);
        let crowd = Crowd::come(&server.address, self.connections);
        let first = crowd.push(Pace::Window(WINDOW), before);
        let rate = first.answered_per_second();
        let (told, loaded) = std::thread::scope(|scope| {
            let loaded = scope.spawn(|| neighbour.during(load));
            let told = crowd.push(Pace::PerSecond(rate * OVER), load);
            (told, loaded.join().expect("the neighbour came through"))
        });
        let accepted = crowd.leave();
        neighbour.leave();
        let memory_kib = memory_most_kib(&server);
        server.stop();
        let kept = Kept::look(folder.path(), &accepted);
        Seen { rate, idle, loaded, told, memory_kib, kept }
    }

    /// Checks that clients which never read leave the pump's memory and the neighbour's waits
    /// within bounds.
    fn run_unread(&self, clients: usize) -> bool {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let server = Server::start(folder.path(), &self.durability, &[]);
        let load = Duration::from_secs(self.seconds.min(15));
        let neighbour = Neighbour::come(&server.address, self.neighbour.max(100));
        let mut unread = Unread::come(&server.address, clients);
        let (sent, waits) = std::thread::scope(|scope| {
            let waits = scope.spawn(|| neighbour.during(load));
            (unread.send(load), waits.join().expect("the neighbour came through"))
        });
        let memory_kib = memory_most_kib(&server);
        drop(unread);
        neighbour.leave();
        server.stop();
        println!("{clients} clients that never read, `{}`:", self.durability);
        println!("  {} MiB taken from the sockets; {} clients cut", sent.mib, sent.cut);
        bears(memory_kib, &waits)
    }

    /// Checks that model replies which never end leave the pump's memory and the neighbour's waits
    /// within bounds.
    fn run_endless(&self, replies: usize) -> bool {
        let (folder, model) =
            (tempfile::tempdir().expect("a folder can be made"), Endless::serve());
        model.write_manifest(folder.path());
        let server = Server::start(folder.path(), &self.durability, &[]);
        let neighbour = Neighbour::come(&server.address, self.neighbour.max(100));
        let askers = endless::ask(&server.address, replies);
        let waits = neighbour.during(Duration::from_secs(self.seconds.min(15)));
        let memory_kib = memory_most_kib(&server);
        drop(askers);
        println!("{replies} replies that never end, `{}`:", self.durability);
        println!("  {} MiB of text written by the model's server", model.said_mib());
        bears(memory_kib, &waits)
    }

    /// Checks that new connections are answered in time beside silent connections.
    fn run_silent(&self, connections: usize) -> bool {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let server = Server::start(folder.path(), &self.durability, &[]);
        let silent = Silent::come(&server.address, connections);
        let waits = silent::newcomers(&server.address);
        let memory_kib = memory_most_kib(&server);
        drop(silent);
        let longest_us = waits.iter().copied().fold(0.0, f64::max);
        println!("{connections} silent connections from one address:");
        println!("  the pump's memory at its most: {} MiB", memory_kib / 1024);
        println!(
            "  {} newcomers from it: longest wait {:.0} ms, at most 1,000",
            waits.len(),
            longest_us / 1e3
        );
        longest_us <= NEWCOMER_WAIT_MAX_US
    }

    /// Prints the table and returns whether every goal was met.
    fn report(&self, seen: &Seen) -> bool {
        let Seen { rate, idle, loaded, told, memory_kib, kept } = seen;
        let (mut all, offered) = (true, rate * OVER);
        let mut goal = |is_met: bool, text: &str| {
            all &= is_met;
            format!("{text}: {}", if is_met { "met" } else { "**missed**" })
        };
        let ratio = loaded.p99_us / idle.p99_us.max(1.0);
        let waits = |it: &Waits| {
            let ms = |us: f64| us / 1e3;
            let (p50, p99, count) = (ms(it.p50_us), ms(it.p99_us), it.count);
            format!("p50 {p50:.2} ms, p99 {p99:.2} ms, of {count}")
        };
        println!("| what, {} s at 10×, `{}` | figure | goal |", self.seconds, self.durability);
        println!("| --- | --- | --- |");
        let row = |what: &str, figure: &str, goal: &str| println!("| {what} | {figure} | {goal} |");
        row("sustainable: pushes answered", &format!("{rate:.0}/s"), "");
        let from = format!("{offered:.0}/s over {} connections", self.connections);
        row("offered", &from, "");
        let figure = format!("{} ({:.0}/s)", told.pushed, told.pushed_per_second());
        row("taken from the sockets", &figure, "");
        row("accepted", &told.accepted.to_string(), "");
        let refused: u64 = told.refused.values().sum();
        let by: Vec<String> =
            told.refused.iter().map(|(code, it)| format!("{code} {it}")).collect();
        let met = goal(told.untold == 0, "every one told");
        row("refused", &format!("{refused}: {}; untold {}", by.join(", "), told.untold), &met);
        let figure = format!("{} entries, {} lost", kept.accepted, kept.lost);
        row("accepted, by the log", &figure, &goal(kept.lost == 0, "nothing lost"));
        let figure = format!("{} in the log, {} unheard", kept.unanswered, told.unheard);
        let met = goal(kept.unanswered == 0 && told.unheard == 0, "none");
        row("accepted without an answer", &figure, &met);
        let figure = format!("{} MiB", memory_kib / 1024);
        row(
            "the pump's memory at its most",
            &figure,
            &goal(*memory_kib <= MEMORY_MAX, "≤ 512 MiB"),
        );
        row("the neighbour, alone", &waits(idle), "");
        let figure = format!("{}; {ratio:.1} times", waits(loaded));
        let met = goal(ratio <= WAIT_RATIO_MAX, "p99 ≤ 3 times");
        row("the neighbour, beside the load", &figure, &met);
        all
    }
}

/// Returns the most memory that the pump's process ever took, in KiB.
fn memory_most_kib(server: &Server) -> u64 {
    let path = format!("/proc/{}/status", server.process());
    let status = std::fs::read_to_string(path).expect("the system says so");
    let most = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let most = most.and_then(|it| it.trim().strip_suffix(" kB"));
    most.and_then(|it| it.parse().ok()).expect("a number of kilobytes")
}
