//! A simulated disk in virtual time. The disk is slow, and the log on it survives crashes. Tests
//! can make the disk full or broken.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use crate::engine::{Builder, Plugin, Port};
use crate::id::ThreadId;
use crate::log::{
    Batch, Boxed, Durability, Entry, Error, Head, Health, Identity, Log, MemoryLog, Noted, Open,
    Receipt, Report, ThreadRecord, ThreadSummary,
};
use crate::sim::Sim;

/// A simulated disk. The log on it survives crashes of the machine.
///
/// A batch becomes durable some time after it was appended: the disk keeps it. Sometimes the disk
/// keeps several batches at once. After a crash some batches may not be kept yet. When the log is
/// opened again, the disk keeps a random number of these batches, the oldest first, and loses the
/// others. The program that appended these batches can't know which of them were kept.
#[derive(Clone)]
pub struct Disk(Arc<Platter>);

struct Platter {
    sim: Sim,
    kept: MemoryLog,
    state: Mutex<DiskState>,
}

#[derive(Default)]
struct DiskState {
    /// The number of the newest opening of the log. Only this opening may write; earlier ones get
    /// errors.
    opening: u64,
    closed: bool,
    /// The batches on their way to the disk, in order.
    queue: VecDeque<Queued>,
    /// Maps the number of a batch that left the queue to the batch's result, until its sender asks
    /// for it.
    kept: BTreeMap<u64, Result<Receipt, Error>>,
    appended: u64,
    /// When the newest queued batch without priority will be kept.
    due_us: u64,
    full_until_us: u64,
    broken: Option<Arc<str>>,
}

struct Queued {
    number: u64,
    due_us: u64,
    goes_ahead: bool,
    batch: Batch,
}

impl Disk {
    /// A commit takes less than this, in microseconds.
    const COMMIT_US_MAX: u64 = 3_000;
    /// Each of the two delays of a read is less than this, in microseconds.
    const READ_US_MAX: u64 = 300;

    /// Creates an empty disk.
    #[must_use]
    pub fn new(sim: &Sim) -> Disk {
        let mut key = [0; 32];
        key.chunks_mut(8).for_each(|it| it.copy_from_slice(&sim.random().to_le_bytes()));
        let uuid = || Uuid::from_u64_pair(sim.random(), sim.random());
        let identity = Identity::new(uuid(), key, sim.now_us());
        let kept = MemoryLog::of(identity, uuid());
        Disk(Arc::new(Platter { sim: sim.clone(), kept, state: Mutex::default() }))
    }

    /// Opens the log on the disk. An earlier opening can no longer write. Of its batches that are
    /// still on their way, a random number is kept, the oldest first, and the others are lost. A
    /// full or broken disk works again from now on.
    #[must_use]
    pub fn log(&self) -> DiskLog {
        let mut state = self.0.state();
        let kept = self.0.sim.below(state.queue.len() as u64 + 1);
        for _ in 0..kept {
            if let Some(write) = state.queue.pop_front() {
                // No sender waits for this batch, so an error is ignored.
                let _ = self.0.kept.keep(write.batch);
            }
        }
        let opening = state.opening + 1;
        *state = DiskState { opening, appended: state.appended, ..DiskState::default() };
        DiskLog { platter: self.0.clone(), opening }
    }

    /// Makes the disk full for this time, or until the log is opened again. Batches wait as long as
    /// the disk is full.
    pub fn fill(&self, time: Duration) {
        let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let until_us = self.0.sim.now_us().saturating_add(time_us);
        self.0.state().full_until_us = until_us;
    }

    /// Makes the disk fail: it keeps no batch until the log is opened again. At that opening,
    /// batches that are on their way may be kept or lost.
    pub fn fail(&self) {
        self.0.state().broken = Some("the disk failed".into());
    }

    /// Returns the log with the batches that the disk has kept so far, for tests that read it
    /// directly. This log is never closed, and answers without delay. Tests must not append to it.
    #[must_use]
    pub fn kept(&self) -> &dyn Log {
        &self.0.kept
    }
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Disk").field(&self.0.kept).finish()
    }
}

impl Platter {
    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the batches that are due by now.
    fn settle(&self) {
        let now_us = self.sim.now_us();
        let mut state = self.state();
        if state.broken.is_some() || now_us < state.full_until_us {
            return;
        }
        while state.queue.front().is_some_and(|it| it.due_us <= now_us) {
            let Some(write) = state.queue.pop_front() else { return };
            let kept = self.kept.keep(write.batch);
            state.kept.insert(write.number, kept);
        }
    }

    /// Returns the result of a batch. The outer `Err` is the time at which to ask again, if the
    /// batch isn't kept yet.
    fn became(&self, number: u64, opening: u64) -> Result<Result<Receipt, Error>, u64> {
        self.settle();
        let mut state = self.state();
        if state.opening != opening {
            return Ok(Err(Error::Closed));
        }
        if let Some(kept) = state.kept.remove(&number) {
            return Ok(kept);
        }
        if let Some(why) = &state.broken {
            return Ok(Err(Error::Poisoned(why.clone())));
        }
        let Some(at) = state.queue.iter().position(|it| it.number == number) else {
            return Ok(Err(Error::Full));
        };
        // A batch in front of this batch may be due later, so the latest of these times counts.
        let due_us = state.queue.iter().take(at + 1).map(|it| it.due_us).max();
        Err(due_us.unwrap_or(0).max(state.full_until_us))
    }

    /// Waits for one of the two delays of a read.
    async fn half(&self) {
        let time = Duration::from_micros(self.sim.below(Disk::READ_US_MAX));
        self.sim.sleep(time).await;
        self.settle();
    }
}

