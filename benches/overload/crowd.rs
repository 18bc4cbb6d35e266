//! Clients that push more than the pump can take, over many connections, and count its answers.

use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::net::TcpSocket;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// The sessions of each connection.
const THREADS: usize = 4;
/// One in this many pushes is invalid, alternately in one of two ways. The pump must report each
/// refusal.
const WRONG_EVERY: u64 = 100;
/// How often a connection computes how many pushes are due.
const TICK: Duration = Duration::from_millis(1);
/// The most messages that a connection adds to its write buffer at once.
const BLOCK: usize = 128;
/// The size of the send buffer that a connection asks the system for.
const SEND_BYTES: u32 = 32 * 1024;
/// How long to wait for missing answers at the end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Entries that clients were told are in the log: sequence numbers by thread.
pub(crate) type Accepted = BTreeMap<String, Vec<u64>>;

/// How fast a connection pushes.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// A connection pushes while fewer than this many of its pushes are unanswered.
    Window(usize),
    /// This many pushes per second over all connections. While a connection's socket is full, its
    /// due pushes are dropped.
    PerSecond(f64),
}

/// The pump's answers to the pushes of a period.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) seconds: f64,
    pub(crate) pushed: u64,
    pub(crate) accepted: u64,
    /// Reported refusals, by fault code.
    pub(crate) refused: BTreeMap<String, u64>,
    /// Pushes that were neither accepted nor refused.
    pub(crate) untold: u64,
    /// Accepted pushes that were answered within the period.
    pub(crate) answered: u64,
    /// Accepted pushes without an answer.
    pub(crate) unheard: u64,
}

impl Told {
    pub(crate) fn pushed_per_second(&self) -> f64 {
        self.pushed as f64 / self.seconds
    }

    pub(crate) fn answered_per_second(&self) -> f64 {
        self.answered as f64 / self.seconds
    }
}

/// All connections, on a runtime with a single thread.
pub(crate) struct Crowd {
    runtime: Runtime,
    members: Vec<Member>,
}

/// One connection.
struct Member {
    writer: Option<OwnedWriteHalf>,
    heard: Arc<Mutex<Heard>>,
    reading: JoinHandle<()>,
    threads: Vec<String>,
}

/// A connection's pushes, and the pump's answers to them.
#[derive(Default)]
struct Heard {
    pushed: u64,
    /// Pushes that are neither accepted nor refused so far.
    waiting: u64,
    accepted: u64,
    answered: u64,
    refused: BTreeMap<String, u64>,
    entries: Accepted,
}

impl Crowd {
    pub(crate) fn come(address: &str, connections: usize) -> Crowd {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let members = (0..connections).map(|_| runtime.block_on(Member::come(address)));
        let members = members.collect();
        Crowd { runtime, members }
    }

    /// Pushes for `time`, then waits until every push is answered, at most [`PATIENCE`].
    pub(crate) fn push(&self, pace: Pace, time: Duration) -> Told {
        let before: Told = self.told();
        let (began, count) = (Instant::now(), self.members.len());
        let pace = match pace {
            Pace::PerSecond(rate) => Pace::PerSecond(rate / count as f64),
            pace => pace,
        };
        let pushing = self.members.iter().map(|it| it.push(pace, began + time));
        self.runtime.block_on(futures_util::future::join_all(pushing));
        let (seconds, answered) = (began.elapsed().as_secs_f64(), self.told().answered);
        self.runtime.block_on(async {
            let until = Instant::now() + PATIENCE;
            while Instant::now() < until && !self.members.iter().all(Member::is_done) {
                tokio::time::sleep(TICK * 10).await;
            }
        });
        let after = self.told();
        let refused = after.refused.into_iter().map(|(code, it)| {
            let told = it - before.refused.get(&code).unwrap_or(&0);
            (code, told)
        });
        Told {
            seconds,
            pushed: after.pushed - before.pushed,
            accepted: after.accepted - before.accepted,
            refused: refused.collect(),
            untold: after.untold,
            // Answers that came after the pushing don't count for the rate.
            answered: answered - before.answered,
            unheard: after.unheard,
        }
    }

    fn told(&self) -> Told {
        let mut told = Told::default();
        for it in &self.members {
            let heard = it.heard();
            told.pushed += heard.pushed;
            told.accepted += heard.accepted;
            told.untold += heard.waiting;
            told.answered += heard.answered;
            told.unheard += heard.accepted - heard.answered;
            for (code, count) in &heard.refused {
                *told.refused.entry(code.clone()).or_default() += count;
            }
        }
        told
    }

    /// Closes the connections. Returns the entries that the pump said are in the log.
    pub(crate) fn leave(self) -> Accepted {
        let mut all = Accepted::new();
        for mut it in self.members {
            drop(it.writer.take());
            it.reading.abort();
            for (thread, seqs) in std::mem::take(&mut it.heard().entries) {
                all.entry(thread).or_default().extend(seqs);
            }
        }
        all
    }
}

impl Member {
    async fn come(address: &str) -> Member {
        let socket = TcpSocket::new_v4().expect("a socket");
        // Bytes in the system's buffer count as pushed, though the pump hasn't read them. So the
        // buffer is small.
        socket.set_send_buffer_size(SEND_BYTES).expect("a socket");
        let address = address.parse().expect("an address");
        let stream = socket.connect(address).await.expect("the pump listens");
        stream.set_nodelay(true).expect("a socket");
        let (reader, writer) = stream.into_split();
        let heard = Arc::new(Mutex::new(Heard::default()));
        let reading = tokio::spawn(read(reader, heard.clone()));
        let mut member = Member { writer: Some(writer), heard, reading, threads: Vec::new() };
        member.open().await;
        member
    }

