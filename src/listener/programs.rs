//! Whether listeners of this process begin programs, which doors must not take for users.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a listener of this process may begin programs.
static HAS_PROGRAMS: AtomicBool = AtomicBool::new(false);

/// Tells the doors of this process that one of its listeners may begin programs that get no rights
/// from the pump. From then on, every door looks at the process that connects. A process that
/// descends from this one and is in another session isn't let in. A process that can't be found, or
/// that is in another PID namespace, needs a token.
///
/// The listeners `shell`, `command`, `git` and `mcp` call this function themselves, and begin each
/// program in a session of its own. A listener of your own that calls it does so, too (`setsid`).
/// Other children of this process, in its session, are let in. The processes that read PDFs and the
/// databases of `sql` make no sockets, so doors needn't look for them.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// pumphouse::listener::keep_programs_out();
/// ```
pub fn keep_programs_out() {
    HAS_PROGRAMS.store(true, Ordering::Relaxed);
}

/// Whether a listener of this process may begin programs.
#[must_use]
pub fn has_programs() -> bool {
    HAS_PROGRAMS.load(Ordering::Relaxed)
}
