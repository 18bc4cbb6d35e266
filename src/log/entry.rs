//! The log's data: entries, threads, marks and batches.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::id::{EntryId, ThreadId};
use crate::log::head::Head;
use crate::name::Name;

/// One message in the log. It never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The entry's place in the log, from 1. Positions order all entries of all threads.
    pub position: u64,
    /// The entry's thread and its number there. An entry that is read through a fork keeps the id
    /// that it has in the source.
    pub id: EntryId,
    /// When the pump accepted the entry, in microseconds since the epoch.
    pub at_us: u64,
    /// The sender: a listener, an identity, or `core` for the pump itself.
    pub from: Arc<str>,
    /// The receiver that the entry was sent to, if the pump knew one.
    pub to: Option<Arc<str>>,
    /// The payload's name.
    pub name: Name,
    /// The entry whose handling sent this one.
    pub cause: Option<EntryId>,
    /// The entry that this one answers.
    pub reply_to: Option<EntryId>,
    /// The entry's flags.
    pub flags: Flags,
    /// How many listeners must consume the entry.
    pub receivers: u32,
    /// The client's own id for the push.
    pub client_id: Option<Arc<str>>,
    /// Elements of other namespaces that were in the message's `<meta>`.
    pub meta: Option<Bytes>,
    /// The payload's canonical bytes. They are encrypted if there is a key.
    pub body: Bytes,
    /// The number of the key that `meta` and `body` are encrypted with. Deleting that key erases
    /// them.
    pub key: Option<u64>,
    /// A BLAKE3 hash over all fields above but the position, and over the thread's parent and fork.
    /// `docs/log.md` has the layout.
    pub digest: [u8; 32],
}

/// A draft of an entry: all its fields but the position and the digest.
#[derive(Clone, Debug, PartialEq, Eq)]
// Exhaustive, so that the engine has to set every field.
pub struct Draft {
    /// The entry's thread, and the number that is expected to be next there.
    pub id: EntryId,
    /// When the pump accepted the entry, in microseconds since the epoch.
    pub at_us: u64,
    /// The sender.
    pub from: Arc<str>,
    /// The receiver that the entry was sent to, if the pump knew one.
    pub to: Option<Arc<str>>,
    /// The payload's name.
    pub name: Name,
    /// The entry whose handling sent this one.
    pub cause: Option<EntryId>,
    /// The entry that this one answers.
    pub reply_to: Option<EntryId>,
    /// The entry's flags.
    pub flags: Flags,
    /// How many listeners must consume the entry.
    pub receivers: u32,
    /// The client's own id for the push.
    pub client_id: Option<Arc<str>>,
    /// Elements of other namespaces that were in the message's `<meta>`.
    pub meta: Option<Bytes>,
    /// The payload's canonical bytes. They are encrypted if there is a key.
    pub body: Bytes,
    /// The number of the key that `meta` and `body` are encrypted with.
    pub key: Option<u64>,
}

impl Draft {
    /// A draft with these fields. The other fields are empty.
    #[must_use]
    pub fn new(id: EntryId, at_us: u64, from: Arc<str>, name: Name, body: Bytes) -> Draft {
        Draft {
            id,
            at_us,
            from,
            to: None,
            name,
            cause: None,
            reply_to: None,
            flags: Flags::NONE,
            receivers: 0,
            client_id: None,
            meta: None,
            body,
            key: None,
        }
    }

    /// Makes an entry with this digest. Its position is 0 until the log sets it.
    #[must_use]
    pub fn seal(self, digest: [u8; 32]) -> Entry {
        Entry {
            position: 0,
            id: self.id,
            at_us: self.at_us,
            from: self.from,
            to: self.to,
            name: self.name,
            cause: self.cause,
            reply_to: self.reply_to,
            flags: self.flags,
            receivers: self.receivers,
            client_id: self.client_id,
            meta: self.meta,
            body: self.body,
            key: self.key,
            digest,
        }
    }
}

