//! Replies that end before the model was done: what there is of an answer is delivered and
//! continued, and a call that was cut is told what to do.

use pumphouse::listeners::agent::recall::recall;
use pumphouse::listeners::agent::settings::{Dialect, Settings};
use pumphouse::listeners::agent::words::{CognitionIn, CognitionOut, Correction, Notice, Response};
use pumphouse::model::{Call, Kind, Stop, Usage};
use pumphouse::wire::budget::Charge;

use super::world::{Report, World, play};
use super::*;

/// An agent of a dialect that says these, turn by turn, and what its model was shown.
fn said(dialect: Dialect, replies: &[Script]) -> (World, ThreadId, Vec<Prompt>) {
    let settings = Settings { dialect, ..Settings::default() };
    said_with(&settings, replies)
}

/// The same with these settings. The thread is replayed, too.
fn said_with(settings: &Settings, replies: &[Script]) -> (World, ThreadId, Vec<Prompt>) {
    let seen: Arc<std::sync::Mutex<Vec<Prompt>>> = Arc::default();
    let agent = |world: &World| {
        let (kept, replies) = (seen.clone(), replies.to_vec());
        let model = world.timed(Scripted::new(move |prompt: &Prompt, turn| {
            kept.lock().unwrap().push(prompt.clone());
            replies[usize::try_from(turn).unwrap() - 1].clone()
        }));
        Agent::new("oracle", Arc::new(model.with_structure()))
            .settings(settings.clone())
            .peers(["tool", "clerk"])
    };
    let (world, thread) = play(agent);
    let shown = seen.lock().unwrap().clone();
    assert_eq!(world.replay(agent(&world), &thread).difference, None);
    (world, thread, shown)
}

fn responses(world: &World, thread: &ThreadId) -> Vec<(String, bool)> {
    world.all::<Response>(thread).into_iter().map(|it| (it.text, it.is_final)).collect()
}

fn last(prompt: &Prompt) -> &str {
    &prompt.messages.last().unwrap().text
}

/// A reply that reaches its limit, of 100 tokens.
fn full(script: Script) -> Script {
    script.stop(Stop::MaxTokens).usage(Usage::new(1, 100))
}

/// Every turn's prompt comes of the log as it was shown.
fn recalls(world: &World, thread: &ThreadId, seen: &[Prompt]) {
    let all: Vec<Entry> = world.entries(thread).iter().map(|it| (&**it).into()).collect();
    let turns = all.iter().filter(|it| it.is::<CognitionIn>());
    let prompts: Vec<Prompt> = turns.map(|it| recall(&all, it.seq()).unwrap().prompt).collect();
    assert_eq!(prompts, seen);
}

const GO_ON: &str = "What there is of it was delivered: go on exactly where it ends.]";

#[test]
fn an_answer_that_reaches_its_limit_is_delivered_and_continued() {
    let check = |settings: Settings, first: Script, second: &str| {
        let (world, thread, seen) = said_with(&settings, &[first, Script::text(second)]);
        // White space between the pieces belongs to the answer.
        let expected = [("Part one, the ".to_owned(), false), (" ferry.".to_owned(), true)];
        assert_eq!(responses(&world, &thread), expected, "{:#?}", world.story(&thread));
        let told = unmarked(last(&seen[1]));
        assert!(told.ends_with("exactly where it ends.]"), "{told}");
        assert!(world.all::<Correction>(&thread).is_empty());
        recalls(&world, &thread, &seen);
        told
    };
    let native = Settings { dialect: Dialect::Native, ..Settings::default() };
    let plain = Settings { text_is_response: Some(true), ..Settings::default() };
    let limit = format!("[Your reply reached its limit of 100 tokens, and ends there. {GO_ON}");
    let broken = format!("[Previous response was interrupted. {GO_ON}");
    for settings in [&native, &plain] {
        let settings = || settings.clone();
        assert_eq!(check(settings(), full(Script::text("\nPart one, the ")), " ferry.\n"), limit);
        let cut = Script::text("Part one, the … lost").fails(14, Kind::Cut);
        assert_eq!(check(settings(), cut, " ferry."), broken);
    }
    let tags = full(Script::text("<response>\nPart one, the "));
    let again = "What there is of it was delivered: open <response> again, and go on exactly where \
                 it ends.]";
    let limit = limit.replace(GO_ON, again);
    let told = check(Settings::default(), tags, "<response>\n ferry.\n</response>");
    assert_eq!(told, limit);
}

