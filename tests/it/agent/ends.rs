//! Which events end an agent's work, and which messages belong to work that has ended.

use std::sync::Mutex;

use pumphouse::engine::Identity;
use pumphouse::listeners::action::words::{ActionResult, Status};
use pumphouse::listeners::agent::settings::Settings;
use pumphouse::listeners::agent::words::{CognitionIn, Interrupt, Response, Stopped};
use pumphouse::model;
use pumphouse::wire::is_failure;

use super::world::{Report, World};
use super::*;

/// An agent that says these, turn by turn, and what its model was shown.
fn oracle(world: &World, replies: &[&str], finals: &[&str]) -> (Agent, Arc<Mutex<Vec<Prompt>>>) {
    let replies: Vec<String> = replies.iter().map(|it| (*it).to_owned()).collect();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let model = Scripted::new(move |prompt: &Prompt, turn| {
        kept.lock().unwrap().push(prompt.clone());
        let at = usize::try_from(turn).unwrap() - 1;
        replies.get(at).cloned().unwrap_or_else(|| "<response>Too many.</response>".to_owned())
    });
    let settings = Settings {
        final_payloads: finals.iter().map(|it| (*it).to_owned()).collect(),
        ..Settings::default()
    };
    let agent = Agent::new("oracle", Arc::new(world.timed(model))).settings(settings);
    (agent.peers(["tool", "clerk", "timer"]), seen)
}

/// Has these ask, one after another, and lets everything come to rest after each.
fn asked(world: &World, agent: Agent, who: &[&str]) -> ThreadId {
    let question = |who: &str| agent.ask(&format!("{who} asks.")).unwrap();
    let questions: Vec<Element> = who.iter().map(|it| question(it)).collect();
    let pump = world.start([agent]);
    let mut thread = None;
    for (who, question) in who.iter().zip(questions) {
        let pump = pump.speaking_as(Identity { name: (*who).into(), operator: true });
        let told = match &thread {
            None => world.sim.run(pump.tell_element(question)),
            Some(at) => world.sim.run(pump.in_thread(at).tell_element(question)),
        };
        thread.get_or_insert(told.unwrap().unwrap().thread);
        world.sim.rest().unwrap();
    }
    thread.unwrap()
}

fn turns(world: &World, thread: &ThreadId) -> usize {
    world.all::<CognitionIn>(thread).len()
}

#[test]
fn a_payload_that_ends_work_ends_it_for_its_asker_and_the_next_begins_their_own() {
    let report = |it: &str| format!("<report><summary>{it}</summary></report>");
    let tool = "<action id=\"a\">{\"name\": \"tool\", \"parameters\": {\"what\": \"x\", \
                \"ms\": 50}}</action>";
    for before in ["", tool] {
        let world = World::new(1);
        let (first, second) = (before.to_owned() + &report("one"), report("two"));
        let (agent, seen) = oracle(&world, &[&first, &second], &["report"]);
        let thread = asked(&world, agent, &["ann", "bob"]);
        let told = |it: &String| it.starts_with("oracle > ") && it.ends_with(": report");
        let story = world.story(&thread);
        let reports: Vec<&String> = story.iter().filter(|it| told(it)).collect();
        assert_eq!(reports, ["oracle > ann: report", "oracle > bob: report"], "{story:#?}");
        let all: Vec<String> =
            world.all::<Report>(&thread).into_iter().map(|it| it.summary).collect();
        assert_eq!((all, turns(&world, &thread)), (vec!["one".to_owned(), "two".to_owned()], 2));
        let shown = seen.lock().unwrap()[1].messages.iter().any(|it| it.text.contains("bob asks."));
        assert!(shown, "the second turn shows the second question");
    }
}

#[test]
fn a_clear_after_nothing_under_way_does_not_hide_the_question_at_hand() {
    let world = World::new(1);
    let replies = [
        "<response>First.</response>",
        "<report><summary>Nobody answers this.</summary></report>",
        "<thought>I wait.</thought>",
        "<clear-context keep=\"1\"/><response final=\"false\">Cleared.</response>",
        "<response>Second.</response>",
    ];
    let (agent, seen) = oracle(&world, &replies, &[]);
    let thread = asked(&world, agent, &["ann", "bob"]);
    let said: Vec<String> = world.all::<Response>(&thread).into_iter().map(|it| it.text).collect();
    assert_eq!(said, ["First.", "Cleared.", "Second."]);
    let last = seen.lock().unwrap().last().unwrap().clone();
    assert!(last.messages.iter().any(|it| it.text.contains("bob asks.")), "{last:#?}");
}

