//! The rules by which a log accepts a batch. The log in memory and the log in a file both use these
//! rules, so they accept the same batches.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::id::{EntryId, ThreadId};
use crate::log::chain;
use crate::log::chain::Origin;
use crate::log::entry::{Batch, Draft, Entry, Flags, Mark, NewThread};
use crate::log::error::Error;

/// The largest number that a row can hold: SQLite's integers have a sign.
const NUMBER_MAX: u64 = i64::MAX as u64;
/// The most bytes of an entry's body and `meta` together. A row in SQLite holds up to a billion
/// bytes.
const ENTRY_BYTES_MAX: usize = 900_000_000;
/// How many threads' origins are cached for computing digests. If an origin isn't cached, the
/// digest is computed twice.
const ORIGINS_MAX: usize = 65_536;

/// A thread as the rules see it: its number in the log, the sequence number of its last entry, and
/// its origin.
#[derive(Clone, Debug)]
pub(super) struct ThreadTip {
    pub(super) number: u64,
    pub(super) last_seq: u64,
    pub(super) origin: Option<Arc<Origin>>,
}

impl ThreadTip {
    /// A thread that has no entries of its own yet.
    pub(super) fn new(number: u64, origin: Option<Arc<Origin>>) -> ThreadTip {
        let link = origin.as_ref().and_then(|it| it.fork.as_ref());
        ThreadTip { number, last_seq: link.map_or(0, |it| it.seq), origin }
    }

    /// The sequence number before the thread's first own entry: in a fork, that of the last shared
    /// entry; otherwise 0.
    pub(super) fn link_seq(&self) -> u64 {
        let link = self.origin.as_ref().and_then(|it| it.fork.as_ref());
        link.map_or(0, |it| it.seq)
    }
}

/// The parts of a log that the rules read and change.
pub(super) trait Records {
    fn thread_tip(&mut self, thread: &ThreadId) -> Result<Option<&mut ThreadTip>, Error>;
    fn open(&mut self, thread: &ThreadId, origin: Option<Arc<Origin>>);
    fn client_id(&mut self, identity: &str, id: &str) -> Result<Option<EntryId>, Error>;
}

/// A batch with the digests of its entries. The digests are computed on the OS thread that calls
/// `append`, so that the writer rarely has to compute one.
pub(super) struct Job {
    pub(super) threads: Vec<NewThread>,
    pub(super) entries: Vec<Arc<Entry>>,
    pub(super) marks: Vec<Mark>,
    /// For each entry: the cached origin of its thread, with which the digest was computed. `None`
    /// if the thread has no origin, or if its origin isn't cached. In the second case the digest is
    /// computed again when the batch is accepted. The list is empty if no origin is cached.
    guesses: Vec<Option<Arc<Origin>>>,
}

impl Job {
    pub(super) fn seal(batch: Batch, origins: &Origins) -> Job {
        let guesses = origins.guess(&batch.threads, &batch.entries);
        let mut space = Vec::with_capacity(1024);
        let mut at = 0;
        let entries = batch.entries.into_iter().map(|draft| {
            let guess = guesses.get(at).and_then(Option::as_deref);
            at += 1;
            let digest = chain::of_draft(&draft, guess, &mut space);
            Arc::new(draft.seal(digest))
        });
        let entries = entries.collect();
        Job { threads: batch.threads, entries, marks: batch.marks, guesses }
    }

    /// Whether each entry has the digest that it should have in its thread.
    fn is_sealed(&self, ledger: &mut impl Records) -> bool {
        let mut space = Vec::new();
        self.entries.iter().all(|it| match ledger.thread_tip(&it.id.thread) {
            Ok(Some(tip)) => it.digest == chain::of_entry(it, tip.origin.as_deref(), &mut space),
            Ok(None) | Err(_) => false,
        })
    }
}

/// The cached origins of threads that have one.
#[derive(Default)]
pub(super) struct Origins(Mutex<FxHashMap<ThreadId, Arc<Origin>>>);

