//! Streams of agents on virtual time: an action is called with each partial result of another
//! action.

use std::collections::BTreeSet;
use std::time::Duration;

use pumphouse::listener::NoteAbove;
use pumphouse::listeners::action::words::{ActionResult, PartialResult, Status};
use pumphouse::listeners::agent::settings::Settings;

use super::world::{World, stopping};
use super::*;

/// Wants lines, one after another.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Read {
    /// How many there are.
    lines: u32,
    /// Whether it is torn behind them.
    torn: Option<bool>,
}

/// A line, or all of them.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Line(String);

/// The rest is torn off.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Torn(String);

impl Read {
    fn part(number: u32) -> PartialResult {
        let payload = Line(format!("line {number}")).encode().unwrap();
        PartialResult { number: number.into(), payload }
    }

    fn end(&self) -> Result<Line, Torn> {
        match self.torn {
            Some(true) => Err(Torn("no more".to_owned())),
            _ => Ok(Line(format!("{} lines", self.lines))),
        }
    }
}

async fn read(
    State(world): State<World>,
    out: Outbox<PartialResult>,
    it: Read,
) -> Result<Line, Torn> {
    for number in 1..=it.lines {
        world.sim.sleep(Duration::from_millis(5)).await;
        out.send(Read::part(number)).await.unwrap();
    }
    world.sim.sleep(Duration::from_millis(5)).await;
    it.end()
}

async fn read_below(
    State(world): State<World>,
    out: Outbox<NoteAbove<PartialResult>>,
    it: Read,
) -> Result<Final<Line>, Torn> {
    for number in 1..=it.lines {
        world.sim.sleep(Duration::from_millis(5)).await;
        out.send(NoteAbove(Read::part(number))).await.unwrap();
    }
    world.sim.sleep(Duration::from_millis(5)).await;
    it.end().map(Final)
}

fn reader(world: &World) -> Listener {
    Listener::with_state("reader", world.clone()).on(read).idempotent().stateless()
}

fn reader_below(world: &World) -> Listener {
    let listener = Listener::with_state("reader", world.clone()).on(read_below);
    listener.own_thread().idempotent().stateless()
}

/// The first reply of an agent whose tool has what `reader` reads, with these further fields of the
/// reader and of the tool.
fn reply(lines: u32, of_reader: &str, of_tool: &str) -> String {
    format!(
        "<action id=\"lines\">{{\"name\": \"reader\", \"parameters\": {{\"lines\": {lines}\
         {of_reader}}}}}</action>\n<action id=\"done\">{{\"name\": \"tool\", \"stream\": true, \
         \"parameters\": {{\"what\": \"$lines\"{of_tool}}}}}</action>\n<thought>Both.</thought>"
    )
}

fn agent(world: &World, reply: &str) -> Agent {
    let reply = reply.to_owned();
    let model = Scripted::new(move |prompt: &Prompt, _| {
        let has_worked = prompt.messages.iter().any(|it| it.text.contains("<action "));
        let text = if has_worked { "<response>$done of $lines</response>" } else { &reply };
        Script::text(text).chunks(16).every(Duration::from_millis(1))
    });
    let settings = Settings { control_flow: true, ..Settings::default() };
    let agent = Agent::new("oracle", Arc::new(world.timed(model)));
    agent.peers(["reader", "tool"]).settings(settings)
}

fn played(reader: fn(&World) -> Listener, reply: &str) -> (World, ThreadId) {
    let mut world = World::new(3);
    world.besides = Some(reader);
    let pump = world.start([agent(&world, reply)]);
    let question = agent(&world, reply).ask("Read.").unwrap();
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    let difference = world.replay(agent(&world, reply), &thread).difference;
    assert_eq!(difference, None, "{:#?}", world.story(&thread));
    (world, thread)
}

/// Checks the last response, and what the tool was asked to do.
#[track_caller]
fn check(world: &World, thread: &ThreadId, response: &str, work: &[&str]) {
    let story = world.story(thread);
    let said = world.all::<Response>(thread);
    assert_eq!(said.last().map(|it| &*it.text), Some(response), "{story:#?}");
    let effects = world.effects.lock().unwrap();
    let done: Vec<&str> = effects.iter().map(|it| &*it.1).collect();
    assert_eq!(done, work, "{story:#?}");
    let keys: BTreeSet<&str> = effects.iter().map(|it| &*it.0).collect();
    assert_eq!(keys.len(), work.len(), "each has a key of its own: {keys:?}");
}

/// The first place of a line in the story of a thread.
#[track_caller]
fn place(story: &[String], line: &str) -> usize {
    story.iter().position(|it| it == line).unwrap_or_else(|| panic!("{line}: {story:#?}"))
}

#[test]
fn a_tool_in_parts_feeds_another_while_it_works() {
    for reader in [reader, reader_below] {
        let (world, thread) = played(reader, &reply(3, "", ""));
        let all = "[\"line 1\",\"line 2\",\"line 3\"] of 3 lines";
        check(&world, &thread, all, &["line 1", "line 2", "line 3"]);
        let story = world.story(&thread);
        let call = place(&story, "action > tool: work");
        assert!(call < place(&story, "action > oracle: action-result"), "{story:#?}");
    }
}

