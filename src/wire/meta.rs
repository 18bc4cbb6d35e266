//! Payloads about the organism instead of within a thread: following a thread.

use crate::wire::Payload;

/// Asks a door to pass on a thread's entries: those there are, and those to come.
///
/// It is answered by `<following>`, and then each entry comes in a `<message>` of its own, which
/// says in its `<meta>` that it is followed. Whoever begins again says `after` with the number of
/// the last entry that came. A second one of the same thread takes the place of the first.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1")]
pub struct Follow {
    /// The thread: the sender's own, or any for an operator.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub thread: String,
    /// The number of the last entry that isn't wanted; without it, all are.
    #[payload(attribute, example = "12")]
    pub after: Option<u64>,
    /// Whether live payloads are wanted as well: they are shown while they happen, never logged,
    /// and may be dropped.
    #[payload(attribute, example = "true")]
    pub live: Option<bool>,
}

/// The door follows a thread: its entries come from here on.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1", reserved)]
pub struct Following {
    /// The thread.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub thread: String,
    /// The number of the entry after which it begins.
    #[payload(attribute, example = "12")]
    pub after: u64,
    /// The number of the thread's last entry so far: what is later is new.
    #[payload(attribute, example = "40")]
    pub last: u64,
}

/// Ends what `<follow>` began.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1")]
pub struct Unfollow {
    /// The thread; without it, every one that this connection follows.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub thread: Option<String>,
}

/// The door follows no more: nothing comes of it after this.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/meta/v1", reserved)]
pub struct Unfollowed {
    /// The thread; without it, every one that this connection followed.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub thread: Option<String>,
}
