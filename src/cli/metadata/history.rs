//! The changes of agents' metadata in a thread, in their order, and the runs of workflows that
//! triggers began because of these changes. This module does no I/O.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::id::EntryId;
use crate::listener::{Apply, Entry};
use crate::listeners::metadata::words::{Metadata, MetadataChanged};
use crate::listeners::trigger::NAME as TRIGGER;
use crate::listeners::trigger::words::{
    HeldLongEnough, TriggerDecision, TriggersDecided, is_run_of,
};
use crate::listeners::workflow::name_of;
use crate::schema::json;
use crate::wire::core::{ThreadNote, ThreadSpawned};

/// An update of one field. A refused update is kept, too.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Update {
    /// The entry with the update. In a fork, the entry may belong to the original thread.
    pub(crate) entry: EntryId,
    /// When the update was recorded, in microseconds since the epoch.
    pub(crate) at_us: u64,
    pub(crate) agent: String,
    /// The turn of the agent that made the update. 0 if a workflow made it, or before the first
    /// turn.
    pub(crate) turn: u64,
    /// The other agent or the workflow that made the update. None if the field's own agent made it.
    pub(crate) by: Option<String>,
    pub(crate) field: String,
    /// The value before. None if the field wasn't set.
    pub(crate) old: Option<Value>,
    /// The new value, or why the field wasn't changed.
    pub(crate) new: Result<Value, String>,
    /// The runs that triggers began because of the update.
    pub(crate) runs: Vec<TriggeredRun>,
}

/// A run that a trigger began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TriggeredRun {
    /// The trigger, which has the name of its workflow.
    pub(crate) rule: String,
    /// The thread of the run. None until the thread is opened, and always if the run was refused.
    pub(crate) thread: Option<String>,
}

/// A fold: the metadata of a thread's agents, and all updates that led to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetadataHistory {
    /// All updates, in their order.
    pub(crate) updates: Vec<Update>,
    /// Maps an agent to its fields, and each field to the index of its last accepted update.
    fields: BTreeMap<String, BTreeMap<String, usize>>,
    /// Maps an agent to the index of the first update in its newest entry with updates.
    newest: BTreeMap<String, usize>,
    /// Maps the number of a message about a change to the index of the change's first update.
    told: BTreeMap<u64, usize>,
    /// The runs that have no thread yet: for each, the number of the message about the change, and
    /// the trigger.
    fired: Vec<(u64, String)>,
}

impl Apply for MetadataHistory {
    fn apply(&mut self, entry: &Entry) {
        if entry.is_refused() && entry.from() == TRIGGER {
            let place = self.fired.iter().position(|it| Some(&*it.1) == name_of(entry.name()));
            place.map(|it| self.fired.remove(it));
        }
        if entry.is_refused() || entry.is_from_identity() {
            return;
        }
        if let Some((agent, metadata)) = Metadata::recorded(entry) {
            self.record(entry, &agent, metadata);
        } else if entry.is::<MetadataChanged>() && entry.to() == Some(TRIGGER) {
            let newest = self.newest.get(entry.from());
            self.told.extend(newest.map(|it| (entry.seq(), *it)));
        } else if let Some(held) = entry.decode_if::<HeldLongEnough>() {
            let first = self.told.get(&held.since).copied();
            self.told.extend(first.map(|it| (entry.seq(), it)));
        } else if entry.from() == TRIGGER {
            if let Some(decided) = entry.decode_if::<TriggersDecided>() {
                let firing = decided.decision.into_iter().filter(|it| it.fires);
                firing.for_each(|it| self.fire(decided.of, &it));
            }
        } else if entry.to() == Some(TRIGGER)
            && let Some(spawned) = entry.decode_if()
        {
            self.spawn(&spawned);
        }
    }
}

