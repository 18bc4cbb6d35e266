//! Bounds of the queues and the caches of a log in a file: what it may keep in memory, and how long
//! its writer waits.

use std::time::Duration;

/// How many batches may wait in the channel to the writer. If the channel is full, callers wait.
/// The writer's own queue takes the same number of batches, not counting the priority lane.
pub(super) const BATCHES_MAX: usize = 1_024;
/// Once a commit has this many entries, no further batch is added to it. The longer wait would
/// outweigh the syncs that are saved. Four marks count as one entry.
pub(super) const GROUP_ENTRIES_MAX: usize = 16_384;
/// Once the bodies of a commit have this many bytes, no further batch is added to it. This bounds
/// the wait and SQLite's memory.
pub(super) const GROUP_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The smallest bound of a commit's entries while the priority lane is in use. A batch of that lane
/// has to wait for the commit under way, so commits are kept short.
pub(super) const GROUP_ENTRIES_IN_HURRY: usize = 8;
/// How many queries may wait in the channel. If the channel is full, callers wait.
pub(super) const READ_REQUESTS_MAX: usize = 256;
/// How many names and how many threads a reader caches. One that isn't cached costs a query.
pub(super) const REMEMBERED_MAX: usize = 65_536;
/// How many threads' records are cached between commits. A thread that isn't cached costs a query.
pub(super) const THREADS_MAX: usize = 65_536;
/// How many numbers of payload names are cached between commits, for the same reason.
pub(super) const NAMES_MAX: usize = 16_384;
/// How many prepared statements a connection caches: about all that the log has.
pub(super) const STATEMENTS_MAX: usize = 64;
/// The largest body that may share text or be shared from. This bounds the work for one entry.
pub(super) const BODY_BYTES_MAX: usize = 64 * 1024;
/// The most shares of one entry. This bounds the work for one entry as well.
pub(super) const SHARES_MAX: usize = 16;
/// How many bodies of a thread are cached. Few are enough, because an agent's turn repeats text
/// that the agent sent shortly before.
pub(super) const CACHED_BODIES_MAX: usize = 16;
/// The most bytes of all cached bodies. A larger cache is emptied.
pub(super) const CACHED_BODIES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The wait before a checkpoint is retried because another one is under way.
pub(super) const COPY_WAIT: Duration = Duration::from_millis(2);
/// The wait before a commit is retried because the disk is full or another program holds the file.
pub(super) const RETRY_TIME: Duration = Duration::from_millis(250);
