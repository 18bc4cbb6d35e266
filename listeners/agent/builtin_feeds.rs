//! The built-in feeds of a prompt: the agent's metadata, the checklists, and the budgets that are
//! nearly spent. This module is pure.

use std::collections::BTreeMap;

use pumphouse::prelude::*;
use pumphouse::wire::budget::{BudgetKey, BudgetRaised, BudgetWarning};

use super::super::feed::definition::{BUDGET, METADATA, TODOS};
use super::super::feed::shown::Feed;
use super::super::metadata::{Fields, KnownFields, show};
use super::super::todo::list::Todos;

/// The source that is recorded for built-in feeds.
pub(super) const SOURCE: &str = "built-in";

/// The newest warnings about the budgets of a thread's tree. A fold.
#[derive(Clone, Debug, Default)]
pub struct Budgets(BTreeMap<(BudgetKey, Option<String>), BudgetWarning>);

impl Apply for Budgets {
    fn apply(&mut self, entry: &Entry) {
        // Senders aren't checked, since only the pump makes these payloads. A `budget-raised` has
        // another sender than the pump, namely the listener that was asked to raise the budget.
        if entry.is_refused() {
            return;
        }
        if let Some(it) = entry.decode_if::<BudgetWarning>() {
            self.0.insert((it.key, it.listener.clone()), it);
        } else if let Some(it) = entry.decode_if::<BudgetRaised>() {
            self.0.retain(|(key, _), _| *key != it.key);
        }
    }
}

/// The feed with the values of the metadata before a turn.
pub(super) fn metadata(fields: &Fields, known: &KnownFields, last_turn: u64) -> Feed {
    Feed::fresh(METADATA, show::current(fields, known, last_turn))
}

/// The feed with the thread's checklists.
pub(super) fn todos(todos: &Todos) -> Feed {
    let mut text = String::new();
    for (id, todo) in todos.all() {
        text += &format!("{id}: {}\n", todo.condition());
        for step in todo.steps() {
            let mark = if step.is_done() { 'x' } else { ' ' };
            text += &format!("  [{mark}] {}\n", step.text);
        }
    }
    Feed::fresh(TODOS, text.trim_end())
}

/// The feed with the budgets and turns of which three quarters are spent. `is_short` says that the
/// budget has room for only one short turn.
pub(super) fn budget(
    agent: &str,
    budgets: &Budgets,
    turn: u64,
    (max_turns, is_short): (u64, bool),
) -> Feed {
    let mut text = String::new();
    if turn >= max_turns || is_short {
        text += "This is your last turn: no action runs.\n";
    } else if turn.saturating_mul(4) > max_turns.saturating_mul(3) {
        text += &format!("Turn {turn} of {max_turns}.\n");
    }
    let theirs = |of: &Option<String>| of.as_deref().is_none_or(|it| it == agent);
    for ((key, of), it) in &budgets.0 {
        if theirs(of) {
            let BudgetWarning { used, limit, percent, .. } = it;
            text += &format!("{key}: {used} of {limit} are spent ({percent} %).\n");
        }
    }
    Feed::fresh(BUDGET, text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_told_from_three_quarters_on() {
        let told = |turn, max| budget("ada", &Budgets::default(), turn, (max, false)).text;
        assert_eq!(told(37, 50), "");
        assert_eq!(told(38, 50), "Turn 38 of 50.");
        assert_eq!(told(50, 50), "This is your last turn: no action runs.");
        assert_eq!(told(1, u64::MAX), "");
        let short = budget("ada", &Budgets::default(), 1, (50, true)).text;
        assert_eq!(short, "This is your last turn: no action runs.");
        let mut budgets = Budgets::default();
        for (key, listener) in [
            (BudgetKey::Tokens, None),
            (BudgetKey::Turns, Some("bob")),
            (BudgetKey::Turns, Some("ada")),
        ] {
            let listener = listener.map(str::to_owned);
            let warning = BudgetWarning {
                key,
                percent: 75,
                used: 150,
                limit: 200,
                thread: None,
                listener: listener.clone(),
            };
            budgets.0.insert((key, listener), warning);
        }
        let told = budget("ada", &budgets, 1, (50, false)).text;
        assert_eq!(
            told,
            "turns: 150 of 200 are spent (75 %).\ntokens: 150 of 200 are spent (75 %)."
        );
    }
}
