//! Counts the bytes that wait for clients to read them, over all connections. If too many bytes
//! wait, doors are told to cut the connections of slow readers. This module knows neither sockets
//! nor sessions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Context;

use futures_util::task::AtomicWaker;
use tokio::sync::{Notify, Semaphore};

use crate::limits::Limits;

/// This module cuts only connections that have had more unread bytes than this at some time. 16,384
/// connections below this bound have at most 64 MiB together.
const SMALL_BYTES: usize = 4 * 1024;

/// How long a client may read nothing while more than half of the bound, `owed_bytes_max`, is used
/// up.
const GRACE_US: u64 = 250_000;

/// How often a door looks for slow readers while more than half of the bound is used up.
pub const LOOK_EVERY_US: u64 = 50_000;

/// The shortest time between two searches for slow readers that connections begin themselves.
const LOOK_AGAIN_US: u64 = 1_000;

/// The largest number of connections that one search cuts while the total is between a half and
/// nine sixteenths of the bound. Closing many at once would delay the other connections.
const CUTS_AT_ONCE: usize = 32;

/// The large messages that are arriving may together take `owed_bytes_max` divided by this.
const ARRIVING: usize = 64;

/// How many sixteenths of the bound are kept free for large messages and for the allocator. A
/// message takes up to eight times its length while it is handled.
const KEPT: usize = 7;

/// The unread bytes of all connections of a pump, at all of its doors.
///
/// Up to a half of `owed_bytes_max`, only the bounds of each connection apply. Beyond a half, a
/// door takes no push from a client that has something to read, and cuts clients that have read
/// nothing for 250 ms. The connection with the largest product of bytes and time is cut first.
/// Beyond nine sixteenths, connections are cut without waiting. The other seven sixteenths are for
/// large messages that are arriving, and for the allocator.
#[derive(Debug)]
pub struct UnreadBytes {
    max: usize,
    /// Above this total, connections are cut at once.
    full: usize,
    bytes: AtomicUsize,
    /// Connections that had more than `SMALL_BYTES` at some time.
    readers: Mutex<BTreeMap<u64, Arc<SlowReader>>>,
    /// The number of the next reader in `readers`.
    next: AtomicU64,
    /// Wakes a door when more than half of the bound is used up.
    over_half: Notify,
    /// When a connection last began a search for slow readers itself.
    looked_us: AtomicU64,
    /// A permit for each large message that may arrive at the same time.
    pub arriving: Arc<Semaphore>,
}

/// A connection that has had more than `SMALL_BYTES` unread at some time.
#[derive(Debug, Default)]
struct SlowReader {
    bytes: AtomicUsize,
    /// The time since which the client has read nothing, in microseconds. 0 while the client reads.
    stuck_us: AtomicU64,
    is_cut: AtomicBool,
    waker: AtomicWaker,
}

