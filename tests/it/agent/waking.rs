//! What wakes an agent, what it is told of things under way, and how long its helpers have.

use pumphouse::listeners::action::words::{ActionResult, Status};
use pumphouse::listeners::agent::settings::{Settings, Wake};
use pumphouse::listeners::agent::words::{CognitionIn, Notice, Stopped};
use pumphouse::listeners::metadata::{Field, Fields};
use pumphouse::listeners::words::agent::AgentProgress;
use pumphouse::listeners::workflow::Workflow;
use pumphouse::model::Kind;
use pumphouse::wire::budget::Charge;
use pumphouse::wire::core::{ThreadNote, ThreadSpawned};
use serde_json::json;

use super::one_asker::{last, oracle_saying, played, responses, tool};
use super::world::World;
use super::*;

fn turns(world: &World, thread: &ThreadId) -> usize {
    world.all::<CognitionIn>(thread).len()
}

/// Three actions side by side, of one, two and three seconds.
fn three() -> String {
    tool("a", "async", 1_000) + &tool("b", "async", 2_000) + &tool("c", "async", 3_000)
}

/// Asks an agent that is woken by all results together.
fn joined(replies: &[&str]) -> (World, ThreadId) {
    let world = World::new(1);
    let (agent, _) = oracle_saying(&world, replies);
    let settings = Settings { wake: Wake::All, ..Settings::default() };
    let agent = agent.settings(settings);
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    (world, thread)
}

#[test]
fn all_results_together_take_one_turn() {
    let answer = "<response>${a}, ${b}, ${c}.</response>";
    let (world, thread) = joined(&[&three(), answer]);
    assert_eq!(responses(&world, &thread), ["a is done, b is done, c is done."]);
    assert_eq!(turns(&world, &thread), 2);
    // A mistake is told at once, and then the agent waits for the rest.
    let broken = "{\"name\": \"tool\", \"parameters\": {\"x\": 1},}";
    let wrong = three() + &format!("<action id=\"d\">{broken}</action>");
    let (world, thread) = joined(&[&wrong, "<thought>I wait.</thought>", answer]);
    assert_eq!((responses(&world, &thread).len(), turns(&world, &thread)), (1, 3));
}

#[test]
fn an_await_joins_what_runs_or_what_it_names() {
    let answer = "<response>${c}.</response>";
    let (world, thread, seen) = played(&[&(three() + "<await/>"), answer]);
    assert_eq!(
        (responses(&world, &thread), turns(&world, &thread)),
        (vec!["c is done.".into()], 2)
    );
    assert!(!last(&seen.lock().unwrap()[1]).contains("[running"));
    let (world, thread, seen) = played(&[&(three() + "<await on=\"a, b\"/>"), answer]);
    assert_eq!(
        (responses(&world, &thread), turns(&world, &thread)),
        (vec!["c is done.".into()], 2)
    );
    let told = unmarked(last(&seen.lock().unwrap()[1]));
    assert!(told.contains("b is done") && told.ends_with("[running: c]"), "{told}");
}

#[test]
fn an_await_of_nothing_is_told_and_waits_for_nothing() {
    let (world, thread, _) = played(&["<await/>", "<response>So.</response>"]);
    assert_eq!(responses(&world, &thread), ["So."]);
    let notices = world.all::<Notice>(&thread);
    assert_eq!(notices[0].text, "<await> waits for nothing: nothing of yours runs.");
    let (world, thread, _) =
        played(&[&(three() + "<await on=\"a, x\"/>"), "<response>So.</response>"]);
    assert_eq!(responses(&world, &thread), ["So."]);
    let notices = world.all::<Notice>(&thread);
    assert_eq!(notices[0].text, "<await> waits for nothing: nothing is called x.");
}

#[test]
fn a_message_ends_the_wait_for_all() {
    let world = World::new(1);
    let (agent, _) = oracle_saying(&world, &[&(three() + "<await/>"), "<response>Now.</response>"]);
    let (question, more) = (agent.ask("Go.").unwrap(), agent.ask("Hurry.").unwrap());
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::from_millis(500));
    let told = async { pump.in_thread(&thread).tell_element(more).await };
    world.sim.run(told).unwrap().unwrap();
    world.sim.rest().unwrap();
    assert_eq!(responses(&world, &thread).last().unwrap(), "Now.");
    assert_eq!(turns(&world, &thread), 2);
}

/// A workflow that calls the helper.
fn boss(_: &World) -> Listener {
    let step = json!({"name": "a", "target": "helper", "parameters": {"text": "Do it."}});
    let definition = json!({"name": "boss", "steps": [step], "outputs": {"a": "${steps.a}"}});
    Workflow::from_json(definition).unwrap().listener()
}

