//! Shows model usage in a table by model, by agent or by day.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::audit;
use crate::cli::base::screen::{Failure, Screen};
use crate::cli::spending::money::{UNKNOWN, money};
use crate::cli::spending::sum::{DAY_US, ModelUsage, UsageKey, by};

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Group {
    /// A row for each model.
    Model,
    /// A row for each listener that asked models.
    Agent,
    /// A row for each day, in UTC.
    Day,
}

impl Group {
    fn word(self) -> &'static str {
        match self {
            Group::Model => "model",
            Group::Agent => "agent",
            Group::Day => "day",
        }
    }

    /// Returns the name of the row that counts a key's usage on a day. Returns None if rows are
    /// models, and the charges name no model.
    fn row(self, key: &UsageKey, day: u64) -> Option<String> {
        match self {
            Group::Model => key.model.clone(),
            Group::Agent => Some(key.listener.to_string()),
            Group::Day => Some(date(day)),
        }
    }
}

/// Formats a day, which is counted from the epoch, as a date.
fn date(day: u64) -> String {
    let at = i64::try_from(day.saturating_mul(DAY_US)).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_microsecond(at).unwrap_or(jiff::Timestamp::MAX);
    at.strftime("%Y-%m-%d").to_string()
}

/// Shows the usage: as a table with a sum at its end, or as objects.
pub(crate) fn show(
    used: &BTreeMap<(UsageKey, u64), ModelUsage>,
    group: Group,
    to: &mut Screen<'_>,
) -> Result<(), Failure> {
    let rows = by(used, |(key, day)| group.row(key, *day));
    if to.json {
        return Ok(rows.iter().try_for_each(|(key, it)| to.object(&object(group, key, it)))?);
    }
    if rows.is_empty() {
        return Ok(to.line("nothing was charged")?);
    }
    let named =
        |it: &Option<String>| it.as_deref().map_or(UNKNOWN.into(), audit::line).into_owned();
    let all = by(used, |_| ()).remove(&()).unwrap_or_default();
    let mut lines = vec![line(group.word(), &HEAD.map(str::to_owned))];
    lines.extend(rows.iter().map(|(key, it)| line(&named(key), &cells(it))));
    lines.push(line("all", &cells(&all)));
    let width = lines.iter().map(|(name, _)| audit::cells(name)).max().unwrap_or(0);
    for (name, cells) in lines {
        let room = " ".repeat(width - audit::cells(&name));
        to.line(&format!("{name}{room}{cells}"))?;
    }
    Ok(())
}

const HEAD: [&str; 7] = ["turns", "input", "cached", "output", "tokens", "unpriced", "cost"];

fn line(name: &str, cells: &[String; 7]) -> (String, String) {
    (name.to_owned(), cells.iter().map(|it| format!("{it:>12}")).collect())
}

fn cells(it: &ModelUsage) -> [String; 7] {
    [
        it.turns.to_string(),
        it.input.to_string(),
        it.cached.to_string(),
        it.output.to_string(),
        it.tokens().to_string(),
        it.unpriced.to_string(),
        known_cost(it).map_or(UNKNOWN.to_owned(), money),
    ]
}

/// Returns the cost of the turns that have a price. Returns None if some turns have no price and
/// the known cost is 0.
fn known_cost(it: &ModelUsage) -> Option<i64> {
    (it.unpriced == 0 || it.cost_micros != 0).then_some(it.cost_micros)
}

fn object(group: Group, key: &Option<String>, it: &ModelUsage) -> Value {
    json!({
        group.word(): key,
        "turns": it.turns,
        "tokens_in": it.input,
        "tokens_cached": it.cached,
        "tokens_out": it.output,
        "tokens": it.tokens(),
        "unpriced_turns": it.unpriced,
        "cost_micros": known_cost(it),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_a_date_in_utc() {
        assert_eq!((date(0), date(20_000)), ("1970-01-01".to_owned(), "2024-10-04".to_owned()));
        assert!(date(u64::MAX).starts_with("9999-"));
    }

    #[test]
    fn turns_without_a_price_leave_the_cost_of_the_others() {
        let usage =
            |unpriced, cost_micros| ModelUsage { unpriced, cost_micros, ..ModelUsage::default() };
        assert_eq!(known_cost(&usage(0, 0)), Some(0));
        assert_eq!(known_cost(&usage(2, 7)), Some(7));
        assert_eq!(known_cost(&usage(2, 0)), None);
    }
}
