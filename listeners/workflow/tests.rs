//! Tests plans and runs, without a pump.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::words::action::Status;
use super::definition::Definition;
use super::plan::{Plan, undo_of};
use super::run::{Facts, Failing, Next};
use super::*;

fn plan(steps: &Value) -> Plan {
    let definition = json!({"name": "w", "steps": steps});
    Plan::new(Definition::deserialize(&definition).unwrap()).unwrap()
}

/// A step that calls a tool.
fn step(name: &str) -> Value {
    json!({"name": name, "target": "tool"})
}

/// A step with more keys.
fn with(name: &str, more: &Value) -> Value {
    let mut step = step(name);
    let keys = step.as_object_mut().unwrap();
    keys.extend(more.as_object().unwrap().clone());
    if keys.get("type").is_some_and(|it| it == "decision" || it == "barrier") {
        keys.remove("target");
    }
    step
}

/// Plays a run without a pump. `outcomes` has the statuses of calls that don't end with `ok`.
/// Returns what the run did, in words.
fn play(plan: &Plan, outcomes: &[(&str, Status)], trigger: &Value) -> Vec<String> {
    let outcomes: BTreeMap<&str, Status> = outcomes.iter().copied().collect();
    let values = json!({ "trigger": trigger });
    let (mut facts, mut told, mut calls) = (Facts::default(), Vec::new(), 0);
    for _ in 0..100 {
        let next = facts.next(plan, &|it| it.within(&values).cloned());
        // Equal facts give equal next steps.
        assert_eq!(next, facts.next(plan, &|it| it.within(&values).cloned()));
        let name = |it: usize| plan.steps[it].step.name.clone();
        let mut began = Vec::new();
        for next in next {
            match next {
                Next::Decide { step, verdict } => {
                    told.push(format!("{} is {}", name(step), verdict.holds));
                    facts.decided.insert(name(step), verdict.holds);
                }
                Next::Call { step, is_undo } => {
                    calls += 1;
                    facts.call(&name(step), is_undo, calls);
                    began.push((name(step), is_undo));
                }
                Next::Cancel { step } => {
                    told.push(format!("cancel {}", name(step)));
                    facts.cancelled.insert(name(step));
                    facts.end(&name(step), false, Status::Cancelled, None);
                }
                Next::End => {
                    told.push("end".to_owned());
                    return told;
                }
                Next::Fail(Failing { reason, undone, not_undone, .. }) => {
                    told.push(format!("fail: {reason}; undone {undone:?}, not {not_undone:?}"));
                    return told;
                }
            }
        }
        let words: Vec<String> = began
            .iter()
            .map(|(name, is_undo)| if *is_undo { format!("undo {name}") } else { name.clone() })
            .collect();
        if words.is_empty() && !told.last().is_some_and(|it| it.starts_with("cancel")) {
            panic!("the run does nothing: {told:?}");
        }
        told.extend((!words.is_empty()).then(|| words.join(" + ")));
        let slow: Vec<(String, bool)> = began
            .into_iter()
            .filter(|(name, is_undo)| {
                let word = if *is_undo { undo_of(name) } else { name.clone() };
                let status = outcomes.get(&*word).copied().unwrap_or(Status::Ok);
                let is_slow = status == Status::Unknown;
                if !is_slow {
                    facts.end(name, *is_undo, status, Some("why".to_owned()));
                }
                is_slow
            })
            .collect();
        // `unknown` stands for a call that is under way while another one fails.
        assert!(slow.len() < 2, "only one call of a test goes on");
    }
    panic!("the run has no end: {told:?}")
}

#[track_caller]
fn check(steps: &Value, outcomes: &[(&str, Status)], expected: &[&str]) {
    assert_eq!(play(&plan(steps), outcomes, &json!({"n": 3})), expected);
}

#[test]
fn steps_run_one_after_another() {
    check(&json!([step("a"), step("b"), step("c")]), &[], &["a", "b", "c", "end"]);
}

#[test]
fn neighbours_of_one_group_run_side_by_side() {
    let group = |name| with(name, &json!({"parallel_group": "g"}));
    let steps = json!([step("a"), group("b"), group("c"), step("d")]);
    check(&steps, &[], &["a", "b + c", "d", "end"]);
}

#[test]
fn a_step_waits_for_those_that_it_depends_on() {
    let after = |name, on: &[&str]| with(name, &json!({"depends_on": on}));
    let steps = json!([after("a", &[]), after("b", &[]), after("c", &["a", "b"]), step("d")]);
    check(&steps, &[], &["a + b", "c", "d", "end"]);
}

#[test]
fn a_barrier_waits_for_all_before_it() {
    let after = |name, on: &[&str]| with(name, &json!({"depends_on": on}));
    let barrier = with("all", &json!({"type": "barrier"}));
    let steps = json!([after("a", &[]), after("b", &["a"]), after("c", &[]), barrier, step("d")]);
    check(&steps, &[], &["a + c", "b", "d", "end"]);
}