/// A lead that says these, and a helper that says those, a second for each turn.
fn helped(lead: &[&str], helper: &[&str], default: Duration) -> (World, ThreadId, Vec<String>) {
    let mut world = World::new(1);
    world.besides = Some(boss);
    let (agent, seen) = oracle_saying(&world, lead);
    let mut settings = Settings::default();
    settings.action_limits.timeout = default;
    let agent = agent.settings(settings).peers(["helper", "boss"]);
    let replies: Vec<String> = helper.iter().map(|it| (*it).to_owned()).collect();
    let model = Scripted::new(move |_: &Prompt, turn| {
        let text = replies[usize::try_from(turn).unwrap() - 1].clone();
        Script::text(text).after(Duration::from_secs(1))
    });
    let helper = Agent::new("helper", Arc::new(world.timed(model))).peers(["calculate"]);
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent, helper]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    let prompts = seen.lock().unwrap().iter().map(|it| last(it).to_owned()).collect();
    (world, thread, prompts)
}

fn call(more: &str) -> String {
    format!(
        "<action id=\"h\" mode=\"async\">{{\"name\": \"helper\", \"parameters\": {{\"text\": \
         \"Do it.\"}}{more}}}</action>"
    )
}

const STEPS: [&str; 3] = [
    "<thought>Half of it is read.</thought><action id=\"s\">{\"name\": \"calculate\", \
     \"parameters\": {\"expression\": \"1+1\"}}</action>",
    "<action id=\"t\">{\"name\": \"calculate\", \
     \"parameters\": {\"expression\": \"2+2\"}}</action>",
    "<response>All done.</response>",
];

#[test]
fn a_helper_that_runs_is_said_to_run() {
    let lead = [&*call(""), "<thought>I wait.</thought>", "<response>${h}</response>"];
    let (world, thread, prompts) = helped(&lead, &STEPS, Duration::from_secs(300));
    assert!(unmarked(&prompts[1]).ends_with("[running: h]"), "{prompts:?}");
    assert_eq!(responses(&world, &thread), ["All done."]);
}

#[test]
fn the_default_timeout_cuts_no_helper() {
    let lead = [&*call(""), "<thought>I wait.</thought>", "<response>${h}</response>"];
    let (world, thread, _) = helped(&lead, &STEPS, Duration::from_secs(2));
    assert_eq!(world.all::<ActionResult>(&thread)[0].status, Status::Ok);
    assert_eq!(responses(&world, &thread), ["All done."]);
}

#[test]
fn the_default_timeout_cuts_no_workflow() {
    let call = call("").replacen("helper", "boss", 1);
    let lead = [&*call, "<thought>I wait.</thought>", "<response>${h}</response>"];
    let (world, thread, _) = helped(&lead, &STEPS, Duration::from_secs(2));
    assert_eq!(world.all::<ActionResult>(&thread)[0].status, Status::Ok);
    assert_eq!(responses(&world, &thread), ["All done."]);
}

#[test]
fn a_helper_that_is_cut_says_how_far_it_came_and_settles() {
    let more = ", \"timeout\": 2";
    let lead = [&*call(more), "<thought>I wait.</thought>", "<response>Late.</response>"];
    let (world, thread, _) = helped(&lead, &STEPS, Duration::from_secs(300));
    let result = &world.all::<ActionResult>(&thread)[0];
    assert_eq!(result.status, Status::TimedOut);
    let why = &result.error.as_ref().unwrap().message;
    let below = &world.all::<ThreadSpawned>(&thread)[0].assigned_id;
    let said = format!("it had 1 turn in {below}, and wrote last: Half of it is read.");
    assert!(why.starts_with("no answer came in 2 s; ") && why.ends_with(&said), "{why}");
    let notes = world.all::<ThreadNote>(&thread);
    assert_eq!(notes.iter().filter(|it| it.payload.name() == AgentProgress::NAME).count(), 1);
    let charges = world.all::<Charge>(&ThreadId::new(below));
    let (open, settled): (Vec<&Charge>, Vec<&Charge>) = charges.iter().partition(|it| !it.settled);
    assert_eq!((open.len(), settled.len()), (2, 2), "{charges:#?}");
    let told = settled[1];
    assert_eq!((told.estimated, told.tokens_in), (Some(true), open[1].tokens_in));
    assert_eq!(told.tokens_out, Some(0), "its second turn had written nothing yet");
}

#[test]
fn a_turn_that_only_waits_for_a_rate_limit_counts_as_none() {
    let world = World::new(1);
    let model = Scripted::new(|_: &Prompt, turn| match turn {
        1..=3 => {
            let error = pumphouse::model::Error::new(Kind::RateLimited, "429 Too Many Requests");
            let mut error = error;
            error.retry_after = Some(Duration::from_secs(60));
            Script::text("").fails_with(0, error)
        }
        _ => Script::text("<response>At last.</response>"),
    });
    let agent = Agent::new("oracle", Arc::new(world.timed(model)));
    let settings = Settings { max_turns: 1, ..Settings::default() };
    let agent = agent.settings(settings);
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    assert_eq!(world.all::<Stopped>(&thread), []);
    assert_eq!(responses(&world, &thread), ["At last."]);
    let spent: i64 = world.all::<Charge>(&thread).iter().map(|it| it.turns).sum();
    assert_eq!(spent, 1, "the budget counts turns as the agent does");
}