impl UnreadBytes {
    /// Counts from 0.
    pub fn new(limits: &Limits) -> UnreadBytes {
        let max = limits.owed_bytes_max;
        let places = (max / ARRIVING / limits.door.message_bytes_max.max(1)).max(1);
        UnreadBytes {
            max,
            full: max - max / 16 * KEPT,
            bytes: AtomicUsize::new(0),
            readers: Mutex::default(),
            next: AtomicU64::new(0),
            over_half: Notify::new(),
            looked_us: AtomicU64::new(0),
            arriving: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// Returns the unread bytes of all connections.
    pub fn total(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns whether more than half of the bound is used up.
    pub fn is_over_half(&self) -> bool {
        self.total() > self.max / 2
    }

    /// Waits until more than half of the bound is used up.
    pub async fn over_half(&self) {
        self.over_half.notified().await;
    }

    /// Cuts up to `CUTS_AT_ONCE` connections whose clients have read nothing for 250 ms, until no
    /// more than a half of the bound is used up. As long as more than nine sixteenths are used up,
    /// cuts further connections, even if their clients have just read.
    pub fn cut_slow_readers(&self, now_us: u64) {
        let readers = match self.readers.try_lock() {
            Ok(readers) => readers,
            Err(TryLockError::Poisoned(it)) => it.into_inner(),
            // Another thread is cutting connections already.
            Err(TryLockError::WouldBlock) => return,
        };
        let mut left = self.total();
        let mut all: Vec<(u128, u64, usize, &Arc<SlowReader>)> = Vec::new();
        for reader in readers.values() {
            let bytes = reader.bytes.load(Ordering::Relaxed);
            if reader.is_cut.load(Ordering::Relaxed) {
                left = left.saturating_sub(bytes);
                continue;
            }
            let stuck = match reader.stuck_us.load(Ordering::Relaxed) {
                0 => 0,
                since => now_us.saturating_sub(since),
            };
            all.push((bytes as u128 * u128::from(stuck.max(1)), stuck, bytes, reader));
        }
        all.sort_unstable_by_key(|it| std::cmp::Reverse(it.0));
        for (at, (_, stuck, bytes, reader)) in all.into_iter().enumerate() {
            let is_early = stuck >= GRACE_US && at < CUTS_AT_ONCE;
            let bound = if is_early { self.max / 2 } else { self.full };
            if left > bound && bytes > 0 {
                left = left.saturating_sub(bytes);
                reader.is_cut.store(true, Ordering::Relaxed);
                reader.waker.wake();
            }
        }
    }

    /// Returns whether a search for slow readers may begin. Returns false if the last search was
    /// less than `LOOK_AGAIN_US` ago, since a search goes through all readers. Also returns false
    /// if another connection begins a search now.
    fn begin_look(&self, now_us: u64) -> bool {
        let looked_us = self.looked_us.load(Ordering::Relaxed);
        let is_due = now_us.saturating_sub(looked_us) >= LOOK_AGAIN_US;
        is_due && self.looked_us.swap(now_us, Ordering::Relaxed) == looked_us
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<SlowReader>>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The unread bytes of one connection. Dropping this value subtracts them from the total.
pub struct ConnectionBytes {
    unread: Arc<UnreadBytes>,
    bytes: usize,
    shown: Option<(u64, Arc<SlowReader>)>,
}

impl ConnectionBytes {
    /// A connection whose client has read everything.
    pub fn new(unread: &Arc<UnreadBytes>) -> ConnectionBytes {
        ConnectionBytes { unread: unread.clone(), bytes: 0, shown: None }
    }

    /// Notes how many bytes wait now, and since when the client has read nothing. If the bytes grew
    /// and more than half of the bound is used up, wakes a door. Beyond nine sixteenths, also cuts
    /// slow readers.
    pub fn note(&mut self, bytes: usize, stuck_us: Option<u64>, now_us: u64) {
        if bytes > SMALL_BYTES && self.shown.is_none() {
            let reader = Arc::new(SlowReader::default());
            let number = self.unread.next.fetch_add(1, Ordering::Relaxed);
            self.unread.all().insert(number, reader.clone());
            self.shown = Some((number, reader));
        }
        if let Some((_, reader)) = &self.shown {
            reader.bytes.store(bytes, Ordering::Relaxed);
            reader.stuck_us.store(stuck_us.unwrap_or(0), Ordering::Relaxed);
        }
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes <= before {
            self.unread.bytes.fetch_sub(before - bytes, Ordering::Relaxed);
            return;
        }
        let more = bytes - before;
        let total = self.unread.bytes.fetch_add(more, Ordering::Relaxed) + more;
        if total > self.unread.full && self.unread.begin_look(now_us) {
            self.unread.cut_slow_readers(now_us);
        }
        if total > self.unread.max / 2 {
            self.unread.over_half.notify_one();
        }
    }

    /// Returns whether more than half of the bound is used up, by all connections together.
    pub fn is_over_half(&self) -> bool {
        self.unread.is_over_half()
    }

    /// Returns whether this connection is to be cut.
    pub fn is_cut(&self) -> bool {
        self.shown.as_ref().is_some_and(|(_, it)| it.is_cut.load(Ordering::Relaxed))
    }

    /// Returns whether this connection is to be cut. If not, `context` is woken once the connection
    /// is to be cut.
    pub fn poll_cut(&self, context: &Context<'_>) -> bool {
        self.shown.as_ref().is_some_and(|(_, reader)| {
            reader.waker.register(context.waker());
            reader.is_cut.load(Ordering::Relaxed)
        })
    }
}

impl Drop for ConnectionBytes {
    fn drop(&mut self) {
        self.unread.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        if let Some((number, _)) = &self.shown {
            self.unread.all().remove(number);
        }
    }
}
