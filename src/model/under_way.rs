//! What all replies that are being written hold together, over all models of the process.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

/// What a reply may hold whatever the others hold.
const SMALL_BYTES: usize = 64 * 1024;

/// What all replies of the process hold.
static TOTAL: AtomicUsize = AtomicUsize::new(0);

/// Replies that are longer than `SMALL_BYTES` come to their end one after another: what is made of
/// one for the log takes many times its length.
static ENDS: Semaphore = Semaphore::const_new(1);

/// What one reply holds of it; given back when it is dropped.
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
    /// Notes how long the reply is by now. Whether it may be so long.
    ///
    /// A reply may be as long as the room that is left. So one alone has a half of `max`, `n` of
    /// them have an n-th, and there is always some room for the next.
    pub(crate) fn grow_to(&mut self, bytes: usize, max: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let total = self.total.fetch_add(more, Ordering::Relaxed) + more;
        self.bytes += more;
        bytes <= SMALL_BYTES.max(max.saturating_sub(total))
    }

    /// Waits until a long reply may come to its end, and holds the others up until it is dropped.
    pub(crate) async fn end(&mut self) {
        if self.bytes > SMALL_BYTES && self.end.is_none() {
            // An error says that the semaphore is closed, which nobody does.
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
