//! What state a thread is in: a fold over its entries, for the log has no column for it.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crate::id::ThreadId;
use crate::log::{Entry, Error, Log, State};

/// Entries that are read at a time.
const PAGE: usize = 256;
/// Threads whose state is remembered; of one that was forgotten the entries are read again.
const REMEMBERED_MAX: usize = 16_384;

/// The state of a thread after one more entry of it.
#[must_use]
pub fn after(state: State, entry: &Entry) -> State {
    entry.flags.state().unwrap_or(state)
}

/// The states of many threads, each as of the entry that was asked for last.
#[derive(Debug, Default)]
pub struct States(HashMap<ThreadId, (u64, State)>);

impl States {
    /// The state of a thread with an entry, which is its state once that entry was in it.
    ///
    /// # Errors
    /// Where the log can't be read.
    pub async fn with(&mut self, log: &dyn Log, entry: &Entry) -> Result<State, Error> {
        let (thread, upto) = (&entry.id.thread, entry.id.seq);
        let known = self.0.get(thread).copied().filter(|(seq, _)| *seq <= upto);
        let (seq, state) = known.unwrap_or_default();
        let state = match upto - seq {
            0 => state,
            1 => after(state, entry),
            _ => fold(log, thread, (seq, state), upto).await?,
        };
        if self.0.len() >= REMEMBERED_MAX && !self.0.contains_key(thread) {
            self.0.clear();
        }
        self.0.insert(thread.clone(), (upto, state));
        Ok(state)
    }
}

/// Goes on from a state to a later entry.
async fn fold(
    log: &dyn Log,
    thread: &ThreadId,
    (mut seq, mut state): (u64, State),
    upto: u64,
) -> Result<State, Error> {
    loop {
        let page = log.read(thread, seq, upto, PAGE).await?;
        let Some(last) = page.last() else { return Ok(state) };
        seq = last.id.seq;
        state = page.iter().fold(state, |state, entry| after(state, entry));
    }
}

/// A state as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it is the state and nothing else")]
pub struct Said(pub State);

impl Said {
    /// Every state.
    pub const ALL: [State; 6] = [
        State::Open,
        State::Paused,
        State::Closed,
        State::Cancelled,
        State::OverBudget,
        State::Failed,
    ];
}

impl FromStr for Said {
    type Err = NoState;

    fn from_str(text: &str) -> Result<Said, NoState> {
        Said::ALL.into_iter().find(|it| it.as_str() == text).map(Said).ok_or(NoState)
    }
}

/// What was given is no state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoState;

impl fmt::Display for NoState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a thread is {}", Said::ALL.map(State::as_str).join(", "))
    }
}

impl std::error::Error for NoState {}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::id::EntryId;
    use crate::log::{Batch, Draft, Flags, MemoryLog, NewThread};
    use crate::name::Name;

    /// A thread of entries with these flags.
    async fn log(flags: &[Flags]) -> (MemoryLog, ThreadId) {
        let (log, id) = (MemoryLog::new(), ThreadId::new("sess-a"));
        let draft = |(seq, flags): (u64, &Flags)| {
            let name = Name::of("urn:x", "a");
            let body = Bytes::from_static(b"<a xmlns=\"urn:x\"></a>");
            let draft = Draft::new(EntryId::new(&id, seq), 1, "a".into(), name, body);
            Draft { flags: *flags, ..draft }
        };
        let entries = (1..).zip(flags).map(draft).collect();
        let threads = vec![NewThread { id: id.clone(), parent: None, fork: None }];
        log.append(Batch { threads, entries, marks: Vec::new() }).await.unwrap();
        (log, id)
    }

    #[tokio::test]
    async fn a_state_is_told_as_of_an_entry() {
        let none = Flags::NONE;
        let (log, id) = log(&[none, Flags::PAUSES, none, Flags::RESUMES, Flags::CLOSES]).await;
        let entries = log.read(&id, 0, u64::MAX, 10).await.unwrap();
        let expected = ["open", "paused", "paused", "open", "closed"];
        for order in [&[0, 1, 2, 3, 4][..], &[2, 4], &[4, 1], &[3, 3]] {
            let mut states = States::default();
            for at in order {
                let state = states.with(&log, &entries[*at]).await.unwrap();
                assert_eq!(state.as_str(), expected[*at], "{at} of {order:?}");
            }
        }
    }

    #[test]
    fn a_state_is_read_as_it_is_written() {
        for state in Said::ALL {
            assert_eq!(state.to_string().parse(), Ok(Said(state)));
        }
        assert_eq!("shut".parse::<Said>(), Err(NoState));
    }
}
