//! The machine stops at any time, and the actions of a thread continue after the restart. Each
//! action has one result, and effects under one key belong to one action.

use std::collections::BTreeMap;

use super::*;

const TURN: &str = r#"
<action mode="async" id="a">{"name": "tool", "parameters": {"what": "a", "ms": 40}}</action>
<action mode="async" id="b">
{"name": "tool", "parameters": {"what": "b", "ms": 20, "fails": 1}, "retry": 1}</action>
<action type="agent" mode="async" id="c" depends_on="a,b">
{"name": "sub", "parameters": {"question": "$a"}}</action>
<action type="relic" id="d" depends_on="c">{"name": "cache", "parameters": {"value": "$c"}}</action>
<action mode="async" id="e">{"name": "tool", "parameters": {"what": "e"}}</action>
<action mode="fire_and_forget" id="f" depends_on="nope">
{"name": "tool", "parameters": {"what": "f"}}</action>"#;

const RESULTS: [&str; 6] = [
    r#"a ok "a""#,
    r#"b ok "b""#,
    r#"c ok "answer to a""#,
    "d ok null",
    r#"e ok "e""#,
    "f failed unknown-dependency: depends on nope, and the turn is over without an action called \
     so",
];

/// Plays the turn, and stops the machine after each of these times.
fn play(seed: u64, dispatch: Dispatch, stops: &[u64]) {
    let world = World::new(seed, vec![Turn(1, dispatch), Says(TURN), Pause(30), Over(1)]);
    let disk = Disk::new(&world.sim);
    let pump = world.start(&disk);
    let first = world.sim.run(pump.tell(Go {})).unwrap().unwrap();
    let mut pump = Some(pump);
    for stop in stops {
        world.sim.run(world.sim.sleep(Duration::from_micros(*stop))).unwrap();
        world.sim.crash();
        drop(pump.take());
        pump = Some(world.start(&disk));
    }
    world.sim.rest().unwrap();
    let mut came = world.sim.run(results(disk.kept(), &first.thread)).unwrap();
    came.sort();
    assert_eq!(came, RESULTS, "seed {seed}, {stops:?}");
    // One key, one thing: however often it was tried.
    let mut done: BTreeMap<String, String> = BTreeMap::new();
    for (key, what, _) in world.effects.lock().unwrap().iter() {
        let before = done.insert(key.clone(), what.clone());
        assert!(before.is_none_or(|it| it == *what), "seed {seed}, {stops:?}: {key}");
    }
    let mut all: Vec<&str> = done.values().map(String::as_str).collect();
    all.sort_unstable();
    assert_eq!(all, ["a", "answer to a", "b", "e"], "seed {seed}, {stops:?}");
    let calls = world.sim.run(calls(disk.kept(), &first.thread)).unwrap();
    let counted = |id: &str| calls[id];
    assert_eq!(["a", "c", "d", "e"].map(counted), [1, 0, 1, 1], "seed {seed}, {stops:?}");
    // Its tool works the second time it is tried, also where a stop was the reason for that.
    assert!((1..=2).contains(&calls["b"]), "seed {seed}, {stops:?}: {calls:?}");
}

/// How often each action that ran was sent in its thread; an agent's calls are in their own.
async fn calls(log: &dyn Log, thread: &ThreadId) -> BTreeMap<String, usize> {
    let entries = log.read(thread, 0, u64::MAX, 10_000).await.unwrap();
    let mut ids = BTreeMap::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for it in entries.iter().filter(|it| it.name == <Action as Payload>::NAME) {
        let element = Element::from_canonical(it.body.clone()).unwrap();
        let action = Action::read(element.view()).unwrap();
        if action.depends_on != ["nope"] {
            counts.insert(action.id.clone(), 0);
        }
        ids.insert(it.id.seq.to_string(), action.id);
    }
    for it in entries.iter().filter(|it| &*it.from == "action") {
        let Some(meta) = &it.meta else { continue };
        let key = Element::from_canonical(meta.clone()).unwrap();
        let text = key.text();
        let (_, place) = text.rsplit_once('/').unwrap();
        *counts.get_mut(&ids[place]).unwrap() += 1;
    }
    counts
}

#[test]
fn a_stop_at_any_time_loses_nothing_and_doubles_nothing() {
    for at in (0..1_400_000).step_by(17_011) {
        play(at, Dispatch::Immediate, &[at]);
    }
}

#[test]
fn neither_do_many_stops_and_other_ways_to_begin() {
    for seed in 0..20 {
        let stops: Vec<u64> = (1..6).map(|it| seed * 997 * it % 90_000).collect();
        play(seed, Dispatch::Immediate, &stops);
        play(seed, Dispatch::Batched, &stops);
        play(seed, Dispatch::AfterResponse, &stops);
    }
}

#[test]
fn what_may_have_had_its_effect_is_unknown_and_not_tried_again() {
    let says = r#"
<action id="a">{"name": "press", "parameters": {}, "retry": 5}</action>
<action id="b" depends_on="a">{"name": "tool", "parameters": {"what": "b"}}</action>"#;
    let world = World::new(1, vec![Turn(1, Dispatch::Immediate), Says(says), Over(1)]);
    let disk = Disk::new(&world.sim);
    let pump = world.start(&disk);
    let first = world.sim.run(pump.tell(Go {})).unwrap().unwrap();
    world.sim.run(world.sim.sleep(Duration::from_millis(500))).unwrap();
    world.sim.crash();
    drop(pump);
    let _pump = world.start(&disk);
    world.sim.rest().unwrap();
    let came = world.sim.run(results(disk.kept(), &first.thread)).unwrap();
    assert!(came[0].starts_with("a unknown P0016: the pump stopped while press"), "{came:?}");
    assert_eq!(came[1..], ["b skipped skipped: nobody knows what became of a"]);
}
