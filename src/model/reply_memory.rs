//! The memory that replies under way share, over all models of the process.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

/// Bytes that each reply may hold, however much the others hold.
const SMALL_BYTES: usize = 64 * 1024;

/// Bytes that all replies of the process hold.
static TOTAL: AtomicUsize = AtomicUsize::new(0);

/// Serializes the ends of replies longer than `SMALL_BYTES`: preparing such a reply for the log
/// takes many times its length in memory.
static ENDS: Semaphore = Semaphore::const_new(1);

/// One reply's share of the total. Dropping it gives the bytes back.
#[derive(Debug)]
pub(crate) struct Part {
    total: &'static AtomicUsize,
    bytes: usize,
    end: Option<SemaphorePermit<'static>>,
}

impl Default for Part {
    fn default() -> Part {
        Part { total: &TOTAL, bytes: 0, end: None }
    }
}

impl Part {
    /// Records the reply's length so far, and returns whether the reply may be that long.
    ///
    /// A reply may be as long as `max` minus the bytes of all replies, its own included. So one
    /// reply alone may reach half of `max`, and each of `n` equal replies may reach an (n+1)-th of
    /// `max`. Some room always remains for the next reply.
    pub(crate) fn grow_to(&mut self, bytes: usize, max: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let total = self.total.fetch_add(more, Ordering::Relaxed) + more;
        self.bytes += more;
        bytes <= SMALL_BYTES.max(max.saturating_sub(total))
    }

    /// Waits until a long reply may end. Other long replies then wait until this part is dropped.
    pub(crate) async fn end(&mut self) {
        if self.bytes > SMALL_BYTES && self.end.is_none() {
            // `acquire` fails only on a closed semaphore, and nothing closes this one.
            self.end = ENDS.acquire().await.ok();
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_share_what_there_is_and_small_ones_always_fit() {
        static ALL: AtomicUsize = AtomicUsize::new(0);
        const MIB: usize = 1 << 20;
        let part = || Part { total: &ALL, bytes: 0, end: None };
        let mut alone = part();
        assert!(alone.grow_to(4 * MIB, 8 * MIB));
        assert!(!alone.grow_to(4 * MIB + 1, 8 * MIB));
        drop(alone);
        let mut all: Vec<Part> = (0..7).map(|_| part()).collect();
        assert!(all.iter_mut().all(|it| it.grow_to(MIB, 8 * MIB)));
        assert!(!all[0].grow_to(MIB + 1, 8 * MIB));
        let mut next = part();
        assert!(next.grow_to(SMALL_BYTES, 8 * MIB) && !next.grow_to(2 * MIB, 8 * MIB));
        drop((all, next));
        assert_eq!(ALL.load(Ordering::Relaxed), 0);
    }
}