impl MetadataHistory {
    /// Returns the newest accepted update of each field, for all agents.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Update> {
        let all = self.fields.values().flat_map(BTreeMap::values);
        all.filter_map(|it| self.updates.get(*it))
    }

    /// Records the fields that were set for an agent, and the fields that were refused.
    fn record(&mut self, entry: &Entry, agent: &str, metadata: Metadata) {
        if entry.is::<ThreadNote>() {
            // A change from a child thread comes as a note, which is itself the message about the
            // change.
            self.told.insert(entry.seq(), self.updates.len());
        }
        self.newest.insert(agent.to_owned(), self.updates.len());
        let fields = metadata.fields.and_then(|it| json::read(&it).ok());
        let fields = match fields {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let changed = fields.into_iter().map(|(field, value)| (field, Ok(value)));
        let refused = metadata.error.into_iter().map(|it| (it.field, Err(it.message)));
        for (field, new) in changed.chain(refused) {
            let known = self.fields.entry(agent.to_owned()).or_default();
            let old = known.get(&field).and_then(|it| self.updates[*it].new.as_ref().ok());
            let old = old.cloned();
            if new.is_ok() {
                known.insert(field.clone(), self.updates.len());
            }
            self.updates.push(Update {
                entry: entry.id().clone(),
                at_us: entry.at_us(),
                agent: agent.to_owned(),
                turn: metadata.turn,
                by: metadata.by.clone(),
                field,
                old,
                new,
                runs: Vec::new(),
            });
        }
    }

    /// Returns the updates that a message is about.
    fn told(&mut self, of: u64) -> impl Iterator<Item = &mut Update> {
        let first = self.told.get(&of).copied().unwrap_or(self.updates.len());
        let entry = self.updates.get(first).map(|it| it.entry.clone());
        let all = self.updates[first..].iter_mut();
        all.take_while(move |it| Some(&it.entry) == entry.as_ref())
    }

    /// Records that a trigger begins a run. The run is added to each accepted update of a field
    /// that the trigger's condition refers to. If there is no such update, the run is added to all
    /// accepted updates of the change.
    fn fire(&mut self, of: u64, decision: &TriggerDecision) {
        let run = TriggeredRun { rule: decision.rule.clone(), thread: None };
        let is_seen = |field: &str| sees(&decision.saw.0, field);
        let is_any = self.told(of).any(|it| it.new.is_ok() && is_seen(&it.field));
        for update in self.told(of) {
            if update.new.is_ok() && (!is_any || is_seen(&update.field)) {
                update.runs.push(run.clone());
            }
        }
        self.fired.push((of, decision.rule.clone()));
    }

    /// Records the thread of a run. The pump opens the threads in the order of the decisions.
    fn spawn(&mut self, spawned: &ThreadSpawned) {
        let place = self.fired.iter().position(|(_, rule)| is_run_of(spawned, rule));
        let Some(place) = place else { return };
        let (of, rule) = self.fired.remove(place);
        let thread = &spawned.assigned_id;
        for update in self.told(of) {
            let runs = update.runs.iter_mut().filter(|it| it.rule == rule);
            runs.for_each(|it| it.thread = Some(thread.clone()));
        }
    }
}