/// The flags of an entry, one bit each. The log also keeps bits that have no name here.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(u32);

impl Flags {
    /// No flags.
    pub const NONE: Flags = Flags(0);
    /// The sender is an identity from outside, not a listener.
    pub const FROM_IDENTITY: Flags = Flags(1);
    /// The entry is sent to an identity from outside.
    pub const TO_IDENTITY: Flags = Flags(1 << 1);
    /// The sender waits for an answer, so the receiver must answer.
    pub const ANSWER_WANTED: Flags = Flags(1 << 2);
    /// The message was refused: it is recorded, but was delivered to nobody.
    pub const REFUSED: Flags = Flags(1 << 3);
    /// A sender from outside named the receiver. Without this flag, the pump found the receiver of
    /// a push by the payload's name.
    pub const TO_GIVEN: Flags = Flags(1 << 4);
    /// A sender from outside named the thread, or an entry to fork at. A push without this flag
    /// opened its thread.
    pub const THREAD_GIVEN: Flags = Flags(1 << 5);
    /// The entry closes its thread.
    pub const CLOSES: Flags = Flags(1 << 6);
    /// The entry cancels its thread.
    pub const CANCELS: Flags = Flags(1 << 7);
    /// The entry says that its thread failed.
    pub const FAILS: Flags = Flags(1 << 8);
    /// From this entry on, the thread is over its budget.
    pub const OVER_BUDGET: Flags = Flags(1 << 9);
    /// The entry pauses its thread.
    pub const PAUSES: Flags = Flags(1 << 10);
    /// From this entry on, the thread is open again.
    pub const RESUMES: Flags = Flags(1 << 11);
    /// The entry is about the budget of its tree of threads: it says what was spent or may be
    /// spent, or it is a warning.
    pub const CHARGES: Flags = Flags(1 << 12);
    /// The sender is an operator.
    pub const FROM_OPERATOR: Flags = Flags(1 << 13);
    /// The message waits for another entry, not for a time. No push waits for the message, and the
    /// thread may end before the message is delivered.
    pub const WATCHES: Flags = Flags(1 << 14);
    /// A handler returned or sent the entry as an `Err`, or the entry says that work failed.
    pub const ERROR: Flags = Flags(1 << 15);
    /// The delivery waits until the wall clock shows a certain time, even if the clock is set
    /// meanwhile. Without this flag, a delivery waits until a span of time has passed. `Display`
    /// prints no word for this flag.
    pub const BY_CLOCK: Flags = Flags(1 << 16);
    /// The receiver may handle the message twice with the effect of once, as the receiver had
    /// declared when the message was sent. `Display` prints no word for this flag.
    pub const IDEMPOTENT: Flags = Flags(1 << 17);
    /// The message came in at a door, or it is the first message of a thread that such a message
    /// opened. `Display` prints no word for this flag.
    pub const AT_DOOR: Flags = Flags(1 << 18);
    /// At the door, the sender counts as an operator: it is one, or it is `console` where no door
    /// has tokens. `Display` prints no word for this flag.
    pub const AS_OPERATOR: Flags = Flags(1 << 19);
    /// The receiver is an agent, as its listener declared when the message was sent. `Display`
    /// prints no word for this flag.
    pub const TO_AGENT: Flags = Flags(1 << 20);

    /// The flags that set the thread's state. An entry has at most one of them.
    pub const STATES: Flags = Flags(0b11_1111 << 6);

