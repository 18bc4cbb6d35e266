//! A log in memory. It follows every rule of a log, but doesn't survive the end of the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use uuid::Uuid;

use crate::id::{EntryId, ThreadId};
use crate::log::admit;
use crate::log::admit::{Admitted, Job, Origins, Records, ThreadTip};
use crate::log::chain;
use crate::log::chain::Commit;
use crate::log::chain::CommitRow;
use crate::log::chain::Link;
use crate::log::chain::Origin;
use crate::log::durability::Durability;
use crate::log::entry::State as ThreadState;
use crate::log::entry::{Batch, Entry, Flags, Noted, Open, Receipt, ThreadRecord, ThreadSummary};
use crate::log::error::{Boxed, Error, ready};
use crate::log::head::Head;
use crate::log::identity::Identity;
use crate::log::interface::Health;
use crate::log::interface::Log;
use crate::log::mark_bytes;
use crate::log::mark_bytes::MarkWriter;
use crate::log::open_entries::{EntryNumbers, OpenEntries};
use crate::log::verify::{Report, Verifier};

/// A log in memory. A batch is kept before [`append`](Log::append) returns.
pub struct MemoryLog {
    identity: Identity,
    origins: Origins,
    state: Mutex<Contents>,
}

impl MemoryLog {
    /// An empty log.
    #[must_use]
    pub fn new() -> MemoryLog {
        MemoryLog::of(Identity::fresh(), crate::log::identity::fresh_uuid())
    }

    /// An empty log with this identity and this writer.
    pub fn of(identity: Identity, writer: Uuid) -> MemoryLog {
        let state = Contents::new(&identity, writer);
        MemoryLog { identity, origins: Origins::default(), state: Mutex::new(state) }
    }

    /// Appends a batch synchronously.
    pub fn keep(&self, batch: Batch) -> Result<Receipt, Error> {
        let job = Job::seal(batch, &self.origins);
        self.state().append(job)
    }

    /// Locks the contents. A lock that a panic poisoned is still used, since no code here panics in
    /// the middle of a change.
    fn state(&self) -> MutexGuard<'_, Contents> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryLog {
    fn default() -> MemoryLog {
        MemoryLog::new()
    }
}

impl std::fmt::Debug for MemoryLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryLog").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Log for MemoryLog {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn durability(&self) -> Durability {
        Durability::Memory
    }

    fn append(&self, batch: Batch) -> Boxed<'static, Receipt> {
        ready(self.keep(batch))
    }

    fn append_ahead(&self, batch: Batch) -> Boxed<'static, Receipt> {
        self.append(batch)
    }

    fn health(&self) -> Health {
        Health::Well
    }

    fn thread<'a>(&'a self, id: &'a ThreadId) -> Boxed<'a, Option<ThreadRecord>> {
        ready(Ok(self.state().thread(id)))
    }

    fn tree<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<ThreadRecord>> {
        ready(Ok(self.state().tree(root)))
    }

    fn charges<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<Arc<Entry>>> {
        ready(Ok(self.state().charges(root)))
    }

    fn count<'a>(&'a self, root: &'a ThreadId, but_from: &'a str) -> Boxed<'a, u64> {
        ready(Ok(self.state().count(root, but_from)))
    }

    fn marks<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<Noted>> {
        ready(Ok(self.state().marks(root)))
    }

    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: u64,
        upto: u64,
        limit: usize,
    ) -> Boxed<'a, Vec<Arc<Entry>>> {
        ready(self.state().read(thread, after, upto, limit))
    }

    fn tail(&self, after_position: u64, limit: usize) -> Boxed<'_, Vec<Arc<Entry>>> {
        let after = usize::try_from(after_position).unwrap_or(usize::MAX);
        ready(Ok(self.state().all.iter().skip(after).take(limit).cloned().collect()))
    }

    fn threads<'a>(
        &'a self,
        after: Option<&'a ThreadId>,
        limit: usize,
    ) -> Boxed<'a, Vec<ThreadSummary>> {
        ready(self.state().threads(after, limit))
    }

    fn client_id<'a>(&'a self, identity: &'a str, id: &'a str) -> Boxed<'a, Option<Arc<Entry>>> {
        let state = self.state();
        let at = state.client_ids.get(identity).and_then(|ids| ids.get(id));
        ready(Ok(at.map(|at| state.all[*at].clone())))
    }

    fn open_entries(&self) -> Boxed<'_, Vec<Open>> {
        ready(Ok(self.state().open_entries()))
    }

    fn head(&self) -> Boxed<'_, Head> {
        ready(Ok(self.state().head()))
    }

    fn verify(&self, expect: Option<Head>) -> Boxed<'_, Report> {
        ready(Ok(self.state().verify(&self.identity, expect)))
    }

    fn close(&self) -> Boxed<'_, ()> {
        self.state().closed = true;
        ready(Ok(()))
    }
}

