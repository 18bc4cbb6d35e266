//! Clients that push without pause and remember the pump's answers. After a crash they push again
//! what was not answered.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

/// Threads that a client has; it pushes into them in turn.
pub(super) const THREADS: usize = 8;
/// How many pushes go out at once.
const WINDOW: usize = 16;

/// What a push asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Charge,
    Post,
    Remind,
    Spawn,
    Timer,
}

impl Kind {
    /// By its number, so that a load has some of each.
    fn of(number: u64) -> Kind {
        match number % 8 {
            0..=2 => Kind::Charge,
            3 | 4 => Kind::Post,
            5 => Kind::Remind,
            6 => Kind::Spawn,
            _ => Kind::Timer,
        }
    }

    /// The payload of a number.
    fn payload(self, n: u64) -> String {
        let core = "xmlns=\"https://xml-pipeline.org/ns/core/v1\"";
        let own = "xmlns=\"urn:effects\"";
        match self {
            Kind::Charge => format!("<charge {own} n=\"{n}\"/>"),
            Kind::Post => format!("<post {own} n=\"{n}\"/>"),
            Kind::Remind => format!("<remind {own} n=\"{n}\"/>"),
            Kind::Spawn => format!(
                "<spawn-thread {core} suggested_sub_id=\"n{n}\"><initial-payload>\
                 <charge {own} n=\"{n}\"/></initial-payload></spawn-thread>"
            ),
            Kind::Timer => format!("<set-timer {core} in=\"PT0.01S\" note=\"{n}\"/>"),
        }
    }
}

/// Something to be pushed, the same each time.
#[derive(Clone, Debug)]
struct Push {
    n: u64,
    kind: Kind,
    thread: Option<String>,
}

impl Push {
    fn text(&self) -> String {
        let thread = self.thread.as_ref().map(|it| format!("<thread>{it}</thread>"));
        format!(
            "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta>{}<id>n{}</id></meta>\
             {}</message>\n",
            thread.unwrap_or_default(),
            self.n,
            self.kind.payload(self.n),
        )
    }
}

/// What a client was told is in the log.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) kind: Kind,
    /// Its place in the log.
    pub(super) entry: String,
}

/// Whoever pushes, over as many connections as it takes.
pub(super) struct Client {
    next: u64,
    threads: Vec<String>,
    /// Pushed, and not answered: an earlier connection broke.
    pending: VecDeque<Push>,
    /// By number.
    pub(super) kept: BTreeMap<u64, Kept>,
    /// How many were said again.
    pub(super) repeated: u64,
}

impl Client {
    /// One whose numbers are no other's.
    pub(super) fn new(number: u64) -> Client {
        let (threads, pending, kept) = Default::default();
        Client { next: (number + 1) * 1_000_000_000, threads, pending, kept, repeated: 0 }
    }

    /// Pushes until the connection breaks, or whoever hears of what was kept has heard enough.
    pub(super) fn push(&mut self, address: &str, mut heard: impl FnMut(u64, &Kept) -> bool) {
        let Ok(stream) = TcpStream::connect(address) else { return };
        let Ok(answers) = stream.try_clone() else { return };
        let mut answers = BufReader::new(answers);
        self.repeated += self.pending.len() as u64;
        loop {
            while self.pending.len() < WINDOW
                && let Some(push) = self.another()
            {
                self.pending.push_back(push);
            }
            let text: String = self.pending.iter().map(Push::text).collect();
            if (&stream).write_all(text.as_bytes()).is_err() {
                return;
            }
            // Answers to pushes come in the order of the pushes.
            while let Some(push) = self.pending.front() {
                let Some(accepted) = accepted(&mut answers) else { return };
                assert_eq!(accepted.id, format!("n{}", push.n), "out of order");
                if push.thread.is_none() {
                    self.threads.push(accepted.thread.clone());
                }
                let entry = format!("{}/{}", accepted.thread, accepted.seq);
                let (n, kept) = (push.n, Kept { kind: push.kind, entry });
                self.pending.pop_front();
                let goes_on = heard(n, &kept);
                self.kept.insert(n, kept);
                if !goes_on {
                    return;
                }
            }
        }
    }

    /// The next push: first those that open threads, then, once these are there, all kinds.
    fn another(&mut self) -> Option<Push> {
        let opening = self.pending.iter().filter(|it| it.thread.is_none()).count();
        let thread = match self.threads.len() {
            THREADS => Some(self.threads[usize::try_from(self.next / 3).ok()? % THREADS].clone()),
            open if open + opening < THREADS => None,
            _ => return None,
        };
        let n = self.next;
        self.next += 1;
        let kind = if thread.is_none() { Kind::Post } else { Kind::of(n) };
        Some(Push { n, kind, thread })
    }
}

/// What an `<accepted>` says.
pub(super) struct Accepted {
    id: String,
    pub(super) thread: String,
    pub(super) seq: String,
}

/// The next acknowledgement; none once the connection is broken.
pub(super) fn accepted(answers: &mut impl BufRead) -> Option<Accepted> {
    loop {
        let mut line = String::new();
        let read = answers.read_line(&mut line);
        // Half a line was never said.
        if read.is_err() || !line.ends_with('\n') {
            return None;
        }
        assert!(!line.contains("<huh "), "refused: {line}");
        let Some((_, accepted)) = line.split_once("<accepted ") else { continue };
        let value = |name: &str| {
            let (_, rest) = accepted.split_once(&format!("{name}=\"")).unwrap();
            rest.split('"').next().unwrap().to_owned()
        };
        return Some(Accepted { id: value("id"), thread: value("thread"), seq: value("seq") });
    }
}