impl Origins {
    fn guess(&self, threads: &[NewThread], drafts: &[Draft]) -> Vec<Option<Arc<Origin>>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for new in threads {
            let Some(origin) = Origin::of(new.parent.clone(), new.fork.clone()) else { continue };
            if known.len() >= ORIGINS_MAX {
                known.clear();
            }
            known.insert(new.id.clone(), origin);
        }
        if known.is_empty() {
            return Vec::new();
        }
        let mut last: Option<(&ThreadId, Option<Arc<Origin>>)> = None;
        let mut guesses = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let thread = &draft.id.thread;
            let origin = match &last {
                Some((same, origin)) if *same == thread => origin.clone(),
                _ => known.get(thread).cloned(),
            };
            last = Some((thread, origin.clone()));
            guesses.push(origin);
        }
        guesses
    }
}

/// The number of an entry's thread, and the targets of the entry's links. A target consists of a
/// thread's number and a sequence number in that thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) thread: u64,
    pub(super) cause: Option<(u64, u64)>,
    pub(super) reply_to: Option<(u64, u64)>,
}

/// The parts of a batch that were accepted. After an error the log rolls all of them back.
#[derive(Default)]
pub(super) struct Admitted {
    /// How many threads were opened.
    pub(super) opened: usize,
    /// A row for each entry that was counted in its thread, in the batch's order.
    pub(super) rows: Vec<Row>,
    /// The number of each mark's thread.
    pub(super) marks: Vec<u64>,
}

impl Admitted {
    pub(super) fn clear(&mut self) {
        self.opened = 0;
        self.rows.clear();
        self.marks.clear();
    }
}

/// Accepts a batch, or returns why it is refused. `done` says which parts of the batch were
/// accepted, even after an error.
pub(super) fn admit(
    ledger: &mut impl Records,
    job: &mut Job,
    done: &mut Admitted,
) -> Result<(), Error> {
    for new in &job.threads {
        let origin = origin(ledger, new)?;
        ledger.open(&new.id, origin);
        done.opened += 1;
    }
    let mut space = Vec::new();
    for at in 0..job.entries.len() {
        let guess = job.guesses.get(at).and_then(Option::as_ref);
        entry(ledger, &mut job.entries[at], guess, &mut space, done)?;
    }
    client_ids(ledger, &job.entries)?;
    for mark in &job.marks {
        let entry = mark.entry();
        let thread_tip = ledger.thread_tip(&entry.thread)?;
        match thread_tip {
            Some(thread) if entry.seq > thread.link_seq() && entry.seq <= thread.last_seq => {
                done.marks.push(thread.number);
            }
            _ => return Err(invalid(format!("a mark is for {entry}, which isn't there"))),
        }
    }
    debug_assert_eq!(done.rows.len(), job.entries.len(), "an accepted entry has a row");
    debug_assert_eq!(done.marks.len(), job.marks.len(), "an accepted mark has a thread");
    debug_assert!(job.is_sealed(ledger), "an entry's digest covers its thread's origin");
    Ok(())
}

/// Returns the origin of a new thread. Checks that its id is free, and that its parent and the
/// entry that it is forked at exist.
fn origin(ledger: &mut impl Records, new: &NewThread) -> Result<Option<Arc<Origin>>, Error> {
    if new.id.as_str().is_empty() {
        return Err(invalid("a thread's id is empty".to_owned()));
    }
    if ledger.thread_tip(&new.id)?.is_some() {
        return Err(Error::ThreadExists(new.id.clone()));
    }
    if let Some(parent) = &new.parent {
        ledger.thread_tip(parent)?.ok_or_else(|| Error::UnknownThread(parent.clone()))?;
    }
    if let Some(fork) = &new.fork {
        let source = ledger.thread_tip(&fork.thread)?;
        let source = source.ok_or_else(|| Error::UnknownThread(fork.thread.clone()))?;
        if fork.seq == 0 || fork.seq > source.last_seq {
            return Err(invalid(format!("{} forks off {fork}, which isn't there", new.id)));
        }
    }
    Ok(Origin::of(new.parent.clone(), new.fork.clone()))
}

