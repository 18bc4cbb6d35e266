//! `show`: shows a thread, with every message whole.

pub(crate) mod overview;
pub(crate) mod story;

use std::io;
use std::path::Path;

use crate::audit::{self, Filter, States};
use crate::cli::base::connect::{Credentials, broken};
use crate::cli::base::filters::Filters;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::base::{data, follow, incoming, transcript};
use crate::client::{Address, Incoming};
use crate::id::{EntryId, ThreadId};
use crate::listener::Clears;
use crate::log::{Entry, Log, Pages, ThreadRecord};

/// Shows a thread: every message whole, with its sender, its cause and its digest.
///
/// Payloads are laid out for reading; `--json` has their exact text. A line that begins with a bar
/// continues a text, which is unchanged to the right of the bar. Times are UTC. Characters that
/// would steer a terminal, or be invisible, are shown as XML character references. Messages that a
/// `clear-context` hides from prompts now are marked `hidden`. Checklists that were not closed are
/// at the end.
///
/// `show` reads the log's file, whether a `run` writes to it or not. With --connect it asks a
/// running pump instead, which shows a thread only to its opener and to operators.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse show sess-k3v9x2ma
  pumphouse show sess-k3v9x2ma/7                         one message of it
  pumphouse show sess-k3v9x2ma --follow                  and those to come, until Ctrl-C
  pumphouse show sess-k3v9x2ma --failed                  what went wrong in it
  pumphouse show sess-k3v9x2ma --story                   what happened, in plain words
  pumphouse show sess-k3v9x2ma --follow --connect tls:pump.example:8765
  pumphouse show sess-k3v9x2ma --json | jq -r .payload

Exits with 1 where there is no such thread or message.")]
pub(crate) struct Show {
    /// The thread, or one message as THREAD/SEQ.
    #[arg(value_name = "THREAD")]
    what: String,
    /// Goes on with new messages, until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
    /// Tells the thread in plain words: who asked, wrote, called and answered what.
    #[arg(long, conflicts_with_all = ["follow", "connect"])]
    story: bool,
    /// Asks a running pump at this address: HOST:PORT, tls:HOST:PORT or unix:PATH.
    #[arg(long, value_name = "ADDR")]
    connect: Option<Address>,
    #[command(flatten)]
    credentials: Credentials,
    #[command(flatten)]
    filters: Filters,
}

impl Show {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let is_one = self.what.parse::<EntryId>().is_ok();
        if is_one && (self.follow || self.story || !self.filters.filter().wants_all()) {
            let text =
                "is one message: leave out --follow, --story and filters, or name its thread alone";
            return Err(Failure::Untried(format!("{} {text}", self.what)));
        }
        if let Some(address) = &self.connect {
            return self.ask(address, to).await;
        }
        let log = data::open(data)?;
        if let Ok(id) = self.what.parse::<EntryId>() {
            let entry = data::entry(&log, &id).await?;
            let clears = overview::read(&log, &id.thread, u64::MAX).await?.clears;
            one(&entry, &clears, to)?;
            return Ok(Ending::Well);
        }
        let id = ThreadId::new(&self.what);
        let Some(record) = log.thread(&id).await? else {
            return Err(data::unknown(&log, &id).await);
        };
        let filter = self.filters.filter();
        if self.story {
            return told(&log, &record, &filter, to).await;
        }
        if !self.follow {
            read(&log, &record, Upto::Now, &filter, to).await
        } else {
            follow::until_stopped(read(&log, &record, Upto::Ever, &filter, to)).await
        }
    }
}

