//! The messages that came while a client waited for something else, within a bound in bytes. A peer
//! that sends such messages without end would fill the memory of its client otherwise.

use std::collections::VecDeque;

use crate::client::limits::{KEPT_BYTES_MAX, MESSAGE_BYTES};
use crate::client::{Error, Incoming};

/// Messages in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The messages, each with the bytes that it counts for.
    all: VecDeque<(usize, Incoming)>,
    bytes: usize,
}

impl Kept {
    /// Keeps a message of this size on the wire, in bytes.
    ///
    /// # Errors
    /// If the messages would count for more than [`KEPT_BYTES_MAX`] bytes.
    pub(super) fn push(&mut self, bytes: usize, incoming: Incoming) -> Result<(), Error> {
        if self.bytes.saturating_add(counted(bytes)) > KEPT_BYTES_MAX {
            return Err(Error::Full);
        }
        self.push_last(bytes, incoming);
        Ok(())
    }

    /// Keeps a message of this size on the wire, even if the messages then count for more than the
    /// bound. The caller keeps no other one while [`is_full`](Kept::is_full) is true.
    pub(super) fn push_last(&mut self, bytes: usize, incoming: Incoming) {
        let bytes = counted(bytes);
        self.bytes = self.bytes.saturating_add(bytes);
        self.all.push_back((bytes, incoming));
    }

    /// Whether the messages count for [`KEPT_BYTES_MAX`] bytes or more.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= KEPT_BYTES_MAX
    }

    /// Takes the oldest message.
    pub(super) fn pop(&mut self) -> Option<Incoming> {
        self.take(|_| true)
    }

    /// Takes the oldest message that is one.
    pub(super) fn take(&mut self, is_one: impl Fn(&Incoming) -> bool) -> Option<Incoming> {
        let at = self.all.iter().position(|(_, it)| is_one(it))?;
        let (bytes, incoming) = self.all.remove(at)?;
        self.bytes -= bytes;
        Some(incoming)
    }
}

fn counted(bytes: usize) -> usize {
    bytes.saturating_add(MESSAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::core::Authenticated;

    fn message(identity: &str) -> Incoming {
        Incoming::Authenticated(Authenticated { identity: identity.to_owned() })
    }

    #[test]
    fn messages_of_more_than_the_bound_are_not_kept() {
        let mut kept = Kept::default();
        let half = KEPT_BYTES_MAX / 2 - MESSAGE_BYTES;
        kept.push(half, message("a")).unwrap();
        kept.push(half, message("b")).unwrap();
        assert_eq!(kept.take(|it| *it == message("b")), Some(message("b")));
        kept.push(half, message("c")).unwrap();
        let told = kept.push(1, message("d")).unwrap_err().to_string();
        assert_eq!(told, "messages of more than 67108864 bytes came before what was waited for");
        assert_eq!(kept.pop(), Some(message("a")));
    }

    #[test]
    fn a_small_message_counts_for_what_it_takes_in_memory() {
        let mut kept = Kept::default();
        let count = KEPT_BYTES_MAX / (MESSAGE_BYTES + 24);
        for _ in 0..count {
            kept.push(24, message("a")).unwrap();
        }
        assert!(matches!(kept.push(MESSAGE_BYTES, message("b")), Err(Error::Full)));
    }

    #[test]
    fn only_what_is_kept_is_counted() {
        let mut kept = Kept::default();
        kept.push(1, message("a")).unwrap();
        assert!(kept.push(KEPT_BYTES_MAX, message("b")).is_err());
        assert!(!kept.is_full());
        kept.push(1, message("c")).unwrap();
        kept.push_last(KEPT_BYTES_MAX, message("d"));
        assert!(kept.is_full());
        assert_eq!([kept.pop(), kept.pop()], ["a", "c"].map(|it| Some(message(it))));
        assert_eq!(kept.pop(), Some(message("d")));
        assert_eq!(kept.bytes, 0);
    }
}
