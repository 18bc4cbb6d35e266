//! Drives a pump with ten million messages or for half an hour. Many messages bring names that the
//! pump hasn't seen before. Measures how much memory the pump takes, and whether memory returns to
//! its level after the warm-up. Run it with `just soak`. The pump is a process of its own, as in
//! production, and other processes read its log meanwhile.
#![expect(clippy::expect_used, reason = "a benchmark may fail where it stands")]
#![expect(clippy::print_stdout, reason = "that is what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time, and keeps a pace")]

#[path = "soak/load.rs"]
mod load;
#[path = "soak/readers.rs"]
mod readers;
#[path = "overload/server.rs"]
mod server;
#[path = "soak/watch.rs"]
mod watch;

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use clap::Parser as _;
use load::{Counts, Load};
use readers::Readers;
use server::Server;
use watch::{Sample, Watch};

/// The highest allowed growth of memory in use from the warm-up to the end, as a fraction.
const DRIFT_MAX: f64 = 0.05;
/// The most bytes of the write-ahead log: its bound of 256 MiB, and room for one commit beyond it.
const WAL_MAX: u64 = 288 << 20;
/// The fraction of the run in which caches fill.
const WARM_UP: f64 = 0.3;

/// Drives a pump for long, and watches what grows.
#[derive(clap::Parser)]
struct Soak {
    /// How long it lasts at the most.
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// How many messages are pushed at the most.
    #[arg(long, default_value_t = 10_000_000)]
    messages: u64,
    /// How many a second at the most.
    #[arg(long, default_value_t = 1e9)]
    per_second: f64,
    /// How many connections they come over.
    #[arg(long, default_value_t = 8)]
    connections: u64,
    /// What an acknowledged message survives.
    #[arg(long, default_value = "normal")]
    durability: String,
    /// Where the log is, instead of a folder for temporary files: 10 million messages take 8 GiB.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// What `cargo bench` says to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// One figure of a sample.
type Figure = fn(&Sample) -> u64;

/// All measurements of a run.
struct Seen {
    counts: Counts,
    seconds: f64,
    samples: Vec<Sample>,
    readings: u64,
    is_sound: bool,
}

fn main() -> ExitCode {
    let soak = Soak::parse();
    let seen = soak.run();
    match soak.report(&seen) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

impl Soak {
    fn run(&self) -> Seen {
        let folder = match &self.folder {
            Some(it) => std::fs::create_dir_all(it).and_then(|()| tempfile::tempdir_in(it)),
            None => tempfile::tempdir(),
        };
        let folder = folder.expect("a folder can be made");
        let tokens = folder.path().join("tokens");
        std::fs::write(&tokens, "ada:s3cret\n").expect("a file");
        let told = std::process::Command::new("chmod").arg("600").arg(&tokens).status();
        assert!(told.expect("chmod is there").success());
        let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let metrics = free.expect("a port is free").to_string();
        let more = ["--metrics", &metrics, "--tokens", "tokens"];
        let server = Server::start(folder.path(), &self.durability, &more);
        let load = Load::new(&server.address, self.messages, self.per_second);
        let (over, until) = (AtomicBool::new(false), Duration::from_secs_f64(self.minutes * 60.0));
        let began = Instant::now();
        let watch = Watch::new(&server, &metrics, folder.path());
        let readers = Readers { folder: folder.path(), address: &server.address };
        let (samples, readings) = std::thread::scope(|scope| {
            let watching = scope.spawn(|| watch.during(&over));
            let reading = scope.spawn(|| readers.during(&over));
            let strangers = scope.spawn(|| load.strangers(&over));
            let load = &load;
            let pushing: Vec<_> = (0..self.connections)
                .map(|number| scope.spawn(move || load.push(number, began + until)))
                .collect();
            pushing.into_iter().for_each(|it| it.join().expect("a client came through"));
            over.store(true, Relaxed);
            strangers.join().expect("they came through");
            let readings = reading.join().expect("readers came through");
            (watching.join().expect("the system tells"), readings)
        });
        let seconds = began.elapsed().as_secs_f64();
        server.stop();
        let is_sound = readers::verify(folder.path());
        Seen { counts: load.counts(), seconds, samples, readings, is_sound }
    }

    /// Prints the table and returns whether every goal was met.
    fn report(&self, seen: &Seen) -> bool {
        let Seen { counts, seconds, samples, readings, is_sound } = seen;
        let (mut all, warm) = (true, (samples.len() as f64 * WARM_UP) as usize);
        let (warm, steady) = samples.split_at(warm);
        assert!(steady.len() >= 8, "it was over before anything could be seen");
        let mut goal = |is_met: bool, text: &str| {
            all &= is_met;
            format!("{text}: {}", if is_met { "met" } else { "**missed**" })
        };
        let row = |what: &str, figure: &str, goal: &str| println!("| {what} | {figure} | {goal} |");
        println!("| what, {:.1} min, `{}` | figure | goal |", seconds / 60.0, self.durability);
        println!("| --- | --- | --- |");
        let rate = counts.pushed as f64 / seconds;
        row("pushed", &format!("{} ({rate:.0}/s)", counts.pushed), "");
        let met = goal(counts.accepted + counts.refused == counts.pushed, "each told once");
        row("accepted, refused", &format!("{}, {}", counts.accepted, counts.refused), &met);
        let met = goal(counts.answered == counts.accepted, "each answered");
        row("answered", &counts.answered.to_string(), &met);
        row("names that nobody had heard before", &counts.names.to_string(), "");
        row("strangers with wrong tokens", &counts.strangers.to_string(), "");
        row("readings of the log meanwhile", &readings.to_string(), "");
        let third = steady.len() / 3;
        let (first, last) = (&steady[..third], &steady[steady.len() - third..]);
        let mib = |kib: f64| kib / 1024.0;
        let mean = |some: &[Sample], of: Figure| {
            some.iter().map(|it| of(it) as f64).sum::<f64>() / some.len() as f64
        };
        let (early, late) = (mean(first, |it| it.memory_kib), mean(last, |it| it.memory_kib));
        let drift = late / early - 1.0;
        let figure = format!("{:.1} → {:.1} MiB, {:+.1} %", mib(early), mib(late), drift * 100.0);
        row("memory in use", &figure, &goal(drift < DRIFT_MAX, "< +5 %"));
        let most = |some: &[Sample], of: Figure| some.iter().map(of).max().unwrap_or(0);
        let flat: [(&str, Figure); 4] = [
            ("descriptors at the most", |it| it.descriptors),
            ("tasks at the most", |it| it.tasks),
            ("system threads at the most", |it| it.threads),
            ("trees awake at the most", |it| it.trees),
        ];
        for (what, of) in flat {
            let (early, late) = (most(first, of), most(last, of));
            let met = goal(late <= early + early / 10 + 4, "flat");
            row(what, &format!("{early} → {late}"), &met);
        }
        let wal = most(samples, |it| it.wal_bytes);
        let met = goal(wal <= WAL_MAX, "≤ 288 MiB");
        row("write-ahead log at the most", &format!("{} MiB", wal >> 20), &met);
        row("the log afterwards", "", &goal(*is_sound, "sound"));
        println!("\nwarm-up: {} samples, steady: {}", warm.len(), steady.len());
        all
    }
}