    /// The words that `Display` prints, with their flags.
    pub(super) const WORDS: [(Flags, &'static str); 16] = [
        (Flags::FROM_IDENTITY, "from-identity"),
        (Flags::TO_IDENTITY, "to-identity"),
        (Flags::ANSWER_WANTED, "answer-wanted"),
        (Flags::REFUSED, "refused"),
        (Flags::TO_GIVEN, "to-given"),
        (Flags::THREAD_GIVEN, "thread-given"),
        (Flags::CLOSES, "closes"),
        (Flags::CANCELS, "cancels"),
        (Flags::FAILS, "fails"),
        (Flags::OVER_BUDGET, "over-budget"),
        (Flags::PAUSES, "pauses"),
        (Flags::RESUMES, "resumes"),
        (Flags::CHARGES, "charges"),
        (Flags::FROM_OPERATOR, "from-operator"),
        (Flags::WATCHES, "watches"),
        (Flags::ERROR, "error"),
    ];

    /// Flags from the bits that the log stores.
    #[must_use]
    pub const fn of_bits(bits: u32) -> Flags {
        Flags(bits)
    }

    /// The bits that the log stores.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether these flags include all of `others`.
    #[must_use]
    pub const fn contains(self, others: Flags) -> bool {
        self.0 & others.0 == others.0
    }

    /// These flags and `others` together.
    #[must_use]
    pub const fn with(self, others: Flags) -> Flags {
        Flags(self.0 | others.0)
    }

    /// Those of these flags that `others` has, too.
    #[must_use]
    pub const fn only(self, others: Flags) -> Flags {
        Flags(self.0 & others.0)
    }

    /// The state that the entry sets for its thread, if it sets one.
    #[must_use]
    pub const fn state(self) -> Option<State> {
        Some(match Flags(self.0 & Flags::STATES.0) {
            Flags::CLOSES => State::Closed,
            Flags::CANCELS => State::Cancelled,
            Flags::FAILS => State::Failed,
            Flags::OVER_BUDGET => State::OverBudget,
            Flags::PAUSES => State::Paused,
            Flags::RESUMES => State::Open,
            _ => return None,
        })
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for (flag, word) in Flags::WORDS {
            if self.contains(flag) {
                write!(f, "{between}{word}")?;
                between = " ";
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flags({self})")
    }
}

/// The state of a thread. Entries set the state by their flags. The last entry with such a flag
/// counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
// Exhaustive, since code that shows or steers threads must treat each state.
pub enum State {
    /// The thread takes messages.
    #[default]
    Open,
    /// The thread keeps messages until it is resumed.
    Paused,
    /// The thread has ended.
    Closed,
    /// The thread was cancelled.
    Cancelled,
    /// The thread has spent its budget.
    OverBudget,
    /// The thread failed.
    Failed,
}

impl State {
    /// The state as a word, such as `over-budget`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Open => "open",
            State::Paused => "paused",
            State::Closed => "closed",
            State::Cancelled => "cancelled",
            State::OverBudget => "over-budget",
            State::Failed => "failed",
        }
    }

    /// Whether a thread in this state may still continue.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, State::Open | State::Paused | State::OverBudget)
    }

