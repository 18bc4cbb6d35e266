//! An agent's settings, and what each of them does.

use std::time::Duration;

use futures_util::future::join;
use pumphouse::listeners::action::InternalActions;
use pumphouse::listeners::action::words::ActionResult;
use pumphouse::listeners::agent::settings::{Calls, FinalWithActions, Keep, OnFull, Settings};
use pumphouse::listeners::agent::words::{
    CognitionIn, CognitionOut, CognitionReasoning, ContextFull, Dispatch, Notice, Response, Stopped,
};
use pumphouse::listeners::todo::words::StepsOpen;
use pumphouse::model::{Kind, Script, Usage};
use pumphouse::wire::core::{ContextCleared, ThreadSpawned};

use super::world::{Report, Work, World, play};
use super::*;

/// An agent with these settings that says these things.
fn saying<const N: usize>(
    replies: [&str; N],
    change: impl FnOnce(&mut Settings),
) -> impl FnOnce(&World) -> Agent {
    let replies = replies.map(str::to_owned);
    let mut settings = Settings::default();
    change(&mut settings);
    move |world| {
        let model = world.timed(Scripted::replies(replies));
        let peers = ["calculate", "tool", "clerk", "feeds"];
        Agent::new("oracle", Arc::new(model)).settings(settings).peers(peers)
    }
}

fn usual(_: &mut Settings) {}

fn finals(world: &World, thread: &ThreadId) -> Vec<String> {
    let all = world.all::<Response>(thread).into_iter();
    all.filter(|it| it.is_final).map(|it| it.text).collect()
}

#[test]
fn a_final_response_comes_with_what_is_left_to_do() {
    let list = |done: bool| {
        format!(
            "<todo-until condition=\"all sources read\"><step done=\"true\">one</step>\
             <step done=\"{done}\">two</step></todo-until>"
        )
    };
    let left = |replies: [String; 2]| {
        let replies: [&str; 2] = [&replies[0], &replies[1]];
        let (world, thread) = play(saying(replies, usual));
        assert_eq!(finals(&world, &thread), ["Done."]);
        let story = world.story(&thread);
        let told = story.iter().position(|it| it == "oracle > console: steps-open");
        let last = story.iter().position(|it| it == "oracle > console: response");
        assert!(told.is_none_or(|it| Some(it) < last), "{story:#?}");
        let left = world.all::<StepsOpen>(&thread);
        left.into_iter().flat_map(|it| it.todo).flat_map(|it| it.step).collect::<Vec<_>>()
    };
    let done = "<response>Done.</response>".to_owned();
    assert_eq!(left([list(false), done.clone()]), ["two"]);
    assert_eq!(left([list(true), done.clone()]), [""; 0]);
    // What the last turn itself ticks off is ticked off.
    assert_eq!(left([list(false), list(true) + &done]), [""; 0]);
}

#[test]
fn how_far_a_cut_reply_came_is_known_where_its_bound_is() {
    let percent = |max_tokens: Option<u32>, output: Option<u64>| {
        let mut cut = Script::text("<thought>Hm.</thought>").fails(12, Kind::Cut);
        if let Some(output) = output {
            let mut usage = Usage::default();
            usage.output = output;
            cut = cut.usage(usage);
        }
        let (world, thread) = play(|world| {
            let model = world.timed(Scripted::new(move |prompt: &Prompt, _| {
                let is_cut =
                    prompt.messages.last().unwrap().text.contains("response was interrupted");
                if is_cut { Script::text("<response>So.</response>") } else { cut.clone() }
            }));
            let settings = Settings { max_tokens, ..Settings::default() };
            Agent::new("oracle", Arc::new(model)).settings(settings)
        });
        assert_eq!(finals(&world, &thread), ["So."]);
        let out = world.all::<CognitionOut>(&thread).remove(0);
        assert!(out.is_partial && out.error.is_some(), "{out:?}");
        out.completion_percentage
    };
    assert_eq!(percent(None, None), None);
    assert_eq!(percent(Some(12), None), Some(25), "twelve characters are three tokens, about");
    assert_eq!(percent(Some(1), None), Some(99));
}

