//! The system text of an agent's prompts, and the senders that prompts name. Test names such as
//! `d16_…` begin with the number of a finding in a trial of 0.1.0.

use pumphouse::engine::Identity;
use pumphouse::listeners::agent::settings::{Ability, Dialect, Settings};
use pumphouse::listeners::agent::words::CognitionIn;

use super::one_asker::{Seen, oracle_saying, responses};
use super::world::World;
use super::*;

/// The system text of an agent that may call a tool, an agent and the staff.
fn told(name: &str, prompt: &str, change: impl FnOnce(&mut Settings)) -> String {
    let world = World::new(1);
    let seen = Seen::default();
    let kept = seen.clone();
    let model = Scripted::new(move |prompt: &Prompt, _| {
        kept.lock().unwrap().push(prompt.clone());
        "<response>.</response>"
    });
    let mut settings = Settings::default();
    change(&mut settings);
    prompt.clone_into(&mut settings.prompt);
    let peers = ["calculate", "tool", "helper", "feeds", "feed", "timer"];
    let agent = Agent::new(name, Arc::new(world.timed(model))).settings(settings).peers(peers);
    let question = agent.ask("Go.").unwrap();
    let helper = Agent::new("helper", Arc::new(Scripted::replies([""])));
    let pump = world.start([agent, helper]);
    world.tell(&pump, question, Duration::from_secs(5));
    seen.lock().unwrap().remove(0).system
}

#[test]
fn agents_share_the_protocol_as_a_prefix() {
    let one = told("one", "You are short.", |_| {});
    let two = told("two", "Be long.", |_| {});
    let same = one.bytes().zip(two.bytes()).take_while(|(a, b)| a == b).count();
    assert!(one.starts_with("# How you write\n"), "{one}");
    let own = one.find("# Who you are\n\nYou are short.").unwrap();
    assert!(same > own, "{same} of {own}");
    assert!(same * 100 / one.len() >= 60, "{same} of {}", one.len());
}

#[test]
fn a_call_is_shown_in_the_form_that_is_asked_for() {
    let told = told("oracle", "", |_| {});
    let (before, peers) = told.split_once("# Whom you may call").unwrap();
    assert!(before.ends_with("# Who you are\n\nYou are the agent oracle.\n\n"), "{before}");
    assert!(
        peers.contains("\n{\"name\": \"calculate\", \"parameters\": {\"expression\":"),
        "{peers}"
    );
    assert!(peers.contains("\n- expression (text): "), "{peers}");
    assert!(peers.contains("- ms (whole number, optional): How long that takes."), "{peers}");
    // Of several payloads each has its name.
    assert!(peers.contains("{\"name\": \"feeds.add_context_feed\", "), "{peers}");
    // An agent takes a text.
    assert!(peers.contains("{\"name\": \"helper\", \"parameters\": {\"text\":\"…\"}}"), "{peers}");
    // No namespace that needn't be written, and nothing of the machinery's.
    assert!(!peers.contains("xmlns") && !peers.contains("declare-feeds"), "{peers}");
}

#[test]
fn the_protocol_has_a_whole_example_of_two_turns_and_nothing_untrue() {
    let text = told("oracle", "", |_| {});
    let example = text.split_once("An example, ").unwrap().1;
    let (first, second) = example.split_once("You are sent:").unwrap();
    assert!(first.contains("<action id=\"paris\" mode=\"async\">"), "{text}");
    assert!(second.contains("<response>Rome has more people: "), "{text}");
    assert!(!text.contains("without naming it in depends_on"), "{text}");
    let text = told("oracle", "", |it| it.final_default = false);
    assert!(text.contains("<response final=\"true\">…</response> is your final"), "{text}");
    let chat = told("oracle", "", |it| it.text_is_response = Some(true));
    assert!(
        chat.contains("A reply of plain text without actions is your final response"),
        "{chat}"
    );
    assert!(!chat.contains("reaches nobody"), "{chat}");
    let native = told("oracle", "", |it| it.dialect = Dialect::Native);
    assert!(native.contains("plain text without calls") && !native.contains("Whom"), "{native}");
}

#[test]
fn abilities_say_what_a_prompt_offers() {
    let all = told("oracle", "", |_| {});
    for it in
        ["<spawn-thread>", "<set-timer ", "<todo-until ", "<clear-context ", "add_context_feed"]
    {
        assert!(all.contains(it), "{it}: {all}");
    }
    let some = told("oracle", "", |it| it.abilities = vec![Ability::Todo]);
    assert!(some.contains("<todo-until ") && !some.contains("<spawn-thread>"), "{some}");
    // A peer of the staff that no ability speaks of is shown as any other.
    assert!(some.contains("{\"name\": \"timer.set-timer\", "), "{some}");
    assert!(!all.contains("timer.set-timer"), "{all}");
    let none = told("oracle", "", |it| {
        it.abilities.clear();
        it.internal_actions.enabled = false;
    });
    assert!(!none.contains("# What you may write besides"), "{none}");
}

#[test]
fn d16_a_message_is_headed_by_who_sent_it() {
    let world = World::new(1);
    let call = "<calculate><expression>6*7</expression></calculate>";
    let say = [call, "<response>One.</response>", "<response>Two.</response>"];
    let (agent, seen) = oracle_saying(&world, &say);
    let (one, two) = (agent.ask("One?").unwrap(), agent.ask("Two?").unwrap());
    let pump = world.start([agent]);
    let thread = world.tell(&pump, one, Duration::from_secs(10));
    let ada = pump.speaking_as(Identity { name: "ada".into(), operator: true });
    world.tell(&ada.in_thread(&thread), two, Duration::from_secs(10));
    assert_eq!(responses(&world, &thread), ["One.", "Two."], "{:#?}", world.story(&thread));
    let seen = seen.lock().unwrap();
    let users = seen.last().unwrap().messages.iter().filter(|it| it.role.as_str() == "user");
    let heads: Vec<&str> = users.map(|it| it.text.lines().next().unwrap()).collect();
    let begun = world.all::<CognitionIn>(&thread).remove(0);
    let mark = begun.mark;
    let expected = ["console", "calculate", "ada"].map(|it| format!("[{it} {mark}]"));
    assert_eq!((heads, begun.rendering), (expected.iter().map(|it| &**it).collect(), 1));
}