#[test]
fn an_answer_may_be_cut_several_times() {
    let part = |it: &str| full(Script::text(it));
    let replies = [part("One,"), part("two,"), part("three,"), Script::text("four.")];
    let (world, thread, _) = said(Dialect::Native, &replies);
    let texts: Vec<String> = responses(&world, &thread).into_iter().map(|it| it.0).collect();
    assert_eq!(texts, ["One,", "two,", "three,", "four."]);
    assert!(world.all::<Stopped>(&thread).is_empty());
}

#[test]
fn text_beside_a_call_that_was_cut_is_no_answer() {
    let call = Call::new("c1", "tool", "{\"what\": \"lin");
    for first in [
        full(Script::text("I write it.").call(call.clone())),
        Script::text("I write it.").call(call.clone()).fails(100, Kind::Cut),
    ] {
        let (world, thread, seen) = said(Dialect::Native, &[first, Script::text("Done.")]);
        assert_eq!(responses(&world, &thread), [("Done.".to_owned(), true)]);
        let result = seen[1].messages.iter().find(|it| it.of.as_deref() == Some("c1"));
        let result = &result.unwrap().text;
        assert!(result.starts_with("[c1 did not run: "), "{result}");
        recalls(&world, &thread, &seen);
    }
}

#[test]
fn a_call_that_was_cut_is_told_the_limit_and_to_write_in_pieces() {
    let expected = "did not run: your reply reached its limit of 100 tokens within it, and no \
                    reply has more. Do it in pieces: a smaller call in each reply.";
    let native = Script::new().call(Call::new("c1", "tool", "{\"what\": \"line\\nli"));
    let tag = Script::text("<action id=\"w\">{\"name\": \"tool\", \"parameters\": {\"what\": \"li");
    let tool_use = Script::text("<tool_use id=\"w\" name=\"tool\">{\"what\": \"li");
    for (dialect, first, name) in [
        (Dialect::Native, native, "c1"),
        (Dialect::Tags, tag, "<action>"),
        (Dialect::ToolUse, tool_use, "<tool_use>"),
    ] {
        let end = Script::text("<response>Done.</response>");
        let (world, thread, seen) = said(dialect, &[full(first), end]);
        let notices: Vec<String> =
            world.all::<Notice>(&thread).into_iter().map(|it| it.text).collect();
        assert_eq!(notices, [format!("{name} {expected}")]);
        recalls(&world, &thread, &seen);
    }
}

#[test]
fn broken_json_in_a_whole_reply_is_told_as_before() {
    let first = Script::new().call(Call::new("c1", "tool", "{\"what\": \"a\"b\"}"));
    let (world, thread, _) = said(Dialect::Native, &[first, Script::text("Done.")]);
    let notice = world.all::<Notice>(&thread).remove(0).text;
    assert!(notice.contains("write a new line as \\n"), "{notice}");
}

#[test]
fn a_call_that_is_cut_three_times_stops_the_agent() {
    let call = |it: u64| {
        let call = Call::new(format!("call_{it}"), "tool", "{\"what\": \"line\\nli");
        full(Script::text("I write it.").call(call)).usage(Usage::new(1, 90 + it))
    };
    let replies: Vec<Script> = (1..9).map(call).collect();
    let (world, thread, seen) = said(Dialect::Native, &replies);
    let stopped = world.all::<Stopped>(&thread).remove(0);
    assert_eq!((seen.len(), &*stopped.reason), (3, "repeated"));
    assert!(stopped.text.contains("3 times: call_3 did not run: your reply reached its limit"));
    let tag = "<action id=\"w\">{\"name\": \"tool\", \"parameters\": {\"what\": \"li";
    let replies = vec![full(Script::text(tag)); 9];
    let (world, thread, seen) = said(Dialect::Tags, &replies);
    let stopped = world.all::<Stopped>(&thread).remove(0);
    assert_eq!((seen.len(), &*stopped.reason), (3, "repeated"));
}

#[test]
fn a_call_that_runs_in_between_shows_progress() {
    let cut = |id: &str| full(Script::new().call(Call::new(id, "tool", "{\"what\": \"li")));
    let runs = |id: &str| Script::new().call(Call::new(id, "tool", "{\"what\": \"a part\"}"));
    let replies =
        [cut("a"), cut("b"), runs("c"), cut("d"), cut("e"), runs("f"), Script::text("Done.")];
    let (world, thread, _) = said(Dialect::Native, &replies);
    assert_eq!(responses(&world, &thread), [("Done.".to_owned(), true)]);
}