#[test]
fn reasoning_is_kept_once_and_said_to_be_cut_where_it_is() {
    for (is_cut, end) in [(false, None), (true, Some(Kind::Cut))] {
        let (world, thread) = play(|world| {
            let mut script = Script::new().reasoning("It may ").reasoning("rain.");
            script = match end {
                Some(kind) => script.fails(13, kind),
                None => script.then(pumphouse::model::Piece::Text("<response>.</response>".into())),
            };
            let after = Script::text("<response>.</response>");
            Agent::new("oracle", Arc::new(world.timed(Scripted::replies([script, after]))))
        });
        let all = world.all::<CognitionReasoning>(&thread);
        let [it] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            (&*it.text, it.is_partial, it.was_interrupted),
            ("It may rain.", is_cut, is_cut)
        );
    }
}

#[test]
fn a_prompt_that_does_not_fit_hides_old_messages_or_ends_it() {
    let long = format!("<response final=\"false\">{}</response>", "word ".repeat(900));
    let full = |on_context_full: OnFull| {
        let long = long.clone();
        let (world, thread) = play(|world| {
            let model = Scripted::new(move |_: &Prompt, turn| match turn {
                1..=4 => long.clone(),
                _ => "<response>So.</response>".to_owned(),
            });
            let mut settings = Settings::default();
            (settings.on_context_full, settings.context_keep) =
                (on_context_full, Keep::Messages(2));
            Agent::new("oracle", Arc::new(world.timed(model).with_window(4_000))).settings(settings)
        });
        let full = world.all::<ContextFull>(&thread);
        assert!(full[0].tokens > full[0].window, "{full:?}");
        let cleared = world.all::<ContextCleared>(&thread).len();
        (finals(&world, &thread), world.all::<Stopped>(&thread), full[0].keep, cleared)
    };
    let (finals, stopped, keep, cleared) = full(OnFull::Clear);
    assert_eq!((&finals[..], stopped.len(), keep), (&["So.".to_owned()][..], 0, Some(2)));
    assert!(cleared >= 1);
    let (finals, stopped, keep, cleared) = full(OnFull::Stop);
    assert_eq!((finals.len(), keep, cleared), (0, None, 0));
    assert_eq!(stopped[0].reason, "context-full");
}

#[test]
fn other_payloads_may_end_its_work() {
    let (world, thread) = play(saying(["<report><summary>All well.</summary></report>"], |it| {
        it.final_payloads = vec!["report".to_owned()];
    }));
    assert_eq!(world.all::<Report>(&thread)[0].summary, "All well.");
    assert_eq!(world.story(&thread).last().unwrap(), "oracle > console: report");
    // Where it isn't one of them, the peer that takes it gets it.
    let replies = ["<report><summary>x</summary></report>", "<response>.</response>"];
    let (world, thread) = play(saying(replies, usual));
    assert!(world.story(&thread).contains(&"oracle > clerk: report".to_owned()));
    assert_eq!(finals(&world, &thread), ["."]);
}

#[test]
fn a_response_that_does_not_say_is_what_the_setting_says() {
    let replies = ["<response>First.</response>", "<response final=\"true\">Last.</response>"];
    let (world, thread) = play(saying(replies, |it| it.final_default = false));
    assert_eq!(finals(&world, &thread), ["Last."]);
    let (world, thread) = play(saying(replies, usual));
    assert_eq!(finals(&world, &thread), ["First."]);
}

const LONG: &str = r#"<action id="a" mode="async">
{"name": "tool", "parameters": {"what": "a", "ms": 50}}</action><response>It is $a.</response>"#;

