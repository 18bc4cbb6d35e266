//! Tests the decisions of triggers, without a pump.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::metadata::{Field, Fields, Kind};
use super::super::workflow::Workflow;
use super::firings::Watch;
use super::rule::{Change, Decided};
use super::*;

fn fields() -> Fields {
    let status = Field::choice("status", ["IDLE", "CODING", "TESTING"]).default("IDLE");
    let priority = Field::choice("priority", ["HIGH", "LOW"]).default("LOW");
    let context = Field::new("context", Kind::Object);
    Fields::new([status, priority, context]).unwrap()
}

fn workflow(name: &str, trigger: &Value) -> Workflow {
    let steps = json!([{"name": "a", "target": "t"}]);
    Workflow::from_json(json!({"name": name, "trigger": trigger, "steps": steps})).unwrap()
}

/// Plays changes of an agent's metadata, one in each turn. Returns the names of the triggers that
/// fire at each change.
fn play(workflows: &[Workflow], changes: &[Value]) -> Vec<Vec<String>> {
    let mut triggers = Triggers::default();
    triggers.watch("coder", fields(), workflows).unwrap();
    let watched = &triggers.agents["coder"];
    let (mut watch, mut all) = (Watch::default(), Vec::new());
    for (turn, fields) in (1..).zip(changes) {
        let Value::Object(fields) = fields else { panic!("{fields} is no object") };
        let change = Change { turn: Some(turn), fields, at_work: BTreeSet::new() };
        let decided = watched.decide(&watch, &change);
        let fires = decided.iter().filter(|it| it.decision.fires);
        all.push(fires.map(|it| it.decision.rule.clone()).collect());
        for Decided { decision, .. } in decided {
            watch.held.insert(decision.rule, decision.holds);
        }
        watch.values.extend(fields.clone());
    }
    all
}

#[track_caller]
fn check(trigger: &Value, changes: &[Value], expected: &[bool]) {
    let fired = play(&[workflow("w", trigger)], changes);
    let fired: Vec<bool> = fired.iter().map(|it| !it.is_empty()).collect();
    assert_eq!(fired, expected);
}

#[test]
fn an_edge_fires_when_the_condition_begins_to_hold() {
    let coding = json!({"conditions": {"status": "CODING"}});
    let set = |it: &str| json!({"status": it});
    let changes = [set("CODING"), set("CODING"), set("IDLE"), set("CODING")];
    check(&coding, &changes, &[true, false, false, true]);
    // Before the first change, the fields have their defaults.
    let idle = json!({"conditions": {"status": "IDLE"}});
    check(&idle, &[set("IDLE"), set("CODING"), set("IDLE")], &[false, false, true]);
}

#[test]
fn a_level_fires_at_each_change_while_the_condition_holds() {
    let level = json!({"conditions": {"status": "CODING"}, "fire": "level"});
    let changes =
        [json!({"status": "CODING"}), json!({"priority": "HIGH"}), json!({"status": "IDLE"})];
    check(&level, &changes, &[true, true, false]);
}

#[test]
fn a_level_fires_once_in_a_turn_and_never_while_its_last_run_is_at_work() {
    let level = workflow("w", &json!({"conditions": {"status": "CODING"}, "fire": "level"}));
    let mut triggers = Triggers::default();
    triggers.watch("coder", fields(), [&level]).unwrap();
    let coding = json!({"status": "CODING"});
    let decide = |fired: Option<u64>, turn, at_work: &[&'static str]| {
        let mut watch = Watch::default();
        watch.fired.extend(fired.map(|it| ("w".to_owned(), it)));
        let fields = coding.as_object().unwrap();
        let change =
            Change { turn: Some(turn), fields, at_work: at_work.iter().copied().collect() };
        triggers.agents["coder"].decide(&watch, &change).remove(0).decision.why
    };
    assert_eq!(decide(Some(1), 2, &[]), None);
    assert_eq!(decide(Some(2), 2, &[]).as_deref(), Some("it has fired in this turn"));
    assert_eq!(decide(Some(1), 2, &["w"]).as_deref(), Some("its last run is at work"));
}

#[test]
fn on_change_fires_when_a_field_of_the_condition_has_another_value() {
    let pattern = json!({"conditions": {"context": {"phase": "testing"}}, "fire": "on_change"});
    let context = |phase: &str, n: i64| json!({"context": {"phase": phase, "n": n}});
    let changes = [
        context("testing", 1),
        context("testing", 1),
        json!({"status": "CODING"}),
        context("testing", 2),
        context("coding", 3),
    ];
    check(&pattern, &changes, &[true, false, false, true, false]);
}

#[test]
fn triggers_with_a_higher_priority_come_first() {
    let trigger = |priority: i64| json!({"conditions": {"status": "CODING"}, "priority": priority});
    let all = [workflow("a", &trigger(0)), workflow("b", &trigger(5)), workflow("c", &trigger(5))];
    let fired = play(&all, &[json!({"status": "CODING"})]);
    assert_eq!(fired, [["b", "c", "a"]]);
}

proptest! {
    /// Compares the firings with the definition of an edge: false before the change, true after it.
    #[test]
    fn each_edge_fires_once_and_in_order(states in prop::collection::vec(0_usize..3, 1..200)) {
        let words = ["IDLE", "CODING", "TESTING"];
        let changes: Vec<Value> = states.iter().map(|it| json!({"status": words[*it]})).collect();
        let trigger = json!({"conditions": {"status": ["CODING", "TESTING"]}});
        let fired = play(&[workflow("w", &trigger)], &changes);
        let mut was = false;
        for (state, fired) in states.iter().zip(fired) {
            let is = *state > 0;
            prop_assert_eq!(!fired.is_empty(), is && !was);
            was = is;
        }
    }
}