    /// Opens the connection's sessions.
    async fn open(&mut self) {
        let text = envelope(None, 0).repeat(THREADS);
        {
            let mut heard = self.heard();
            heard.pushed += THREADS as u64;
            heard.waiting += THREADS as u64;
        }
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let written = self.write(rest);
            rest = &rest[written..];
            tokio::time::sleep(TICK).await;
        }
        while !self.is_done() {
            tokio::time::sleep(TICK).await;
        }
        let threads = self.heard().entries.keys().cloned().collect();
        self.threads = threads;
        assert_eq!(self.threads.len(), THREADS, "each was opened");
    }

    async fn push(&self, pace: Pace, until: Instant) {
        let mut last = Instant::now();
        let (mut due, mut rest, mut number) = (0.0, VecDeque::new(), self.heard().pushed);
        while last < until || !rest.is_empty() {
            let now = Instant::now();
            due = match pace {
                Pace::Window(most) => {
                    let heard = self.heard();
                    most.saturating_sub((heard.waiting + heard.accepted - heard.answered) as usize)
                        as f64
                }
                Pace::PerSecond(rate) => due + rate * (now - last).as_secs_f64(),
            };
            last = now;
            while rest.len() < 32 * 1024 && due >= 1.0 && now < until {
                let count = (due as usize).min(BLOCK);
                for _ in 0..count {
                    rest.extend(self.message(number).bytes());
                    number += 1;
                }
                due -= count as f64;
                let mut heard = self.heard();
                heard.pushed += count as u64;
                heard.waiting += count as u64;
            }
            let bytes = rest.make_contiguous();
            let written = self.write(bytes);
            let is_stuck = written < bytes.len();
            rest.drain(..written);
            // While the socket is full, due pushes count as offered and are dropped.
            due = if is_stuck { 0.0 } else { due.min(1.0) };
            tokio::time::sleep(TICK).await;
        }
    }

    /// Builds a message; one in [`WRONG_EVERY`] is invalid.
    fn message(&self, number: u64) -> String {
        let thread = &self.threads[(number % THREADS as u64) as usize];
        match (number % WRONG_EVERY, number / WRONG_EVERY % 2) {
            (0, 0) => envelope(Some("sess-nosuch00"), number),
            (0, _) => envelope(Some(thread), number).replace("text>", "txet>"),
            _ => envelope(Some(thread), number),
        }
    }

    /// Writes as many bytes as the socket takes now. Returns their number.
    fn write(&self, bytes: &[u8]) -> usize {
        let Some(writer) = self.writer.as_ref().filter(|_| !bytes.is_empty()) else { return 0 };
        match writer.try_write(bytes) {
            Ok(written) => written,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => panic!("the pump closed a connection: {error}"),
        }
    }

    /// Returns whether each push of the connection was refused or answered.
    fn is_done(&self) -> bool {
        let heard = self.heard();
        heard.waiting == 0 && heard.answered == heard.accepted
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().expect("no panic")
    }
}

/// Reads the pump's lines and records them in `heard`.
async fn read(reader: OwnedReadHalf, heard: Arc<Mutex<Heard>>) {
    let (mut buffer, mut rest) = (vec![0; 64 * 1024], Vec::new());
    loop {
        reader.readable().await.expect("a socket");
        let read = match reader.try_read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(_) => return,
        };
        rest.extend_from_slice(&buffer[..read]);
        let Some(end) = memchr::memrchr(b'\n', &rest) else { continue };
        let mut heard = heard.lock().expect("no panic");
        let text = std::str::from_utf8(&rest[..end]).expect("UTF-8");
        text.lines().for_each(|line| heard.hear(line));
        drop(heard);
        rest.drain(..=end);
    }
}

impl Heard {
    fn hear(&mut self, line: &str) {
        if line.contains("<echo ") {
            self.answered += 1;
            return;
        }
        self.waiting -= 1;
        let seq = attribute(line, "seq").and_then(|it| it.parse().ok());
        let thread = attribute(line, "thread");
        if let (Some(seq), Some(thread), true) = (seq, thread, line.contains("<accepted ")) {
            self.accepted += 1;
            match self.entries.get_mut(thread) {
                Some(seqs) => seqs.push(seq),
                None => drop(self.entries.insert(thread.to_owned(), vec![seq])),
            }
        } else {
            let code = attribute(line, "code").unwrap_or("without a code");
            *self.refused.entry(code.to_owned()).or_default() += 1;
        }
    }
}

/// Returns an echo in an envelope, for the given thread or for a new session.
pub(crate) fn envelope(thread: Option<&str>, number: u64) -> String {
    let thread = thread.map_or(String::new(), |it| format!("<thread>{it}</thread>"));
    let text = format!("{number:0>60}");
    format!(
        "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta>{thread}</meta>\
         <echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>{text}</text></echo></message>\n"
    )
}

/// Returns an echo with `text_bytes` bytes of text. It opens a session.
pub(crate) fn large(text_bytes: usize) -> String {
    let text = "r".repeat(text_bytes);
    format!("<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>{text}</text></echo>\n")
}

/// Returns the value of an attribute in a line that the pump wrote.
pub(crate) fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let start = line.find(&format!(" {name}=\""))? + name.len() + 3;
    line[start..].split('"').next()
}