/// The whole state, behind one lock that is taken once per batch.
struct Contents {
    closed: bool,
    writer: Uuid,
    threads: Threads,
    /// All entries by position. Position 1 is at index 0.
    all: Vec<Arc<Entry>>,
    /// For each identity and client id, the index of the entry in `all`.
    client_ids: HashMap<Arc<str>, HashMap<Arc<str>, usize>>,
    /// All commits by number, from 0.
    commits: Vec<CommitRow>,
    chain: [u8; 32],
    /// A buffer that appends reuse.
    admitted: Admitted,
}

/// All threads by number. Number 1 is at index 0.
#[derive(Default)]
struct Threads {
    /// The index of each thread in `all`. The hash needs no secret key, since the pump itself makes
    /// all ids of threads.
    by_id: FxHashMap<ThreadId, usize>,
    all: Vec<Thread>,
}

struct Thread {
    id: ThreadId,
    thread_tip: ThreadTip,
    /// The indices of the thread's own entries in `Contents::all`.
    entries: Vec<usize>,
    /// The indices of the thread's children in `Threads::all`.
    children: Vec<usize>,
    state: ThreadState,
    is_charged: bool,
}

/// The contents as the rules of `admit` see them.
struct MemoryRecords<'a> {
    threads: &'a mut Threads,
    all: &'a [Arc<Entry>],
    client_ids: &'a HashMap<Arc<str>, HashMap<Arc<str>, usize>>,
}

impl Records for MemoryRecords<'_> {
    fn thread_tip(&mut self, thread: &ThreadId) -> Result<Option<&mut ThreadTip>, Error> {
        let at = self.threads.by_id.get(thread);
        Ok(at.map(|at| &mut self.threads.all[*at].thread_tip))
    }

    fn open(&mut self, thread: &ThreadId, origin: Option<Arc<Origin>>) {
        let at = self.threads.all.len();
        let parent = origin.as_ref().and_then(|it| it.parent.as_ref());
        if let Some(parent) = parent.and_then(|it| self.threads.by_id.get(it)) {
            self.threads.all[*parent].children.push(at);
        }
        self.threads.all.push(Thread {
            id: thread.clone(),
            thread_tip: ThreadTip::new(at as u64 + 1, origin),
            entries: Vec::new(),
            children: Vec::new(),
            state: ThreadState::Open,
            is_charged: false,
        });
        self.threads.by_id.insert(thread.clone(), at);
    }

    fn client_id(&mut self, identity: &str, id: &str) -> Result<Option<EntryId>, Error> {
        let at = self.client_ids.get(identity).and_then(|ids| ids.get(id));
        Ok(at.map(|at| self.all[*at].id.clone()))
    }
}

impl Contents {
    fn new(identity: &Identity, writer: Uuid) -> Contents {
        let chain = chain::genesis(identity);
        let made = Commit { number: 0, writer: identity.uuid, last_position: 0, last_thread: 0 };
        Contents {
            closed: false,
            writer,
            threads: Threads::default(),
            all: Vec::new(),
            client_ids: HashMap::new(),
            commits: vec![CommitRow { commit: made, chain, marks: Vec::new() }],
            chain,
            admitted: Admitted::default(),
        }
    }

    fn append(&mut self, mut job: Job) -> Result<Receipt, Error> {
        if self.closed {
            return Err(Error::Closed);
        }
        let mut admitted = std::mem::take(&mut self.admitted);
        admitted.clear();
        let first = self.all.len();
        let (threads, client_ids) = (&mut self.threads, &self.client_ids);
        let mut books = MemoryRecords { threads, all: &self.all, client_ids };
        let outcome = admit::admit(&mut books, &mut job, &mut admitted);
        match &outcome {
            Ok(()) => self.keep(&mut job, &admitted),
            Err(_) => self.take_back(&job, &admitted),
        }
        self.admitted = admitted;
        outcome?;
        let first_position = first as u64 + 1;
        let entries = job.entries;
        let receipt = Receipt { first_position, entries, head: self.head(), shared_us: 0 };
        debug_assert!(receipt.is_in_order(), "a batch's entries have consecutive positions");
        Ok(receipt)
    }