#[test]
fn a_final_response_beside_actions_goes_by_the_setting() {
    let came = |policy: FinalWithActions| {
        let replies = [LONG, "<response>Now it is $a.</response>"];
        let (world, thread) = play(saying(replies, |it| it.final_with_actions = policy));
        let finals = finals(&world, &thread);
        (finals[0].clone(), world.all::<CognitionOut>(&thread).len())
    };
    assert_eq!(came(FinalWithActions::Hold), ("It is a.".to_owned(), 1));
    // There is another turn at once; the action lands when it lands.
    let (text, turns) = came(FinalWithActions::Strict);
    assert_eq!(turns, 2, "{text}");
    // Nobody looks at what came of the action, but what the answer names it waits for.
    assert_eq!(came(FinalWithActions::Trust), ("It is a.".to_owned(), 1));
}

#[test]
fn actions_begin_when_the_setting_says() {
    const TWO: &str = r#"<action id="a" mode="async">{"name": "tool", "parameters": {"what": "a"}}
</action><action id="b" mode="async">{"name": "tool", "parameters": {"what": "b"}}</action>
<thought>And so on, for a while, until it is enough of that.</thought><response>.</response>"#;
    let began = |dispatch: Dispatch| {
        let (world, _) = play(|world| {
            let script = Script::text(TWO).chunks(10).every(Duration::from_millis(10));
            let settings = Settings { dispatch, ..Settings::default() };
            let agent = Agent::new("oracle", Arc::new(world.timed(Scripted::replies([script]))));
            agent.settings(settings).peers(["tool"])
        });
        let effects = world.effects.lock().unwrap();
        (effects[0].2, effects[1].2)
    };
    // Ten characters every 10 ms: the first closes at some 80 ms, the second at 160, all at 250.
    let (a, b) = began(Dispatch::Immediate);
    assert!((70..110).contains(&a) && (130..200).contains(&b), "{a} {b}");
    let (a, b) = began(Dispatch::Batched);
    assert!((170..210).contains(&a) && b - a < 10, "100 ms after the first: {a} {b}");
    let (a, b) = began(Dispatch::AfterResponse);
    assert!(a >= 240 && b - a < 10, "{a} {b}");
}

