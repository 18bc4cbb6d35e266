//! The machine stops at any point of a turn, and the agent continues after the restart. There is
//! one final response, one result for each action, and one key for each effect.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use pumphouse::listeners::action::words::{Action, ActionResult};
use pumphouse::listeners::agent::settings::{Dialect, Settings};
use pumphouse::listeners::agent::words::{CognitionOut, Response};
use pumphouse::model::{self, Call, Model, Piece, Reply, Script};
use pumphouse::wire::budget::Charge;

use super::world::{World, stopping};
use super::*;

const WORKS: &str = r#"<thought>Two things.
<action mode="async" id="a">{"name": "tool", "parameters": {"what": "a", "ms": 30}}</action>
</thought>
<response final="false">I am at it: ${a}.</response>
<action mode="async" id="b" depends_on="a">
{"name": "tool", "parameters": {"what": "b", "ms": 5}}</action>"#;

/// Writes for some hundred milliseconds in all.
fn script(prompt: &Prompt) -> Script {
    let has_worked = prompt.messages.iter().any(|it| it.text.contains("<action "));
    let text = if has_worked { "<response>${a} and ${b}</response>" } else { WORKS };
    Script::text(text).chunks(16).every(Duration::from_millis(4))
}

fn scripted(world: &World) -> Scripted {
    world.timed(Scripted::new(|prompt: &Prompt, _| script(prompt)))
}

/// A model that may say something else the next time.
#[derive(Debug)]
struct Fickle(Scripted);

impl Model for Fickle {
    fn turn(&self, prompt: Prompt) -> model::Boxed<'_, Box<dyn Reply>> {
        self.0.turn(prompt)
    }

    fn describe(&self) -> String {
        "fickle".to_owned()
    }
}

fn check(is_repeatable: bool, stops: &[u64]) {
    let world = World::new(7);
    let agent = || {
        let model = scripted(&world);
        let agent = match is_repeatable {
            true => Agent::new("oracle", Arc::new(model)),
            false => Agent::new("oracle", Arc::new(Fickle(model))),
        };
        agent.peers(["tool"])
    };
    stopping(&world, &agent, stops);
    let threads = world.disk.kept().threads(None, 10);
    let threads: Vec<_> = world.sim.run(threads).unwrap().unwrap();
    let Some(thread) = threads.first().map(|it| it.id.clone()) else {
        // The first stop was before anything was in the log.
        return assert!(stops[0] < 30_000, "{stops:?}");
    };
    let at = format!("{is_repeatable} {stops:?}: {:#?}", world.story(&thread));
    assert_eq!(world.replay(agent(), &thread).difference, None, "{at}");
    let charges = world.all::<Charge>(&thread);
    let settled: Vec<&Charge> = charges.iter().filter(|it| it.settled).collect();
    assert_eq!((charges.len(), settled.len()), (2 * settled.len(), settled.len()), "{at}");
    let used: u64 = settled.iter().flat_map(|it| [it.tokens_in, it.tokens_out]).flatten().sum();
    assert_eq!(charges.iter().map(|it| it.tokens).sum::<i64>(), used.cast_signed(), "{at}");
    let finals = world.all::<Response>(&thread).into_iter().filter(|it| it.is_final);
    assert_eq!(finals.count(), 1, "{at}");
    let partial = world.all::<Response>(&thread).len() - 1;
    assert!(partial <= 1 && (!is_repeatable || partial == 1), "{at}");
    let outs = world.all::<CognitionOut>(&thread);
    let turns: Vec<u64> = outs.iter().map(|it| it.turn).collect();
    assert_eq!(turns, (1..=turns.len() as u64).collect::<Vec<_>>(), "{at}");
    let actions = world.all::<Action>(&thread).len();
    assert_eq!(world.all::<ActionResult>(&thread).len(), actions, "{at}");
    assert!(!is_repeatable || (actions == 2 && turns.len() == 2), "{at}");
    let mut keys: BTreeMap<String, String> = BTreeMap::new();
    for (key, what, _) in world.effects.lock().unwrap().iter() {
        assert!(keys.insert(what.clone(), key.clone()).is_none_or(|it| it == *key), "{at}");
    }
    assert!(!is_repeatable || keys.len() == 2, "{at}");
}

#[test]
fn a_turn_that_is_cut_anywhere_is_taken_up_again() {
    for at in (300..240_000).step_by(15_013) {
        check(true, &[at]);
        check(true, &[at, 900 + at / 3]);
    }
}

#[test]
fn a_model_that_may_say_something_else_is_told_what_there_was() {
    for at in (300..240_000).step_by(15_013) {
        check(false, &[at]);
    }
    let world = World::new(7);
    let agent = || Agent::new("oracle", Arc::new(Fickle(scripted(&world)))).peers(["tool"]);
    stopping(&world, &agent, &[60_000]);
    let thread = world.sim.run(world.disk.kept().threads(None, 10)).unwrap().unwrap()[0].id.clone();
    let cut = &world.all::<CognitionOut>(&thread)[0];
    assert!(cut.is_partial && cut.text.contains("id=\"a\""), "{cut:?}");
    assert_eq!(cut.error.as_deref(), Some("the pump stopped while the model wrote"));
}

#[test]
fn a_native_call_of_a_turn_that_a_stop_cut_is_shown_as_a_call_with_its_result() {
    let world = World::new(7);
    let seen: Arc<Mutex<Vec<Prompt>>> = Arc::default();
    let agent = || {
        let seen = seen.clone();
        let model = world.timed(Scripted::new(move |prompt: &Prompt, turn| {
            seen.lock().unwrap().push(prompt.clone());
            let call = Call::new("c1", "tool", r#"{"what": "a", "ms": 1}"#);
            let first = Script::text("<thought>So.</thought>").call(call);
            match turn {
                1 => first.then(Piece::Text("More.".into())).every(Duration::from_millis(50)),
                _ => Script::text("<response>Done.</response>"),
            }
        }));
        let settings = Settings { dialect: Dialect::Native, ..Settings::default() };
        Agent::new("oracle", Arc::new(Fickle(model))).settings(settings).peers(["tool"])
    };
    stopping(&world, &agent, &[80_000]);
    let thread = world.sim.run(world.disk.kept().threads(None, 10)).unwrap().unwrap()[0].id.clone();
    let cut = world.all::<CognitionOut>(&thread).remove(0);
    assert_eq!((&*cut.stop, cut.calls.map(|it| it.len())), ("stopped", Some(2)));
    assert_eq!(world.all::<ActionResult>(&thread).len(), 1, "{:#?}", world.story(&thread));
    let next = seen.lock().unwrap().last().unwrap().clone();
    let said = &next.messages[1];
    let calls: Vec<_> = said.calls.iter().map(|it| (&*it.id, &*it.name)).collect();
    assert_eq!((&*said.text, calls), ("<thought>So.</thought>", vec![("c1", "tool")]));
    assert_eq!((next.messages[2].of.as_deref(), &*next.messages[2].text), (Some("c1"), "a"));
    assert_eq!(world.replay(agent(), &thread).difference, None);
}