/// Shows a thread that a running pump sends, for --connect.
impl Show {
    async fn ask(&self, address: &Address, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        if !self.filters.filter().wants_all() {
            let text = "filters are for a log's file: leave them out, or --connect";
            return Err(Failure::Untried(text.to_owned()));
        }
        let mut client = self.credentials.connect(address).await?;
        let one = self.what.parse::<EntryId>().ok();
        let after = one.as_ref().map_or(0, |it| it.seq.saturating_sub(1));
        let id = one.as_ref().map_or_else(|| ThreadId::new(&self.what), |it| it.thread.clone());
        let mut follow = client.follow(&id, after).await.map_err(|it| broken(&it))?;
        if one.is_some() && follow.has_caught_up() {
            return Err(Failure::Wrong(format!("{} isn't in the thread yet", self.what)));
        }
        let reading = async {
            while self.follow || !follow.has_caught_up() {
                let next = follow.next().await.map_err(|it| broken(&it))?;
                let Some(message) = next.map(Incoming::Message) else { break };
                match to.json {
                    true => to.object(&incoming::object(&message))?,
                    false => to.text(&incoming::lines(&message, to.style))?,
                }
                to.flush()?;
                if one.is_some() {
                    break;
                }
            }
            Ok(Ending::Well)
        };
        if self.follow { follow::until_stopped(reading).await } else { reading.await }
    }
}

/// Tells a thread in plain words.
async fn told(
    log: &dyn Log,
    record: &ThreadRecord,
    filter: &Filter,
    to: &mut Screen<'_>,
) -> Result<Ending, Failure> {
    if !filter.wants_all() {
        let text = "--story tells a whole thread: leave out the filters";
        return Err(Failure::Untried(text.to_owned()));
    }
    let entries = transcript::read(log, &record.id, record.last_seq).await?;
    for paragraph in story::of_thread(&entries) {
        match to.json {
            true => to.object(&paragraph.object())?,
            false => to.text(&paragraph.lines(to.style))?,
        }
    }
    Ok(Ending::Well)
}

/// Shows a thread, up to the last entry of its record.
pub(crate) async fn thread(
    log: &dyn Log,
    record: &ThreadRecord,
    to: &mut Screen<'_>,
) -> Result<(), Failure> {
    read(log, record, Upto::Now, &Filter::default(), to).await.map(|_| ())
}

/// How far a thread is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Upto {
    /// To the last entry of the thread's record.
    Now,
    /// Without end: the reader waits for new entries.
    Ever,
}

async fn read(
    log: &dyn Log,
    record: &ThreadRecord,
    upto: Upto,
    filter: &Filter,
    to: &mut Screen<'_>,
) -> Result<Ending, Failure> {
    if !to.json {
        to.line(&audit::thread(record, to.style))?;
    }
    let last_seq = if upto == Upto::Now { record.last_seq } else { u64::MAX };
    let overview = overview::read(log, &record.id, last_seq).await?;
    let (mut states, mut shown, mut is_empty) = (States::default(), false, true);
    let mut pages = Pages::of(log, &record.id).upto(last_seq);
    loop {
        let page = pages.next().await?;
        is_empty &= page.is_none();
        for entry in page.iter().flatten() {
            if !filter.wants(entry, &mut states) {
                continue;
            }
            shown = true;
            if !to.json {
                to.line("")?;
            }
            one(entry, &overview.clears, to)?;
        }
        if page.is_none() {
            if upto == Upto::Now {
                if !shown && !is_empty && !to.json {
                    to.line("no message is wanted by these filters")?;
                }
                if !to.json && filter.wants_all() {
                    to.text(&overview::checklists(&overview.todos, record.state, to.style))?;
                }
                to.flush()?;
                return Ok(Ending::Well);
            }
            to.flush()?;
            follow::pause().await;
        }
    }
}

/// Shows one entry, and marks it if prompts no longer show it.
fn one(entry: &Entry, clears: &Clears, to: &mut Screen<'_>) -> io::Result<()> {
    let hidden = clears.hides(entry.id.seq);
    if to.json {
        let mut object = audit::json(entry);
        if hidden {
            object["hidden"] = true.into();
        }
        return to.object(&object);
    }
    to.text(&match hidden {
        true => audit::hidden_lines(entry, to.style),
        false => audit::lines(entry, to.style),
    })
}