    /// The flag of an entry that sets this state.
    #[must_use]
    pub const fn flag(self) -> Flags {
        match self {
            State::Open => Flags::RESUMES,
            State::Paused => Flags::PAUSES,
            State::Closed => Flags::CLOSES,
            State::Cancelled => Flags::CANCELS,
            State::OverBudget => Flags::OVER_BUDGET,
            State::Failed => Flags::FAILS,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A thread that is to be opened. Its parent must be in the log already, or earlier in the same
/// batch. For a fork, the entry that it is forked at must be in the log already.
#[derive(Clone, Debug, PartialEq, Eq)]
// Exhaustive, so that the engine has to set every field.
pub struct NewThread {
    /// The new thread's id, which no thread has yet.
    pub id: ThreadId,
    /// The parent thread. `None` for a session, the first thread of a tree.
    pub parent: Option<ThreadId>,
    /// For a fork: the entry of another thread that it is forked at. The new thread shares all
    /// entries up to that entry, and its own entries follow.
    pub fork: Option<EntryId>,
}

/// A note in the log about an entry, such as that a listener has consumed the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
// Exhaustive, since recovery must treat every mark.
pub enum Mark {
    /// A handler is about to run, and must not run twice unnoticed. With attempt 0, no handler
    /// starts. Such a mark belongs to an entry that names no receiver. It says that the listener is
    /// one of the entry's receivers.
    Started {
        /// The entry that the handler handles.
        entry: EntryId,
        /// The handler's listener.
        listener: Arc<str>,
        /// The number of the attempt, from 1. With 0, no handler starts.
        attempt: u32,
        /// The number of the last entry that the handler's folds and history include. None if that
        /// entry is the one that the handler handles.
        as_of: Option<u64>,
    },
    /// The last start of a handler came to nothing, since a fold of its listener panicked. The
    /// listener is stopped in the entry's thread, and keeps the entry until it is tried again.
    Stopped {
        /// The entry that the handler was to handle.
        entry: EntryId,
        /// The handler's listener.
        listener: Arc<str>,
    },
    /// A listener gets the entry, but not before this time. The three largest times never come:
    /// they are for entries that are parked or wait for another entry. The time below them is
    /// taken as the largest of the others.
    Waits {
        /// The entry.
        entry: EntryId,
        /// The listener.
        listener: Arc<str>,
        /// The time in microseconds since the epoch, at least 2³².
        until_us: u64,
    },
    /// A listener has consumed the entry.
    Consumed {
        /// The entry.
        entry: EntryId,
        /// The listener.
        listener: Arc<str>,
        /// The attempt that consumed the entry, or 0 if no handler ran for it.
        attempt: u32,
    },
}

impl Mark {
    /// The entry that the mark is about.
    #[must_use]
    pub fn entry(&self) -> &EntryId {
        match self {
            Mark::Started { entry, .. }
            | Mark::Stopped { entry, .. }
            | Mark::Waits { entry, .. }
            | Mark::Consumed { entry, .. } => entry,
        }
    }

    /// The listener that the mark is about.
    #[must_use]
    pub fn listener(&self) -> &Arc<str> {
        match self {
            Mark::Started { listener, .. }
            | Mark::Stopped { listener, .. }
            | Mark::Waits { listener, .. }
            | Mark::Consumed { listener, .. } => listener,
        }
    }
}

/// A mark, and its place among the entries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Noted {
    /// The position of the last entry before the mark's commit. Entries of the same commit come
    /// after this position.
    pub after: u64,
    /// The mark.
    pub mark: Mark,
}

/// A batch, which the log keeps whole or not at all. Its threads come first, then its entries, then
/// its marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
// Exhaustive, so that the engine has to set every field.
pub struct Batch {
    /// Threads to open.
    pub threads: Vec<NewThread>,
    /// Entries to append, in their order.
    pub entries: Vec<Draft>,
    /// Marks of entries of this batch or of earlier ones.
    pub marks: Vec<Mark>,
}

impl Batch {
    /// Whether the batch has no threads, entries or marks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.entries.is_empty() && self.marks.is_empty()
    }

    /// Whether the entries of each thread have consecutive numbers, and no mark is for a number
    /// beyond them. The log and its callers assert this on their sides.
    pub fn is_in_order(&self) -> bool {
        let mut last: FxHashMap<&ThreadId, u64> = FxHashMap::default();
        self.entries.iter().all(|it| {
            let before = last.insert(&it.id.thread, it.id.seq);
            before.is_none_or(|before| it.id.seq == before + 1)
        }) && self
            .marks
            .iter()
            .all(|it| last.get(&it.entry().thread).is_none_or(|last| it.entry().seq <= *last))
    }
}

/// The receipt of a batch: the log has kept it, as durably as
/// [`Log::durability`](crate::log::Log::durability) says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The position of the batch's first entry. The others follow without a gap.
    pub first_position: u64,
    /// The batch's entries, in their order.
    pub entries: Vec<Arc<Entry>>,
    /// The head of the commit that has the batch.
    pub head: Head,
    /// An estimate of a commit's fixed cost in microseconds: the shortest duration of recent
    /// commits. Most of the cost is the sync, which all entries of a commit share. A log in memory
    /// says 0.
    pub shared_us: u64,
}

