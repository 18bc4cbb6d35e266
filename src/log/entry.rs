//! The log's data: entries, threads, marks and batches.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::id::{EntryId, ThreadId};
use crate::log::chain::Head;
use crate::name::Name;

/// One message in the log. It never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Its place in the log, from 1: the one total order.
    pub position: u64,
    /// Its thread and its place there. Read through a fork, it is still the source's.
    pub id: EntryId,
    /// When the pump took it, in microseconds since the epoch.
    pub at_us: u64,
    /// Who sent it: a listener, an identity, or `core`.
    pub from: Arc<str>,
    /// Whom it was sent to, where the pump knew one.
    pub to: Option<Arc<str>>,
    /// The payload's name.
    pub name: Name,
    /// The entry whose handling sent it.
    pub cause: Option<EntryId>,
    /// The entry it answers.
    pub reply_to: Option<EntryId>,
    /// Its flags.
    pub flags: Flags,
    /// How many listeners must consume it.
    pub receivers: u32,
    /// The client's own id for it.
    pub client_id: Option<Arc<str>>,
    /// Elements of other namespaces that its `<meta>` held.
    pub meta: Option<Bytes>,
    /// The payload's canonical bytes, or what encryption made of them.
    pub body: Bytes,
    /// The key that `meta` and `body` are encrypted with; throwing it away erases them.
    pub key: Option<u64>,
    /// BLAKE3 over all of the above but the position; `docs/log.md` has the layout.
    pub digest: [u8; 32],
}

/// A draft of an entry: everything but its position and its digest.
///
/// `id.seq` is the sequence that the sender believes to be next in the thread.
#[derive(Clone, Debug, PartialEq, Eq)]
// Exhaustive: the engine fills it, and must not forget a field.
pub struct Draft {
    /// Its thread, and the sequence that is expected to be next there.
    pub id: EntryId,
    /// When the pump took it, in microseconds since the epoch.
    pub at_us: u64,
    /// Who sent it.
    pub from: Arc<str>,
    /// Whom it was sent to, where the pump knew one.
    pub to: Option<Arc<str>>,
    /// The payload's name.
    pub name: Name,
    /// The entry whose handling sent it.
    pub cause: Option<EntryId>,
    /// The entry it answers.
    pub reply_to: Option<EntryId>,
    /// Its flags.
    pub flags: Flags,
    /// How many listeners must consume it.
    pub receivers: u32,
    /// The client's own id for it.
    pub client_id: Option<Arc<str>>,
    /// Elements of other namespaces that its `<meta>` held.
    pub meta: Option<Bytes>,
    /// The payload's canonical bytes, or what encryption made of them.
    pub body: Bytes,
    /// The key that `meta` and `body` are encrypted with.
    pub key: Option<u64>,
}

impl Draft {
    /// An entry without links, receivers or flags.
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

