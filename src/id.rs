//! The ids of threads and entries, such as `sess-k3v9x2ma` and `sess-k3v9x2ma/7`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The characters of a session's id: Crockford's base32, in lower case.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// How many characters a session's id has after `sess-`. Each character holds 5 bits, so an id
/// holds 40 bits in all.
const SESSION_CHARACTERS: usize = 8;
/// Separates a thread's id from the label that a child's id appends to it.
const CHILD: char = '.';
/// How many characters of a child's label are kept.
const LABEL_CHARACTERS: usize = 40;
/// The label of a child if the suggested label has no usable character.
const LABEL: &str = "sub";

/// A thread's id. Ask the log for a thread's parent; don't parse the parent out of the id. Only the
/// methods of this type read the parts of an id, as [`tree`](ThreadId::tree) does.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(Arc<str>);

impl ThreadId {
    /// Makes the id of a session from the lowest 40 bits of a random number.
    ///
    /// ```
    /// # extern crate pumphouse_ground as pumphouse;
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

    /// Wraps an id from the log or an envelope, without checking it.
    #[must_use]
    pub fn new(id: &str) -> ThreadId {
        ThreadId(id.into())
    }

    /// Returns the id of a child with this label. Characters other than ASCII letters, digits and
    /// `_` become `-`, the label is cut after 40 characters, and `-` at its ends is dropped. An
    /// empty label becomes `sub`. If `taken` is above 0, `-` and that number are appended. Callers
    /// first pass 0, then 1, 2 and so on, until no other thread has the id.
    ///
    /// ```
    /// # extern crate pumphouse_ground as pumphouse;
    /// use pumphouse::ThreadId;
    /// let parent = ThreadId::new("sess-k3v9x2ma");
    /// assert_eq!(parent.child("image analysis", 0).as_str(), "sess-k3v9x2ma.image-analysis");
    /// assert_eq!(parent.child("research", 2).as_str(), "sess-k3v9x2ma.research-2");
    /// ```
    #[must_use]
    pub fn child(&self, label: &str, taken: u32) -> ThreadId {
        let fits = |it: char| if it.is_ascii_alphanumeric() || it == '_' { it } else { '-' };
        let label: String = label.chars().take(LABEL_CHARACTERS).map(fits).collect();
        let label = label.trim_matches('-');
        let label = if label.is_empty() { LABEL } else { label };
        match taken {
            0 => ThreadId(format!("{self}{CHILD}{label}").into()),
            _ => ThreadId(format!("{self}{CHILD}{label}-{taken}").into()),
        }
    }

    /// Returns the id of the session at the root of this thread's tree. The root's id is the part
    /// before the first `.`, since a child's id is its parent's id, a `.` and a label.
    #[must_use]
    pub fn tree(&self) -> ThreadId {
        match self.0.split_once(CHILD) {
            Some((tree, _)) => ThreadId(tree.into()),
            None => self.clone(),
        }
    }

    /// Whether this thread is below the thread `above`: its id then begins with the id of `above`
    /// and a `.`.
    pub fn is_below(&self, above: &ThreadId) -> bool {
        self.0.strip_prefix(&*above.0).is_some_and(|rest| rest.starts_with(CHILD))
    }

    /// Returns the id of the session at the root of this thread's tree, as text.
    pub fn tree_str(&self) -> &str {
        self.0.split_once(CHILD).map_or(&self.0, |(tree, _)| tree)
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for ThreadId {
    fn borrow(&self) -> &str {
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

/// The id of an entry: its thread, and its sequence number there. It is written `thread/seq`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId {
    /// The thread.
    pub thread: ThreadId,
    /// The sequence number in the thread, from 1.
    pub seq: u64,
}

impl EntryId {
    /// Returns the id of the entry `seq` of `thread`.
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

/// The error for a text that isn't of the form `thread/seq`.
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
    fn a_child_is_called_after_its_parent_with_what_fits_of_its_label() {
        let parent = ThreadId::new("sess-00000001");
        let cases = [
            ("research", 0, "sess-00000001.research"),
            ("research", 1, "sess-00000001.research-1"),
            ("a.b/c d", 0, "sess-00000001.a-b-c-d"),
            ("--", 0, "sess-00000001.sub"),
            ("", 3, "sess-00000001.sub-3"),
            ("käse", 0, "sess-00000001.k-se"),
        ];
        for (label, taken, id) in cases {
            assert_eq!(parent.child(label, taken).as_str(), id);
        }
        let long = parent.child(&"x".repeat(1_000), 0);
        assert_eq!(long.as_str().len(), parent.as_str().len() + 1 + LABEL_CHARACTERS);
        assert_eq!(parent.child("a", 0).child("b", 0).tree(), parent);
        assert_eq!(parent.tree(), parent);
    }

    #[test]
    fn a_session_has_forty_bits() {
        assert_eq!(ThreadId::session(u64::MAX).as_str(), "sess-zzzzzzzz");
        assert_eq!(ThreadId::session(1).as_str(), "sess-10000000");
    }
}
