//! A second question in a thread, while the first question is being answered.

use std::time::Duration;

use futures_util::future::join;
use pumphouse::listeners::agent::settings::{Calls, Settings};
use pumphouse::model::Script;

use super::world::World;
use super::*;

/// Who asks first and who asks 50 ms later, in the same thread: what each hears.
fn both(replies: [&'static str; 3]) -> [Result<String, String>; 2] {
    let world = World::new(1);
    let model = Scripted::new(move |_: &Prompt, turn| {
        let text = replies[usize::try_from(turn).unwrap() - 1];
        Script::text(text).after(Duration::from_millis(100))
    });
    let agent = Agent::new("oracle", Arc::new(world.timed(model))).peers(["tool"]);
    let (one, two) = (agent.ask("One?").unwrap(), agent.ask("Two?").unwrap());
    let pump = world.start([agent]);
    let second = async {
        world.sim.sleep(Duration::from_millis(50)).await;
        let thread = world.disk.kept().threads(None, 1).await.unwrap().remove(0).id.clone();
        pump.in_thread(&thread).ask_element(two).await
    };
    let (one, two) = world.sim.run(join(pump.ask_element(one), second)).unwrap();
    let told = |it: Result<Entry, AskError>| {
        let text = |it: Entry| it.decode::<Response>().unwrap().text;
        it.map(text).map_err(|it| it.to_string())
    };
    [told(one), told(two)]
}

#[test]
fn each_is_answered_by_a_turn_of_its_own_where_the_first_turn_is_final() {
    let heard = both(["<response>1</response>", "<response>2</response>", ""]);
    assert_eq!(heard, [Ok("1".to_owned()), Ok("2".to_owned())]);
}

#[test]
fn one_turn_answers_both_where_the_first_turn_is_not_final() {
    let heard = both(["<thought>Hm.</thought>", "<response>Both.</response>", ""]);
    assert_eq!(heard, [Ok("Both.".to_owned()), Ok("Both.".to_owned())]);
}

#[test]
fn one_turn_answers_both_where_the_first_waits_for_an_action() {
    let act = r#"<action>{"name": "tool", "parameters": {"what": "a", "ms": 300}}</action>"#;
    let late = both([act, "<response>Both.</response>", ""]);
    assert_eq!(late, [Ok("Both.".to_owned()), Ok("Both.".to_owned())]);
}

#[test]
fn a_call_of_an_agent_in_the_same_thread_ends_with_its_final_response() {
    let world = World::new(1);
    let partial = "<response final=\"false\">Half.</response>";
    let helper = Scripted::new(move |_: &Prompt, turn| match turn {
        1 => partial,
        _ => "<response>Whole.</response>",
    });
    let settings = Settings { agent_calls: Calls::SameThread, ..Settings::default() };
    let helper = Agent::new("helper", Arc::new(world.timed(helper))).settings(settings);
    let call = r#"<action id="h">{"name": "helper", "parameters": {"text": "Go."}}</action>"#;
    let lead = Scripted::new(move |prompt: &Prompt, _| {
        let has_called = prompt.messages.iter().any(|it| it.text.contains("<action "));
        if has_called { "<response>$h</response>" } else { call }
    });
    let lead = Agent::new("lead", Arc::new(world.timed(lead))).peers(["helper"]);
    let question = lead.ask("Ask it.").unwrap();
    let pump = world.start([helper, lead]);
    let answer = world.sim.run(pump.ask_element(question)).unwrap().unwrap();
    assert_eq!(answer.decode::<Response>().unwrap().text, "Whole.");
}
