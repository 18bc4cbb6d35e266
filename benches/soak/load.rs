//! Clients that push messages. Most messages are valid. Many bring a name that the pump has never
//! seen before: of a payload, thread, namespace, element, listener, identity or client id.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Messages that are written at once; all are answered before the next block.
const BLOCK: u64 = 100;
/// Sessions that a connection opens at its start and uses until its end.
const THREADS: u64 = 16;
/// The longest that a client with a wrong token waits for an answer; then the next one connects.
const STRANGERS_EVERY: Duration = Duration::from_millis(200);

/// The load to push, and counters of the pump's answers.
pub(crate) struct Load {
    address: String,
    messages: u64,
    per_second: f64,
    pushed: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
    answered: AtomicU64,
    names: AtomicU64,
    strangers: AtomicU64,
}

/// A snapshot of the counters.
pub(crate) struct Counts {
    pub(crate) pushed: u64,
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
    pub(crate) answered: u64,
    pub(crate) names: u64,
    pub(crate) strangers: u64,
}

impl Load {
    pub(crate) fn new(address: &str, messages: u64, per_second: f64) -> Load {
        Load {
            address: address.to_owned(),
            messages,
            per_second,
            pushed: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            names: AtomicU64::new(0),
            strangers: AtomicU64::new(0),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            pushed: self.pushed.load(Relaxed),
            accepted: self.accepted.load(Relaxed),
            refused: self.refused.load(Relaxed),
            answered: self.answered.load(Relaxed),
            names: self.names.load(Relaxed),
            strangers: self.strangers.load(Relaxed),
        }
    }

    /// Pushes over one connection until all connections have pushed enough, or the time is up.
    pub(crate) fn push(&self, number: u64, until: Instant) {
        let mut stream = TcpStream::connect(&self.address).expect("the pump listens");
        stream.set_nodelay(true).expect("a socket");
        let mut lines = BufReader::new(stream.try_clone().expect("a socket"));
        let mut threads = Vec::new();
        let opening = envelope("", "opens").repeat(THREADS as usize);
        stream.write_all(opening.as_bytes()).expect("the pump reads");
        self.pushed.fetch_add(THREADS, Relaxed);
        self.hear(&mut lines, THREADS, |line| threads.extend(thread(line)));
        let began = Instant::now();
        while Instant::now() < until {
            let before = self.pushed.fetch_add(BLOCK, Relaxed);
            if before >= self.messages {
                self.pushed.fetch_sub(BLOCK, Relaxed);
                return;
            }
            let block: String = (0..BLOCK)
                .map(|at| self.message(number * 1_000_000_000_000 + before + at, &threads))
                .collect();
            stream.write_all(block.as_bytes()).expect("the pump reads");
            self.hear(&mut lines, BLOCK, |_| {});
            let due = before as f64 / self.per_second;
            std::thread::sleep(Duration::from_secs_f64(due).saturating_sub(began.elapsed()));
        }
    }

    /// Builds a message. No other message has the same `number`.
    fn message(&self, number: u64, threads: &[String]) -> String {
        let known = &threads[(number % THREADS) as usize];
        let known = format!("<thread>{known}</thread>");
        let fresh = |text: String| {
            self.names.fetch_add(1, Relaxed);
            text
        };
        match number % BLOCK {
            0..=39 => envelope("", "a session of its own"),
            40..=44 => fresh(envelope(&format!("{known}<id>mine-{number}</id>"), "under an id")),
            45..=49 => fresh(bare(&format!("<p{number} xmlns=\"urn:strange\"/>"))),
            50..=52 => fresh(bare(&format!("<p xmlns=\"urn:strange:{number}\"/>"))),
            53..=55 => fresh(envelope(&format!("<thread>sess-n{number}</thread>"), "nowhere")),
            56..=58 => fresh(envelope(&format!("<to>l{number}</to>"), "to nobody")),
            59..=61 => fresh(envelope(&format!("<from>i{number}</from>"), "as somebody else")),
            62..=66 => {
                let trace = format!("<t{number} xmlns=\"urn:t:{number}\" a{number}=\"1\"/>");
                fresh(envelope(&format!("{known}{trace}"), "traced"))
            }
            _ => envelope(&known, "goes on"),
        }
    }

    /// Reads until `count` pushes are accepted or refused, and each accepted one is answered.
    fn hear(&self, lines: &mut impl BufRead, count: u64, mut accepted: impl FnMut(&str)) {
        let (mut told, mut open, mut line) = (0, 0_i64, String::new());
        while told < count || open > 0 {
            line.clear();
            let read = lines.read_line(&mut line).expect("an answer comes");
            assert!(read > 0, "the pump left before its answer");
            if line.contains("<echo ") {
                self.answered.fetch_add(1, Relaxed);
                open -= 1;
                continue;
            }
            told += 1;
            if line.contains("<accepted ") {
                self.accepted.fetch_add(1, Relaxed);
                open += 1;
                accepted(&line);
            } else {
                self.refused.fetch_add(1, Relaxed);
            }
        }
    }

    /// Connects with one wrong token after another until `over` is set.
    pub(crate) fn strangers(&self, over: &AtomicBool) {
        while !over.load(Relaxed) {
            let number = self.strangers.fetch_add(1, Relaxed);
            let mut stream = TcpStream::connect(&self.address).expect("the pump listens");
            let core = "https://xml-pipeline.org/ns/core/v1";
            let wrong = format!("<authenticate xmlns=\"{core}\" token=\"t{number}\"/>");
            stream.write_all(wrong.as_bytes()).expect("the pump reads");
            stream.set_read_timeout(Some(STRANGERS_EVERY)).expect("a socket");
            // The pump delays its answers after several wrong tokens, so the read may time out.
            let _ = stream.read_to_string(&mut String::new());
        }
    }
}

fn thread(line: &str) -> Option<String> {
    attribute(line, "thread").map(str::to_owned)
}

/// Returns an echo in an envelope with the given `<meta>`.
pub(crate) fn envelope(meta: &str, text: &str) -> String {
    format!(
        "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta>{meta}</meta>\
         <echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>{text}</text></echo></message>\n"
    )
}

fn bare(payload: &str) -> String {
    format!("{payload}\n")
}

/// Returns the value of an attribute in a line that the pump wrote.
pub(crate) fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let start = line.find(&format!(" {name}=\""))? + name.len() + 3;
    line[start..].split('"').next()
}