/// An agent that asks another, and what came of it.
fn asking(calls: Calls, ask: &'static str) -> (World, ThreadId) {
    let world = World::new(1);
    let helper = Scripted::new(|_: &Prompt, _| "<response>Forty-two.</response>");
    let settings = Settings { agent_calls: calls, ..Settings::default() };
    let helper = Agent::new("helper", Arc::new(helper)).settings(settings);
    let model = Scripted::new(move |prompt: &Prompt, turn| match turn {
        1 => ask.to_owned(),
        _ => {
            let has_come = prompt.messages.iter().any(|it| it.text.contains("Forty-two."));
            if has_come { "<response>He says so.</response>".to_owned() } else { String::new() }
        }
    });
    let oracle = Agent::new("oracle", Arc::new(model)).peers(["helper"]);
    let question = oracle.ask("What does he say?").unwrap();
    let pump = world.start([oracle, helper]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    (world, thread)
}

#[test]
fn calls_of_an_agent_run_in_threads_of_their_own_unless_the_setting_says_otherwise() {
    let by_action = r#"<action type="agent" id="h">
{"name": "helper", "parameters": {"topic": "answers", "sources": ["a", "b"]}}</action>"#;
    for ask in [by_action, "<helper>Well?</helper>"] {
        let (world, thread) = asking(Calls::OwnThread, ask);
        assert_eq!(finals(&world, &thread), ["He says so."], "{:#?}", world.story(&thread));
        assert_eq!(world.all::<ThreadSpawned>(&thread).len(), 1);
        let (world, thread) = asking(Calls::SameThread, ask);
        let story = world.story(&thread);
        assert!(story.contains(&"helper > helper: cognition_in".to_owned()), "{story:#?}");
        assert_eq!(world.all::<ThreadSpawned>(&thread).len(), 0);
    }
}

/// The rules of a manifest: which internal actions may run.
fn internal(yaml: &str) -> InternalActions {
    serde_yaml::from_str(yaml).unwrap()
}

#[test]
fn internal_actions_are_those_that_the_setting_allows() {
    const FEEDS: &str = r#"
<action type="internal" id="add">{"name": "add_context_feed", "parameters": {"id": "e"}}</action>
<action type="internal" id="update">
{"name": "update_context_feed", "parameters": {"id": "e"}}</action>"#;
    let came = |rules: &str| {
        let rules = internal(rules);
        let rules_are_on = rules.enabled;
        let replies = [FEEDS, "<response>.</response>"];
        let (world, thread) = play(saying(replies, |it| it.internal_actions = rules));
        let refused = world.all::<Notice>(&thread).into_iter().map(|it| {
            let why = match rules_are_on {
                true => "you may not take the internal action",
                false => "your internal actions are switched off",
            };
            assert!(it.text.contains(why), "{}", it.text);
            it.text.split(' ').next().unwrap().to_owned()
        });
        let refused: Vec<String> = refused.collect();
        let ran = world.all::<ActionResult>(&thread).into_iter().map(|it| it.id);
        (ran.collect::<Vec<_>>(), refused)
    };
    let both = || vec!["add".to_owned(), "update".to_owned()];
    assert_eq!(came("{}"), (both(), vec![]));
    assert_eq!(came("enabled: false"), (vec![], both()));
    let add = || vec!["add".to_owned()];
    let update = || vec!["update".to_owned()];
    let allowed = "enabled: true\nallowed_actions: [add_context_feed, remove_context_feed]";
    assert_eq!(came(allowed), (add(), update()));
    assert_eq!(came("blocked_actions: [update_context_feed]"), (add(), update()));
    let both_named =
        "allowed_actions: [update_context_feed]\nblocked_actions: [update_context_feed]";
    assert_eq!(came(both_named), (vec![], both()));
}

#[test]
fn a_turn_that_a_budget_stopped_is_replayed() {
    let mut world = World::new(1);
    world.limits.thread_turns_max = 2;
    let agent = || {
        let model = Scripted::new(|_: &Prompt, _| "<response final=\"false\">More.</response>");
        Agent::new("oracle", Arc::new(model))
    };
    let pump = world.start([agent()]);
    let thread = world.tell(&pump, agent().ask("Go on.").unwrap(), Duration::ZERO);
    world.sim.rest().unwrap();
    let stopped = world.all::<Stopped>(&thread).remove(0);
    let text = "turns: 1 asked for, 2 used, the limit is 2";
    assert_eq!((stopped.turns, &*stopped.reason, &*stopped.text), (2, "budget", text));
    let replayed = world.replay(agent(), &thread);
    assert_eq!((replayed.compared["oracle"], replayed.difference), (3, None));
    assert_eq!(replayed.skipped, []);
    // Where there is more to spend now, it would not stop.
    world.limits.thread_turns_max = 5;
    let replayed = world.replay(agent(), &thread);
    let skipped: Vec<&str> = replayed.skipped.iter().map(|it| it.why).collect();
    assert_eq!((&skipped[..], replayed.difference), (&["its budget was another then"][..], None));
}

#[test]
fn a_turn_that_came_to_nothing_is_replayed_by_itself() {
    let says = r#"<action id="a">{"name": "tool", "parameters": {"what": "a"}}</action>
<response>It is $a.</response>"#;
    for seed in 1..=40 {
        let world = World::new(seed);
        let agent = || saying([says, "<response>.</response>"], usual)(&world);
        let pump = world.start([agent()]);
        let thread = world.tell(&pump, agent().ask("Do it.").unwrap(), Duration::ZERO);
        world.sim.rest().unwrap();
        let at = format!("{seed}: {:#?}", world.story(&thread));
        assert_eq!(world.replay(agent(), &thread).difference, None, "{at}");
    }
}

#[test]
fn no_action_runs_in_the_last_turn() {
    let (world, thread) = play(saying([LONG], |it| it.max_turns = 1));
    assert!(world.all::<Notice>(&thread)[0].text.starts_with("This was your last turn"));
    assert!(world.effects.lock().unwrap().is_empty());
    assert_eq!(finals(&world, &thread), ["It is [a: failed]."]);
}

const SLOW: &str = r#"<action id="a">
{"name": "tool", "parameters": {"what": "a", "ms": 9000}, "timeout": 1}</action>"#;

#[test]
fn an_agent_says_what_its_actions_may_come_to() {
    let one = |id: &str, more: &str| {
        format!(
            "<action id=\"{id}\" mode=\"async\">{{\"name\": \"tool\", \"parameters\": \
             {{\"what\": \"{id}\", \"ms\": 9000}}{more}}}</action>"
        )
    };
    let both = one("a", "") + &one("b", ", \"retry\": 1");
    let (world, thread) = play(saying([&*both, "<response>.</response>"], |it| {
        let limits = &mut it.action_limits;
        (limits.at_once, limits.retry_max) = (1, 0);
        limits.timeout = Duration::from_secs(2);
    }));
    let begun = &world.all::<CognitionIn>(&thread)[0];
    let limits = begun.action_limits.unwrap().limits();
    assert_eq!((limits.at_once, limits.timeout), (1, Duration::from_secs(2)));
    let told = &world.all::<Notice>(&thread)[0].text;
    assert!(told.contains("retry takes a whole number from 0 to 0"), "{told}");
    let error = world.all::<ActionResult>(&thread)[0].error.clone().unwrap();
    assert_eq!(error.message, "no answer came in 2 s");
}

#[test]
fn what_comes_of_an_action_that_took_too_long_answers_whom_it_was_for() {
    let world = World::new(1);
    let agent = saying([SLOW, "<response>It took too long.</response>"], usual)(&world);
    let question = agent.ask("What is six times seven?").unwrap();
    let pump = world.start([agent]);
    let second = async {
        world.sim.sleep(Duration::from_millis(500)).await;
        let thread = world.disk.kept().threads(None, 1).await.unwrap().remove(0).id.clone();
        pump.in_thread(&thread).tell(Work::new("something else")).await.unwrap();
    };
    let (answer, ()) = world.sim.run(join(pump.ask_element(question), second)).unwrap();
    assert_eq!(answer.unwrap().decode::<Response>().unwrap().text, "It took too long.");
    // The tool comes to its end, and then nothing waits for a time that is over.
    world.sim.rest().unwrap();
    assert!(world.ms() < 9_500, "{}", world.ms());
}

/// A prompt in one piece, with who says what before each message.
fn flat(prompt: &Prompt) -> String {
    let said = prompt.messages.iter().map(|it| format!("\n<{}>{}", it.role.as_str(), it.text));
    prompt.system.clone() + &said.collect::<String>()
}

#[test]
fn a_prompt_begins_with_the_prompt_of_the_turn_before() {
    let seen: Arc<std::sync::Mutex<Vec<Prompt>>> = Arc::default();
    let kept = seen.clone();
    let (world, thread) = play(|world| {
        let model = Scripted::new(move |prompt: &Prompt, turn| {
            kept.lock().unwrap().push(prompt.clone());
            let text = match turn {
                1 => LONG.replace("response", "thought"),
                2 => "Nothing but words.".to_owned(),
                3 => "<response final=\"false\">So far: ${a}</response><action>{</action>".into(),
                4 | 5 => format!("<think>Turn {turn}.</think><oracle/>"),
                _ => "<response>.</response>".to_owned(),
            };
            Script::text(text).chunks(8).every(Duration::from_millis(7))
        });
        Agent::new("oracle", Arc::new(world.timed(model))).peers(["tool"])
    });
    assert_eq!(finals(&world, &thread), ["."]);
    let seen: Vec<String> = seen.lock().unwrap().iter().map(flat).collect();
    assert!(seen.len() >= 6, "{}", seen.len());
    for (turn, pair) in seen.windows(2).enumerate() {
        // What runs and what is held stands at the end, and is said anew.
        let before = pair[0].split("[running: ").next().unwrap().trim_end();
        let before = before.trim_end_matches("<user>").trim_end();
        assert!(pair[1].starts_with(before), "turn {}:\n{}\n\n{}", turn + 1, pair[0], pair[1]);
    }
}
