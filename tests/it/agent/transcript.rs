//! Transcripts: the tests that *Streaming Inline Tool Execution* asks for, and the grammar that
//! providers require of a conversation.

use std::collections::BTreeSet;

use pumphouse::engine::Followed;
use pumphouse::listeners::agent::messages::{INTERRUPTED, agents, conversation};
use pumphouse::listeners::agent::recall::recall;
use pumphouse::listeners::agent::settings::Settings;
use pumphouse::listeners::agent::transcript::{Event, EventKind, Transcript, transcript};
use pumphouse::listeners::agent::words::CognitionIn;
use pumphouse::listeners::feed::{Definition, Feeds, Source};
use pumphouse::listeners::metadata::{Field, Fields};
use pumphouse::listeners::tool::calculate::Calculate;
use pumphouse::model::{Call, Kind, Piece};
use serde_json::Value;

use super::*;

const SUM: &str =
    r#"<action id="sum">{"name": "calculate", "parameters": {"expression": "6*7"}}</action>"#;

/// The entries of a thread in which the oracle was asked, up to its last word.
pub(super) async fn thread(agent: Agent) -> Vec<Entry> {
    let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
    let question = agent.ask("What is six times seven?").unwrap();
    let pump = start(&log, agent);
    let answer = pump.ask_element(question).await.unwrap();
    pump.shutdown().await.unwrap();
    let entries = log.read(answer.thread(), 0, u64::MAX, 1_000).await.unwrap();
    entries.iter().map(|it| -> Entry { (&**it).into() }).collect()
}

/// What somebody hears who looks on while the oracle answers.
async fn live(script: Script) -> Vec<Event> {
    let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
    let agent = oracle(Scripted::replies([script]));
    let question = agent.ask("What is six times seven?").unwrap();
    let pump = start(&log, agent);
    let expression = "1".to_owned();
    let opened = pump.tell(Calculate::new(expression)).await.unwrap();
    let mut follow = pump.follow(&opened.thread, 0);
    let asking = pump.in_thread(&opened.thread);
    let (mut transcript, mut events) = (Transcript::default(), Vec::new());
    let looking = async {
        while !events.iter().any(|it: &Event| is_final(&it.what)) {
            match follow.next().await.unwrap() {
                Followed::Entry(entry) => events.extend(transcript.hear(&entry)),
                Followed::Live(it) => {
                    events.extend(transcript.glimpse(&it.from, &opened.thread, &it.payload));
                }
            }
        }
    };
    let (answer, ()) = tokio::join!(asking.ask_element(question), looking);
    answer.unwrap();
    pump.shutdown().await.unwrap();
    events
}

fn is_final(it: &EventKind) -> bool {
    matches!(it, EventKind::Response { is_final: true, .. })
}

/// The types of events, in order, the same ones in a row once.
fn types(events: &[Event]) -> Vec<String> {
    let types = events.iter().map(|it| serde_json::to_value(it).unwrap()["type"].clone());
    let mut types: Vec<_> = types.map(|it| it.as_str().unwrap().to_owned()).collect();
    types.dedup();
    types
}

#[tokio::test]
async fn a_transcript_shows_messages_as_the_prompt_of_the_turn_does() {
    let entries =
        thread(oracle(Scripted::replies([format!("{SUM}<response>It is 42.</response>")]))).await;
    let turn = entries.iter().rev().find(|it| it.is::<CognitionIn>()).unwrap();
    let prompt = recall(&entries, turn.seq()).unwrap().prompt;
    let told = transcript(&entries).into_iter().filter_map(|it| match it.what {
        EventKind::CognitionIn { text, role, .. } => Some((role, text)),
        _ => None,
    });
    let told: Vec<_> = told.collect();
    assert_eq!(told[0], ("user".to_owned(), prompt.messages[0].text.clone()));
    assert_eq!(told[1], ("system".to_owned(), prompt.system));
    let mark = turn.decode::<CognitionIn>().unwrap().mark;
    assert!(told[0].1.starts_with(&format!("[console {mark}]\n")), "{told:?}");
}