    /// The entry that this becomes; its position follows.
    pub(super) fn seal(self, digest: [u8; 32]) -> Entry {
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

/// The flags of an entry, one bit each. The log keeps bits that it has no word for, too.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(u32);

impl Flags {
    /// No flags.
    pub const NONE: Flags = Flags(0);
    /// The sender is an identity from outside, not a listener.
    pub const FROM_IDENTITY: Flags = Flags(1);
    /// The addressee is an identity from outside.
    pub const TO_IDENTITY: Flags = Flags(1 << 1);
    /// The sender waits for an answer, so there must be one.
    pub const ANSWER_WANTED: Flags = Flags(1 << 2);
    /// It was refused: recorded, but delivered to nobody.
    pub const REFUSED: Flags = Flags(1 << 3);
    /// The sender named the addressee; without this, the pump found it by the payload's name.
    pub const TO_GIVEN: Flags = Flags(1 << 4);
    /// The sender named the thread; without this, the message opened it.
    pub const THREAD_GIVEN: Flags = Flags(1 << 5);
    /// Its thread is closed with it.
    pub const CLOSES: Flags = Flags(1 << 6);
    /// Its thread is cancelled with it.
    pub const CANCELS: Flags = Flags(1 << 7);
    /// Its thread failed with it.
    pub const FAILS: Flags = Flags(1 << 8);
    /// Its thread is over its budget from here on.
    pub const OVER_BUDGET: Flags = Flags(1 << 9);
    /// Its thread pauses from here on.
    pub const PAUSES: Flags = Flags(1 << 10);
    /// Its thread goes on from here.
    pub const RESUMES: Flags = Flags(1 << 11);
    /// It has to do with the budget of its tree: what is spent, may be spent, or was warned of.
    pub const CHARGES: Flags = Flags(1 << 12);
    /// The sender is an operator.
    pub const FROM_OPERATOR: Flags = Flags(1 << 13);
    /// It waits for an entry and not for a time, and nobody waits for it: its thread may end
    /// without it.
    pub const WATCHES: Flags = Flags(1 << 14);
    /// A handler returned or sent it as an `Err`, or says with it that work failed.
    pub const ERROR: Flags = Flags(1 << 15);
    /// It waits for a time by the wall clock, wherever that is set; what waits without this waits
    /// for time to pass. It has no word.
    pub const BY_CLOCK: Flags = Flags(1 << 16);

    /// The flags that say what became of the thread, of which an entry has one at the most.
    pub(crate) const STATES: Flags = Flags(0b11_1111 << 6);

    /// Every flag that has a word, with its word.
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

    /// The flags as the log has them.
    #[must_use]
    pub const fn of_bits(bits: u32) -> Flags {
        Flags(bits)
    }

    /// The flags as the log keeps them.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether all of `others` are among these.
    #[must_use]
    pub const fn contains(self, others: Flags) -> bool {
        self.0 & others.0 == others.0
    }

    /// These and `others`.
    #[must_use]
    pub const fn with(self, others: Flags) -> Flags {
        Flags(self.0 | others.0)
    }

    /// What the entry makes of its thread, where it changes that.
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

/// The state of a thread. Flags of its entries set it; the last such entry counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
// Exhaustive, since code that shows or steers threads must treat each.
pub enum State {
    /// It takes messages.
    #[default]
    Open,
    /// It keeps messages until it is resumed.
    Paused,
    /// It has ended.
    Closed,
    /// It was cancelled.
    Cancelled,
    /// It has spent its budget.
    OverBudget,
    /// It failed.
    Failed,
}

impl State {
    /// The word for it.
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

    /// Whether it may ever go on.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, State::Open | State::Paused | State::OverBudget)
    }

    /// The flag of the entry that makes a thread so.
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

/// A thread that is to be opened. Both links must lead to things that are in the log already.
#[derive(Clone, Debug, PartialEq, Eq)]
// Exhaustive: the engine fills it, and must not forget a field.
pub struct NewThread {
    /// Its id, which no thread has yet.
    pub id: ThreadId,
    /// The thread it belongs to; none for a session.
    pub parent: Option<ThreadId>,
    /// The last entry of another thread that it begins with; its own entries follow from there.
    pub fork: Option<EntryId>,
}

/// A mark: something that happened to an entry after it came.
#[derive(Clone, Debug, PartialEq, Eq)]
// Exhaustive, since recovery must treat every mark.
pub enum Mark {
    /// A handler that must not run twice unknowingly is about to run.
    Started {
        /// The entry it handles.
        entry: EntryId,
        /// The listener of the handler.
        listener: Arc<str>,
        /// The attempt, from 1. 0 means that a shared listener was chosen.
        attempt: u32,
    },
    /// A listener gets the entry, but not before a time.
    Waits {
        /// The entry.
        entry: EntryId,
        /// The listener.
        listener: Arc<str>,
        /// Microseconds since the epoch, from 2³² on.
        until_us: u64,
    },
    /// A listener is done with the entry.
    Consumed {
        /// The entry.
        entry: EntryId,
        /// The listener.
        listener: Arc<str>,
        /// The attempt that did it.
        attempt: u32,
    },
}

/// A mark, and when it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Noted {
    /// The last position before the commit that has it: with the entries after that, or with none,
    /// it was kept.
    pub after: u64,
    /// What happened.
    pub mark: Mark,
}

/// A batch, which the log keeps whole or not at all: threads first, then entries, then marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
// Exhaustive: the engine fills it, and must not forget a field.
pub struct Batch {
    /// Threads to open.
    pub threads: Vec<NewThread>,
    /// Entries to append, in their order.
    pub entries: Vec<Draft>,
    /// What happened to entries, these or earlier ones.
    pub marks: Vec<Mark>,
}

impl Batch {
    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.entries.is_empty() && self.marks.is_empty()
    }
}

/// The receipt of a batch: the log has it, as durably as it promises.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The position of its first entry. The others follow without a gap.
    pub first_position: u64,
    /// Its entries, in the batch's order.
    pub entries: Vec<Arc<Entry>>,
    /// The head of the log with the commit that holds it.
    pub head: Head,
    /// The fixed cost of its commit in microseconds, beside the time of its entries. It is mostly
    /// the sync, which the commit's entries share.
    pub shared_us: u64,
}

/// A thread as the log knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadRecord {
    /// Its id.
    pub id: ThreadId,
    /// The thread it belongs to.
    pub parent: Option<ThreadId>,
    /// The last entry it shares with the thread it was forked from.
    pub fork: Option<EntryId>,
    /// The sequence of its last entry; 0 while it has none, the link's while a fork has none.
    pub last_seq: u64,
    /// Its first entry, read through the link.
    pub first: Option<Arc<Entry>>,
    /// The state that its own entries gave it.
    pub state: State,
    /// Whether one of its own entries is about its tree's budget.
    pub is_charged: bool,
}

/// A thread in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadSummary {
    /// Its id.
    pub id: ThreadId,
    /// The thread it belongs to.
    pub parent: Option<ThreadId>,
    /// The last entry it shares with the thread it was forked from.
    pub fork: Option<EntryId>,
    /// How many entries are its own.
    pub entries: u64,
    /// When the first of its own came, in microseconds since the epoch.
    pub first_us: Option<u64>,
    /// When the last of its own came.
    pub last_us: Option<u64>,
}

/// An entry that some receiver hasn't consumed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Open {
    /// The entry.
    pub entry: Arc<Entry>,
    /// The listeners that started on it, each with its highest attempt, by name.
    pub started: Vec<(Arc<str>, u32)>,
    /// The listeners that have consumed it, by name.
    pub consumed: Vec<Arc<str>>,
    /// The listeners that wait with it for a time, each with that time.
    pub waits: Vec<(Arc<str>, u64)>,
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