#[test]
fn an_answer_with_a_schema_that_was_cut_is_asked_for_anew() {
    let settings = Settings {
        dialect: Dialect::Native,
        final_payloads: vec!["report".to_owned()],
        ..Settings::default()
    };
    let whole = Script::text("{\"summary\": \"42\"}");
    let replies = [full(Script::text("{\"summary\": \"Part o")), whole];
    let (world, thread, seen) = said_with(&settings, &replies);
    let reports: Vec<String> =
        world.all::<Report>(&thread).into_iter().map(|it| it.summary).collect();
    assert_eq!((reports, responses(&world, &thread)), (vec!["42".to_owned()], Vec::new()));
    let told = &seen[1].messages.iter().map(|it| &*it.text).collect::<Vec<_>>().join("\n");
    let expected = "Your answer was not delivered: your reply reached its limit of 100 tokens \
                    within it. Nothing of it is kept: give it again, whole, and shorter.";
    assert!(told.contains(expected), "{told}");
    recalls(&world, &thread, &seen);
}

#[test]
fn a_reply_that_is_full_before_it_says_anything_is_told_so() {
    let first = full(Script::new().reasoning("Hm, hm, hm."));
    let (world, thread, _) = said(Dialect::Native, &[first, Script::text("Done.")]);
    assert_eq!(responses(&world, &thread), [("Done.".to_owned(), true)]);
    let told = world.all::<Correction>(&thread).remove(0).text;
    let expected =
        "[Your reply reached its limit of 100 tokens before it said anything. Be brief.]";
    assert_eq!(told, expected);
}

#[test]
fn thoughts_that_take_whole_replies_stop_the_agent() {
    let replies = vec![full(Script::text("<thought>Hm, hm, hm.")); 9];
    let (world, thread, seen) = said(Dialect::Tags, &replies);
    let stopped = world.all::<Stopped>(&thread).remove(0);
    assert_eq!((seen.len(), &*stopped.reason), (2, "idle"));
    let told = unmarked(last(&seen[1]));
    assert!(told.ends_with("before it said anything. Be brief.]"), "{told}");
}

#[test]
fn a_reply_that_breaks_off_costs_what_was_counted_and_written() {
    // The provider counted the prompt at the beginning, and a token of the reply.
    let text = "x".repeat(400);
    let broken = Script::text(&*text).usage(Usage::new(77, 1)).fails(300, Kind::Cut);
    let (world, thread, _) = said(Dialect::Native, &[broken, Script::text("Done.")]);
    let settled = world.all::<Charge>(&thread).into_iter().find(|it| it.settled).unwrap();
    assert_eq!(settled.estimated, Some(true), "{settled:?}");
    assert_eq!(settled.tokens_out, Some(75), "{settled:?}");
}

#[test]
fn a_listener_that_asked_gets_all_of_an_answer_that_was_cut() {
    let world = World::new(1);
    let helps = |prompt: &Prompt, _| match prompt.messages.len() {
        1 => full(Script::text("Part one, the 4")),
        _ => Script::text("8th ferry."),
    };
    let plain = Settings { text_is_response: Some(true), ..Settings::default() };
    let helper = Agent::new("helper", Arc::new(world.timed(Scripted::new(helps))));
    let helper = helper.settings(plain);
    let lead = world.timed(Scripted::replies([
        "<action id=\"a\">{\"name\": \"helper\", \"parameters\": {\"text\": \"Report.\"}}</action>",
        "<response>${a}</response>",
    ]));
    let lead = Agent::new("lead", Arc::new(lead)).peers(["helper"]);
    let question = lead.ask("Go.").unwrap();
    let pump = world.start([lead, helper]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    let texts: Vec<String> = responses(&world, &thread).into_iter().map(|it| it.0).collect();
    assert_eq!(texts.last().unwrap(), "Part one, the 48th ferry.", "{texts:?}");
}

#[test]
fn a_plain_answer_counts_whatever_word_its_server_ends_it_with() {
    for stop in [Stop::End, Stop::StopText, Stop::Calls, Stop::Other("eos_token".to_owned())] {
        let (world, thread, _) = said(Dialect::Native, &[Script::text("Yes.").stop(stop)]);
        assert_eq!(responses(&world, &thread), [("Yes.".to_owned(), true)]);
    }
    let replies = [Script::text("Ye").stop(Stop::Filtered), Script::text("Yes.")];
    let (world, thread, _) = said(Dialect::Native, &replies);
    assert_eq!(responses(&world, &thread), [("Yes.".to_owned(), true)]);
    assert_eq!(world.all::<CognitionOut>(&thread).len(), 2);
}
