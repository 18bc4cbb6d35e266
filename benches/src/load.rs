//! Measures the time from a push to its answer while one connection pushes at a constant pace: half
//! of the highest rate. A wait begins when its push is due, not when the push is written. So a slow
//! answer doesn't hide the waits of later pushes.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use pumphouse::clock;
use pumphouse::id::ThreadId;
use pumphouse::listener::Listener;
use pumphouse::log::Durability;
use pumphouse_bench::envelope;

use crate::bare::Bare;
use crate::floors::{SYNC, unwritten};
use crate::measure::{Waits, number, rate};
use crate::output::Failure;
use crate::pump::{Served, Sink};
use crate::row::{Figure, Row};
use crate::sitting::{DURABILITIES, Sitting};

const LOAD: &str = "push to answer, at half load";
const BARE: &str = "push to answer, a bare server at that pace";

/// The most unanswered pushes while the highest rate is measured. The client doesn't read while it
/// writes. So all answers to these pushes have to fit into the pump's buffer for one client.
const WINDOW: u64 = 256;
/// How many pushes are sent to measure the highest rate.
const FIRST: f64 = 50_000.0;
/// The length of the run at half the highest rate, in seconds.
const SECONDS: f64 = 4.0;

pub(crate) async fn rows(sitting: &mut Sitting) -> Result<(), Failure> {
    for durability in DURABILITIES {
        let wants_load = sitting.wants(LOAD, Some(durability));
        // The bare server does the same with `normal` as with `memory`.
        let wants_bare = durability != Durability::Normal && sitting.wants(BARE, Some(durability));
        if !wants_load && !wants_bare {
            continue;
        }
        let sync_us = sitting.sync()?.at(99);
        let echo = Listener::new("sink").on(async |it: Sink| it).inline().pure();
        let served = Served::start(sitting.folder(), "load", durability, echo).await?;
        let threads = served.threads().await?;
        let mut line = Line::connect(served.address, &threads).map_err(|it| broken(&it))?;
        // Blocking is harmless here: a command runs on the main thread of the process, and the
        // pump's tasks run on tokio's threads.
        let most = line.most(sitting.times(FIRST).max(4 * WINDOW)).map_err(|it| broken(&it))?;
        let pace = most / 2.0;
        let count = sitting.times(pace * SECONDS);
        let waits = line.paced(pace, count).map_err(|it| broken(&it))?;
        drop(line);
        served.stop().await?;
        let row = |what, waits: &Waits| {
            let (ratio, row) = (waits.at(99) / sync_us.max(1.0), Row::new(what, Some(durability)));
            let row = row.waits(waits).figure(Figure::PerSecond(pace));
            (row.beside(SYNC, Figure::P99(sync_us), ratio), ratio)
        };
        let (load, ratio) = row(LOAD, &waits);
        if wants_load {
            sitting.show(&match durability {
                Durability::Full => load.goal("p99 ≤ 5× the sync's", ratio <= 5.0),
                // These durabilities wait for no sync.
                Durability::Normal | Durability::Memory => load,
            })?;
        }
        if wants_bare {
            let waits = bare(sitting.folder(), durability, &threads, pace, count)?;
            sitting.show(&row(BARE, &waits).0)?;
        }
    }
    Ok(())
}

/// Sends `count` pushes at `pace` to a bare echo server, for comparison, and returns how long each
/// answer took.
fn bare(
    folder: &Path,
    durability: Durability,
    threads: &[ThreadId],
    pace: f64,
    count: u64,
) -> Result<Waits, Failure> {
    let server = Bare::start(folder, durability).map_err(|it| unwritten(&it))?;
    let waits = Line::connect(server.address, threads).and_then(|mut it| it.paced(pace, count));
    // The server's own error says more than the client's broken connection.
    server.end().map_err(|it| unwritten(&it))?;
    waits.map_err(|it| broken(&it))
}

fn broken(error: &io::Error) -> Failure {
    Failure::Wrong(format!("the connection broke: {error}"))
}

