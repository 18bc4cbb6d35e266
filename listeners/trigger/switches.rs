//! Switches triggers off and on, for the whole organism.

use std::collections::BTreeSet;
use std::sync::Arc;

use pumphouse::listener::{OrganismFold, OrganismThread};
use pumphouse::log::Flags;
use pumphouse::prelude::*;
use pumphouse::schema::nearest;

use super::super::words::operator::SwitchTrigger;
use super::TriggerState;
use super::words::{TriggerRefused, TriggerSwitched};

/// The triggers that are switched off, as the thread `organism` has them.
#[derive(Debug, Default)]
pub(super) struct SwitchedOff(OrganismFold<Names>);

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
    /// The names of the triggers that are switched off.
    ///
    /// # Errors
    /// If the log can't be read.
    pub(super) async fn names(&self, organism: &OrganismThread) -> Result<BTreeSet<String>, Fault> {
        self.0.with(organism, |it| it.0.clone()).await
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
        let text = format!("{} may not switch triggers; operators may", message.from());
        return Ok(Err(TriggerRefused { message: text }));
    }
    if !state.names.contains(&name) {
        let near = nearest(&name, state.names.iter().map(String::as_str));
        let near = near.map(|it| format!("; did you mean {it}?")).unwrap_or_default();
        return Ok(Err(TriggerRefused { message: format!("there is no trigger {name}{near}") }));
    }
    let switched = TriggerSwitched { name, on, by: message.from().to_owned() };
    organism.record(&switched).await?;
    Ok(Ok(switched))
}
