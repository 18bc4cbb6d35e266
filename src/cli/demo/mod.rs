//! `demo`: shows a message's whole trip, from a socket through listeners into a log and back.
//!
//! The log is in a temporary folder, which is removed afterwards unless `--keep` is given.

mod agent;

use std::net::SocketAddr;
use std::path::Path;

use serde_json::json;

use crate::audit;
use crate::cli::base::folder::Folder;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::base::signals::Signals;
use crate::cli::base::{data, incoming};
use crate::cli::log::show;
use crate::client::{self, Client, Incoming};
use crate::clock;
use crate::door::{Options, Tcp};
use crate::engine::{Builder, Port as _, Tokio};
use crate::id::{EntryId, ThreadId};
use crate::log::{Durability, Log as _, SqliteLog};

/// How long the demo may take, in microseconds.
const TIME_US_MAX: u64 = 20_000_000;

/// Shows the whole trip: XML in at a socket, through listeners, into a durable log, and out.
///
/// The demo starts a pump of its own, on a free port and in a temporary folder, and leaves nothing
/// behind unless --keep says so.
///
/// `demo agent` shows an agent instead. The agent thinks while its actions run, asks another agent,
/// and answers. Then the log tells what led to the answer.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse demo
  pumphouse demo agent
  pumphouse demo agent --keep          its log stays, for `show`, `why` and `prompt`
  pumphouse demo agent --keep --data tour")]
pub(crate) struct Demo {
    /// What to show; without it, the plain trip.
    #[arg(value_name = "WHAT", value_enum)]
    what: Option<Topic>,
    /// Keeps the log, in the folder of --data or in the temporary one.
    #[arg(long)]
    keep: bool,
}

/// What the demo can show.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Topic {
    /// An agent at work.
    Agent,
}

impl Demo {
    pub(crate) async fn run(
        self,
        data: Option<&Path>,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let mut signals = Signals::listen()?;
        let folder = match data {
            Some(_) if !self.keep => {
                let text = "the demo's log is in a temporary folder; --keep puts it there";
                return Err(Failure::Untried(text.to_owned()));
            }
            Some(data) => Folder::at(data)?,
            None => Folder::make("demo")?,
        };
        let late = Tokio::current().sleep_until(clock::now_us().saturating_add(TIME_US_MAX));
        let seconds = TIME_US_MAX / 1_000_000;
        let too_long = || Failure::Wrong(format!("the trip took longer than {seconds} s"));
        let ending = match self.what {
            None => tokio::select! {
                ended = trip(folder.path(), to) => ended?,
                signal = signals.next() => return Err(Failure::Wrong(signal.to_string())),
                () = late => return Err(too_long()),
            },
            Some(Topic::Agent) => tokio::select! {
                ended = agent::trip(folder.path(), &mut signals, to) => ended?,
                () = late => return Err(too_long()),
            },
        };
        let place = folder.path().display().to_string();
        if self.keep {
            folder.keep();
            if !to.json {
                to.line(&format!(
                    "\n{place} has its log. Next: `pumphouse threads --data {place}`"
                ))?;
            }
            return Ok(ending);
        }
        folder.remove()?;
        if !to.json {
            to.line(&format!("\n{place} is gone again. Next: `pumphouse run`"))?;
        }
        Ok(ending)
    }
}

async fn trip(folder: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
    let path = folder.join(data::LOG);
    let log = SqliteLog::open(&path, Durability::Full)?;
    let bound = Tcp::bind("127.0.0.1:0", Options::default()).await;
    let door = bound.map_err(|error| Failure::Untried(error.to_string()))?;
    let address = door.local_addr();
    let builder = Builder::default().with(crate::listeners::standard()).with(log).with(door);
    let plan = builder.build().map_err(|error| Failure::Wrong(error.to_string()))?;
    let pump = plan.start();
    pump.ready().await?;
    title(
        to,
        &format!(
            "A pump listens on {address}; echo, calculate and describe are its listeners, and \
         every message is on the disk before anybody hears of it.",
        ),
    )?;
    let last = talk(address, to).await.map_err(|error| match error {
        TripError::Screen(failure) => failure,
        TripError::Client(error) => Failure::Wrong(error.to_string()),
    })?;
    pump.shutdown().await?;
    read(&path, &last, to).await
}