const THINK: &str =
    "<thought>I go on thinking about this for a long while, word after word.</thought>";

/// Answers with JSON as a text.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Told(String);

/// Asks for JSON.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Tell {}

/// An agent that writes slowly. Returns its responses, and the first one; and whether that was
/// delivered before the end of the reply with this number.
fn slowly(replies: Vec<String>, turn: usize) -> (Vec<String>, bool, Response) {
    let mut world = World::new(1);
    world.besides = Some(|_| {
        let told = async |_: Tell| Told("{\"a\": [1, 2]}".to_owned());
        Listener::new("teller").on(told)
    });
    let model = Scripted::new(move |_: &Prompt, turn| {
        let text = &replies[usize::try_from(turn).unwrap() - 1];
        let script = Script::text(text).chunks(4).every(Duration::from_millis(50));
        script.after(Duration::from_millis(1))
    });
    let settings = Settings {
        metadata: Fields::new([Field::choice("mood", ["fine", "bad"])]).unwrap(),
        ..Settings::default()
    };
    let agent = Agent::new("oracle", Arc::new(world.timed(model))).settings(settings);
    let agent = agent.peers(["tool", "teller"]);
    let pump = world.start([agent.clone()]);
    let thread = world.tell(&pump, agent.ask("Go.").unwrap(), Duration::ZERO);
    world.sim.rest().unwrap();
    drop(pump);
    let story = world.story(&thread);
    let at = |what: &str| story.iter().position(|it| it == what).unwrap();
    let first = at("oracle > console: response");
    let is_out = |(_, it): &(usize, &String)| *it == "oracle > action: cognition_out";
    let out = story.iter().enumerate().filter(is_out).nth(turn).unwrap().0;
    let early = first < out;
    assert_eq!(world.replay(agent, &thread).difference, None, "{story:#?}");
    (responses(&world, &thread), early, world.all::<Response>(&thread)[0].clone())
}

#[test]
fn a_partial_response_goes_out_once_its_values_are_there() {
    let done = "<response>Done.</response>";
    // It names an action of this reply that was done when it was written.
    let named = tool("q", "async", 10) + THINK + "<response final=\"false\">So far: $q.</response>";
    let (said, early, first) = slowly(vec![named + THINK, done.to_owned()], 0);
    assert_eq!(said, ["So far: q is done.", "Done."]);
    assert!(early && !first.was_held && first.at.is_none(), "{first:?}");
    // The action is done a while later, while the model goes on.
    let named = tool("q", "async", 1_500) + "<response final=\"false\">So far: $q.</response>";
    let (said, early, first) = slowly(vec![named + THINK + THINK, done.to_owned()], 0);
    assert_eq!(said, ["So far: q is done.", "Done."]);
    assert!(early && first.was_held && first.at.is_some(), "{first:?}");
    // It names an action of the turn before, behind another one.
    let named = "<response final=\"false\">So far: $q.</response>";
    let second = tool("z", "async", 9_000) + named + THINK;
    let (said, early, _) = slowly(vec![tool("q", "sync", 10), second, done.to_owned()], 1);
    assert_eq!((said[0].as_str(), early), ("So far: q is done.", true));
}

#[test]
fn a_partial_response_with_metadata_or_a_path_into_json_goes_out_at_once() {
    let done = "<response>Done.</response>";
    let mood = "<metadata>{\"mood\": \"fine\"}</metadata><response final=\"false\">Mood \
                ${metadata.mood}.</response>";
    let (said, early, first) = slowly(vec![format!("{mood}{THINK}"), done.to_owned()], 0);
    assert_eq!(said, ["Mood fine.", "Done."]);
    assert!(early && !first.was_held, "{first:?}");
    let call = "<action id=\"q\" mode=\"async\">{\"name\": \"teller\", \"parameters\": \
                {}}</action>";
    let path = "<response final=\"false\">It has ${q.a[1]}.</response>";
    let reply = format!("{call}{THINK}{path}{THINK}");
    let (said, early, _) = slowly(vec![reply, done.to_owned()], 0);
    assert_eq!((said[0].as_str(), early), ("It has 2.", true));
    // An action may have the id `metadata`, and then this is what the text means.
    let call = call.replace("\"q\"", "\"metadata\"");
    let reply = format!("{mood}{call}<response final=\"false\">${{metadata.a[0]}}</response>");
    let (said, ..) = slowly(vec![reply, done.to_owned()], 0);
    assert_eq!(said, ["Mood fine.", "1", "Done."]);
}
