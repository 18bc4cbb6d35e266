//! How much a server may say, and how long it may take. A refusal names the limit that it goes by.

use std::time::Duration;

use serde::Deserialize;

/// Bytes of one line that a server writes: a message is one.
pub(super) const LINE_BYTES_MAX: usize = 4 << 20;
/// Pages of a list of tools.
pub(super) const PAGES_MAX: usize = 32;
/// Tools of one server.
pub(super) const TOOLS_MAX: usize = 256;
/// Bytes of what all its tools are described by.
pub(super) const DEFINITIONS_BYTES_MAX: usize = 4 << 20;
/// Bytes of its standard error that go into one line of the traces.
pub(super) const ERROR_BYTES_MAX: usize = 2 << 10;
/// How long a server has to begin and to list its tools.
pub(super) const START_TIME_MAX: Duration = Duration::from_secs(20);
/// The longest wait before a server that fails again and again is begun once more.
pub(super) const WAIT_SECONDS_MAX: u64 = 60;

/// What one call may come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct McpLimits {
    /// How long a call may take, in seconds.
    pub seconds_max: u64,
    /// Bytes of text that are answered; the rest is cut.
    pub text_bytes_max: usize,
    /// Bytes of structured content that are answered; more is left out.
    pub data_bytes_max: usize,
    /// Bytes of memory that each process of the server may have of its own.
    pub memory_bytes_max: u64,
}

impl Default for McpLimits {
    fn default() -> McpLimits {
        McpLimits {
            seconds_max: 60,
            text_bytes_max: 64 << 10,
            data_bytes_max: 64 << 10,
            memory_bytes_max: 4 << 30,
        }
    }
}
