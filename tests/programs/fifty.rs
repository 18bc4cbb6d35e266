//! A workflow of fifty steps that has everything a workflow may have: `order`, with the workflow
//! `pack` as one of its steps. The programs and tests that run it have a tool that handles
//! [`Work`].
//!
//! With `n` above 3 the last step fails, and the completed steps are undone. Otherwise the run
//! succeeds.

use pumphouse::prelude::*;
use serde_json::{Value, json};

/// Work that takes its time.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
pub(crate) struct Work {
    /// What is done.
    pub(crate) what: String,
    /// How long that takes.
    pub(crate) ms: u64,
    /// How many attempts fail.
    pub(crate) fails: Option<u64>,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
pub(crate) struct Worked(pub(crate) String);

/// It doesn't work.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
pub(crate) struct Broke;

/// A step that calls the tool, which takes so many milliseconds.
fn step(name: &str, ms: u64) -> Value {
    // Equal calls one after another would be taken for a loop.
    json!({"name": name, "target": "tool", "parameters": {"what": name, "ms": ms}})
}

/// Such a step, which can be undone.
fn undoable(name: &str, ms: u64) -> Value {
    let parameters = json!({"what": format!("undo {name}"), "ms": 2});
    with(step(name, ms), &json!({"compensate": {"target": "tool", "parameters": parameters}}))
}

/// A step whose first attempts fail. Three in all are made.
fn flaky(name: &str, ms: u64, fails: u64) -> Value {
    let mut step = undoable(name, ms);
    step["parameters"]["fails"] = json!(fails);
    let policy = json!({"max_attempts": 3, "backoff": "none", "initial_delay": "10ms"});
    with(step, &json!({"retry_policy": policy}))
}

/// Adds keys to a step.
fn with(mut step: Value, keys: &Value) -> Value {
    for (key, value) in keys.as_object().into_iter().flatten() {
        step[key] = value.clone();
    }
    step
}

/// Steps that run side by side. Each takes longer than the one before, so that all runs have their
/// results in one order; so only the last one may be tried again.
fn group(name: &str, steps: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let grouped = |(number, mut step): (usize, Value)| {
        step["parameters"]["ms"] = json!(20 + 120 * number);
        with(step, &json!({"parallel_group": name}))
    };
    steps.into_iter().enumerate().map(grouped).collect()
}

/// A step that goes on with the result of another one.
fn following(name: &str, before: &str) -> Value {
    let mut step = undoable(name, 1);
    step["parameters"]["what"] = json!(format!("{name} after ${{steps.{before}}}"));
    step
}

/// The steps up to the first branch, and the branch: 18.
fn first() -> Vec<Value> {
    let mut steps = vec![undoable("reserve", 5), step("greet", 1)];
    let pick = |it: u64| match it {
        5 => flaky("pick_5", 0, 1),
        _ => undoable(&format!("pick_{it}"), 0),
    };
    steps.extend(group("picking", (1..=5).map(pick)));
    steps.push(json!({"name": "all_picked", "type": "barrier"}));
    steps.push(with(flaky("stamp", 1, 99), &json!({"on_failure": "continue"})));
    let large =
        [undoable("weigh", 2), flaky("crate", 2, 2), step("seal", 1), following("tag", "weigh")];
    let small = [undoable("fold", 2), step("envelope", 1), step("lick", 1)];
    steps.push(json!({
        "name": "is_large", "type": "decision", "condition": "trigger.n > 3",
        "then": large, "else": small,
    }));
    steps.push(with(step("praise", 1), &json!({"condition": "previous_steps_success"})));
    steps
}

/// Labels side by side, of which one fails, another workflow, and branches in a branch: 15.
fn second() -> Vec<Value> {
    let label = |it: u64| match it {
        4 => with(flaky("label_4", 0, 99), &json!({"on_failure": "log_only"})),
        _ => undoable(&format!("label_{it}"), 0),
    };
    let mut steps = group("labelling", (1..=4).map(label));
    steps.push(json!({"name": "all_labelled", "type": "barrier"}));
    let unpack = json!({"target": "tool", "parameters": {"what": "undo packed", "ms": 2}});
    steps.push(json!({
        "name": "packed", "type": "workflow", "target": "pack",
        "parameters": {"label": "${steps.label_1}", "n": "${trigger.n}"}, "compensate": unpack,
    }));
    let near = json!({
        "name": "is_near", "type": "decision", "condition": "steps.packed.weight > 3",
        "then": [undoable("walk", 2), following("ring", "walk")],
        "else": [undoable("drive", 2), following("park", "drive")],
    });
    steps.push(json!({
        "name": "is_foreign", "type": "decision", "condition": "trigger.n > 100",
        "then": [step("customs", 1), step("duty", 1)],
        "else": [near, step("map", 1)],
    }));
    steps
}

/// Steps that say what they depend on, a chain of results, and the last ones: 17.
fn third() -> Vec<Value> {
    let after = |mut step: Value, steps: &[&str]| {
        step["depends_on"] = json!(steps);
        step
    };
    let mut steps = vec![
        undoable("bill", 2),
        after(undoable("tax", 20), &["bill"]),
        after(undoable("mail", 140), &["bill"]),
        after(following("book", "tax"), &["tax", "mail"]),
        json!({"name": "all_billed", "type": "barrier"}),
        following("copy_1", "book"),
    ];
    steps.extend((2..=4).map(|it| following(&format!("copy_{it}"), &format!("copy_{}", it - 1))));
    steps.extend(group("telling", (1..=4).map(|it| undoable(&format!("tell_{it}"), 0))));
    steps.push(flaky("pay", 2, 2));
    let large = json!({"condition": "trigger.n > 3"});
    // The truck is under way when the ship fails, and cancelled.
    let truck = with(with(undoable("truck", 0), &large), &json!({"parallel_group": "leaving"}));
    let ship = with(with(flaky("ship", 30, 99), &large), &json!({"parallel_group": "leaving"}));
    steps.extend([with(truck, &json!({"parameters": {"what": "truck", "ms": 60_000}})), ship]);
    steps.push(step("thanks", 1));
    steps
}

/// The workflow of fifty steps.
pub(crate) fn order() -> Value {
    let steps = [first(), second(), third()].concat();
    json!({
        "name": "order",
        "steps": steps,
        "outputs": {"copy": "${steps.copy_4}", "weight": "${steps.packed.weight}",
                    "label": "${steps.label_4}", "thanks": "${steps.thanks}"},
    })
}

/// The workflow that is a step of the other one.
pub(crate) fn pack() -> Value {
    let wrap = json!({"name": "wrap", "target": "tool",
                      "parameters": {"what": "wrap ${trigger.label}", "ms": 2}});
    json!({
        "name": "pack",
        "steps": [wrap, flaky("tape", 1, 1), step("shelve", 1)],
        "outputs": {"weight": "${trigger.n}", "tape": "${steps.tape}"},
    })
}
