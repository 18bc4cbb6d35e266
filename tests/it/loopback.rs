//! Addresses for doors of tests.

use std::sync::atomic::{AtomicU16, Ordering};

/// A loopback address that no other caller gets, with any free port. A test that looks whether a
/// door is closed needs it: the port of a closed door may soon be that of another test's door.
///
/// Only Linux has such addresses without further ado. Elsewhere, all callers share one.
pub(crate) fn own_address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    if !cfg!(target_os = "linux") {
        return "127.0.0.1:0".to_owned();
    }
    let [high, low] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    format!("127.70.{high}.{low}:0")
}
