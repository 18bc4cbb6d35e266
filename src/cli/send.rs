//! `send`: pushes the elements of a file, and prints what comes back.

use std::fs;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;

use crate::cli::base::connect::{Caller, broken};
use crate::cli::base::incoming;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::client::{self, Push};
use crate::clock;
use crate::engine::{Port as _, Tokio};
use crate::id::ThreadId;
use crate::limits::XmlLimits;
use crate::name::ENVELOPE;
use crate::xml::{self, Profile, Splitter};

/// How many bytes are buffered before they are sent.
const SENT_AT_ONCE: usize = 1 << 20;

/// Pushes the elements that a file holds, one or several, and prints what comes back.
///
/// A payload may be bare or in a <message> of its own. Without --thread, a bare payload opens a
/// session. `send` waits until all that the payloads caused is done, or the time is up.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse send message.xml
  echo '<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>hi</text></echo>' | pumphouse send
  pumphouse send --thread sess-k3v9x2ma more.xml
  pumphouse send --connect unix:/run/pump.sock message.xml
  PUMPHOUSE_TOKEN=s3cret pumphouse send --connect tls:pump.example:8765 message.xml

Exits with 1 where anything was refused or failed, or the time was up.")]
pub(crate) struct Send {
    #[command(flatten)]
    caller: Caller,
    /// The receiver; without it, the listener that owns the payload's name.
    #[arg(long, value_name = "LISTENER")]
    to: Option<String>,
    /// The thread to push into; without it, each bare payload opens a session.
    #[arg(long, value_name = "THREAD")]
    thread: Option<String>,
    /// How many seconds to wait until all that the payloads caused is done.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    timeout: Duration,
    /// The file to push; without it, or as -, the standard input.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let why = || "a number of seconds, such as 30 or 0.5".to_owned();
    let seconds: f64 = text.parse().map_err(|_| why())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| why())
}

impl Send {
    pub(crate) async fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let (name, bytes) = self.read()?;
        let elements = elements(&name, &bytes)?;
        let pushes = elements.into_iter().zip(1_u64..);
        let pushes = pushes.map(|(bytes, number)| self.push(bytes, &name, number));
        let pushes = pushes.collect::<Result<Vec<_>, _>>()?;
        let mut out =
            SendProgress { pushed: pushes.len(), answered: 0, thread: None, ending: Ending::Well };
        let exchange = self.exchange(pushes, &mut out, to);
        let until = u64::try_from(self.timeout.as_micros()).unwrap_or(u64::MAX);
        let until = clock::now_us().saturating_add(until);
        tokio::select! {
            ended = exchange => ended?,
            () = Tokio::current().sleep_until(until) => return Err(out.late(self.timeout)),
        }
        match out.pushed - out.answered {
            0 => Ok(out.ending),
            left => {
                let text = "may or may not have been taken; `pumphouse tail` tells";
                let of = format!("{left} of {} pushes", out.pushed);
                Err(Failure::Wrong(format!("the connection ended: {of} {text}")))
            }
        }
    }

    /// Reads the bytes to push. Returns the name of their source, and the bytes.
    fn read(&self) -> Result<(String, Vec<u8>), Failure> {
        let file = self.file.as_deref().filter(|it| *it != Path::new("-"));
        let Some(path) = file else {
            if io::stdin().is_terminal() {
                // The hint is dispensable, so an error is ignored.
                let _ = writeln!(io::stderr(), "reading XML from the terminal; Ctrl-D ends it");
            }
            let mut bytes = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|it| Failure::Untried(format!("the input can't be read: {it}")))?;
            return Ok(("the input".to_owned(), bytes));
        };
        let name = path.display().to_string();
        match fs::read(path) {
            Ok(bytes) => Ok((name, bytes)),
            Err(error) => Err(Failure::Untried(format!("{name} can't be read: {error}"))),
        }
    }

    /// Returns an element as it is sent: unchanged, unless an option names its receiver or its
    /// thread.
    fn push(&self, bytes: Bytes, name: &str, number: u64) -> Result<Bytes, Failure> {
        if self.to.is_none() && self.thread.is_none() {
            return Ok(bytes);
        }
        let untried = |what: &str| {
            let what = format!("{name}, element {number}: {what}; nothing was sent");
            Failure::Untried(what)
        };
        let element = xml::read(&bytes, Profile::Wire, &XmlLimits::INSIDE);
        let element = element.map_err(|error| untried(&error.to_string()))?;
        if element.is(ENVELOPE, "message") {
            let text = "it has a <message> of its own: say there where it goes, not by options";
            return Err(untried(text));
        }
        let mut push = Push::element(element);
        if let Some(to) = &self.to {
            push = push.to(to);
        }
        if let Some(thread) = &self.thread {
            push = push.in_thread(&ThreadId::new(thread));
        }
        let mut text = String::new();
        push.write(&mut text);
        Ok(text.into())
    }

    async fn exchange(
        &self,
        pushes: Vec<Bytes>,
        out: &mut SendProgress,
        to: &mut Screen<'_>,
    ) -> Result<(), Failure> {
        let mut client = self.caller.connect().await?;
        let mut bytes = 0;
        for push in pushes {
            bytes += push.len();
            client.push_raw(&push);
            if bytes > SENT_AT_ONCE {
                bytes = 0;
                client.flush().await.map_err(|it| broken(&it))?;
            }
        }
        client.finish().await.map_err(|it| broken(&it))?;
        while let Some(incoming) = client.recv().await.map_err(|it| broken(&it))? {
            out.note(&incoming);
            if to.json {
                to.object(&incoming::object(&incoming))?;
            } else {
                if let Some(push) = incoming::push(&incoming).filter(|_| out.pushed > 1) {
                    to.text(&format!("element {}: ", push + 1))?;
                }
                to.text(&incoming::lines(&incoming, to.style))?;
            }
            to.flush()?;
        }
        Ok(())
    }
}

/// What the pump has sent back so far.
struct SendProgress {
    pushed: usize,
    answered: usize,
    thread: Option<String>,
    ending: Ending,
}

impl SendProgress {
    fn note(&mut self, incoming: &client::Incoming) {
        self.answered += usize::from(incoming::push(incoming).is_some());
        if let client::Incoming::Accepted { accepted, .. } = incoming {
            self.thread = Some(accepted.thread.clone());
        }
        if incoming::is_wrong(incoming) {
            self.ending = Ending::Wrong;
        }
    }

    fn late(&self, timeout: Duration) -> Failure {
        let SendProgress { pushed, answered, thread, .. } = self;
        let waited = format!(
            "waited {} s: {answered} of {pushed} pushes were answered for, and \
            not all that came of them is done",
            timeout.as_secs_f64()
        );
        let way = match thread {
            Some(thread) => format!("what still comes is in the log: `pumphouse show {thread}`"),
            None => "wait longer with --timeout SECONDS".to_owned(),
        };
        Failure::Wrong(format!("{waited}\n{way}"))
    }
}

/// Splits a file into its elements, each as its own bytes.
fn elements(name: &str, bytes: &[u8]) -> Result<Vec<Bytes>, Failure> {
    let wrong = |error: xml::Error| Failure::Untried(format!("{name}: {error}; nothing was sent"));
    let mut splitter = Splitter::new(XmlLimits::FILE);
    splitter.feed(bytes);
    let mut elements = Vec::new();
    while let Some(frame) = splitter.next().map_err(wrong)? {
        elements.push(frame.bytes);
    }
    splitter.finish().map_err(wrong)?;
    if elements.is_empty() {
        return Err(Failure::Untried(format!("{name} holds no element; nothing was sent")));
    }
    Ok(elements)
}
