//! A well-behaved client: one connection, one thread, and a modest rate that stays constant
//! whatever other clients do.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::crowd::{attribute, envelope};

/// The well-behaved client.
pub(crate) struct Neighbour {
    stream: TcpStream,
    lines: Mutex<BufReader<TcpStream>>,
    thread: String,
    every: Duration,
}

/// How long the neighbour waited, from each push to its answer.
pub(crate) struct Waits {
    pub(crate) count: usize,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) longest_us: f64,
}

impl Neighbour {
    pub(crate) fn come(address: &str, per_second: u32) -> Neighbour {
        let stream = TcpStream::connect(address).expect("the pump listens");
        stream.set_nodelay(true).expect("a socket");
        let mut lines = BufReader::new(stream.try_clone().expect("a socket"));
        (&stream).write_all(envelope(None, 0).as_bytes()).expect("the pump reads");
        let mut line = String::new();
        lines.read_line(&mut line).expect("an answer comes");
        let thread = attribute(&line, "thread").expect("it is accepted").to_owned();
        lines.read_line(&mut line).expect("what was said comes back");
        let every = Duration::from_secs(1) / per_second;
        Neighbour { stream, lines: Mutex::new(lines), thread, every }
    }

    /// Pushes at the neighbour's rate for `time`. A push doesn't wait for the answer to the one
    /// before, so a slow answer can't hide that later pushes wait, too.
    pub(crate) fn during(&self, time: Duration) -> Waits {
        let count = (time.as_secs_f64() / self.every.as_secs_f64()).ceil().max(1.0) as usize;
        let began = Instant::now();
        let sent = Mutex::new(vec![began; count]);
        let mut lines = self.lines.lock().expect("one at a time");
        let mut waits = std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..count {
                    let at = began + self.every * u32::try_from(number).unwrap_or(u32::MAX);
                    std::thread::sleep(at.saturating_duration_since(Instant::now()));
                    let text = envelope(Some(&self.thread), number as u64);
                    sent.lock().expect("no panic")[number] = Instant::now();
                    (&self.stream).write_all(text.as_bytes()).expect("the pump reads");
                }
            });
            let mut waits = Vec::with_capacity(count);
            let mut line = String::new();
            while waits.len() < count {
                line.clear();
                let read = lines.read_line(&mut line).expect("an answer comes");
                assert!(read > 0, "the pump left before its answer");
                if line.contains("<echo ") {
                    let sent = sent.lock().expect("no panic")[waits.len()];
                    waits.push(sent.elapsed().as_secs_f64() * 1e6);
                }
            }
            waits
        });
        waits.sort_by(f64::total_cmp);
        let at = |part: usize| waits[(waits.len() * part / 100).min(waits.len() - 1)];
        let longest_us = at(100);
        Waits { count: waits.len(), p50_us: at(50), p99_us: at(99), longest_us }
    }

    pub(crate) fn leave(self) {
        drop(self.stream);
    }
}