#[test]
fn a_tool_without_parts_is_passed_on_once() {
    let (world, thread) = played(reader, &reply(0, "", ""));
    check(&world, &thread, "0 lines of 0 lines", &["0 lines"]);
}

#[test]
fn a_slow_one_gets_all_parts_one_after_another() {
    let (world, thread) = played(reader, &reply(3, "", ", \"ms\": 40"));
    let all = "[\"line 1\",\"line 2\",\"line 3\"] of 3 lines";
    check(&world, &thread, all, &["line 1", "line 2", "line 3"]);
    let times: Vec<u64> = world.effects.lock().unwrap().iter().map(|it| it.2).collect();
    assert!(times.windows(2).all(|it| it[1] >= it[0] + 40), "{times:?}");
}

#[test]
fn what_breaks_off_fails_what_took_its_parts() {
    let (world, thread) = played(reader, &reply(2, ", \"torn\": true", ", \"ms\": 40"));
    check(&world, &thread, "[done: failed] of [lines: failed]", &["line 1"]);
    let results = world.all::<ActionResult>(&thread);
    let done = results.iter().find(|it| it.id == "done").unwrap();
    let why = done.why().unwrap();
    assert_eq!(done.status, Status::Failed);
    assert!(why.contains("lines failed; it was called with 1 partial result"), "{why}");
}

#[test]
fn a_stream_of_itself_is_told_so() {
    let own = "<action id=\"done\">{\"name\": \"tool\", \"stream\": true, \"parameters\": \
               {\"what\": \"$done\"}}</action>\n<thought>Both.</thought>";
    let (world, thread) = played(reader, own);
    let results = world.all::<ActionResult>(&thread);
    let why = results.iter().find(|it| it.id == "done").unwrap().why().unwrap();
    assert!(why.contains("it takes the partial results of done, which is this action"), "{why}");
}

#[test]
fn a_stream_takes_100_parts_and_fails_at_the_next_one() {
    let (world, thread) = played(reader, &reply(100, "", ", \"ms\": 7"));
    let story = world.story(&thread);
    let calls = |story: &[String]| story.iter().filter(|it| *it == "action > tool: work").count();
    assert_eq!(calls(&story), 100, "{story:#?}");
    let said = world.all::<Response>(&thread);
    assert!(said.last().unwrap().text.contains("\"line 100\"] of 100 lines"), "{said:?}");
    let (world, thread) = played(reader, &reply(101, "", ""));
    assert_eq!(calls(&world.story(&thread)), 100);
    let results = world.all::<ActionResult>(&thread);
    let done = results.iter().find(|it| it.id == "done").unwrap();
    let why = done.why().unwrap();
    assert!(why.contains("lines has more partial results than parts_max, 100"), "{why}");
}

#[test]
fn an_item_of_a_loop_is_passed_on_while_the_next_one_is_worked_on() {
    let call = |more: &str, what: &str| {
        let parameters = format!("{{\"what\": \"{what}\", \"ms\": 20}}");
        format!("{{\"name\": \"tool\"{more}, \"parameters\": {parameters}}}")
    };
    let list = "[\"x\", \"y\", \"z\"]";
    let each = format!("<action id=\"item\">{}</action>", call("", "$n"));
    let reply = format!(
        "<foreach var=\"n\" in='{list}'>{each}</foreach>\n<action id=\"done\">{}</action>\n\
         <action id=\"lines\">{}</action>\n<thought>Both.</thought>",
        call(", \"stream\": true", "${item}"),
        call("", "end")
    );
    let (world, thread) = played(reader, &reply);
    let said = world.all::<Response>(&thread);
    let text = said.last().map(|it| &*it.text);
    assert_eq!(text, Some("[\"x\",\"y\",\"z\"] of end"), "{:#?}", world.story(&thread));
    let effects = world.effects.lock().unwrap();
    let first = |what: &str| effects.iter().position(|it| it.1 == what).unwrap();
    let last = |what: &str| effects.iter().rposition(|it| it.1 == what).unwrap();
    assert!(last("x") < first("z") && last("y") < last("z"), "{effects:?}");
}

#[test]
fn a_stop_between_parts_sends_none_twice() {
    for (seed, reader) in [(1, reader as fn(&World) -> Listener), (2, reader_below)] {
        for at in 0..16 {
            let mut world = World::new(seed);
            world.besides = Some(reader);
            let text = reply(3, "", ", \"ms\": 4");
            stopping(&world, &|| agent(&world, &text), &[22_000 + at * 2_000]);
            let threads = world.sim.run(world.disk.kept().threads(None, 10)).unwrap().unwrap();
            let Some(thread) = threads.iter().map(|it| &it.id).min_by_key(|it| it.as_str().len())
            else {
                continue;
            };
            let story = world.story(thread);
            let calls = story.iter().filter(|it| *it == "action > tool: work").count();
            assert_eq!(calls, 3, "{at}: {story:#?}");
            let said = world.all::<Response>(thread);
            let all = "[\"line 1\",\"line 2\",\"line 3\"] of 3 lines";
            assert_eq!(said.last().map(|it| &*it.text), Some(all), "{at}: {story:#?}");
            assert_eq!(world.replay(agent(&world, &text), thread).difference, None, "{at}");
        }
    }
}