    /// Keeps an accepted batch as one commit.
    fn keep(&mut self, job: &mut Job, admitted: &Admitted) {
        if job.threads.is_empty() && job.entries.is_empty() && job.marks.is_empty() {
            return;
        }
        let commit = Commit {
            number: self.commits.len() as u64,
            writer: self.writer,
            last_position: (self.all.len() + job.entries.len()) as u64,
            last_thread: self.threads.all.len() as u64,
        };
        let mut link = Link::new(self.chain, commit);
        for thread in &self.threads.all[self.threads.all.len() - admitted.opened..] {
            link.thread(&thread.id, thread.thread_tip.origin.as_deref());
        }
        for (entry, row) in job.entries.iter_mut().zip(&admitted.rows) {
            let at = self.all.len();
            Arc::make_mut(entry).position = at as u64 + 1;
            link.entry(&entry.digest);
            if let Some(id) = &entry.client_id
                && entry.flags.contains(Flags::FROM_IDENTITY)
            {
                let ids = self.client_ids.entry(entry.from.clone()).or_default();
                ids.insert(id.clone(), at);
            }
            let thread = &mut self.threads.all[row.thread as usize - 1];
            thread.entries.push(at);
            debug_assert_eq!(
                entry.id.seq,
                thread.thread_tip.link_seq() + thread.entries.len() as u64,
                "a thread's entries have the numbers after its link, without a gap"
            );
            thread.state = entry.flags.state().unwrap_or(thread.state);
            thread.is_charged |= entry.flags.contains(Flags::CHARGES);
            self.all.push(entry.clone());
        }
        let mut marks = MarkWriter::default();
        for (mark, thread) in job.marks.iter().zip(&admitted.marks) {
            marks.put(mark, *thread);
        }
        let marks = marks.finish();
        debug_assert_eq!(self.all.len() as u64, commit.last_position, "a commit ends its entries");
        self.chain = link.finish(&marks);
        self.commits.push(CommitRow { commit, chain: self.chain, marks });
    }

    /// Rolls back a refused batch: the threads that it opened, and the entries that were counted in
    /// their threads.
    fn take_back(&mut self, job: &Job, admitted: &Admitted) {
        for row in &admitted.rows {
            self.threads.all[row.thread as usize - 1].thread_tip.last_seq -= 1;
        }
        for new in job.threads[..admitted.opened].iter().rev() {
            self.threads.by_id.remove(&new.id);
            self.threads.all.pop();
            if let Some(parent) = new.parent.as_ref().and_then(|it| self.threads.by_id.get(it)) {
                self.threads.all[*parent].children.pop();
            }
        }
    }

    fn head(&self) -> Head {
        Head { number: self.commits.len() as u64 - 1, chain: self.chain }
    }

    fn find(&self, id: &ThreadId) -> Option<&Thread> {
        self.threads.by_id.get(id).map(|at| &self.threads.all[*at])
    }

    fn thread(&self, id: &ThreadId) -> Option<ThreadRecord> {
        Some(self.record(self.find(id)?, true))
    }

    fn record(&self, thread: &Thread, with_first: bool) -> ThreadRecord {
        let origin = thread.thread_tip.origin.as_deref();
        let first = self.read(&thread.id, 0, 1, usize::from(with_first)).unwrap_or_default();
        ThreadRecord {
            id: thread.id.clone(),
            parent: origin.and_then(|it| it.parent.clone()),
            fork: origin.and_then(|it| it.fork.clone()),
            last_seq: thread.thread_tip.last_seq,
            first: first.into_iter().next(),
            state: thread.state,
            is_charged: thread.is_charged,
        }
    }

    /// The indices of a thread and its descendants, in the order in which they were opened.
    fn branch(&self, root: &ThreadId) -> Vec<usize> {
        let mut all: Vec<usize> = self.threads.by_id.get(root).copied().into_iter().collect();
        let mut next = 0;
        while let Some(at) = all.get(next) {
            all.extend(&self.threads.all[*at].children);
            next += 1;
        }
        all.sort_unstable();
        all
    }

    fn tree(&self, root: &ThreadId) -> Vec<ThreadRecord> {
        let record = |at: usize| {
            let thread = &self.threads.all[at];
            self.record(thread, thread.state.is_live())
        };
        self.branch(root).into_iter().map(record).collect()
    }

    /// The indices of the entries of a thread and its descendants, thread by thread.
    fn below(&self, root: &ThreadId) -> impl Iterator<Item = usize> {
        let threads = self.branch(root).into_iter().map(|at| &self.threads.all[at]);
        threads.flat_map(|it| it.entries.iter().copied())
    }

    fn charges(&self, root: &ThreadId) -> Vec<Arc<Entry>> {
        let charges = |at: &usize| self.all[*at].flags.contains(Flags::CHARGES);
        let mut all: Vec<usize> = self.below(root).filter(charges).collect();
        all.sort_unstable();
        all.into_iter().map(|at| self.all[at].clone()).collect()
    }

    fn count(&self, root: &ThreadId, but_from: &str) -> u64 {
        let all = self.below(root).map(|at| &self.all[at]);
        all.filter(|it| it.receivers > 0 && *it.from != *but_from).count() as u64
    }

