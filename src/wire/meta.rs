//! The payloads with which a client follows threads. A door handles them itself, so they are in no
//! thread.

use crate::wire::Payload;

/// Asks a door to send a thread's entries: those that exist and those to come.
///
/// The answer is `<following>`. Then each entry comes in its own `<message>`, with `<followed>` in
/// the `<meta>`. To resume, set `after` to the number of the last entry received. A second
/// `<follow>` of a thread replaces the first.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1")]
pub struct Follow {
    /// The thread. Only operators may follow threads of others.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub thread: String,
    /// Only entries after this number; all by default.
    #[payload(attribute, example = "12")]
    pub after: Option<u64>,
    /// Whether to send live payloads, too. They aren't in the log, and a slow client misses some.
    #[payload(attribute, example = "true")]
    pub live: Option<bool>,
}

/// The door follows a thread: it sends the entries from here on.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1", reserved)]
pub struct Following {
    /// The thread.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub thread: String,
    /// The entries after this number are sent.
    #[payload(attribute, example = "12")]
    pub after: u64,
    /// The number of the thread's last entry so far: later ones are new.
    #[payload(attribute, example = "40")]
    pub last: u64,
}

/// Stops following a thread.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1")]
pub struct Unfollow {
    /// The thread; by default, all that this connection follows.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub thread: Option<String>,
}

/// The door has stopped following: it sends no entry after this.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1", reserved)]
pub struct Unfollowed {
    /// The thread; by default, all that this connection followed.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub thread: Option<String>,
}
