//! What threads and entries are called: `sess-k3v9x2ma`, `sess-k3v9x2ma/7`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The characters of a session's id: Crockford's base32, in lower case.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// How many of them a session's id has: 40 bits.
const SESSION_CHARACTERS: usize = 8;

/// A thread's id. Opaque: a parent is a link in the log, never parsed out of the id.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(Arc<str>);

impl ThreadId {
    /// The id of a session, from 40 bits of `chance`.
    ///
    /// ```
    /// use pumphouse::ThreadId;
    /// assert_eq!(ThreadId::session(0).as_str(), "sess-00000000");
    /// ```
    #[must_use]
    pub fn session(chance: u64) -> ThreadId {
        let mut id = String::with_capacity("sess-".len() + SESSION_CHARACTERS);
        id.push_str("sess-");
        for place in 0..SESSION_CHARACTERS {
            let five = (chance >> (5 * place)) & 31;
            id.push(char::from(ALPHABET[usize::try_from(five).unwrap_or(0)]));
        }
        ThreadId(id.into())
    }

    /// An id as the log or an envelope has it.
    #[must_use]
    pub fn new(id: &str) -> ThreadId {
        ThreadId(id.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One message in the log: its thread and its place there, from 1. Written `thread/seq`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId {
    /// The thread.
    pub thread: ThreadId,
    /// The place in the thread, from 1.
    pub seq: u64,
}

impl EntryId {
    /// The entry `seq` of `thread`.
    #[must_use]
    pub fn new(thread: &ThreadId, seq: u64) -> EntryId {
        EntryId { thread: thread.clone(), seq }
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.thread, self.seq)
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What was given is no `thread/seq`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoEntryId;

impl fmt::Display for NoEntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry is written THREAD/SEQ, such as sess-k3v9x2ma/7")
    }
}

impl std::error::Error for NoEntryId {}

impl FromStr for EntryId {
    type Err = NoEntryId;

    fn from_str(text: &str) -> Result<EntryId, NoEntryId> {
        let (thread, seq) = text.rsplit_once('/').ok_or(NoEntryId)?;
        let seq = seq.parse().map_err(|_| NoEntryId)?;
        if thread.is_empty() || seq == 0 {
            return Err(NoEntryId);
        }
        Ok(EntryId { thread: ThreadId::new(thread), seq })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_it_is_written() {
        for text in ["sess-k3v9x2ma/7", "organism/1", "sess-0.a-1/18446744073709551615"] {
            assert_eq!(text.parse::<EntryId>().map(|it| it.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "/", "sess", "sess/", "/1", "sess/0", "sess/x", "sess/-1"] {
            assert_eq!(text.parse::<EntryId>(), Err(NoEntryId), "{text}");
        }
    }

    #[test]
    fn a_session_has_forty_bits() {
        assert_eq!(ThreadId::session(u64::MAX).as_str(), "sess-zzzzzzzz");
        assert_eq!(ThreadId::session(1).as_str(), "sess-10000000");
    }
}