/// Checks an entry, counts it in its thread, and finds the targets of its links. If a link has no
/// target, the entry stays counted until the caller rolls it back.
fn entry(
    ledger: &mut impl Records,
    entry: &mut Arc<Entry>,
    guess: Option<&Arc<Origin>>,
    space: &mut Vec<u8>,
    done: &mut Admitted,
) -> Result<(), Error> {
    bounded(entry)?;
    let thread_tip = ledger.thread_tip(&entry.id.thread)?;
    let thread_tip = thread_tip.ok_or_else(|| Error::UnknownThread(entry.id.thread.clone()))?;
    let next = thread_tip.last_seq + 1;
    if entry.id.seq != next {
        return Err(Error::Conflict { entry: entry.id.clone(), next });
    }
    if thread_tip.origin.as_ref() != guess {
        let digest = chain::of_entry(entry, thread_tip.origin.as_deref(), space);
        Arc::make_mut(entry).digest = digest;
    }
    let own = (thread_tip.number, thread_tip.last_seq);
    thread_tip.last_seq = next;
    let row = done.rows.len();
    done.rows.push(Row { thread: own.0, cause: None, reply_to: None });
    done.rows[row].cause = link(ledger, entry, entry.cause.as_ref(), own)?;
    done.rows[row].reply_to = link(ledger, entry, entry.reply_to.as_ref(), own)?;
    Ok(())
}

/// Finds the target of a link. `own` is the number of the entry's thread and the sequence number
/// before the entry.
fn link(
    ledger: &mut impl Records,
    entry: &Entry,
    to: Option<&EntryId>,
    own: (u64, u64),
) -> Result<Option<(u64, u64)>, Error> {
    let Some(to) = to else { return Ok(None) };
    let (number, last_seq) = if to.thread == entry.id.thread {
        own
    } else {
        let thread_tip = ledger.thread_tip(&to.thread)?;
        let thread_tip = thread_tip.ok_or_else(|| Error::UnknownThread(to.thread.clone()))?;
        (thread_tip.number, thread_tip.last_seq)
    };
    if to.seq == 0 || to.seq > last_seq {
        return Err(invalid(format!("{} is linked to {to}, which isn't there yet", entry.id)));
    }
    Ok(Some((number, to.seq)))
}

/// Refuses a client id that its identity has used before, in the log or in this batch.
fn client_ids(ledger: &mut impl Records, entries: &[Arc<Entry>]) -> Result<(), Error> {
    let mut here: HashSet<(&str, &str)> = HashSet::new();
    for entry in entries {
        let Some(id) = &entry.client_id else { continue };
        if !entry.flags.contains(Flags::FROM_IDENTITY) {
            continue;
        }
        if let Some(entry) = ledger.client_id(&entry.from, id)? {
            return Err(Error::ClientIdTaken { entry });
        }
        if !here.insert((&entry.from, id)) {
            return Err(invalid(format!("{} repeats a client's id of its own batch", entry.id)));
        }
    }
    Ok(())
}

/// Refuses an entry with a value that no row can hold.
fn bounded(entry: &Entry) -> Result<(), Error> {
    let numbers = [entry.id.seq, entry.at_us, entry.key.unwrap_or(0)];
    if numbers.into_iter().any(|number| number > NUMBER_MAX) {
        return Err(invalid(format!("a number of {} is beyond {NUMBER_MAX}", entry.id)));
    }
    let bytes = entry.body.len() + entry.meta.as_ref().map_or(0, |it| it.len());
    if bytes > ENTRY_BYTES_MAX {
        return Err(invalid(format!(
            "{} has {bytes} bytes, and an entry has up to {ENTRY_BYTES_MAX}",
            entry.id
        )));
    }
    Ok(())
}

fn invalid(why: String) -> Error {
    Error::Invalid(why.into())
}
