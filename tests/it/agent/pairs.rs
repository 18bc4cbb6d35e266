//! A clear never parts a call, its result and the reply that made it, whenever it comes and however
//! many messages it keeps.

use std::sync::Mutex;

use pumphouse::listeners::agent::ask as asking;
use pumphouse::listeners::agent::settings::{Dialect, Settings};
use pumphouse::listeners::view::{ClearContext, UndoClear};
use pumphouse::model::{Call, PromptMessage, Role};
use pumphouse::wire::core::ContextCleared;

use super::world::World;
use super::*;

/// Numbers that look random, the same for the same seed.
#[derive(Clone)]
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % most
    }
}

/// What is wrong with a prompt: calls that stand there without their results, and the opposite.
fn wrong(prompt: &Prompt) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut calls: Vec<&str> = Vec::new();
    for message in &prompt.messages {
        if message.role == Role::Tool {
            let of = message.of.as_deref().unwrap_or_default();
            match calls.iter().position(|it| *it == of) {
                Some(at) => drop(calls.remove(at)),
                None => wrong.push(format!("a result of {of} without its call")),
            }
            if message.text.contains("no result") {
                wrong.push(format!("{of} had a result"));
            }
            continue;
        }
        wrong.extend(calls.drain(..).map(|it| format!("{it} without a result behind it")));
        calls = message.calls.iter().map(|it| &*it.id).collect();
    }
    wrong.extend(calls.into_iter().map(|it| format!("{it} without a result at the end")));
    let said = |is: fn(&PromptMessage) -> bool| {
        let texts = prompt.messages.iter().filter(|it| is(it)).map(|it| &*it.text);
        texts.collect::<Vec<_>>().join("\n")
    };
    let (own, told) = (said(|it| it.role == Role::Assistant), said(|it| it.role == Role::User));
    let last = prompt.messages.last().map_or("", |it| &it.text);
    let under_way = last.rsplit("\n\n").next().unwrap_or_default();
    // The calls of a work's last turn don't run, and the agent is told so.
    let behind = prompt.messages.windows(2).filter(|two| two[1].text.contains("no action runs"));
    let not_run: Vec<&str> = behind.map(|two| &*two[0].text).collect();
    let mut pair = |call: String, result: String, id: &str| {
        let is_open = under_way.starts_with('[') && under_way.contains(id);
        let did_run = !not_run.iter().any(|it| it.contains(&call));
        if own.contains(&call) != told.contains(&result) && !is_open && did_run {
            wrong.push(format!("{call} and {result}"));
        }
    };
    let ids = (0..prompt.turn()).flat_map(|turn| (0..3).map(move |at| format!("t{turn}-{at}")));
    for id in ids {
        pair(format!("<action id=\"{id}\""), format!("<action-result id=\"{id}\""), &id);
        // A payload to a peer has no id.
        pair(format!("<expression>{id}"), format!("of {id}:"), &id);
    }
    wrong
}

/// The reply of a turn: some calls, or the answer.
fn reply(chance: &mut Chance, turn: u64, dialect: Dialect) -> Script {
    let after = Duration::from_millis(chance.below(40));
    if chance.below(4) == 0 {
        return Script::text(format!("<response>Answer {turn}.</response>")).after(after);
    }
    let calls = (0..=chance.below(3)).map(|at| (format!("t{turn}-{at}"), chance.below(30)));
    let calls: Vec<_> = calls.collect();
    if dialect == Dialect::Native {
        let script = Script::text(format!("I work, {turn}. ")).after(after);
        return calls.iter().fold(script, |script, (id, ms)| {
            let sound = format!("{{\"what\": \"{id}\", \"ms\": {ms}}}");
            // Some calls don't run.
            let arguments = if *ms == 7 { "{\"what\": 1}".to_owned() } else { sound };
            script.call(Call::new(id.clone(), "tool", arguments))
        });
    }
    let call = |(id, ms): &(String, u64)| {
        let mode = ["sync", "async"][usize::try_from(ms % 2).unwrap()];
        one_asker::tool(id, mode, *ms)
    };
    let calls: Vec<String> = calls.iter().map(call).collect();
    let every = Duration::from_millis(1 + chance.below(9));
    let text = format!("<thought>I work, {turn}.</thought>{}", calls.join(""));
    Script::text(text).chunks(40).every(every).after(after)
}

