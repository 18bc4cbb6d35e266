//! Errors of `build()`: all of them are reported at once.

use std::time::Duration;

use pumphouse::limits::{Amount, Limits};
use pumphouse::prelude::*;
use pumphouse::schema::Schema;

use super::{Answer, Question};

#[derive(Clone, Debug, Default)]
struct Count;

impl Apply for Count {
    fn apply(&mut self, _: &Entry) {}
}

#[test]
fn every_complaint_comes_at_once() {
    let answer = async |_: Question| {};
    let hears = async |_: Arrivals, _: Question| {};
    let wrong = async |_: Fold<Count>, _: Queue, _: Question| Done {};
    let named = Schema::any(Name::new("urn:test", "x"), "");
    let complaints = pumphouse::builder()
        .with(Listener::new("a").on(answer).on(answer).describe("").inline().blocking())
        .with(Listener::new("b").on(wrong))
        .with(Listener::new("b").on_named(named, async |_: Element| {}))
        .with(Listener::new("core"))
        .with(Listener::new("e").on(hears).inline().shared())
        .with(Listener::new("c d").on(async |_: Answer| {}))
        .workers(0)
        .build()
        .unwrap_err();
    let expected = [
        "core: the pump itself has this name; take another",
        "\"c d\": a listener's name is letters, digits, '-', '_' and '.'",
        "b: 2 listeners of this name; each needs its own",
        "a: its description is empty: say what it is for, or leave .describe(…) out",
        "a: it can't be both inline and blocking: keep one of the two",
        "b: it takes Fold<Count>: add .fold::<Count>()",
        "b: it takes a Queue, but isn't serial: add .serial()",
        "b: it may emit {https://xml-pipeline.org/ns/core/v1}done, but has no grant emit:core: \
         add .grant::<EmitCore>()",
        "b: {urn:test}x has no description: give its schema a doc",
        "core: it has no handler: add .on(…)",
        "e: it takes Arrivals, but is inline: nothing comes while it is at work",
        "a: 2 handlers of {urn:test}question; keep one",
        "{urn:test}question is owned by a and b and e, and not all are .shared(): keep one, or \
         make each so in Rust",
        "workers must be from 1 to 64",
    ];
    let said = complaints.all().iter().map(|it| it.replace(concat!(module_path!(), "::"), ""));
    assert_eq!(said.collect::<Vec<_>>(), expected, "{complaints}");
}

#[test]
fn two_schemas_of_one_name_are_a_complaint() {
    /// Another question.
    #[derive(Payload)]
    #[payload(ns = "urn:test", rename = "question")]
    struct Other {
        _m: u64,
    }
    let one = Listener::new("a").on(async |_: Question| {});
    let other = Listener::new("b").on_reply(async |_: Other| {});
    let complaints = pumphouse::builder().with((one, other)).build().unwrap_err();
    let said = "b: its {urn:test}question isn't that of a: there <question> has no field <_m>; it \
                has <n>; share the type, or rename one";
    assert_eq!(complaints.all(), [said]);

    /// A question with nothing in it.
    #[derive(Payload)]
    #[payload(ns = "urn:test", rename = "question")]
    struct Less {
        _n: Option<u64>,
    }
    /// A question that may be about several.
    #[derive(Payload)]
    #[payload(ns = "urn:test", rename = "question")]
    struct More {
        _n: Vec<u64>,
    }
    let one = Listener::new("a").on(async |_: Less| {});
    let other = Listener::new("b").on_reply(async |_: More| {});
    let complaints = pumphouse::builder().with((one, other)).build().unwrap_err();
    let said = "b: its {urn:test}question isn't that of a; share the type, or rename one";
    assert_eq!(complaints.all(), [said], "no example tells these two apart");
}

/// Each bound that would let nothing happen is a complaint; a manifest finds the same ones.
#[test]
fn a_limit_that_lets_nothing_happen_is_a_complaint() {
    let mut limits = Limits::default();
    let mut expected = Vec::new();
    for bound in limits.bounds() {
        match bound.amount {
            Amount::Count(it) if bound.least > 0 => *it = 0,
            Amount::Time(it) if bound.least > 0 => *it = Duration::ZERO,
            _ => continue,
        }
        expected.push(format!("limits.{} must be at least 1", bound.name));
    }
    limits.inside.nodes_max = 0;
    expected.insert(0, "limits.inside.nodes_max must be at least 1".to_owned());
    for name in ["unconsumed_max", "steps_in_turn_max", "batches_in_flight_max", "handlers_max"] {
        assert!(expected.iter().any(|it| it.contains(name)), "{name}");
    }
    let echo = pumphouse::listeners::echo::echo;
    let builder = pumphouse::builder().with(echo().timeout(Duration::ZERO)).limits(limits);
    let complaints = builder.heartbeat(Duration::ZERO).build().unwrap_err();
    expected.insert(0, "echo: its time limit is 0: give .timeout(…) at least 1ms".to_owned());
    expected.push("the heartbeat must be at least 1ms apart".to_owned());
    assert_eq!(complaints.all().len(), expected.len(), "{complaints}");
    for (said, expected) in complaints.all().iter().zip(expected) {
        assert!(said.starts_with(&expected), "{said}: not {expected}");
    }
    // Zero turns, children or seconds are zero, and told as such.
    let mut zero = Limits::default();
    (zero.thread_turns_max, zero.tree_children_max, zero.tree_seconds_max) = (0, 0, 0);
    assert!(pumphouse::builder().with(echo()).limits(zero).build().is_ok());
}