/// Shows the log after the pump has stopped: the thread, what led to its last message, and whether
/// the log verifies.
async fn read(path: &Path, last: &EntryId, to: &mut Screen<'_>) -> Result<Ending, Failure> {
    let log = SqliteLog::open_read_only(path)?;
    title(to, &format!("The pump has stopped. The thread, as `show {}` has it:", last.thread))?;
    let record = log.thread(&last.thread).await?;
    let record = record.ok_or_else(|| Failure::Wrong(format!("{} is lost", last.thread)))?;
    show::thread(&log, &record, to).await?;
    title(to, &format!("What led to its last message, as `why {last}` tells:"))?;
    let steps = audit::why(&log, last).await?.unwrap_or_default();
    match to.json {
        true => steps.iter().try_for_each(|it| to.object(&audit::json(&it.entry)))?,
        false => to.text(&audit::told(&steps, to.style))?,
    }
    title(to, "Whether the log is what was written, as `verify` finds:")?;
    let report = log.verify(None).await?;
    match to.json {
        true => to.object(&audit::report_json(&report, data::LOG))?,
        false => to.text(&audit::report(&report, data::LOG, None, to.style))?,
    }
    log.close().await?;
    Ok(if report.is_sound() { Ending::Well } else { Ending::Wrong })
}

/// Pushes the demo's messages. Returns the entry of the answer to the last calculation.
async fn talk(address: SocketAddr, to: &mut Screen<'_>) -> Result<EntryId, TripError> {
    let mut client = Client::connect(address).await?;
    let echo = "<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>Hello</text></echo>";
    title(to, "A payload goes to the listener that owns its name; what that returns comes back.")?;
    say(&mut client, echo, to).await?;
    title(to, "Each opens a session of its own, unless it says otherwise.")?;
    let first = say(&mut client, &calculate("6*7"), to).await?;
    let thread = first.unwrap_or_else(|| EntryId::new(&ThreadId::new(""), 1)).thread;
    let into = |payload: &str| {
        format!(
            "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta>\
             <thread>{thread}</thread></meta>{payload}</message>"
        )
    };
    title(to, "The next one says in its envelope that it goes into the same thread.")?;
    say(&mut client, &into(&calculate("(2^10 - 1) / 3")), to).await?;
    title(to, "An error is a payload like any other, and points at the place.")?;
    let last = say(&mut client, &into(&calculate("1 + 2 / (4 - 4)")), to).await?;
    title(to, "What isn't as its schema says is refused before anybody sees it.")?;
    let wrong = calculate("6*7").replace("expression>", "expresion>");
    say(&mut client, &wrong, to).await?;
    title(to, "Nobody sends in another's name.")?;
    let forged = into(echo).replace("<meta>", "<meta><from>core</from>");
    say(&mut client, &forged, to).await?;
    title(to, "And whoever sends what nobody takes is told so.")?;
    say(&mut client, "<sing xmlns=\"urn:example\"></sing>", to).await?;
    client.finish().await?;
    while client.recv().await?.is_some() {}
    last.ok_or(TripError::Client(client::Error::Closed))
}

fn calculate(expression: &str) -> String {
    format!(
        "<calculate xmlns=\"https://xml-pipeline.org/ns/calculate/v1\">\
         <expression>{expression}</expression></calculate>"
    )
}

/// Pushes an element, and prints everything that the pump sends until the answer has come. Returns
/// the entry of the answer, or `None` if the push was refused.
async fn say(
    client: &mut Client,
    element: &str,
    to: &mut Screen<'_>,
) -> Result<Option<EntryId>, TripError> {
    match to.json {
        true => to.object(&json!({ "event": "sent", "element": element })),
        false => to.text(&behind("→ ", element)),
    }
    .map_err(Failure::from)?;
    client.push_raw(element.as_bytes());
    loop {
        let incoming = client.recv().await?.ok_or(client::Error::Closed)?;
        let shown = match to.json {
            true => to.object(&incoming::object(&incoming)),
            false => to.text(&behind("← ", &incoming::lines(&incoming, to.style))),
        };
        shown.map_err(Failure::from)?;
        match incoming {
            Incoming::Accepted { .. } => {}
            Incoming::Message(message) => return Ok(message.entry),
            _ => return Ok(None),
        }
    }
}

/// Puts a mark before the first line of a text, and indents the other lines by the width of a mark.
fn behind(mark: &str, text: &str) -> String {
    let marks = std::iter::once(mark).chain(std::iter::repeat("  "));
    marks.zip(text.lines()).map(|(mark, line)| format!("  {mark}{line}\n")).collect()
}

fn title(to: &mut Screen<'_>, text: &str) -> Result<(), Failure> {
    if !to.json {
        let text = to.style.paint(audit::Paint::Strong, text);
        to.line(&format!("\n{text}"))?;
    }
    Ok(to.flush()?)
}

/// Why the exchange with the pump broke off.
enum TripError {
    Screen(Failure),
    Client(client::Error),
}

impl From<Failure> for TripError {
    fn from(failure: Failure) -> TripError {
        TripError::Screen(failure)
    }
}

impl From<client::Error> for TripError {
    fn from(error: client::Error) -> TripError {
        TripError::Client(error)
    }
}
