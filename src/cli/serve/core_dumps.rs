//! Turns off core dumps of a server, because they would hold the server's memory with its keys.

use std::io;

/// Sets the size limit of core files to 0, for this process and the processes that it starts.
///
/// Linux doesn't apply this limit to core dumps that it pipes to a program.
#[cfg(unix)]
pub(super) fn off() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = Rlimit { current: Some(0), ..getrlimit(Resource::Core) };
    Ok(setrlimit(Resource::Core, limit)?)
}

/// Does nothing: systems other than Unix write no core dumps unless they are configured to.
#[cfg(not(unix))]
pub(super) fn off() -> io::Result<()> {
    Ok(())
}
