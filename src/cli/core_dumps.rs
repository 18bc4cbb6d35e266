//! No core dumps of a server: what a process holds in memory, such as a key, stays there.

use std::io;

/// Has the system write no core dump of this process, and of none that it starts, whatever was
/// allowed before.
#[cfg(unix)]
pub(super) fn off() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = Rlimit { current: Some(0), ..getrlimit(Resource::Core) };
    Ok(setrlimit(Resource::Core, limit)?)
}

/// Elsewhere the system keeps none unless it is told to.
#[cfg(not(unix))]
pub(super) fn off() -> io::Result<()> {
    Ok(())
}
