//! The limits of a request to a web server. A refusal because of a limit names the limit.

use std::time::Duration;

use serde::Deserialize;

/// One kibibyte.
const KIB: usize = 1024;
/// One mebibyte.
const MIB: usize = 1024 * KIB;
/// The time by which a handler's timeout exceeds the time limit of its request.
const GRACE: Duration = Duration::from_secs(10);

/// The limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct WebLimits {
    /// The maximum time of a request, including its redirects and its answer, in seconds.
    pub seconds_max: u64,
    /// The maximum time in which the connection to a host is made, in seconds.
    pub connect_seconds_max: u64,
    /// The maximum number of bytes of a URL.
    pub url_bytes_max: usize,
    /// The maximum number of bytes that a request sends: its body, and the headers that the caller
    /// gives.
    pub sent_bytes_max: usize,
    /// The maximum number of bytes of an answer's body. The whole body is in memory.
    pub body_bytes_max: usize,
    /// The maximum number of bytes of the text that one answer shows. This text goes into a model's
    /// context window.
    pub text_bytes_max: usize,
    /// The maximum number of redirects that are followed for one request.
    pub redirects_max: usize,
}

impl Default for WebLimits {
    fn default() -> WebLimits {
        WebLimits {
            seconds_max: 30,
            connect_seconds_max: 10,
            url_bytes_max: 2 * KIB,
            sent_bytes_max: MIB,
            body_bytes_max: 4 * MIB,
            text_bytes_max: 64 * KIB,
            redirects_max: 5,
        }
    }
}

impl WebLimits {
    /// The timeout of a handler that makes one request.
    pub(in super::super) fn listener_time(&self) -> Duration {
        Duration::from_secs(self.seconds_max).saturating_add(GRACE)
    }
}