/// The log on a [`Disk`]. This log works until it is closed or the disk's log is opened again.
pub struct DiskLog {
    platter: Arc<Platter>,
    opening: u64,
}

impl DiskLog {
    fn put(&self, batch: Batch, goes_ahead: bool) -> Boxed<'static, Receipt> {
        let (platter, opening) = (self.platter.clone(), self.opening);
        let (now_us, took_us) = (platter.sim.now_us(), platter.sim.below(Disk::COMMIT_US_MAX));
        let joins = platter.sim.below(2) == 0;
        let mut state = platter.state();
        if state.closed || state.opening != opening {
            return Box::pin(std::future::ready(Err(Error::Closed)));
        }
        if let Some(why) = &state.broken {
            return Box::pin(std::future::ready(Err(Error::Poisoned(why.clone()))));
        }
        if state.due_us <= now_us || !joins {
            state.due_us = state.due_us.max(now_us) + took_us;
        }
        state.appended += 1;
        let (number, due_us) = (state.appended, state.due_us);
        let ahead = state.queue.iter().take_while(|it| it.goes_ahead).count();
        let (at, due_us) = match goes_ahead {
            true => (ahead, now_us + took_us),
            false => (state.queue.len(), due_us),
        };
        state.queue.insert(at, Queued { number, due_us, goes_ahead, batch });
        drop(state);
        Box::pin(async move {
            loop {
                match platter.became(number, opening) {
                    Ok(it) => return it,
                    Err(at_us) => platter.sim.sleep_until(at_us).await,
                }
            }
        })
    }

    /// Runs a read with a delay before it and a delay after it.
    fn read_slowly<'a, T: Send + 'a>(
        &'a self,
        read: impl Future<Output = Result<T, Error>> + Send + 'a,
    ) -> Boxed<'a, T> {
        Box::pin(async move {
            self.platter.half().await;
            let read = read.await;
            self.platter.half().await;
            read
        })
    }
}

impl Log for DiskLog {
    fn identity(&self) -> Identity {
        self.platter.kept.identity()
    }

    fn durability(&self) -> Durability {
        Durability::Full
    }

    fn append(&self, batch: Batch) -> Boxed<'static, Receipt> {
        self.put(batch, false)
    }

    fn append_ahead(&self, batch: Batch) -> Boxed<'static, Receipt> {
        self.put(batch, true)
    }

    fn health(&self) -> Health {
        let state = self.platter.state();
        match &state.broken {
            Some(why) => Health::Poisoned(why.clone()),
            None if self.platter.sim.now_us() < state.full_until_us => Health::Full,
            None => Health::Well,
        }
    }

    fn thread<'a>(&'a self, id: &'a ThreadId) -> Boxed<'a, Option<ThreadRecord>> {
        self.read_slowly(async move { self.platter.kept.thread(id).await })
    }

    fn tree<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<ThreadRecord>> {
        self.read_slowly(async move { self.platter.kept.tree(root).await })
    }

    fn charges<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<Arc<Entry>>> {
        self.read_slowly(async move { self.platter.kept.charges(root).await })
    }

    fn count<'a>(&'a self, root: &'a ThreadId, but_from: &'a str) -> Boxed<'a, u64> {
        self.read_slowly(async move { self.platter.kept.count(root, but_from).await })
    }

    fn marks<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<Noted>> {
        self.read_slowly(async move { self.platter.kept.marks(root).await })
    }

    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: u64,
        upto: u64,
        limit: usize,
    ) -> Boxed<'a, Vec<Arc<Entry>>> {
        self.read_slowly(async move { self.platter.kept.read(thread, after, upto, limit).await })
    }

    fn tail(&self, after_position: u64, limit: usize) -> Boxed<'_, Vec<Arc<Entry>>> {
        self.read_slowly(async move { self.platter.kept.tail(after_position, limit).await })
    }

    fn threads<'a>(
        &'a self,
        after: Option<&'a ThreadId>,
        limit: usize,
    ) -> Boxed<'a, Vec<ThreadSummary>> {
        self.read_slowly(async move { self.platter.kept.threads(after, limit).await })
    }

    fn client_id<'a>(&'a self, identity: &'a str, id: &'a str) -> Boxed<'a, Option<Arc<Entry>>> {
        self.read_slowly(async move { self.platter.kept.client_id(identity, id).await })
    }

    fn open_entries(&self) -> Boxed<'_, Vec<Open>> {
        self.read_slowly(async move { self.platter.kept.open_entries().await })
    }

    fn head(&self) -> Boxed<'_, Head> {
        self.read_slowly(async move { self.platter.kept.head().await })
    }

    fn verify(&self, expect: Option<Head>) -> Boxed<'_, Report> {
        self.read_slowly(async move { self.platter.kept.verify(expect).await })
    }

    fn close(&self) -> Boxed<'_, ()> {
        Box::pin(async move {
            let until_us = {
                let mut state = self.platter.state();
                if state.opening != self.opening {
                    return Ok(());
                }
                state.closed = true;
                state.queue.iter().map(|it| it.due_us).max().unwrap_or(0)
            };
            self.platter.sim.sleep_until(until_us).await;
            self.platter.settle();
            let mut state = self.platter.state();
            match &state.broken {
                // The log was opened again meanwhile, so the queue is that of the new opening.
                _ if state.opening != self.opening => Ok(()),
                _ if state.queue.is_empty() => Ok(()),
                Some(why) => Err(Error::Poisoned(why.clone())),
                None => {
                    state.queue.clear();
                    Err(Error::Full)
                }
            }
        })
    }
}

impl std::fmt::Debug for DiskLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DiskLog").field(&self.platter.kept).finish()
    }
}

impl Plugin for DiskLog {
    fn install(self, builder: &mut Builder) {
        builder.log(Arc::new(self));
    }
}
