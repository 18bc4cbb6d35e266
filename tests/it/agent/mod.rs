//! Agents: their turns, the payloads that their replies send, and how their work ends.

mod asks;
mod asked;
mod attachments;
mod chat;
mod chat_models;
pub(crate) mod demo;
mod ends;
mod examples;
mod feedback;
mod held_back;
mod hiding;
mod iteration;
mod peers;
mod prompts;
mod properties;
mod provider;
mod recall;
mod references;
mod structured;
mod system;
mod command_line;
mod transcript;
mod charges;
mod control_flow;
mod crash_mid_turn;
mod cut_replies;
mod hostile;
mod interrupt;
mod large_values;
mod long_results;
mod native;
mod rules;
mod spent;
mod spoken;
mod streams;
mod text;
mod value;
mod verbatim;
mod waking;
mod marks;
pub(crate) mod one_asker;
mod pairs;
mod windows;
mod world;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pumphouse::listeners::agent::Agent;
use pumphouse::listeners::agent::mind::Minds;
use pumphouse::listeners::agent::words::{Response, Stopped, root as agent_root};
use pumphouse::listeners::{agent_support, core, tool};
use pumphouse::log::{Flags, Log, MemoryLog};
use pumphouse::model::{Prompt, Script, Scripted};
use pumphouse::prelude::*;

/// A prompt's text without the mark of its thread, with which the lines of the pump's own end.
pub(crate) fn unmarked(text: &str) -> String {
    let mut parts = text.split(" #");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_mark = part.len() > 6 && part.as_bytes()[..6].iter().all(u8::is_ascii_hexdigit);
        let ends = is_mark && [b']', b' '].contains(&part.as_bytes()[6]);
        out += if ends { &part[6..] } else { " #" };
        out += if ends { "" } else { part };
    }
    out
}

/// A pump with an agent named `oracle` that may calculate.
fn start(log: &Arc<dyn Log>, agent: Agent) -> Pump {
    let log = log.clone();
    let builder = pumphouse::builder().with((core(), agent_support()));
    let builder = builder.with(tool::calculate::calculate()).with(agent.listener());
    builder.with(move |it: &mut Builder| it.log(log)).build().unwrap().start()
}

fn oracle(model: Scripted) -> Agent {
    Agent::new("oracle", Arc::new(model)).prompt("You know it all.").peers(["calculate"])
}

/// Asks the oracle, and gives its answer and the thread's story.
async fn ask(agent: Agent) -> (Entry, Vec<String>) {
    let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
    let question = agent.ask("What is six times seven?").unwrap();
    let pump = start(&log, agent);
    let answer = pump.ask_element(question).await.unwrap();
    pump.shutdown().await.unwrap();
    let story = story(&log, answer.thread()).await;
    (answer, story)
}

async fn story(log: &Arc<dyn Log>, thread: &ThreadId) -> Vec<String> {
    let entries = log.read(thread, 0, u64::MAX, 1_000).await.unwrap();
    let line = |it: &Arc<pumphouse::log::Entry>| {
        let refused = if it.flags.contains(Flags::REFUSED) { " refused" } else { "" };
        let to = it.to.as_deref().unwrap_or("*");
        format!("{} > {to}: {}{refused}", it.from, it.name.local())
    };
    entries.iter().map(line).collect()
}

