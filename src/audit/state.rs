//! The states of threads at each entry, such as open or closed. They are computed from the flags of
//! the entries, because the log stores only the present state of a thread.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crate::id::ThreadId;
use crate::log::{Entry, State};

/// The states of threads, for a reader that passes all entries to [`States::with`] in their order.
/// Open threads take no memory here.
#[derive(Debug, Default)]
pub struct States(HashMap<ThreadId, State>);

impl States {
    /// Takes the next entry. Returns the state of its thread right after the entry.
    pub fn with(&mut self, entry: &Entry) -> State {
        match entry.flags.state() {
            None => self.0.get(&entry.id.thread).copied().unwrap_or_default(),
            Some(State::Open) => {
                self.0.remove(&entry.id.thread);
                State::Open
            }
            Some(state) => {
                self.0.insert(entry.id.thread.clone(), state);
                state
            }
        }
    }
}

/// A state as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it is the state and nothing else")]
pub struct StateWord(pub State);

impl StateWord {
    /// All states.
    pub const ALL: [State; 6] = [
        State::Open,
        State::Paused,
        State::Closed,
        State::Cancelled,
        State::OverBudget,
        State::Failed,
    ];
}

impl FromStr for StateWord {
    type Err = NoState;

    fn from_str(text: &str) -> Result<StateWord, NoState> {
        StateWord::ALL.into_iter().find(|it| it.as_str() == text).map(StateWord).ok_or(NoState)
    }
}

/// The error of a text that isn't a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoState;

impl fmt::Display for NoState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a thread is {}", StateWord::ALL.map(State::as_str).join(", "))
    }
}

impl std::error::Error for NoState {}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::id::EntryId;
    use crate::log::{Batch, Draft, Flags, Log as _, MemoryLog, NewThread};
    use crate::name::Name;

    /// A log with a thread whose entries have these flags.
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
        let mut states = States::default();
        let told: Vec<&str> = entries.iter().map(|it| states.with(it).as_str()).collect();
        assert_eq!(told, ["open", "paused", "paused", "open", "closed"]);
    }

    #[test]
    fn a_state_is_read_as_it_is_written() {
        for state in StateWord::ALL {
            assert_eq!(state.to_string().parse(), Ok(StateWord(state)));
        }
        assert_eq!("shut".parse::<StateWord>(), Err(NoState));
    }
}
