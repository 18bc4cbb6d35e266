//! The log that is damaged. It has child threads, forks, large and small bodies, client ids, and
//! messages of which some were handled and some weren't.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pumphouse::log::{
    Batch, Draft, Durability, Entry, Existing, Flags, Head, Log, Mark, NewThread, Open, SqliteLog,
    ThreadRecord,
};
use pumphouse::{EntryId, Name, ThreadId};
use rusqlite::Connection;

/// What stands in the log's messages, and who takes them.
pub(super) const NOTE: Name = Name::of("urn:damage", "note");
pub(super) const KEEPER: &str = "keeper";
/// Threads: id, parent, and what it forks off.
type Thread = (&'static str, Option<&'static str>, Option<(&'static str, u64)>);
const THREADS: [Thread; 8] = [
    ("a", None, None),
    ("b", None, None),
    ("a.sub", Some("a"), None),
    ("c", None, None),
    ("a.sub.sub", Some("a.sub"), None),
    ("d", None, None),
    ("f", None, Some(("a", 3))),
    ("g", None, Some(("f", 3))),
];
const COMMITS: u64 = 40;
const REPEATED: &str = "said once, read twice; ";

/// A log, whole, and what it says.
pub(super) struct Written {
    pub(super) path: PathBuf,
    /// The same log, half as long.
    pub(super) older: Vec<u8>,
    /// Another log of the same messages, but one: what someone makes who makes all of it anew.
    pub(super) rewritten: Vec<u8>,
    pub(super) whole: Vec<u8>,
    pub(super) head: Head,
    pub(super) said: Said,
}

/// All that a log answers.
#[derive(Debug, PartialEq)]
pub(super) struct Said {
    pub(super) entries: Vec<Arc<Entry>>,
    pub(super) open: Vec<Open>,
    threads: Vec<(ThreadRecord, Vec<Arc<Entry>>)>,
    clients: Vec<Option<Arc<Entry>>>,
}

impl Written {
    pub(super) async fn into(folder: &Path) -> Written {
        let path = folder.join("whole.db");
        let older = folder.join("older.db");
        let log = write(&path, "as it was", Some(&older)).await;
        let (head, said) = (log.head().await.unwrap(), Said::by(&log).await.unwrap());
        log.close().await.unwrap();
        assert!(said.open.len() > 2 && said.entries.len() > 60, "there is something to damage");
        let shares = "SELECT count(*) FROM shares";
        let shares = Connection::open(&path).unwrap().query_row(shares, [], |row| row.get(0));
        assert!(shares.unwrap_or(0) > 20, "there is something to damage");
        let other = folder.join("other.db");
        write(&other, "as someone likes it", None).await.close().await.unwrap();
        let bytes = |path: &Path| std::fs::read(path).unwrap();
        let (older, rewritten, whole) = (bytes(&older), bytes(&other), bytes(&path));
        Written { path, older, rewritten, whole, head, said }
    }
}

impl Said {
    /// Asks a log everything.
    pub(super) async fn by(log: &SqliteLog) -> Result<Said, pumphouse::log::Error> {
        let mut threads = Vec::new();
        for (id, _, _) in THREADS {
            let id = ThreadId::new(id);
            if let Some(record) = log.thread(&id).await? {
                let entries = log.read(&id, 0, u64::MAX, 1_000).await?;
                threads.push((record, entries));
            }
        }
        let mut clients = Vec::new();
        for number in 0..COMMITS {
            clients.push(log.client_id("ada", &format!("mine-{number}")).await?);
        }
        let (entries, open) = (log.tail(0, 1_000).await?, log.open_entries().await?);
        Ok(Said { entries, open, threads, clients })
    }
}

async fn write(path: &Path, first: &str, half: Option<&Path>) -> SqliteLog {
    let log = SqliteLog::open(path, Durability::Normal).unwrap();
    let mut lasts: Vec<(ThreadId, u64)> = Vec::new();
    for number in 0..COMMITS {
        let mut batch = Batch::default();
        if let Some((id, parent, fork)) = THREADS.get(usize::try_from(number / 2).unwrap())
            && number % 2 == 0
        {
            let id = ThreadId::new(id);
            let fork = fork.map(|(id, seq)| EntryId::new(&ThreadId::new(id), seq));
            lasts.push((id.clone(), fork.as_ref().map_or(0, |it| it.seq)));
            batch.threads.push(NewThread { id, parent: parent.map(ThreadId::new), fork });
        }
        let count = u64::try_from(lasts.len()).unwrap();
        for at in 0..2 {
            let (id, last) = &mut lasts[usize::try_from((number * 3 + at) % count).unwrap()];
            *last += 1;
            let text = if number == 0 { first } else { "as it was" };
            entry(&mut batch, number, EntryId::new(id, *last), text);
        }
        log.append(batch).await.unwrap();
        if let Some(half) = half.filter(|_| number == COMMITS / 2) {
            log.backup(half, Existing::Keep, |_| {}).await.unwrap();
        }
    }
    log
}

/// A message; most are for somebody, and were handled.
fn entry(batch: &mut Batch, number: u64, id: EntryId, text: &str) {
    let large = if number % 9 == 4 { 9_000 } else { 0 };
    let said = format!("{text}, at {id}{}", "x".repeat(large));
    // What is repeated stands in the file once.
    let text = match number % 4 {
        0 => REPEATED.repeat(40),
        1 => format!("{said} {}", REPEATED.repeat(40)),
        _ => said,
    };
    let body = format!("<note xmlns=\"urn:damage\"><text>{text}</text></note>");
    let mut draft = Draft::new(id.clone(), 1_000 + number, "ada".into(), NOTE, body.into());
    if id.seq > 1 {
        draft.cause = Some(EntryId::new(&id.thread, id.seq - 1));
        draft.reply_to = draft.cause.clone().filter(|_| number.is_multiple_of(3));
    }
    draft.flags = Flags::FROM_IDENTITY;
    if !batch.entries.is_empty() {
        draft.client_id = Some(format!("mine-{number}").into());
        draft.meta = Some("<trace xmlns=\"urn:x\"/>".into());
    } else if number % 2 == 1 {
        (draft.to, draft.receivers) = (Some(KEEPER.into()), 1);
        let (entry, listener): (_, Arc<str>) = (id, KEEPER.into());
        let started = Mark::Started {
            entry: entry.clone(),
            listener: listener.clone(),
            attempt: 1,
            as_of: None,
        };
        batch.marks.push(started);
        if number % 8 != 3 {
            batch.marks.push(Mark::Consumed { entry, listener, attempt: 1 });
        }
    }
    batch.entries.push(draft);
}
