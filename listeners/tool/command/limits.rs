//! The limits of a program.

use std::time::Duration;

use serde::Deserialize;

/// One kibibyte.
const KIB: usize = 1024;
/// One mebibyte.
const MIB: usize = 1024 * KIB;
/// The time that the pump waits for the supervisor once the program's time limit has passed. In
/// this time, the supervisor asks the program to end, and then kills it and all its descendants.
const GRACE: Duration = Duration::from_secs(15);

/// The limits of one call of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CommandLimits {
    /// The maximum run time of the program, in seconds. After this time, the program gets SIGTERM,
    /// and two seconds later SIGKILL.
    pub seconds_max: u64,
    /// The maximum number of bytes that a call passes to the program, as input and as arguments.
    pub input_bytes_max: usize,
    /// The maximum number of bytes that are kept of standard output. If the output is longer, its
    /// beginning and its end are kept, each with half of this number.
    pub output_bytes_max: usize,
    /// The maximum number of bytes that are kept of standard error. A longer output is cut in the
    /// same way as standard output.
    pub error_bytes_max: usize,
    /// The maximum number of bytes that the program may write to each of standard output and
    /// standard error. A program that writes more is ended.
    pub written_bytes_max: u64,
    /// The maximum number of bytes of private memory of each process of the program.
    pub memory_bytes_max: u64,
    /// The maximum number of bytes of each file that the program writes.
    pub file_bytes_max: u64,
    /// The maximum number of files and sockets that each process of the program may have open.
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
    /// The timeout of a handler: the time limit of its program plus the time to end the program.
    pub(in super::super) fn listener_time(&self) -> Duration {
        Duration::from_secs(self.seconds_max).saturating_add(GRACE)
    }
}
