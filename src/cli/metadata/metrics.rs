//! Metrics of agents for each value of a metadata field: how long the field had the value, and the
//! model usage in that time. This module does no I/O.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cli::spending::sum::{ModelUsage, UsageSum, by};
use crate::id::ThreadId;
use crate::listener::Entry;
use crate::listeners::metadata::words::Metadata;
use crate::schema::json;
use crate::wire::budget::Charge;

/// The metrics of an agent for one value of the field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValueMetrics {
    pub(crate) agent: String,
    /// The value. None while the agent hadn't set the field.
    pub(crate) value: Option<Value>,
    /// Whether the field has this value now.
    pub(crate) is_current: bool,
    /// How many times the field changed to the value.
    pub(crate) entered: u64,
    /// For how long the field had the value in total, in microseconds.
    pub(crate) held_us: u64,
    /// The usage of the turns that began while the field had the value.
    pub(crate) used: ModelUsage,
}

/// The metrics of a thread's agents by the values of one field.
pub(crate) struct Metrics {
    thread: ThreadId,
    field: String,
    agents: BTreeMap<String, AgentMetrics>,
    /// When the thread ended, in microseconds since the epoch. None while it hasn't ended.
    ended_us: Option<u64>,
}

/// The metrics of one agent.
#[derive(Default)]
struct AgentMetrics {
    /// The value that the field has.
    value: Option<Value>,
    /// Whether the agent has ever set the field.
    has_set: bool,
    /// The rows of the values that the field had, in the order of their first appearance.
    rows: Vec<Row>,
    /// The index of the current row, and the time since which it is current, in microseconds since
    /// the epoch. None before the agent's first entry in the thread.
    current: Option<(usize, u64)>,
    /// The index of the row that was current when the agent's open turn began.
    turn: Option<usize>,
}

struct Row {
    value: Option<Value>,
    entered: u64,
    held_us: u64,
    used: UsageSum,
}

impl Metrics {
    /// Makes the metrics for a field, as they are before the thread's first entry.
    pub(crate) fn new(thread: ThreadId, field: &str) -> Metrics {
        Metrics { thread, field: field.to_owned(), agents: BTreeMap::new(), ended_us: None }
    }

    /// Applies the next entry. The entries that a fork shares with its source only set the value
    /// with which the fork begins.
    pub(crate) fn apply(&mut self, entry: &Entry) {
        if entry.is_refused() || entry.is_from_identity() {
            return;
        }
        let is_own = *entry.thread() == self.thread;
        let metadata = Metadata::recorded(entry);
        let is_charge = entry.is::<Charge>();
        if is_own {
            // A fork begins with the values of its source.
            let inherited = self.agents.values_mut().filter(|it| it.current.is_none());
            inherited.for_each(|it| it.enter(entry.at_us()));
        }
        if is_own && (metadata.is_some() || is_charge) {
            let agent = metadata.as_ref().map_or(entry.from(), |(agent, _)| agent);
            let agent = self.agents.entry(agent.to_owned()).or_default();
            if agent.current.is_none() {
                agent.enter(entry.at_us());
            }
            if is_charge {
                agent.charge(entry);
            }
        }
        let new = metadata.and_then(|(agent, it)| Some((agent, value_of(it, &self.field)?)));
        if let Some((agent, new)) = new {
            let agent = self.agents.entry(agent).or_default();
            agent.set(new, is_own.then_some(entry.at_us()));
        }
        if let Some(state) = entry.flags().state().filter(|_| is_own) {
            self.ended_us = (!state.is_live()).then_some(entry.at_us());
        }
    }

    /// Returns the metrics of all agents that have set the field, up to now or to the end of the
    /// thread. `now_us` is in microseconds since the epoch.
    pub(crate) fn all(self, now_us: u64) -> Vec<ValueMetrics> {
        let until_us = self.ended_us.unwrap_or(now_us);
        let having = self.agents.into_iter().filter(|(_, it)| it.has_set);
        having.flat_map(|(name, it)| it.all(&name, until_us)).collect()
    }
}

impl AgentMetrics {
    fn set(&mut self, new: Value, at_us: Option<u64>) {
        self.has_set = true;
        if self.value.as_ref() != Some(&new) {
            self.value = Some(new);
            if let Some(at_us) = at_us {
                self.enter(at_us);
            }
        }
    }

    /// Makes the present value's row the current one, from the given time on.
    fn enter(&mut self, at_us: u64) {
        self.leave(at_us);
        let known = self.rows.iter().position(|it| it.value == self.value);
        let row = known.unwrap_or_else(|| {
            let (value, used) = (self.value.clone(), UsageSum::within(0..u64::MAX));
            self.rows.push(Row { value, entered: 0, held_us: 0, used });
            self.rows.len() - 1
        });
        self.rows[row].entered += 1;
        self.current = Some((row, at_us));
    }