#[test]
fn a_name_whose_first_call_was_malformed_is_that_of_the_next_call() {
    let world = World::new(1);
    let broken = "<action id=\"fetch\">{\"name\": \"tool\",}</action>";
    let sound = "<action id=\"fetch\" mode=\"async\">{\"name\": \"tool\", \"parameters\": \
                 {\"what\": \"fetched\", \"ms\": 50}}</action>";
    let first = format!("{broken}{sound}<response final=\"false\">So: $fetch</response>");
    let (agent, _) = oracle(&world, &[&first, "<response>Done.</response>"], &[]);
    let thread = asked(&world, agent, &["ann"]);
    let said: Vec<String> = world.all::<Response>(&thread).into_iter().map(|it| it.text).collect();
    assert!(said.contains(&"So: fetched".to_owned()), "{said:?}");
}

#[test]
fn an_interrupt_that_names_nobody_is_for_every_agent_at_work() {
    let world = World::new(1);
    let slow = "<action id=\"q\" mode=\"async\">{\"name\": \"tool\", \"parameters\": \
                {\"what\": \"x\", \"ms\": 60000}}</action><response>$q</response>";
    let (agent, _) = oracle(&world, &[slow], &[]);
    let idle = Agent::new("other", Arc::new(world.timed(Scripted::replies([""]))));
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent, idle]);
    let bob = pump.speaking_as(Identity { name: "bob".into(), operator: true });
    let second = async {
        world.sim.sleep(Duration::from_millis(50)).await;
        let thread = world.disk.kept().threads(None, 1).await.unwrap().remove(0).id.clone();
        bob.in_thread(&thread).ask::<Stopped>(Interrupt { reason: None }).await
    };
    let asked = futures_util::future::join(pump.ask_element(question), second);
    let (one, two) = world.sim.run(asked).unwrap();
    assert_eq!(one.unwrap().decode::<Stopped>().unwrap().reason, "interrupted");
    assert_eq!(two.unwrap().reason, "interrupted");
    assert!(world.ms() < 1_000, "{}", world.ms());
}

#[test]
fn a_result_that_goes_round_in_a_circle_is_a_failed_action() {
    let world = World::new(1);
    let again = "<action id=\"c\">{\"name\": \"calculate\", \"parameters\": \
                 {\"expression\": \"1+1\"}}</action>";
    let model = Scripted::new(move |_: &Prompt, turn| match turn {
        1..=6 => again.to_owned(),
        _ => "<response>Enough.</response>".to_owned(),
    });
    let agent = Agent::new("oracle", Arc::new(world.timed(model))).peers(["calculate"]);
    let thread = asked(&world, agent, &["ann"]);
    let results = world.all::<ActionResult>(&thread);
    assert!(results.iter().any(|it| it.status == Status::Failed), "{results:#?}");
    let said: Vec<String> = world.all::<Response>(&thread).into_iter().map(|it| it.text).collect();
    assert_eq!(said, ["Enough."]);
    assert!(world.ms() < 1_000, "{}", world.ms());
}

#[test]
fn what_went_wrong_on_the_way_is_a_failure_though_it_stops_nobody() {
    let world = World::new(1);
    let model = Scripted::new(|_: &Prompt, turn| match turn {
        1 => {
            let error = model::Error::new(model::Kind::Cut, "the stream broke");
            Script::text("<thought>Well").fails_with(13, error)
        }
        2 => Script::text(
            "<action id='refused'>{\"name\": \"tool\", \"parameters\": {\"waht\": 1}}</action>\
             <action id='late'>{\"name\": \"tool\", \"timeout\": 1, \"parameters\": \
             {\"what\": \"x\", \"ms\": 9000}}</action>\
             <action id='fine'>{\"name\": \"tool\", \"parameters\": {\"what\": \"y\"}}</action>",
        ),
        _ => Script::text("<response>Done.</response>"),
    });
    let agent = Agent::new("oracle", Arc::new(world.timed(model))).peers(["tool"]);
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    let failed =
        world.entries(&thread).into_iter().filter(|it| is_failure(&it.name, it.flags, &it.body));
    let failed: Vec<String> = failed.map(|it| it.name.local().to_owned()).collect();
    assert_eq!(failed, ["cognition_out", "action-refused", "action-result"]);
}
