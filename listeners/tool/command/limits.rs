//! The limits of a program. A refusal names its limit.

use std::time::Duration;

use serde::Deserialize;

/// One kibibyte.
const KIB: usize = 1024;
/// One mebibyte.
const MIB: usize = 1024 * KIB;
/// How long the pump waits for a supervisor beyond a program's time: it tells the program to end,
/// then ends it, and all that it began.
const GRACE: Duration = Duration::from_secs(15);

/// What one call of a program may come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CommandLimits {
    /// How long it may run, in seconds. Then it hears SIGTERM, and two seconds later SIGKILL.
    pub seconds_max: u64,
    /// Bytes of what it is given.
    pub input_bytes_max: usize,
    /// Bytes of its standard output that are kept: the first half and the last half of more.
    pub output_bytes_max: usize,
    /// The same of its standard error.
    pub error_bytes_max: usize,
    /// Bytes that it may write to either; then it is ended.
    pub written_bytes_max: u64,
    /// Bytes of memory that each of its processes may have of its own.
    pub memory_bytes_max: u64,
    /// Bytes of one file that it writes.
    pub file_bytes_max: u64,
    /// Files and sockets that each of its processes may have open.
    pub descriptors_max: u64,
}

impl Default for CommandLimits {
    fn default() -> CommandLimits {
        CommandLimits {
            seconds_max: 120,
            input_bytes_max: MIB,
            output_bytes_max: 64 * KIB,
            error_bytes_max: 8 * KIB,
            written_bytes_max: 64 * MIB as u64,
            memory_bytes_max: 2 * 1024 * MIB as u64,
            file_bytes_max: 1024 * MIB as u64,
            descriptors_max: 256,
        }
    }
}

impl CommandLimits {
    /// How long a handler may take whose program takes all of its time.
    pub(in super::super) fn listener_time(&self) -> Duration {
        Duration::from_secs(self.seconds_max).saturating_add(GRACE)
    }
}
