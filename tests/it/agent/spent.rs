//! A thread that is over its budget asks no model, but still settles the response of a last turn.

use pumphouse::engine::Identity;
use pumphouse::listeners::agent::settings::Settings;
use pumphouse::listeners::agent::words::{CognitionIn, Response, Stopped};
use pumphouse::log::State as ThreadState;
use pumphouse::wire::budget::{BudgetKey, RaiseBudget};

use super::world::{World, stopping};
use super::*;

/// Takes so many milliseconds, and nothing longer than 3 s.
fn tool(id: &str, ms: u64) -> String {
    format!(
        "<action id=\"{id}\" mode=\"async\">{{\"name\": \"tool\", \"timeout\": 3, \
         \"parameters\": {{\"what\": \"{id} is done\", \"ms\": {ms}}}}}</action>"
    )
}

/// An agent that has so many turns and says these, in a world whose trees have two seconds.
fn oracle(world: &World, max_turns: u64, replies: &[String]) -> Agent {
    let model = world.timed(Scripted::replies(replies.to_vec()));
    let settings = Settings { max_turns, ..Settings::default() };
    Agent::new("oracle", Arc::new(model)).peers(["tool"]).settings(settings)
}

fn world() -> World {
    let mut world = World::new(1);
    world.limits.tree_seconds_max = 2;
    world
}

/// What an agent with as many turns as replies answers, the thread's state, and its turns.
fn answered(replies: &[String]) -> (Vec<String>, ThreadState, usize) {
    let world = world();
    let agent = oracle(&world, replies.len() as u64, replies);
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    told(&world, &thread)
}

fn told(world: &World, thread: &ThreadId) -> (Vec<String>, ThreadState, usize) {
    let texts = world.all::<Response>(thread).into_iter().map(|it| it.text).collect();
    let kept = world.disk.kept();
    let state = world.sim.run(kept.thread(thread)).unwrap().unwrap().unwrap().state;
    (texts, state, world.all::<CognitionIn>(thread).len())
}

#[test]
fn the_response_of_a_last_turn_is_delivered_over_budget() {
    let begun = tool("quick", 500) + &tool("slow", 2_500);
    let replies = [begun, "<response>$quick, $slow</response>".to_owned()];
    let heard = vec!["quick is done, slow is done".to_owned()];
    assert_eq!(answered(&replies), (heard, ThreadState::OverBudget, 2));
}

#[test]
fn an_action_that_takes_too_long_over_budget_fails_as_it_would_within() {
    let replies = [tool("slow", 9_000), "<response>So: $slow</response>".to_owned()];
    let heard = vec!["So: [slow: failed]".to_owned()];
    assert_eq!(answered(&replies), (heard, ThreadState::OverBudget, 2));
}

#[test]
fn a_stop_while_over_budget_changes_nothing_of_that() {
    let begun = tool("quick", 2_200) + &tool("slow", 9_000);
    let replies = [begun, "<response>$quick, $slow</response>".to_owned()];
    // What a stop cuts isn't begun again over budget.
    let texts = ["[quick: failed], [slow: failed]", "quick is done, [slow: failed]"];
    for (stop, text) in [(2_100_000, texts[0]), (2_300_000, texts[1])] {
        let world = world();
        stopping(&world, &|| oracle(&world, 2, &replies), &[stop]);
        let thread =
            world.sim.run(world.disk.kept().threads(None, 1)).unwrap().unwrap()[0].id.clone();
        let (texts, _, turns) = told(&world, &thread);
        assert_eq!((texts, turns), (vec![text.to_owned()], 2), "{stop}");
    }
}

#[test]
fn a_held_response_of_any_turn_is_delivered_over_budget() {
    let world = world();
    let replies = [tool("slow", 2_500), "<response>So: $slow</response>".to_owned()];
    let agent = oracle(&world, 5, &replies);
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    let heard = vec!["So: slow is done".to_owned()];
    assert_eq!(told(&world, &thread), (heard, ThreadState::OverBudget, 2));
}