/// Whether a condition refers to a field or to a part of it. `saw` has the values that the
/// condition saw.
fn sees(saw: &Value, field: &str) -> bool {
    let Value::Object(saw) = saw else { return false };
    let is_of = |name: &str| {
        let rest = name.strip_prefix("metadata.").and_then(|it| it.strip_prefix(field));
        rest.is_some_and(|it| it.is_empty() || it.starts_with(['.', '[']))
    };
    saw.keys().any(|it| is_of(it))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::base::kept::{Kept, kept};
    use crate::listeners::metadata::words::MetadataError;
    use crate::name::CORE_NAME;
    use crate::wire::Json;

    fn set(seq: u64, turn: u64, fields: &Value) -> Entry {
        let metadata = Metadata { turn, fields: Some(fields.to_string()), ..Metadata::default() };
        kept(seq, "coder", "coder", &metadata, Kept::default())
    }

    fn decided(seq: u64, of: u64, rule: &str, saw: Value) -> [Entry; 2] {
        let fields = Json(json!({}));
        let changed = MetadataChanged { turn: 1, fields: fields.clone() };
        let saw = Json(saw);
        let decision = vec![TriggerDecision {
            rule: rule.to_owned(),
            holds: true,
            fires: true,
            why: None,
            saw,
        }];
        let agent = "coder".to_owned();
        let decided = TriggersDecided {
            agent: Some(agent),
            turn: Some(1),
            of,
            fields: Some(fields),
            decision,
        };
        [
            kept(of, "coder", TRIGGER, &changed, Kept::default()),
            kept(seq, TRIGGER, TRIGGER, &decided, Kept::default()),
        ]
    }

    fn folded(entries: impl IntoIterator<Item = Entry>) -> MetadataHistory {
        let mut history = MetadataHistory::default();
        entries.into_iter().for_each(|it| history.apply(&it));
        history
    }

    #[test]
    fn each_update_has_the_value_before() {
        let history = folded([
            set(1, 1, &json!({"status": "CODING"})),
            set(2, 2, &json!({"status": "DONE", "count": 3})),
        ]);
        let told = |it: &Update| (it.field.clone(), it.old.clone(), it.new.clone());
        let all: Vec<_> = history.updates.iter().map(told).collect();
        let (coding, done) = (json!("CODING"), json!("DONE"));
        assert_eq!(
            all,
            [
                ("status".to_owned(), None, Ok(coding.clone())),
                ("status".to_owned(), Some(coding), Ok(done.clone())),
                ("count".to_owned(), None, Ok(json!(3))),
            ]
        );
        let now: Vec<_> = history.values().map(|it| (&*it.field, it.new.clone())).collect();
        assert_eq!(now, [("count", Ok(json!(3))), ("status", Ok(done))]);
    }

    #[test]
    fn a_refused_value_changes_nothing() {
        let error = vec![MetadataError { field: "status".into(), message: "no".into() }];
        let metadata = Metadata { turn: 2, error, ..Metadata::default() };
        let refused = kept(2, "coder", "coder", &metadata, Kept::default());
        let history = folded([set(1, 1, &json!({"status": "CODING"})), refused]);
        assert_eq!(history.updates[1].old, Some(json!("CODING")));
        assert_eq!(history.updates[1].new, Err("no".to_owned()));
        assert_eq!(history.values().next().unwrap().new, Ok(json!("CODING")));
    }

    #[test]
    fn a_run_stands_with_the_field_that_its_trigger_saw_and_has_its_thread() {
        let saw = json!({"metadata.status": "CODING"});
        let mut entries = vec![set(1, 1, &json!({"status": "CODING", "count": 1}))];
        entries.extend(decided(3, 2, "report", saw));
        let spawned =
            ThreadSpawned { assigned_id: "t.report".to_owned(), parent_id: "t".to_owned() };
        let cause = Kept { cause: Some(2), ..Kept::default() };
        entries.push(kept(4, CORE_NAME, TRIGGER, &spawned, cause));
        let history = folded(entries);
        let runs = |it: &Update| (it.field.clone(), it.runs.clone());
        let run = TriggeredRun { rule: "report".into(), thread: Some("t.report".into()) };
        let all: Vec<_> = history.updates.iter().map(runs).collect();
        assert_eq!(all, [("status".to_owned(), vec![run]), ("count".to_owned(), vec![])]);
    }

    #[test]
    fn a_run_that_begins_later_stands_with_the_change_since_which_its_condition_held() {
        let mut entries = vec![set(1, 1, &json!({"status": "CODING"}))];
        let changed = MetadataChanged { turn: 1, fields: Json(json!({})) };
        entries.push(kept(2, "coder", TRIGGER, &changed, Kept::default()));
        entries.push(set(3, 2, &json!({"count": 1})));
        let (rule, agent) = ("report".to_owned(), "coder".to_owned());
        let held = HeldLongEnough { rule, agent, turn: 1, since: 2 };
        entries.push(kept(4, TRIGGER, TRIGGER, &held, Kept::default()));
        let saw = json!({"metadata.status": "CODING"});
        let [_, fired] = decided(5, 4, "report", saw);
        entries.push(fired);
        let spawned =
            ThreadSpawned { assigned_id: "t.report".to_owned(), parent_id: "t".to_owned() };
        let cause = Kept { cause: Some(4), ..Kept::default() };
        entries.push(kept(6, CORE_NAME, TRIGGER, &spawned, cause));
        let history = folded(entries);
        let run = TriggeredRun { rule: "report".into(), thread: Some("t.report".into()) };
        let runs: Vec<_> = history.updates.iter().map(|it| it.runs.clone()).collect();
        assert_eq!(runs, [vec![run], vec![]]);
    }

    #[test]
    fn a_condition_may_refer_to_a_part_of_a_field() {
        let saw = json!({"metadata.context.phase": 1, "metadata.tags[0]": "a"});
        assert!(sees(&saw, "context") && sees(&saw, "tags"));
        assert!(!sees(&saw, "cont") && !sees(&saw, "phase"));
    }
}
