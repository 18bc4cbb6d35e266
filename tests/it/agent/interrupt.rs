//! An agent that is interrupted stops its work, says so, and continues with the next message.

use pumphouse::listeners::action::words::ActionResult;
use pumphouse::listeners::agent::settings::{FinalWithActions, Settings};
use pumphouse::listeners::agent::words::{CognitionOut, Interrupt, Response, Stopped, Thought};

use super::world::World;
use super::*;

const MS: Duration = Duration::from_millis(1);

fn interrupt() -> Interrupt {
    Interrupt { reason: Some("enough".to_owned()) }
}

/// An agent whose model writes a piece of these every ten milliseconds, one text a turn.
fn writing(world: &World, replies: &'static [&'static str]) -> Agent {
    let model = Scripted::new(|_: &Prompt, turn| {
        let text = replies[usize::try_from(turn).unwrap() - 1];
        Script::text(text).chunks(8).every(10 * MS)
    });
    Agent::new("oracle", Arc::new(world.timed(model))).peers(["tool"])
}

/// Asks such an agent, and after so many milliseconds interrupts it.
fn interrupted(replies: &'static [&'static str], after: u32) -> (World, Pump, ThreadId) {
    let world = World::new(3);
    let agent = writing(&world, replies);
    let question = agent.ask("Do it.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, after * MS);
    let pump = pump.in_thread(&thread);
    world.sim.run(pump.tell(interrupt())).unwrap().unwrap();
    (world, pump, thread)
}

fn finals(world: &World, thread: &ThreadId) -> Vec<String> {
    let all = world.all::<Response>(thread).into_iter();
    all.filter(|it| it.is_final).map(|it| it.text).collect()
}

fn reasons(world: &World, thread: &ThreadId) -> Vec<String> {
    world.all::<Stopped>(thread).into_iter().map(|it| it.reason).collect()
}

fn again(world: &World, pump: &Pump) {
    let question = pumphouse::listeners::agent::ask("oracle", "And now?").unwrap();
    world.sim.run(pump.tell_element(question)).unwrap().unwrap();
    world.sim.rest().unwrap();
}

const SLOW: &str = r#"<thought>First this.</thought>
<action id="a">{"name": "tool", "parameters": {"what": "a", "ms": 5000}}</action>
<thought>And then there is so much more to be said about it.</thought>
<response>Done: ${a}.</response>"#;
const NEXT: &str = "<response>Here I am.</response>";

#[test]
fn a_model_that_writes_writes_no_more_and_the_thread_goes_on() {
    let (world, pump, thread) = interrupted(&[SLOW, NEXT], 180);
    world.sim.run(world.sim.sleep(20 * MS)).unwrap();
    let at = format!("{:#?}", world.story(&thread));
    let out = world.all::<CognitionOut>(&thread).remove(0);
    assert_eq!((&*out.stop, out.is_partial), ("interrupted", true), "{at}");
    assert_eq!(out.error.as_deref(), Some(Interrupt::ERROR));
    assert!(SLOW.starts_with(&out.text) && out.text.len() < SLOW.len(), "{}", out.text);
    assert_eq!(world.all::<Thought>(&thread)[0].text, "First this.");
    assert_eq!(reasons(&world, &thread), ["interrupted"], "{at}");
    assert!(at.contains("oracle > console: agent-stopped"), "{at}");
    let results = world.all::<ActionResult>(&thread);
    assert_eq!(results.len(), 1, "{at}");
    assert_eq!(format!("{:?}", results[0].status), "Cancelled");
    again(&world, &pump);
    let at = format!("{:#?}", world.story(&thread));
    assert_eq!(finals(&world, &thread), ["Here I am."], "{at}");
    assert_eq!(world.all::<CognitionOut>(&thread).len(), 2, "{at}");
    drop(pump);
    let agent = writing(&world, &[SLOW, NEXT]);
    assert_eq!(world.replay(agent, &thread).difference, None, "{at}");
}

#[test]
fn the_next_prompt_says_that_the_last_reply_was_interrupted() {
    let world = World::new(3);
    let seen: Arc<std::sync::Mutex<Vec<Prompt>>> = Arc::default();
    let kept = seen.clone();
    let model = world.timed(Scripted::new(move |prompt: &Prompt, turn| {
        kept.lock().unwrap().push(prompt.clone());
        Script::text(if turn == 1 { SLOW } else { NEXT }).chunks(8).every(10 * MS)
    }));
    let agent = Agent::new("oracle", Arc::new(model)).peers(["tool"]);
    let question = agent.ask("Do it.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, 100 * MS);
    let pump = pump.in_thread(&thread);
    world.sim.run(pump.tell(interrupt())).unwrap().unwrap();
    again(&world, &pump);
    let seen = seen.lock().unwrap();
    let said: Vec<&str> = seen[1].messages.iter().map(|it| &*it.text).collect();
    assert!(said.iter().any(|it| it.contains("[Previous response was interrupted #")), "{said:?}");
    assert!(said.last().unwrap().contains("And now?"), "{said:?}");
}

#[test]
fn an_agent_that_waits_for_an_action_takes_it_back() {
    const ACTS: &str = r#"<action id="a">
{"name": "tool", "parameters": {"what": "a", "ms": 5000}}</action>
<action id="b" mode="fire_and_forget">
{"name": "tool", "parameters": {"what": "b", "ms": 5000}}</action>"#;
    let (world, pump, thread) = interrupted(&[ACTS, NEXT], 1_000);
    world.sim.rest().unwrap();
    let at = format!("{:#?}", world.story(&thread));
    assert_eq!(reasons(&world, &thread), ["interrupted"], "{at}");
    let results = world.all::<ActionResult>(&thread);
    let ended: Vec<String> =
        results.iter().map(|it| format!("{} {:?}", it.id, it.status)).collect();
    assert_eq!(ended, ["a Cancelled", "b Cancelled"], "{at}");
    assert_eq!(world.all::<CognitionOut>(&thread).len(), 1, "{at}");
    again(&world, &pump);
    assert_eq!(finals(&world, &thread), ["Here I am."]);
}

#[test]
fn where_there_is_no_work_it_is_answered_done() {
    let (world, _, thread) = interrupted(&[NEXT], 1_000);
    world.sim.rest().unwrap();
    let at = format!("{:#?}", world.story(&thread));
    assert_eq!(finals(&world, &thread), ["Here I am."], "{at}");
    assert!(world.story(&thread).last().unwrap().ends_with("> console: done"), "{at}");
}

#[test]
fn what_is_asked_after_it_is_for_the_next_turn() {
    let world = World::new(3);
    let agent = writing(&world, &[SLOW, NEXT, "<response>Too much.</response>"]);
    let (first, then) = (agent.ask("Do it.").unwrap(), agent.ask("Rather this.").unwrap());
    let pump = world.start([agent]);
    let thread = world.tell(&pump, first.clone(), 50 * MS);
    let pump = pump.in_thread(&thread).to("oracle");
    let told = async {
        pump.tell_element(first).await.unwrap();
        pump.tell(interrupt()).await.unwrap();
        pump.tell_element(then).await.unwrap();
    };
    world.sim.run(told).unwrap();
    world.sim.rest().unwrap();
    let at = format!("{:#?}", world.story(&thread));
    assert_eq!(finals(&world, &thread), ["Here I am."], "{at}");
    assert!(reasons(&world, &thread).iter().all(|it| it == "interrupted"), "{at}");
}

#[test]
fn it_holds_wherever_the_machine_stops() {
    for stop in (0..4_000).step_by(200) {
        let (world, pump, thread) = interrupted(&[SLOW, NEXT], 150);
        world.sim.run(world.sim.sleep(Duration::from_micros(stop))).unwrap();
        world.sim.crash();
        drop(pump);
        let pump = world.start([writing(&world, &[SLOW, NEXT])]);
        world.sim.rest().unwrap();
        let at = format!("{stop}: {:#?}", world.story(&thread));
        assert_eq!(reasons(&world, &thread), ["interrupted"], "{at}");
        assert_eq!(world.all::<CognitionOut>(&thread).len(), 1, "{at}");
        assert_eq!(finals(&world, &thread), [""; 0], "{at}");
        again(&world, &pump.in_thread(&thread));
        let at = format!("{stop}: {:#?}", world.story(&thread));
        assert_eq!(finals(&world, &thread), ["Here I am."], "{at}");
        drop(pump);
        let agent = writing(&world, &[SLOW, NEXT]);
        assert_eq!(world.replay(agent, &thread).difference, None, "{at}");
    }
}

#[test]
fn no_model_is_told_of_it_and_none_may_send_it() {
    let asks = r#"<action id="a">{"name": "clerk_agent.interrupt", "parameters": {}}</action>"#;
    let world = World::new(3);
    let clerk = Scripted::replies([NEXT]);
    let seen: Arc<std::sync::Mutex<Vec<Prompt>>> = Arc::default();
    let kept = seen.clone();
    let model = Scripted::new(move |prompt: &Prompt, turn| {
        kept.lock().unwrap().push(prompt.clone());
        if turn == 1 { asks } else { NEXT }
    });
    let agents = [
        Agent::new("oracle", Arc::new(world.timed(model))).peers(["clerk_agent"]),
        Agent::new("clerk_agent", Arc::new(world.timed(clerk))),
    ];
    let question = agents[0].ask("Do it.").unwrap();
    let pump = world.start(agents);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    let prompt = seen.lock().unwrap()[0].clone();
    assert!(prompt.system.contains("clerk_agent") && !prompt.system.contains("interrupt"));
    let result = world.all::<ActionResult>(&thread).remove(0);
    assert_eq!(format!("{:?}", result.status), "Failed");
}

#[test]
fn what_is_asked_while_an_action_outlives_its_answer_is_not_forgotten() {
    const TRUSTS: &str = r#"<action id="a" mode="async">
{"name": "tool", "parameters": {"what": "a", "ms": 5000}}</action>
<response>It will be done.</response>"#;
    let world = World::new(3);
    let settings = Settings { final_with_actions: FinalWithActions::Trust, ..Settings::default() };
    let agent = writing(&world, &[TRUSTS, NEXT]).settings(settings);
    let question = agent.ask("Do it.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, 1_000 * MS);
    assert_eq!(finals(&world, &thread), ["It will be done."]);
    again(&world, &pump.in_thread(&thread));
    assert_eq!(finals(&world, &thread), ["It will be done.", "Here I am."]);
}