    fn marks(&self, root: &ThreadId) -> Vec<Noted> {
        let branch: FxHashSet<usize> = self.branch(root).into_iter().collect();
        let (mut noted, mut after) = (Vec::new(), 0);
        for row in &self.commits {
            for mark in mark_bytes::read_marks(&row.marks).unwrap_or_default() {
                let at = mark.thread as usize - 1;
                if branch.contains(&at) {
                    noted.push(Noted { after, mark: mark.mark(&self.threads.all[at].id) });
                }
            }
            after = row.commit.last_position;
        }
        noted
    }

    fn read(
        &self,
        id: &ThreadId,
        after: u64,
        upto: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Entry>>, Error> {
        let unknown = || Error::UnknownThread(id.clone());
        let mut thread = self.find(id).ok_or_else(unknown)?;
        let mut upto = upto.min(thread.thread_tip.last_seq);
        // The parts of a thread's history, each with the range of entries to read: first the
        // thread's own part, then the part of the thread that it was forked from, and so on.
        let mut parts = Vec::new();
        loop {
            let link_seq = thread.thread_tip.link_seq();
            if upto > link_seq.max(after) {
                parts.push((thread, link_seq.max(after) - link_seq, upto - link_seq));
            }
            upto = upto.min(link_seq);
            let fork = thread.thread_tip.origin.as_ref().and_then(|it| it.fork.as_ref());
            match fork.and_then(|fork| self.find(&fork.thread)) {
                Some(source) if upto > after => thread = source,
                _ => break,
            }
        }
        let entries = parts
            .into_iter()
            .rev()
            .flat_map(|(thread, after, upto)| thread.entries[after as usize..upto as usize].iter());
        Ok(entries.take(limit).map(|at| self.all[*at].clone()).collect())
    }

    fn threads(&self, after: Option<&ThreadId>, limit: usize) -> Result<Vec<ThreadSummary>, Error> {
        let from = match after {
            None => 0,
            Some(id) => match self.threads.by_id.get(id) {
                Some(at) => at + 1,
                None => return Err(Error::UnknownThread(id.clone())),
            },
        };
        let summary = |thread: &Thread| {
            let origin = thread.thread_tip.origin.as_deref();
            ThreadSummary {
                id: thread.id.clone(),
                parent: origin.and_then(|it| it.parent.clone()),
                fork: origin.and_then(|it| it.fork.clone()),
                entries: thread.entries.len() as u64,
                first_us: thread.entries.first().map(|at| self.all[*at].at_us),
                last_us: thread.entries.last().map(|at| self.all[*at].at_us),
            }
        };
        Ok(self.threads.all.iter().skip(from).take(limit).map(summary).collect())
    }

    fn open_entries(&self) -> Vec<Open> {
        let mut opens = OpenEntries::default();
        let mut from = 0;
        for row in &self.commits {
            let upto = row.commit.last_position as usize;
            // Most entries have no receiver, and need no look at their thread.
            for entry in self.all[from..upto].iter().filter(|it| it.receivers > 0) {
                if let Some(thread) = self.find(&entry.id.thread) {
                    opens.entry(EntryNumbers {
                        thread: thread.thread_tip.number,
                        seq: entry.id.seq,
                        position: entry.position,
                        receivers: entry.receivers,
                    });
                }
            }
            from = upto;
            for mark in mark_bytes::read_marks(&row.marks).unwrap_or_default() {
                opens.mark(&mark);
            }
        }
        let open = opens.finish().into_iter().map(|waiting| {
            let entry = self.all[waiting.position as usize - 1].clone();
            waiting.of(entry)
        });
        open.collect()
    }

    fn verify(&self, identity: &Identity, expect: Option<Head>) -> Report {
        let mut verifier = Verifier::new(identity, self.commits.first(), expect);
        let (mut entries, mut threads) = (0, 0);
        for row in &self.commits[1..] {
            let last_thread = row.commit.last_thread as usize;
            let last_entry = row.commit.last_position as usize;
            verifier.begin(row.clone());
            for thread in &self.threads.all[threads..last_thread] {
                let origin = thread.thread_tip.origin.as_deref();
                verifier.thread(thread.thread_tip.number, &thread.id, origin);
            }
            for entry in &self.all[entries..last_entry] {
                let thread = self.find(&entry.id.thread);
                let origin = thread.and_then(|it| it.thread_tip.origin.as_deref());
                verifier.entry(entry, origin);
            }
            verifier.end();
            (entries, threads) = (last_entry, last_thread);
        }
        verifier.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::conformance;

    #[test]
    fn it_keeps_every_rule() {
        conformance::all(&|| Box::new(MemoryLog::new()));
    }
}
