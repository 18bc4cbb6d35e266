//! What all connections are owed together: bytes that wait for clients to read them. Knows neither
//! sockets nor sessions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Context;

use futures_util::task::AtomicWaker;
use tokio::sync::{Notify, Semaphore};

use crate::limits::Limits;

/// What a connection may be owed without being looked at: 16,384 of them come to 64 MiB.
const SMALL_BYTES: usize = 4 * 1024;
/// How long a client may read nothing while more than half of the room is used up.
const GRACE_US: u64 = 250_000;
/// How often it is looked for the worst debtors while more than half of the room is used up.
pub(crate) const LOOK_EVERY_US: u64 = 50_000;
/// The part of the room that is for large messages on their way in.
const ARRIVING: usize = 8;

/// One account for all connections of a pump, whichever door they came by.
///
/// Up to a half of `owed_bytes_max` a connection is held to its own bounds only. Beyond it, who is
/// owed something is read no further, and those who read nothing for a moment are cut, the one
/// first whose bytes have waited longest: bytes times time. Beyond all of it the worst is cut
/// without that moment. A client that reads is never among them.
#[derive(Debug)]
pub(crate) struct Owed {
    max: usize,
    bytes: AtomicUsize,
    /// Those who were owed more than a little at any time.
    debtors: Mutex<BTreeMap<u64, Arc<Debtor>>>,
    /// The number of the next one.
    next: AtomicU64,
    /// That more than half is used up.
    crowded: Notify,
    /// Places for large messages that are arriving.
    pub(crate) arriving: Arc<Semaphore>,
}

/// One connection, as others see it.
#[derive(Debug, Default)]
struct Debtor {
    bytes: AtomicUsize,
    /// Since when its client has read nothing, in microseconds; 0 while it reads.
    stuck_us: AtomicU64,
    is_cut: AtomicBool,
    waker: AtomicWaker,
}

impl Owed {
    pub(crate) fn new(limits: &Limits) -> Owed {
        let max = limits.owed_bytes_max;
        let places = (max / ARRIVING / limits.door.message_bytes_max.max(1)).max(1);
        Owed {
            max,
            bytes: AtomicUsize::new(0),
            debtors: Mutex::default(),
            next: AtomicU64::new(0),
            crowded: Notify::new(),
            arriving: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
        }
    }

    fn total(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether more than half of the room is used up.
    pub(crate) fn is_crowded(&self) -> bool {
        self.total() > self.max / 2
    }

    /// Waits until more than half of the room is used up.
    pub(crate) async fn crowded(&self) {
        self.crowded.notified().await;
    }

    /// Cuts those whose clients read nothing, the worst first, until no more than half of the room
    /// is used up; those who have read a moment ago only where all of it is.
    pub(crate) fn relieve(&self, now_us: u64) {
        let debtors = match self.debtors.try_lock() {
            Ok(debtors) => debtors,
            Err(TryLockError::Poisoned(it)) => it.into_inner(),
            // Somebody else is at it.
            Err(TryLockError::WouldBlock) => return,
        };
        let mut left = self.total();
        let mut all: Vec<(u128, u64, usize, &Arc<Debtor>)> = Vec::new();
        for it in debtors.values() {
            let bytes = it.bytes.load(Ordering::Relaxed);
            if it.is_cut.load(Ordering::Relaxed) {
                left = left.saturating_sub(bytes);
                continue;
            }
            let stuck = match it.stuck_us.load(Ordering::Relaxed) {
                0 => 0,
                since => now_us.saturating_sub(since),
            };
            all.push((bytes as u128 * u128::from(stuck.max(1)), stuck, bytes, it));
        }
        all.sort_unstable_by_key(|it| std::cmp::Reverse(it.0));
        for (_, stuck, bytes, it) in all {
            let bound = if stuck >= GRACE_US { self.max / 2 } else { self.max };
            if left > bound && bytes > 0 {
                left = left.saturating_sub(bytes);
                it.is_cut.store(true, Ordering::Relaxed);
                it.waker.wake();
            }
        }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Debtor>>> {
        self.debtors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one connection is owed; nothing any more when it is dropped.
pub(crate) struct Debt {
    owed: Arc<Owed>,
    bytes: usize,
    shown: Option<(u64, Arc<Debtor>)>,
}

impl Debt {
    pub(crate) fn of(owed: &Arc<Owed>) -> Debt {
        Debt { owed: owed.clone(), bytes: 0, shown: None }
    }

    /// Notes what it is owed now, and since when its client has read nothing of that.
    pub(crate) fn note(&mut self, bytes: usize, stuck_us: Option<u64>, now_us: u64) {
        if bytes > SMALL_BYTES && self.shown.is_none() {
            let debtor = Arc::new(Debtor::default());
            let number = self.owed.next.fetch_add(1, Ordering::Relaxed);
            self.owed.all().insert(number, debtor.clone());
            self.shown = Some((number, debtor));
        }
        if let Some((_, it)) = &self.shown {
            it.bytes.store(bytes, Ordering::Relaxed);
            it.stuck_us.store(stuck_us.unwrap_or(0), Ordering::Relaxed);
        }
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes <= before {
            self.owed.bytes.fetch_sub(before - bytes, Ordering::Relaxed);
            return;
        }
        let more = bytes - before;
        let total = self.owed.bytes.fetch_add(more, Ordering::Relaxed) + more;
        if total > self.owed.max {
            self.owed.relieve(now_us);
        }
        if total > self.owed.max / 2 {
            self.owed.crowded.notify_one();
        }
    }

    /// Whether more than half of the room of all is used up.
    pub(crate) fn is_crowded(&self) -> bool {
        self.owed.is_crowded()
    }

    /// Whether it is to be cut, for the sake of the others.
    pub(crate) fn is_cut(&self) -> bool {
        self.shown.as_ref().is_some_and(|(_, it)| it.is_cut.load(Ordering::Relaxed))
    }

    /// The same; if not, `context` is woken when it is.
    pub(crate) fn poll_cut(&self, context: &Context<'_>) -> bool {
        self.shown.as_ref().is_some_and(|(_, it)| {
            it.waker.register(context.waker());
            it.is_cut.load(Ordering::Relaxed)
        })
    }
}

impl Drop for Debt {
    fn drop(&mut self) {
        self.owed.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        if let Some((number, _)) = &self.shown {
            self.owed.all().remove(number);
        }
    }
}