fn clear(world: &World, pump: &Pump, keep: u64) -> ContextCleared {
    world.sim.run(pump.ask(ClearContext { keep })).unwrap().unwrap()
}

/// Plays a conversation with clears at random times. Returns what is wrong with its prompts, and
/// how many messages were hidden.
fn play(seed: u64, dialect: Dialect) -> (Vec<String>, u64) {
    let world = World::new(seed);
    let mut chance = Chance(seed + 1);
    let (found, says) = (Arc::new(Mutex::new(Vec::new())), Mutex::new(Chance(seed * 7 + 3)));
    let kept = found.clone();
    let model = Scripted::new(move |prompt: &Prompt, turn| {
        let all = wrong(prompt).into_iter().map(|it| format!("turn {turn} of {seed}: {it}"));
        kept.lock().unwrap().extend(all);
        reply(&mut says.lock().unwrap(), turn, dialect)
    });
    let model = world.timed(match chance.below(3) {
        0 => model.with_window(1_700),
        _ => model,
    });
    let mut settings = Settings::default();
    (settings.dialect, settings.max_turns) = (dialect, 12);
    let agent = Agent::new("oracle", Arc::new(model)).settings(settings).peers(["tool"]);
    let question = agent.ask("First?").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::from_millis(chance.below(50)));
    let pump = pump.in_thread(&thread);
    let mut hidden = 0;
    for number in 0..12 {
        match chance.below(6) {
            0 => {
                let more = asking("oracle", &format!("More, {number}?")).unwrap();
                world.sim.run(pump.tell_element(more)).unwrap().unwrap();
            }
            1 => drop(world.sim.run(pump.tell(UndoClear)).unwrap().unwrap()),
            _ => {
                let keep = 1 + chance.below(9);
                hidden = hidden.max(clear(&world, &pump, keep).hidden);
            }
        }
        let time = Duration::from_millis(chance.below(120));
        world.sim.run(world.sim.sleep(time)).unwrap();
    }
    world.sim.rest().unwrap();
    let found = found.lock().unwrap().clone();
    (found, hidden)
}

#[test]
fn a_call_its_result_and_its_reply_are_hidden_together() {
    for dialect in [Dialect::Native, Dialect::Tags] {
        let mut most = 0;
        for seed in 0..60 {
            let (found, hidden) = play(seed, dialect);
            assert!(found.is_empty(), "{dialect:?}: {found:#?}");
            most = most.max(hidden);
        }
        assert!(most > 10, "the clears hid something: {most}");
    }
}

#[test]
fn a_clear_keeps_the_call_of_the_oldest_result_that_stays() {
    let world = World::new(3);
    let seen: Arc<Mutex<Vec<Prompt>>> = Arc::default();
    let kept = seen.clone();
    let model = world.timed(Scripted::new(move |prompt: &Prompt, turn| {
        kept.lock().unwrap().push(prompt.clone());
        match turn {
            1..=4 => Script::text(one_asker::tool(&format!("t{turn}-0"), "sync", 1)),
            _ => Script::text("<response>So.</response>"),
        }
    }));
    let agent = Agent::new("oracle", Arc::new(model)).peers(["tool"]);
    let question = agent.ask("First?").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::from_secs(1));
    let pump = pump.in_thread(&thread);
    // The newest two are the last result and the answer; the call of that result stays, too.
    clear(&world, &pump, 3);
    world.sim.run(pump.tell_element(asking("oracle", "And?").unwrap())).unwrap().unwrap();
    world.sim.rest().unwrap();
    let seen = seen.lock().unwrap();
    let texts: Vec<&str> = seen.last().unwrap().messages.iter().map(|it| &*it.text).collect();
    let text = texts.join("\n");
    assert!(!text.contains("t3-0") && text.contains("<action id=\"t4-0\""), "{text}");
    assert!(text.contains("<action-result id=\"t4-0\""), "{text}");
}