#[tokio::test]
async fn test_interleaved_events_order() {
    let text = format!("<thought>First a sum. {SUM} While that runs, I think on.</thought>");
    let text = text + "<response>It is ${sum}.</response>";
    let script = Script::text(&text).chunks(20).every(Duration::from_millis(2));
    let told = [
        "cognition_in",
        "step_start",
        "cognition_out_delta",
        "tool_call_start",
        "tool_call_result",
        "cognition_out_delta",
        "thought",
        "cognition_out_delta",
        "cognition_out",
        "response",
    ];
    assert_eq!(types(&live(script).await), told);
}

#[tokio::test]
async fn test_cognition_out_always_last() {
    let scripts = [
        Script::text(format!("{SUM}<response>It is ${{sum}}.</response>")),
        Script::text(format!("<thought>Hm.</thought>{SUM}<response>42</response>")).chunks(7),
        Script::text("<response>42</response>").reasoning("Easy."),
    ];
    for script in scripts {
        let thread = thread(oracle(Scripted::replies([script]))).await;
        let events = transcript(&thread);
        let is_out = |it: &Event| matches!(it.what, EventKind::CognitionOut { .. });
        let out = events.iter().position(is_out).unwrap();
        let after = types(&events[out + 1..]);
        // What others do may come later, and what is made of its words.
        let may = ["tool_call_result", "response"];
        assert!(after.iter().all(|it| may.contains(&&**it)), "{after:?}");
    }
}

#[tokio::test]
async fn test_reconstruct_from_interleaved() {
    let first =
        format!("<thought>First. {SUM} On.</thought><response final=\"false\">…</response>");
    let model = Scripted::replies([&*first, "<response>It is ${sum}.</response>"]);
    let events = transcript(&thread(oracle(model)).await);
    // As lines and back.
    let lines: Vec<String> = events.iter().map(|it| serde_json::to_string(it).unwrap()).collect();
    let events: Vec<Event> = lines.iter().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(agents(&events), ["oracle"]);
    let talk = conversation("oracle", &events);
    assert!(talk.system.contains("\n\nYou know it all."), "{}", talk.system);
    let messages = talk.openai()["messages"].clone();
    let expected = serde_json::json!([
        { "role": "user", "content": "[console]\nWhat is six times seven?" },
        {
            "role": "assistant",
            "content": "<thought>First.  On.</thought><response final=\"false\">…</response>",
            "tool_calls": [{
                "id": "sum",
                "type": "function",
                "function": { "name": "calculate", "arguments": "{\"expression\":\"6*7\"}" },
            }],
        },
        { "role": "tool", "tool_call_id": "sum", "content": "42" },
        { "role": "assistant", "content": "<response>It is ${sum}.</response>" },
    ]);
    let messages = Value::from(&messages.as_array().unwrap()[1..]).to_string();
    assert_eq!(unmarked(&messages), expected.to_string());
}

#[tokio::test]
async fn test_accumulate_deltas_to_full_text() {
    let text = "<thought>Six times seven <i>is</i></thought> … <response>42 & no more</response>";
    let events = live(Script::text(text).chunks(3).every(Duration::from_millis(1))).await;
    let mut written = String::new();
    for event in &events {
        if let EventKind::CognitionOutDelta { text, .. } = &event.what {
            written.push_str(text);
        }
    }
    assert_eq!(written, "Six times seven <i>is</i> … 42 & no more");
    let out = events.iter().find_map(|it| match &it.what {
        EventKind::CognitionOut { text, .. } => Some(text),
        _ => None,
    });
    assert_eq!(out.unwrap(), text);
    // Where nobody knows the whole text yet, the pieces stand for it.
    let is_out =
        |it: &Event| matches!(it.what, EventKind::CognitionOut { .. } | EventKind::Response { .. });
    let unfinished: Vec<Event> = events.iter().filter(|it| !is_out(it)).cloned().collect();
    let talk = conversation("oracle", &unfinished).openai();
    let last = talk["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"], *written);
}

