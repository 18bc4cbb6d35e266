//! Switches triggers off and on, for the whole organism.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pumphouse::listener::{OrganismFold, OrganismThread};
use pumphouse::log::Flags;
use pumphouse::prelude::*;
use pumphouse::schema::nearest;

use super::super::words::operator::SwitchTrigger;
use super::TriggerState;
use super::words::{TriggerRefused, TriggerSwitched};

/// The triggers that are switched off. The thread `organism` records them. While the pump runs,
/// only the listener `trigger` changes them.
#[derive(Debug, Default)]
pub(super) struct SwitchedOff {
    recorded: OrganismFold<Names>,
    /// None until the log has been read.
    known: Mutex<Option<BTreeSet<String>>>,
}

/// The names of triggers that are switched off. A fold of the thread `organism`.
#[derive(Clone, Debug, Default)]
struct Names(BTreeSet<String>);

impl Apply for Names {
    fn apply(&mut self, entry: &Entry) {
        match entry.decode_if() {
            Some(TriggerSwitched { name, on: true, .. }) => drop(self.0.remove(&name)),
            Some(TriggerSwitched { name, on: false, .. }) => drop(self.0.insert(name)),
            None => {}
        }
    }
}

impl SwitchedOff {
    /// The names of the triggers that are switched off. They are read from the log once.
    ///
    /// # Errors
    /// Fails if the log can't be read.
    pub(super) async fn names(&self, organism: &OrganismThread) -> Result<BTreeSet<String>, Fault> {
        if let Some(known) = &*self.known() {
            return Ok(known.clone());
        }
        let read = self.recorded.with(organism, |it| it.0.clone()).await?;
        Ok(self.known().get_or_insert(read).clone())
    }

    /// Reads the switches from entries of the thread `organism`, before the pump starts.
    pub(super) fn read(&self, entries: &[Entry]) {
        let mut names = Names(self.known().take().unwrap_or_default());
        entries.iter().for_each(|it| names.apply(it));
        *self.known() = Some(names.0);
    }

    fn known(&self) -> MutexGuard<'_, Option<BTreeSet<String>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Switches a trigger off or on.
pub(super) async fn switch(
    State(state): State<Arc<TriggerState>>,
    message: Message,
    organism: OrganismThread,
    SwitchTrigger { name, on }: SwitchTrigger,
) -> Result<Result<TriggerSwitched, TriggerRefused>, Fault> {
    if !message.flags().contains(Flags::FROM_OPERATOR) {
        let who = "a caller over the Unix socket, or one whose token is an operator's";
        let text = format!("{} may not switch triggers; operators may: {who}", message.from());
        return Ok(Err(TriggerRefused { message: text }));
    }
    if !state.names.contains(&name) {
        let near = nearest(&name, state.names.iter().map(String::as_str));
        let near = near.map(|it| format!("; did you mean {it}?")).unwrap_or_default();
        return Ok(Err(TriggerRefused { message: format!("there is no trigger {name}{near}") }));
    }
    let switched = TriggerSwitched { name, on, by: message.from().to_owned() };
    state.off.names(&organism).await?;
    organism.record(&switched).await?;
    if let Some(known) = &mut *state.off.known() {
        if switched.on {
            known.remove(&switched.name);
        } else {
            known.insert(switched.name.clone());
        }
    }
    Ok(Ok(switched))
}
