//! The limits of a server: how much it may send, and how long it may take. A refusal names its
//! limit.

use serde::Deserialize;

/// Bytes of one line of a server, which is a message. Over HTTP: of one event, or of one body.
pub(super) const LINE_BYTES_MAX: usize = 4 << 20;
/// Pages of a list of tools.
pub(super) const PAGES_MAX: usize = 32;
/// Tools of one server.
pub(super) const TOOLS_MAX: usize = 256;
/// Bytes of the definitions of all tools of one server.
pub(super) const DEFINITIONS_BYTES_MAX: usize = 4 << 20;
/// Bytes of one line of a server's standard error. Of a longer line, the traces show at most the
/// end.
pub(super) const ERROR_BYTES_MAX: usize = 2 << 10;
/// How often a stream that breaks off is resumed.
pub(super) const RECONNECTS_MAX: usize = 8;
/// Attachments of one answer.
pub(super) const ATTACHMENTS_MAX: usize = 16;
/// Entries of a tree's other threads that are searched for an attachment before it is kept anew.
pub(super) const ENTRIES_SEARCHED_MAX: usize = 10_000;
/// Messages of a call's progress that wait to be shown.
pub(super) const PROGRESS_MAX: usize = 16;
/// Bytes of one message of progress that are shown.
pub(super) const PROGRESS_BYTES_MAX: usize = 1 << 10;
/// The longest wait, in seconds, before a server that failed several times is started again.
pub(super) const WAIT_SECONDS_MAX: u64 = 60;

/// The limits of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct McpLimits {
    /// How long a call may take, in seconds.
    pub seconds_max: u64,
    /// How long a server may take to start and to list its tools, in seconds.
    pub start_seconds_max: u64,
    /// Bytes of an answer's text. A longer text is cut.
    pub text_bytes_max: usize,
    /// Bytes of an answer's structured content. Larger content is left out.
    pub data_bytes_max: usize,
    /// Bytes of one image, sound or file. A larger one is left out.
    pub attachment_bytes_max: usize,
    /// Bytes of memory that each process of the server may have of its own.
    pub memory_bytes_max: u64,
}

impl Default for McpLimits {
    fn default() -> McpLimits {
        McpLimits {
            seconds_max: 60,
            start_seconds_max: 20,
            text_bytes_max: 64 << 10,
            data_bytes_max: 64 << 10,
            attachment_bytes_max: 2 << 20,
            memory_bytes_max: 4 << 30,
        }
    }
}