#[tokio::test]
async fn a_reply_that_was_interrupted_is_kept_and_gone_on_from() {
    let reasoning = "Let me analyze this step by step. First...";
    let text = "<thought>Hm</thought><response>The solution involves...";
    let cut = Script::new().reasoning(reasoning).then(Piece::Text(text.to_owned()));
    let cut = cut.fails(reasoning.len() + text.len(), Kind::Cut);
    let rest = "<response>Let me continue from where I left off...</response>";
    let model = Scripted::replies([cut, Script::text(rest)]);
    // A token has four bytes, about: 13 of 20 came.
    let settings = Settings { max_tokens: Some(20), ..Settings::default() };
    let thread = thread(oracle(model).settings(settings)).await;
    let events = transcript(&thread);
    let is_out = |it: &&Event| matches!(it.what, EventKind::CognitionOut { .. });
    let reasons = |it: &&Event| matches!(it.what, EventKind::CognitionReasoning { .. });
    let told = |it: Option<&Event>| serde_json::to_value(it.unwrap()).unwrap();
    let it = told(events.iter().find(reasons));
    assert_eq!((it["text"].as_str(), &it["is_partial"]), (Some(reasoning), &true.into()));
    assert_eq!(it["was_interrupted"], true);
    let it = told(events.iter().find(is_out));
    assert_eq!((it["text"].as_str(), &it["is_partial"]), (Some(text), &true.into()));
    assert_eq!((&it["completion_percentage"], &it["truncated"]), (&65.into(), &true.into()));
    // What there was of the answer isn't the answer.
    let answers: Vec<Response> = thread.iter().filter_map(|it| it.decode().ok()).collect();
    let said: Vec<_> = answers.iter().map(|it| (it.is_final, &*it.text)).collect();
    let rest = "Let me continue from where I left off...";
    assert_eq!(said, [(false, "The solution involves..."), (true, rest)]);
    let second = thread.iter().rfind(|it| it.name().local() == "cognition_in").unwrap();
    let prompt = recall(&thread, second.seq()).unwrap().prompt;
    let [.., wrote, told] = &prompt.messages[..] else { panic!("{prompt:?}") };
    assert_eq!(wrote.text, text);
    assert_eq!(unmarked(&told.text), "[Previous response was interrupted at 65%]");
}

/// Threads of every shape.
async fn threads() -> Vec<Vec<Entry>> {
    let late = r#"<action mode="async" id="sum" timeout="5">{"name": "calculate",
        "parameters": {"expression": "6*7"}}</action><action id="sum">{"name": "calculate",
        "parameters": {"expression": "1/0"}}</action>"#;
    let native = Call::new("call_1", "calculate", r#"{"expression": "6*7"}"#);
    let replies: [Vec<Script>; 5] = [
        vec!["<response>42</response>".into()],
        vec![SUM.into(), SUM.into(), "<response>${sum}</response>".into()],
        vec![late.into(), "What?".into(), "<response>42</response>".into()],
        vec![
            Script::text(format!("<thought>Hm.</thought>{SUM} and")).fails(120, Kind::Cut),
            "<response>42</response>".into(),
        ],
        vec![Script::text("I call.").call(native), "<response>42</response>".into()],
    ];
    let mut threads = Vec::new();
    for replies in replies {
        threads.push(thread(oracle(Scripted::replies(replies))).await);
    }
    threads
}

#[tokio::test]
async fn a_conversation_has_the_providers_grammar_wherever_it_is_cut() {
    for thread in threads().await {
        for upto in 1..=thread.len() {
            let talk = conversation("oracle", &transcript(&thread[..upto]));
            openai(&talk.openai()["messages"]);
            anthropic(&talk.anthropic()["messages"]);
        }
    }
}

/// After a message with calls come their results, each once, and no others.
fn openai(messages: &Value) {
    let (mut open, mut seen) = (Vec::new(), BTreeSet::new());
    for it in messages.as_array().unwrap() {
        if it["role"] == "tool" {
            let id = it["tool_call_id"].as_str().unwrap();
            let at = open.iter().position(|it| it == id);
            open.remove(at.unwrap_or_else(|| panic!("{id} answers nothing in {messages}")));
            continue;
        }
        assert!(open.is_empty(), "{open:?} have no result in {messages}");
        let calls = it["tool_calls"].as_array();
        assert!(calls.is_some() || !it["content"].as_str().unwrap().is_empty(), "{messages}");
        for call in calls.into_iter().flatten() {
            let id = call["id"].as_str().unwrap().to_owned();
            assert!(seen.insert(id.clone()), "{id} twice in {messages}");
            let arguments = call["function"]["arguments"].as_str().unwrap();
            assert!(serde_json::from_str::<Value>(arguments).unwrap().is_object());
            open.push(id);
        }
    }
    assert!(open.is_empty(), "{open:?} have no result in {messages}");
}

