//! Times how soon a killed pump accepts pushes again, with a log of some size. Run it with `just
//! ready`.
#![expect(clippy::expect_used, reason = "a benchmark may fail where it stands")]
#![expect(clippy::print_stdout, reason = "that is what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

#[path = "overload/server.rs"]
mod server;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use clap::Parser as _;
use server::Server;

/// The most seconds that a start may take for each GiB of its log.
const SECONDS_PER_GIB: f64 = 2.0;
/// Messages that a connection writes at once.
const BLOCK: usize = 500;
const CONNECTIONS: usize = 8;
const GIB: f64 = (1 << 30) as f64;

/// Fills a log, kills the pump, and times its next start to the first push that is accepted.
#[derive(clap::Parser)]
struct Ready {
    /// How large the log is to be, with what isn't copied into its file yet.
    #[arg(long, default_value_t = 1.0)]
    gib: f64,
    /// Starts, each after a kill.
    #[arg(long, default_value_t = 3)]
    starts: usize,
    /// Has the system forget the file before each start; as root.
    #[arg(long)]
    cold: bool,
    /// Where the log is, instead of a folder for temporary files.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// What `cargo bench` says to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let ready = Ready::parse();
    let folder = match &ready.folder {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    let folder = folder.expect("a folder can be made");
    let server = Server::start(folder.path(), "normal", &[]);
    fill(&server.address, || size(folder.path()).0 as f64 >= ready.gib * GIB);
    // Dropping the server kills its process.
    drop(server);
    println!("| start | log | of it not copied | first push accepted after | a GiB | goal |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut all = true;
    for number in 1..=ready.starts {
        if ready.cold {
            std::fs::write("/proc/sys/vm/drop_caches", "3").expect("this is for root");
        }
        let (bytes, rest) = size(folder.path());
        let gib = bytes as f64 / GIB;
        let since = Instant::now();
        let server = Server::start(folder.path(), "normal", &[]);
        Line::to(&server.address).push(1);
        let seconds = since.elapsed().as_secs_f64();
        if number == ready.starts {
            server.stop();
        } else {
            drop(server);
        }
        let is_met = seconds <= SECONDS_PER_GIB * gib;
        all &= is_met;
        let (each, met) = (seconds / gib, if is_met { "met" } else { "**missed**" });
        println!(
            "| {number}{} | {gib:.2} GiB | {} MiB | {seconds:.2} s | {each:.2} s | \
             ≤ {SECONDS_PER_GIB} s: {met} |",
            if ready.cold { ", nothing of it in memory" } else { "" },
            rest >> 20,
        );
    }
    if all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Pushes over some connections until `is_enough` says so.
fn fill(address: &str, is_enough: impl Fn() -> bool) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let push = || {
            let mut line = Line::to(address);
            while !over.load(Relaxed) {
                line.push(BLOCK);
            }
        };
        let pushing: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(push)).collect();
        while !is_enough() && !pushing.iter().any(|it| it.is_finished()) {
            std::thread::sleep(Duration::from_millis(100));
        }
        over.store(true, Relaxed);
    });
}

/// Returns the bytes of the log and its write-ahead log together, and of the write-ahead log alone.
fn size(folder: &Path) -> (u64, u64) {
    let of =
        |name: &str| std::fs::metadata(folder.join("data").join(name)).map_or(0, |it| it.len());
    let rest = of("pumphouse.db-wal");
    (of("pumphouse.db") + rest, rest)
}

/// A connection that opens one thread after another and pushes into each.
struct Line {
    writer: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Line {
    fn to(address: &str) -> Line {
        let writer = TcpStream::connect(address).expect("it listens");
        writer.set_nodelay(true).expect("a socket");
        let reader = BufReader::new(writer.try_clone().expect("a socket"));
        Line { writer, reader }
    }

    /// Opens a thread, pushes `count` messages into it, and waits until each was accepted and
    /// answered.
    fn push(&mut self, count: usize) {
        let thread = self.say("", 1).expect("it is accepted");
        if count > 1 {
            self.say(&format!("<thread>{thread}</thread>"), count - 1);
        }
    }

    fn say(&mut self, meta: &str, count: usize) -> Option<String> {
        let message = format!(
            "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta>{meta}</meta>\
             <echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>{count:0>60}</text></echo>\
             </message>\n",
        );
        self.writer.write_all(message.repeat(count).as_bytes()).expect("it reads");
        let (mut thread, mut line) = (None, String::new());
        // For each message there are two lines: its acknowledgement and its answer.
        for _ in 0..2 * count {
            line.clear();
            assert!(self.reader.read_line(&mut line).expect("it answers") > 0, "it is gone");
            if let Some((_, rest)) = line.split_once("<accepted ") {
                let id = rest.split_once("thread=\"").and_then(|(_, it)| it.split('"').next());
                thread = id.map(str::to_owned);
            }
        }
        thread
    }
}
