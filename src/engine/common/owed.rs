//! Bytes that wait for clients to read them, over all connections. Knows neither sockets nor
//! sessions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Context;

use futures_util::task::AtomicWaker;
use tokio::sync::{Notify, Semaphore};

use crate::limits::Limits;

/// A connection with no more than this is never cut here: 16,384 of them come to 64 MiB.
const SMALL_BYTES: usize = 4 * 1024;

/// How long a client may read nothing while more than half of the bound is used up.
const GRACE_US: u64 = 250_000;

/// How often a door looks for slow readers while more than half of the bound is used up.
pub(crate) const LOOK_EVERY_US: u64 = 50_000;

/// How long a connection waits at the least after the last look, before it looks by itself.
const LOOK_AGAIN_US: u64 = 1_000;

/// How many connections one look cuts while there is still room: closing many at once would
/// hold up the others.
const CUTS_AT_ONCE: usize = 32;

/// The part of the bound that large messages on their way in may come to.
const ARRIVING: usize = 64;

/// Sixteenths of the bound that are kept for them, and for what the allocator keeps: each takes up
/// to eight times its length while it is handled.
const KEPT: usize = 7;

/// One account for all connections of a pump, by whichever door they came.
///
/// Up to a half of `owed_bytes_max` each connection has its own bounds only. Beyond it the door
/// reads from no connection whose client has something to read, and cuts clients that read nothing
/// for a moment. The largest product of bytes and time goes first. Beyond nine sixteenths it cuts
/// without that moment; the rest is for large messages on their way in.
#[derive(Debug)]
pub(crate) struct Owed {
    max: usize,
    /// From where on connections are cut at once.
    full: usize,
    bytes: AtomicUsize,
    /// Connections that had more than `SMALL_BYTES` at any time.
    debtors: Mutex<BTreeMap<u64, Arc<Debtor>>>,
    /// The number of the next debtor.
    next: AtomicU64,
    /// Wakes the doors when more than half of the bound is used up.
    crowded: Notify,
    /// When a connection last looked by itself.
    looked_us: AtomicU64,
    /// Places for large messages that are arriving.
    pub(crate) arriving: Arc<Semaphore>,
}

/// One connection, as the account sees it.
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
            full: max - max / 16 * KEPT,
            bytes: AtomicUsize::new(0),
            debtors: Mutex::default(),
            next: AtomicU64::new(0),
            crowded: Notify::new(),
            looked_us: AtomicU64::new(0),
            arriving: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// How much that is.
    pub(crate) fn total(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether more than half of the bound is used up.
    pub(crate) fn is_crowded(&self) -> bool {
        self.total() > self.max / 2
    }

    /// Waits until more than half of the bound is used up.
    pub(crate) async fn crowded(&self) {
        self.crowded.notified().await;
    }

    /// Cuts connections whose clients read nothing, the largest debts first, until no more than a
    /// half of the bound is used up. Beyond nine sixteenths it cuts clients that have just read as
    /// well.
    pub(crate) fn relieve(&self, now_us: u64) {
        let debtors = match self.debtors.try_lock() {
            Ok(debtors) => debtors,
            Err(TryLockError::Poisoned(it)) => it.into_inner(),
            // Another thread cuts already.
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
        for (at, (_, stuck, bytes, it)) in all.into_iter().enumerate() {
            let is_early = stuck >= GRACE_US && at < CUTS_AT_ONCE;
            let bound = if is_early { self.max / 2 } else { self.full };
            if left > bound && bytes > 0 {
                left = left.saturating_sub(bytes);
                it.is_cut.store(true, Ordering::Relaxed);
                it.waker.wake();
            }
        }
    }

    /// Whether the last look was long enough ago: a look goes through all debtors.
    fn may_look(&self, now_us: u64) -> bool {
        let looked_us = self.looked_us.load(Ordering::Relaxed);
        let is_due = now_us.saturating_sub(looked_us) >= LOOK_AGAIN_US;
        is_due && self.looked_us.swap(now_us, Ordering::Relaxed) == looked_us
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Debtor>>> {
        self.debtors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that wait for one connection; dropping it takes them off the account.
pub(crate) struct Debt {
    owed: Arc<Owed>,
    bytes: usize,
    shown: Option<(u64, Arc<Debtor>)>,
}

impl Debt {
    pub(crate) fn of(owed: &Arc<Owed>) -> Debt {
        Debt { owed: owed.clone(), bytes: 0, shown: None }
    }

    /// Notes the bytes that wait now, and since when the client has read nothing.
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
        if total > self.owed.full && self.owed.may_look(now_us) {
            self.owed.relieve(now_us);
        }
        if total > self.owed.max / 2 {
            self.owed.crowded.notify_one();
        }
    }

    /// Whether more than half of the bound of all is used up.
    pub(crate) fn is_crowded(&self) -> bool {
        self.owed.is_crowded()
    }

    /// Whether the account says to cut this connection.
    pub(crate) fn is_cut(&self) -> bool {
        self.shown.as_ref().is_some_and(|(_, it)| it.is_cut.load(Ordering::Relaxed))
    }

    /// The same; if not, `context` is woken when it says so.
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