/// The sides take turns, the user begins, and a message with calls is followed by one that begins
/// with their results.
fn anthropic(messages: &Value) {
    let messages = messages.as_array().unwrap();
    let mut open: Vec<&str> = Vec::new();
    for (number, it) in messages.iter().enumerate() {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        assert_eq!(it["role"], role, "{messages:?}");
        let content = it["content"].as_array().unwrap();
        let of = |kind: &'static str| content.iter().filter(move |it| it["type"] == kind);
        let results: Vec<&str> =
            of("tool_result").map(|it| it["tool_use_id"].as_str().unwrap()).collect();
        assert_eq!(results, open, "{messages:?}");
        let leading = content.iter().take_while(|it| it["type"] == "tool_result").count();
        assert_eq!(leading, results.len(), "{messages:?}");
        assert!(of("text").all(|it| !it["text"].as_str().unwrap().trim().is_empty()));
        open = of("tool_use").map(|it| it["id"].as_str().unwrap()).collect();
    }
    assert!(open.is_empty(), "{messages:?}");
}

#[tokio::test]
async fn a_call_without_a_result_was_interrupted() {
    let thread = thread(oracle(Scripted::replies([SUM, "<response>42</response>"]))).await;
    let events = transcript(&thread);
    let start = events.iter().position(|it| matches!(it.what, EventKind::ToolCallStart { .. }));
    let talk = conversation("oracle", &events[..=start.unwrap()]).anthropic();
    let last = talk["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"][0]["content"], INTERRUPTED);
    assert_eq!(last["content"][0]["is_error"], true);
}

#[tokio::test]
async fn a_native_call_is_no_text() {
    let native = threads().await.pop().unwrap();
    let talk = conversation("oracle", &transcript(&native)).openai();
    let messages = talk["messages"].as_array().unwrap();
    assert_eq!(messages[2]["content"], "I call.");
    assert_eq!(messages[2]["tool_calls"][0]["id"], "call_1");
    assert_eq!(messages[3]["content"], "42");
}

#[tokio::test]
async fn whoever_answers_without_a_mind_is_no_agent() {
    let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
    let pump = start(&log, oracle(Scripted::replies([""])));
    let expression = "1".to_owned();
    let entry = pump.tell(Calculate::new(expression)).await.unwrap();
    pump.shutdown().await.unwrap();
    let entries = log.read(&entry.thread, 0, u64::MAX, 1_000).await.unwrap();
    let entries: Vec<Entry> = entries.iter().map(|it| -> Entry { (&**it).into() }).collect();
    assert_eq!(transcript(&entries), []);
}

#[tokio::test]
async fn metadata_stands_in_a_transcript_and_what_the_runtime_asks_of_feeds_does_not() {
    let status = Field::choice("status", ["IDLE", "BUSY"]);
    let clock = Definition::on_demand("now", Source::internal("system_clock"));
    let first = "<metadata>{\"status\": \"BUSY\", \"mood\": 7}</metadata>\
        <response final=\"false\">…</response>";
    let agent = oracle(Scripted::replies([first, "<response>42</response>"]));
    let agent = agent.metadata(Fields::new([status]).unwrap());
    let thread = thread(agent.feeds(Feeds::new([clock]).unwrap())).await;
    assert!(thread.iter().any(|it| it.name().local() == "refresh-feeds"));
    let events = transcript(&thread);
    let types = types(&events);
    let told = ["cognition_in", "step_start", "metadata", "response", "cognition_out"];
    assert_eq!(types[..5], told, "{types:?}");
    assert!(!types.contains(&"message".to_owned()), "{types:?}");
    let it = serde_json::to_value(&events[3]).unwrap();
    assert_eq!(it["fields"], serde_json::json!({ "status": "BUSY" }));
    assert_eq!(it["errors"], serde_json::json!(["Unknown field: mood"]));
}