/// A connection, and the threads it pushes into.
struct Line<'a> {
    writer: TcpStream,
    reader: BufReader<TcpStream>,
    text: Vec<u8>,
    threads: &'a [ThreadId],
}

impl<'a> Line<'a> {
    fn connect(address: SocketAddr, threads: &'a [ThreadId]) -> io::Result<Line<'a>> {
        let writer = TcpStream::connect(address)?;
        writer.set_nodelay(true)?;
        let reader = BufReader::with_capacity(64 * 1_024, writer.try_clone()?);
        Ok(Line { writer, reader, text: Vec::new(), threads })
    }

    /// Measures the highest rate, in answers per second. At most `WINDOW` pushes are unanswered at
    /// a time, and each answer lets one more push go out. The first half of the answers is a
    /// warm-up, and doesn't count.
    fn most(&mut self, count: u64) -> io::Result<f64> {
        let mut block = String::new();
        (0..WINDOW.min(count)).for_each(|it| push(&mut block, self.threads, it));
        let (mut pushed, mut since) = (WINDOW.min(count), clock::now_us());
        for answered in 0..count {
            if answered == count / 2 {
                since = clock::now_us();
            }
            // Several answers may come in one read. The next pushes, one for each answer, are
            // written together.
            if self.reader.buffer().is_empty() {
                self.writer.write_all(block.as_bytes())?;
                block.clear();
            }
            answer(&mut self.reader, &mut self.text)?;
            if pushed < count {
                push(&mut block, self.threads, pushed);
                pushed += 1;
            }
        }
        Ok(rate(count - count / 2, since))
    }

    /// Returns the waits for the answers to `count` pushes at a constant pace.
    fn paced(&mut self, per_second: f64, count: u64) -> io::Result<Waits> {
        let Line { writer, reader, text, threads } = self;
        let since = clock::now_us();
        #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "a time")]
        let due = |it: u64| since + (number(it) * 1e6 / per_second) as u64;
        std::thread::scope(|scope| {
            let writing = scope.spawn(move || {
                let (mut block, mut pushed) = (String::new(), 0);
                while pushed < count {
                    wait_until(due(pushed));
                    let now = clock::now_us();
                    while pushed < count && due(pushed) <= now {
                        push(&mut block, threads, pushed);
                        pushed += 1;
                    }
                    writer.write_all(block.as_bytes())?;
                    block.clear();
                }
                Ok(())
            });
            let mut waits = Vec::new();
            for _ in 0..count {
                let number = answer(reader, text)?;
                waits.push(clock::now_us().saturating_sub(due(number)));
            }
            let written = writing.join();
            written.unwrap_or_else(|_| Err(io::Error::other("nothing could be pushed")))?;
            Ok(Waits::of(waits))
        })
    }
}

/// Appends a push to the block that is written next.
fn push(block: &mut String, threads: &[ThreadId], number: u64) {
    let at = usize::try_from(number).unwrap_or_default() % threads.len();
    block.push_str(&envelope(threads[at].as_str(), number));
}

/// Reads the next answer, and returns the number in it. Acknowledgements are skipped.
fn answer(reader: &mut BufReader<TcpStream>, text: &mut Vec<u8>) -> io::Result<u64> {
    loop {
        text.clear();
        if reader.read_until(b'\n', text)? == 0 {
            return Err(io::Error::other("the pump closed it"));
        }
        if memchr::memmem::find(text, b"<accepted ").is_some() {
            continue;
        }
        let said = String::from_utf8_lossy(text);
        let number = said.split("<a>").nth(1).and_then(|it| it.split('<').next()?.parse().ok());
        return number.ok_or_else(|| io::Error::other(format!("no answer: {}", said.trim_end())));
    }
}

fn wait_until(at_us: u64) {
    let wait = at_us.saturating_sub(clock::now_us());
    if wait > 0 {
        #[expect(clippy::disallowed_methods, reason = "this thread is here to keep a pace")]
        std::thread::sleep(Duration::from_micros(wait));
    }
}