#[test]
fn a_condition_that_does_not_hold_passes_over_its_step() {
    let steps = json!([
        with("a", &json!({"condition": "trigger.n > 3"})),
        with("b", &json!({"condition": "trigger.n == 3"})),
    ]);
    check(&steps, &[], &["a is false", "b is true", "b", "end"]);
}

#[test]
fn a_decision_takes_one_branch_and_goes_on() {
    let decision = |n: i64| {
        let condition = format!("trigger.n == {n}");
        let more = json!({
            "type": "decision",
            "condition": condition,
            "then": [step("yes"), step("more")],
            "else": [step("no")],
        });
        json!([with("which", &more), step("last")])
    };
    check(&decision(3), &[], &["which is true", "yes", "more", "last", "end"]);
    check(&decision(4), &[], &["which is false", "no", "last", "end"]);
}

#[test]
fn a_failure_ends_the_run_and_undoes_what_was_done_the_newest_first() {
    let undo = |name| with(name, &json!({"compensate": {"target": "undo"}}));
    let steps = json!([undo("a"), undo("b"), step("c"), step("d")]);
    let failed = [("c", Status::Failed)];
    let end = "fail: c failed: why; undone [\"b\", \"a\"], not []";
    check(&steps, &failed, &["a", "b", "c", "undo b", "undo a", end]);
    let failed = [("c", Status::TimedOut), ("b-undo", Status::Failed)];
    let end = "fail: c timed out: why; undone [\"a\"], not [\"c\", \"b\"]";
    check(&steps, &failed, &["a", "b", "c", "undo b", "undo a", end]);
}

#[test]
fn a_failure_cancels_what_is_under_way() {
    let group = |name| with(name, &json!({"parallel_group": "g"}));
    let steps = json!([group("a"), group("b"), step("c")]);
    let outcomes = [("a", Status::Unknown), ("b", Status::Failed)];
    let end = "fail: b failed: why; undone [], not [\"a\"]";
    check(&steps, &outcomes, &["a + b", "cancel a", end]);
}

#[test]
fn a_run_goes_on_after_a_failure_where_its_step_says_so() {
    let success = json!({"condition": "previous_steps_success"});
    let steps = |word: &str| {
        let a = with("a", &json!({"on_failure": word}));
        json!([a, with("b", &success), step("c")])
    };
    let failed = [("a", Status::Failed)];
    check(&steps("continue"), &failed, &["a", "b is false", "c", "end"]);
    check(&steps("log_only"), &failed, &["a", "b is true", "b", "c", "end"]);
}

#[track_caller]
fn wrong(definition: Value) -> Vec<String> {
    let error = Workflow::from_json(definition).expect_err("it is wrong");
    error.all().iter().map(ToString::to_string).collect()
}

#[test]
fn every_mistake_of_a_definition_is_told_with_its_path() {
    let steps = json!([
        {"name": "1", "target": "t"},
        {"name": "a"},
        {"name": "a", "target": "t", "depends_on": ["bb"]},
        {"name": "b", "type": "decision"},
        {"name": "c-undo", "target": "t", "condition": "steps.q == 1"},
        {"name": "d", "type": "barrier", "target": "t", "then": [{"name": "e", "target": "t"}]},
        {"name": "f", "target": "t", "retry_policy": {"max_attempts": 0}},
        {"name": "g", "target": "t", "depends_on": ["h"]},
        {"name": "h", "target": "t", "depends_on": ["g"]},
    ]);
    let told = wrong(json!({"name": "w", "steps": steps}));
    assert_eq!(
        told,
        [
            "steps[0].name: \"1\" is no name of a step: it has letters, digits, _ and -, and \
             begins with a letter or _",
            "steps[1]: the step needs the key `target`, the listener that it calls, or `fail`",
            "steps[2].name: there is another step `a`",
            "steps[3]: a decision needs the key `condition`",
            "steps[3]: a decision needs steps under `then` or `else`",
            "steps[4].name: names that end in -undo are those of calls that undo a step",
            "steps[5].target: a decision and a barrier can't fail, and call nobody",
            "steps[5]: only a step of the type `decision` has `then` and `else`",
            "steps[6].retry_policy.max_attempts: it is from 1 to 6",
            "steps[2].depends_on[0]: there is no step `bb`; did you mean `b`?",
            "steps: these steps wait for each other: g, h",
            "steps[4].condition: `steps` has no `q` (it has 1, a, b, c-undo, d, f, g, h)",
        ]
    );
    assert_eq!(wrong(json!({"name": "w", "steps": []})), ["steps: a workflow needs a step"]);
}
