//! The limits of a server: the bytes that it may send, and the time that it may take.

use std::time::Duration;

use serde::Deserialize;

/// The maximum number of bytes of one message of a server. Over standard output, a message is a
/// line. Over HTTP, a message is an event or a body.
pub(super) const LINE_BYTES_MAX: usize = 4 << 20;
/// The maximum number of bytes that are skipped of a line that is too long. A server whose line is
/// even longer is ended.
pub(super) const SKIPPED_BYTES_MAX: usize = 64 << 20;
/// The maximum number of messages to a server that wait to be sent.
pub(super) const QUEUED_MAX: usize = 64;
/// The maximum number of bytes of messages to a server that wait to be sent. A server that reads
/// nothing makes calls wait, up to their time.
pub(super) const QUEUED_BYTES_MAX: usize = 32 << 20;
/// The maximum number of requests to a server over HTTP that are under way. A server may ask for
/// answers without an end, and never take one.
pub(super) const REQUESTS_MAX: usize = 64;
/// The maximum number of characters that are repeated of a method that a server asks for.
pub(super) const METHOD_CHARACTERS_MAX: usize = 100;
/// The maximum number of pages of a list of tools.
pub(super) const PAGES_MAX: usize = 32;
/// The maximum number of tools of one server.
pub(super) const TOOLS_MAX: usize = 256;
/// The maximum number of bytes of the definitions of all tools of one server.
pub(super) const DEFINITIONS_BYTES_MAX: usize = 4 << 20;
/// The maximum number of bytes of one line of a server's standard error. If a line is longer, at
/// most its end appears in the traces.
pub(super) const ERROR_BYTES_MAX: usize = 2 << 10;
/// The maximum number of times that a stream is resumed after it broke off.
pub(super) const RECONNECTS_MAX: usize = 8;
/// The maximum number of attachments of one answer.
pub(super) const ATTACHMENTS_MAX: usize = 16;
/// The maximum number of entries of a tree's other threads that are searched for an attachment. If
/// the attachment isn't found, it is recorded again.
pub(super) const ENTRIES_SEARCHED_MAX: usize = 10_000;
/// The maximum number of messages about a call's progress that wait to be shown.
pub(super) const PROGRESS_MAX: usize = 16;
/// The maximum number of bytes that are shown of a message about progress.
pub(super) const PROGRESS_BYTES_MAX: usize = 1 << 10;
/// The maximum time in which a server answers a sign of life, after a call of it took too long. A
/// server that doesn't is ended.
pub(super) const PING_TIME_MAX: Duration = Duration::from_secs(2);
/// The maximum delay before a server that failed several times is started again, in seconds.
pub(super) const WAIT_SECONDS_MAX: u64 = 60;

/// The limits of a call, and of the server's start and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct McpLimits {
    /// The maximum time of a call, in seconds.
    pub seconds_max: u64,
    /// The maximum time in which a server starts and lists its tools, in seconds.
    pub start_seconds_max: u64,
    /// The maximum number of bytes of an answer's text. A longer text is cut.
    pub text_bytes_max: usize,
    /// The maximum number of bytes of an answer's structured content. Larger content is left out.
    pub data_bytes_max: usize,
    /// The maximum number of bytes of one image, sound or file. A larger attachment is left out.
    pub attachment_bytes_max: usize,
    /// The maximum number of bytes of private memory of each process of the server.
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