/// What the model was shown, turn by turn, and a model that says these.
fn remembering<const N: usize>(
    replies: [&'static str; N],
) -> (Scripted, Arc<std::sync::Mutex<Vec<Prompt>>>) {
    let seen: Arc<std::sync::Mutex<Vec<Prompt>>> = Arc::default();
    let kept = seen.clone();
    let model = Scripted::new(move |prompt: &Prompt, turn| {
        kept.lock().unwrap().push(prompt.clone());
        replies[usize::try_from(turn).unwrap() - 1]
    });
    (model, seen)
}

#[tokio::test]
async fn a_final_response_is_the_answer_and_all_of_the_turn_is_in_the_log() {
    let model = Scripted::replies(["<thought>Easy.</thought><response>42</response>"]);
    let (answer, story) = ask(oracle(model)).await;
    let Response { is_final, turn, text, .. } = answer.decode().unwrap();
    assert_eq!((is_final, turn, &*text), (true, 1, "42"));
    let told = [
        "console > oracle: oracle",
        "oracle > oracle: cognition_system",
        "oracle > oracle: cognition_in",
        "oracle > oracle: thought",
        "oracle > action: cognition_out",
        "oracle > console: response",
    ];
    let story: Vec<_> = story.into_iter().filter(|it| !it.ends_with(": charge")).collect();
    assert_eq!(story, told);
}

#[tokio::test]
async fn an_action_runs_and_its_result_is_in_the_next_prompt() {
    let (model, seen) = remembering([
        r#"<action id="sum">{"name": "calculate", "parameters": {"expression": "6*7"}}</action>"#,
        "<response>It is ${sum}.</response>",
    ]);
    let (answer, story) = ask(oracle(model)).await;
    assert_eq!(answer.decode::<Response>().unwrap().text, "It is 42.");
    assert!(story.contains(&"action > calculate: calculate".to_owned()), "{story:?}");
    let seen = seen.lock().unwrap();
    let roles: Vec<&str> = seen[1].messages.iter().map(|it| it.role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(seen[1].messages[0], seen[0].messages[0]);
    let result = &seen[1].messages[2].text;
    assert!(result.starts_with("<action-result id=\"sum\" status=\"ok\">"), "{result}");
}

#[tokio::test]
async fn only_agents_have_a_mind_though_others_have_a_payload_of_their_own_name() {
    let model = Scripted::replies([
        r#"<action id="sum">{"name": "calculate", "parameters": {"expression": "6*7"}}</action>"#,
        "<response>It is ${sum}.</response>",
    ]);
    let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
    let agent = oracle(model);
    let question = agent.ask("What is six times seven?").unwrap();
    let pump = start(&log, agent);
    let answer = pump.ask_element(question).await.unwrap();
    pump.shutdown().await.unwrap();
    let entries = log.read(answer.thread(), 0, u64::MAX, 1_000).await.unwrap();
    let mut minds = Minds::default();
    let (mut asked, mut named) = (BTreeSet::new(), BTreeSet::new());
    for it in &entries {
        let it: Entry = (&**it).into();
        minds.apply(&it);
        named.extend(minds.all().map(|(name, _)| name.to_owned()));
        let is_own = it.to().is_some_and(|to| *it.name() == agent_root(to));
        asked.extend(it.to().filter(|_| is_own).map(str::to_owned));
    }
    assert!(asked.contains("calculate") && asked.contains("oracle"), "{asked:?}");
    assert_eq!(named, BTreeSet::from(["oracle".to_owned()]));
}

#[tokio::test]
async fn a_final_response_waits_for_the_actions_of_its_turn() {
    let model = Scripted::replies([r#"
        <action id="sum">{"name": "calculate", "parameters": {"expression": "6*7"}}</action>
        <response>It is ${sum}.</response>"#]);
    let (answer, story) = ask(oracle(model)).await;
    let it: Response = answer.decode().unwrap();
    assert_eq!((&*it.text, it.was_held), ("It is 42.", true));
    let place = |line: &str| story.iter().position(|it| it == line).unwrap();
    let result = place("action > oracle: action-result");
    assert!(result < place("oracle > console: response"), "{story:?}");
}

#[tokio::test]
async fn a_final_response_whose_actions_are_done_before_it_is_delivered() {
    let text = r#"<action id="sum">{"name": "calculate", "parameters": {"expression": "6*7"}}
        </action><response>It is ${sum}, and it took me a while to say so.</response>"#;
    let slow = Script::text(text).chunks(10).every(Duration::from_millis(5));
    let (answer, story) = ask(oracle(Scripted::replies([slow]))).await;
    let it: Response = answer.decode().unwrap();
    assert_eq!(&*it.text, "It is 42, and it took me a while to say so.");
    let turns = story.iter().filter(|it| it.ends_with("cognition_in")).count();
    assert_eq!(turns, 1, "{story:?}");
}

#[tokio::test]
async fn a_final_response_whose_actions_fail_is_followed_by_another_turn() {
    let (model, seen) = remembering([
        r#"<action id="sum">{"name": "calculate", "parameters": {"expression": "1/0"}}</action>
           <response>It is ${sum}.</response>"#,
        "<response>It can't be said.</response>",
    ]);
    let (answer, _) = ask(oracle(model)).await;
    assert_eq!(answer.decode::<Response>().unwrap().text, "It can't be said.");
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn partial_responses_come_before_the_final_one() {
    let model = Scripted::replies([
        "<response final=\"false\">So far nothing.</response>",
        "<response final=\"true\">42</response>",
    ]);
    let (answer, story) = ask(oracle(model)).await;
    let first: Response = answer.decode().unwrap();
    assert_eq!((first.is_final, &*first.text), (false, "So far nothing."));
    let answers = story.iter().filter(|it| *it == "oracle > console: response");
    assert_eq!(answers.count(), 2);
}

#[tokio::test]
async fn text_alone_is_corrected_once_and_then_the_agent_stops() {
    let (model, seen) = remembering(["Let me think.", "Hm.", "Never."]);
    let (answer, story) = ask(oracle(model)).await;
    let it: Stopped = answer.decode().unwrap();
    assert_eq!((it.turns, &*it.reason), (2, "idle"));
    assert_eq!(seen.lock().unwrap().len(), 2);
    assert!(story.contains(&"oracle > oracle: correction".to_owned()), "{story:?}");
}

#[tokio::test]
async fn what_may_not_be_called_is_refused_and_the_model_learns_it() {
    let (model, seen) = remembering([
        r#"<action id="a">{"name": "echo", "parameters": {"text": "x"}}</action>"#,
        "<response>No.</response>",
    ]);
    let (_, story) = ask(oracle(model)).await;
    assert!(!story.iter().any(|it| it.starts_with("action > echo")), "{story:?}");
    let told = &seen.lock().unwrap()[1].messages[2].text;
    assert!(told.contains("status=\"failed\""), "{told}");
}

#[tokio::test]
async fn broken_json_runs_nothing_and_the_model_reads_why() {
    let (model, seen) = remembering([
        r#"<action id="a">{"name": "calculate", "parameters": {"expression": "6*7"}</action>"#,
        "<response>Sorry.</response>",
    ]);
    let (_, story) = ask(oracle(model)).await;
    assert!(story.contains(&"oracle > oracle: notice".to_owned()), "{story:?}");
    let told = &seen.lock().unwrap()[1].messages[2].text;
    assert!(told.contains("did not run"), "{told}");
}

#[tokio::test]
async fn a_peer_is_called_by_its_own_payload_too() {
    let (model, seen) = remembering([
        "<calculate><expression>6*7</expression></calculate>",
        "<response>Good.</response>",
    ]);
    let (_, story) = ask(oracle(model)).await;
    assert!(story.contains(&"oracle > calculate: calculate".to_owned()), "{story:?}");
    let told = unmarked(&seen.lock().unwrap()[1].messages[2].text);
    assert!(told.starts_with("[calculate]\n") && told.contains("42"), "{told}");
}

#[tokio::test]
async fn an_agent_has_so_many_turns_and_no_more() {
    let model = Scripted::new(|_: &Prompt, _| "<response final=\"false\">More.</response>");
    let settings = pumphouse::listeners::agent::settings::Settings {
        max_turns: 3,
        ..pumphouse::listeners::agent::settings::Settings::default()
    };
    let agent = Agent::new("oracle", Arc::new(model)).settings(settings);
    let (_, story) = ask(agent).await;
    let turns = story.iter().filter(|it| it.ends_with("cognition_in")).count();
    assert_eq!(turns, 3);
    assert!(story.contains(&"oracle > console: agent-stopped".to_owned()), "{story:?}");
}

#[tokio::test]
async fn the_second_question_of_a_thread_finds_the_first_one_answered() {
    let (model, seen) = remembering(["<response>42</response>", "<response>43</response>"]);
    let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
    let agent = oracle(model);
    let (first, second) = (agent.ask("Six times seven?").unwrap(), agent.ask("And one?").unwrap());
    let pump = start(&log, agent);
    let answer = pump.ask_element(first).await.unwrap();
    let answer = pump.in_thread(answer.thread()).ask_element(second).await.unwrap();
    assert_eq!(answer.decode::<Response>().unwrap().text, "43");
    let seen = seen.lock().unwrap();
    let texts: Vec<String> = seen[1].messages.iter().map(|it| unmarked(&it.text)).collect();
    let told = ["[console]\nSix times seven?", "<response>42</response>", "[console]\nAnd one?"];
    assert_eq!(texts, told);
}
