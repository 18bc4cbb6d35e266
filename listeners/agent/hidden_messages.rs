//! The text in a prompt at the place of messages that are hidden by clears.

use pumphouse::listener::Clears;
use pumphouse::prelude::*;
use pumphouse::wire::core::{ContextCleared, ContextRestored};

use super::prompt_form::Form;
use super::words::ContextSummary;

/// The messages that clears hide from a prompt.
pub(super) struct HiddenMessages {
    /// The number of the first entry that is hidden.
    pub(super) first: u64,
    /// The text that the prompt shows in place of the messages.
    pub(super) text: String,
}

/// Returns the messages that clears hide, from form 2 on. None if nothing is hidden.
///
/// The newest clear in force is always in view itself, so the clears can be computed from the view.
pub(super) fn hidden_messages(
    form: Form<'_>,
    agent: &str,
    view: &[Entry],
) -> Option<HiddenMessages> {
    let mut clears = Clears::default();
    view.iter().for_each(|it| clears.apply(it));
    let first = *clears.hidden().first()?.start();
    let said = match clears.messages() {
        0 => return None,
        1 => "1 earlier message is hidden; nothing is lost.".to_owned(),
        count => format!("{count} earlier messages are hidden; nothing is lost."),
    };
    let text = match summary(agent, view) {
        None => form.line(&said),
        Some(ContextSummary { error: Some(_), .. }) => {
            form.line(&format!("{said} There is no summary of them."))
        }
        Some(it) => {
            format!("{}\n{}", form.line(&format!("{said} In short:")), form.quoted(&it.text))
        }
    };
    Some(HiddenMessages { first, text })
}

/// The agent's newest summary of messages that are hidden by a clear in force.
fn summary(agent: &str, view: &[Entry]) -> Option<ContextSummary> {
    let (mut newest, mut in_force) = (None, Vec::new());
    for entry in view.iter().filter(|it| !it.is_refused()) {
        if entry.from() == agent && entry.is::<ContextSummary>() {
            newest = entry.decode_if::<ContextSummary>();
        } else if entry.is::<ContextCleared>() {
            in_force.push(newest.take());
        } else if entry.is::<ContextRestored>() {
            in_force.pop();
        }
    }
    in_force.into_iter().rev().flatten().next()
}