impl Receipt {
    /// Whether the entries have the positions from `first_position` on, without a gap. The log and
    /// its callers assert this on their sides.
    pub fn is_in_order(&self) -> bool {
        self.entries.iter().zip(self.first_position..).all(|(it, position)| it.position == position)
    }
}

/// A thread as the log records it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadRecord {
    /// The thread's id.
    pub id: ThreadId,
    /// The parent thread, if there is one.
    pub parent: Option<ThreadId>,
    /// For a fork: the last entry that it shares with the thread that it was forked from.
    pub fork: Option<EntryId>,
    /// The number of the thread's last entry, counting shared ones. 0 if there is none.
    pub last_seq: u64,
    /// The thread's entry number 1. In a fork, that is an entry of the source.
    /// [`Log::tree`](crate::log::Log::tree) leaves it out for threads that aren't live.
    pub first: Option<Arc<Entry>>,
    /// The thread's state, as its own entries set it.
    pub state: State,
    /// Whether one of the thread's own entries is about the budget.
    pub is_charged: bool,
}

impl ThreadRecord {
    /// An open thread without entries.
    #[must_use]
    pub fn new(id: ThreadId, parent: Option<ThreadId>, fork: Option<EntryId>) -> ThreadRecord {
        let (last_seq, first, state, is_charged) = (0, None, State::Open, false);
        ThreadRecord { id, parent, fork, last_seq, first, state, is_charged }
    }
}

/// A thread in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadSummary {
    /// The thread's id.
    pub id: ThreadId,
    /// The parent thread, if there is one.
    pub parent: Option<ThreadId>,
    /// For a fork: the last entry that it shares with the thread that it was forked from.
    pub fork: Option<EntryId>,
    /// How many entries the thread has, without shared ones.
    pub entries: u64,
    /// When the first of the thread's own entries was accepted, in microseconds since the epoch.
    pub first_us: Option<u64>,
    /// When the last of the thread's own entries was accepted, in microseconds since the epoch.
    pub last_us: Option<u64>,
}

/// An entry that some receiver hasn't consumed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Open {
    /// The entry.
    pub entry: Arc<Entry>,
    /// The listeners with a [`Mark::Started`] of the entry, by name, each with its last start.
    pub started: Vec<(Arc<str>, LastStart)>,
    /// The listeners that have consumed the entry, by name.
    pub consumed: Vec<Arc<str>>,
    /// The listeners that get the entry at a later time, by name, each with that time in
    /// microseconds since the epoch.
    pub waits: Vec<(Arc<str>, u64)>,
}

/// The last start of a listener on an entry that counts. A start that a [`Mark::Stopped`] took back
/// doesn't count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastStart {
    /// The number of the attempt, or 0 if no handler started.
    pub attempt: u32,
    /// The number of the last entry that the handler's folds and history included, if the mark has
    /// it.
    pub as_of: Option<u64>,
}

impl LastStart {
    /// The start of an attempt whose handler included the thread up to the entry `as_of`.
    #[must_use]
    pub fn new(attempt: u32, as_of: Option<u64>) -> LastStart {
        LastStart { attempt, as_of }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_said_in_words() {
        let both = Flags::FROM_IDENTITY.with(Flags::REFUSED);
        assert_eq!(both.to_string(), "from-identity refused");
        assert!(both.contains(Flags::REFUSED) && !both.contains(Flags::ANSWER_WANTED));
        assert_eq!(Flags::of_bits(both.bits()), both);
        assert_eq!(Flags::NONE.to_string(), "");
    }

    #[test]
    fn the_flag_of_a_state_says_the_state() {
        let all = [State::Open, State::Paused, State::Closed, State::Cancelled];
        for state in all.into_iter().chain([State::OverBudget, State::Failed]) {
            assert_eq!(state.flag().with(Flags::REFUSED).state(), Some(state));
            assert!(Flags::STATES.contains(state.flag()), "{state}");
        }
        assert_eq!(Flags::NONE.state(), None);
    }
}