#[test]
fn no_model_is_asked_over_budget_and_what_came_waits_for_a_raise() {
    let world = world();
    let begun = tool("slow", 9_000);
    let replies =
        [begun, "<response>So: $slow</response>".into(), "<response>No.</response>".into()];
    let agent = oracle(&world, 5, &replies);
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    assert_eq!(told(&world, &thread), (vec![], ThreadState::OverBudget, 2));
    let operator = Identity { name: "ops".into(), operator: true };
    let raise = RaiseBudget { key: BudgetKey::Seconds, by: Some(60), to: None };
    let operator = pump.speaking_as(operator).in_thread(&thread);
    world.sim.run(operator.tell(raise)).unwrap().unwrap();
    world.sim.rest().unwrap();
    let heard = vec!["No.".to_owned()];
    assert_eq!(told(&world, &thread), (heard, ThreadState::Open, 3));
    assert_eq!(world.all::<Stopped>(&thread), []);
}

#[test]
fn a_response_that_is_written_while_the_budget_runs_out_is_settled_and_delivered() {
    let world = world();
    let begun = tool("slow", 2_800);
    let model = Scripted::new(move |_: &Prompt, turn| match turn {
        1 => Script::text(begun.clone()),
        _ => Script::text("<response>So: $slow</response>").after(Duration::from_millis(2_200)),
    });
    let settings = Settings { max_turns: 2, ..Settings::default() };
    let agent = Agent::new("oracle", Arc::new(world.timed(model))).peers(["tool"]);
    let agent = agent.settings(settings);
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    let heard = vec!["So: slow is done".to_owned()];
    assert_eq!(told(&world, &thread), (heard, ThreadState::OverBudget, 2));
}

#[test]
fn what_a_model_was_asked_in_time_is_heard_over_budget() {
    let script = Script::text("<response>It is 42.</response>");
    let late = script.after(Duration::from_millis(2_500));
    let world = world();
    let model = world.timed(Scripted::new(move |_: &Prompt, _| late.clone()));
    let agent = Agent::new("oracle", Arc::new(model));
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    let heard = vec!["It is 42.".to_owned()];
    assert_eq!(told(&world, &thread), (heard, ThreadState::OverBudget, 1));
}

#[test]
fn where_no_message_is_left_the_asker_is_told_and_no_model_is_asked() {
    let mut world = World::new(1);
    world.limits.tree_messages_max = 3;
    let replies = [tool("quick", 50), "<response>So: $quick</response>".to_owned()];
    let agent = oracle(&world, 5, &replies);
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    assert_eq!(told(&world, &thread), (vec![], ThreadState::OverBudget, 1));
    assert!(world.story(&thread).contains(&"core > console: huh".to_owned()));
}

#[test]
fn a_raise_ends_what_the_prompt_says_of_a_budget_that_is_nearly_spent() {
    for raises in [false, true] {
        let mut world = World::new(1);
        world.limits.thread_turns_max = 4;
        let seen = Arc::new(std::sync::Mutex::new(String::new()));
        let kept = seen.clone();
        let model = Scripted::new(move |prompt: &Prompt, _| {
            *kept.lock().unwrap() = format!("{prompt:?}");
            "<response>Yes.</response>".to_owned()
        });
        let agent = Agent::new("oracle", Arc::new(world.timed(model)));
        let question = agent.ask("Well?").unwrap();
        let pump = world.start([agent]);
        let pump = pump.speaking_as(Identity { name: "ops".into(), operator: true });
        let thread = world.tell(&pump, question.clone(), Duration::from_secs(1));
        let here = pump.in_thread(&thread);
        for _ in 2..=3 {
            world.tell(&here, question.clone(), Duration::from_secs(1));
        }
        if raises {
            let raise = RaiseBudget { key: BudgetKey::Turns, by: Some(60), to: None };
            world.sim.run(here.tell(raise)).unwrap().unwrap();
        }
        world.tell(&here, question, Duration::from_secs(1));
        let seen = seen.lock().unwrap().clone();
        assert_eq!(seen.contains("turns: 3 of 4 are spent (75 %)"), !raises, "{seen}");
    }
}