    fn leave(&mut self, at_us: u64) {
        if let Some((row, since_us)) = self.current {
            self.rows[row].held_us += at_us.saturating_sub(since_us);
        }
    }

    /// Counts a charge in the row of the value that the field had when the turn began.
    fn charge(&mut self, entry: &Entry) {
        let Some((current, _)) = self.current else { return };
        let is_settled = entry.decode_if::<Charge>().is_some_and(|it| it.settled);
        let row = if is_settled { self.turn.take().unwrap_or(current) } else { current };
        if !is_settled {
            self.turn = Some(row);
        }
        self.rows[row].used.take(entry);
    }

    fn all(mut self, agent: &str, until_us: u64) -> Vec<ValueMetrics> {
        if self.current.is_none() {
            self.enter(until_us);
        }
        self.leave(until_us);
        let current = self.current.map(|(row, _)| row);
        let metrics = |(place, row): (usize, Row)| ValueMetrics {
            agent: agent.to_owned(),
            value: row.value,
            is_current: current == Some(place),
            entered: row.entered,
            held_us: row.held_us,
            used: by(&row.used.all(), |_| ()).remove(&()).unwrap_or_default(),
        };
        self.rows.into_iter().enumerate().map(metrics).collect()
    }
}

/// Returns the value that an update sets a field to, or None if the update leaves the field as it
/// is.
fn value_of(metadata: Metadata, field: &str) -> Option<Value> {
    let mut fields = json::read(&metadata.fields?).ok()?;
    fields.get_mut(field).map(Value::take)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::base::kept::{Kept, kept};
    use crate::log::Flags;

    fn set(seq: u64, status: &str) -> Entry {
        let fields = Some(json!({"status": status}).to_string());
        let metadata = Metadata { turn: 1, fields, ..Metadata::default() };
        kept(seq, "coder", "coder", &metadata, Kept::default())
    }

    /// Makes the entry of a turn's charge: its reservation, or its settlement.
    fn charge(seq: u64, settled: bool) -> Entry {
        let (turns, tokens) = if settled { (0, -90) } else { (1, 100) };
        let told = settled.then_some((7, 3));
        let charge = Charge {
            turns,
            tokens,
            settled,
            model: Some("m".into()),
            tokens_in: told.map(|it| it.0),
            tokens_out: if settled { told.map(|it| it.1) } else { Some(1) },
            ..Charge::default()
        };
        kept(seq, "coder", "nobody", &charge, Kept { cause: Some(1), ..Kept::default() })
    }

    fn metrics(entries: &[Entry], now: u64) -> Vec<(Value, u64, u64, i64, u64)> {
        let mut metrics = Metrics::new(ThreadId::new("t"), "status");
        entries.iter().for_each(|it| metrics.apply(it));
        let told = |it: ValueMetrics| {
            let value = it.value.unwrap_or_default();
            (value, it.entered, it.held_us / 1_000_000, it.used.turns, it.used.input)
        };
        metrics.all(now * 1_000_000).into_iter().map(told).collect()
    }

    #[test]
    fn a_turn_counts_for_the_value_with_which_it_began() {
        let entries = [
            charge(2, false),
            set(3, "CODING"),
            charge(5, true),
            charge(6, false),
            set(7, "DONE"),
            charge(8, true),
            set(10, "CODING"),
            set(11, "CODING"),
        ];
        assert_eq!(
            metrics(&entries, 20),
            [
                (Value::Null, 1, 1, 1, 7),
                (json!("CODING"), 2, 4 + 10, 1, 7),
                (json!("DONE"), 1, 3, 0, 0),
            ]
        );
    }

    #[test]
    fn the_last_value_holds_until_the_thread_ends() {
        let last = Metadata::default();
        let closes = Kept { flags: Flags::CLOSES, ..Kept::default() };
        let entries = [set(3, "CODING"), kept(9, "other", "console", &last, closes)];
        let expected = [(Value::Null, 1, 0, 0, 0), (json!("CODING"), 1, 6, 0, 0)];
        assert_eq!(metrics(&entries, 100), expected);
    }

    #[test]
    fn a_fork_begins_with_the_value_of_its_source() {
        // For a thread of another id, all these entries belong to its source.
        let mut metrics = Metrics::new(ThreadId::new("fork"), "status");
        [charge(1, false), set(2, "CODING"), charge(3, true)]
            .iter()
            .for_each(|it| metrics.apply(it));
        let all = metrics.all(9_000_000);
        let told = |it: &ValueMetrics| (it.value.clone(), it.entered, it.held_us, it.used.turns);
        assert_eq!(all.iter().map(told).collect::<Vec<_>>(), [(Some(json!("CODING")), 1, 0, 0)]);
    }

    #[test]
    fn an_agent_that_never_set_the_field_has_no_metrics() {
        assert_eq!(metrics(&[charge(1, false), charge(2, true)], 5), []);
    }
}
