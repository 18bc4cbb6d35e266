//! How prompts show feeds: the formats, the limits in bytes, and feeds that only references use.

use std::time::Duration;

use pumphouse::listeners::agent::recall::recall;
use pumphouse::listeners::agent::words::{CognitionIn, SkippedFeed};
use pumphouse::listeners::feed::injection::{BlockForm, Injection};
use pumphouse::listeners::feed::words::Position;
use pumphouse::listeners::feed::{Definition, Feeds, Source};
use pumphouse::model::{Remote, Wire};
use pumphouse::secret::Secret;
use serde_json::Value;

use super::world::World;
use super::*;
use crate::agent::unmarked;
use crate::model::fake::{Server, head, say};

const DONE: &str = "<response>Done.</response>";
const ON: &str = "<response final=\"false\">On.</response>";

fn teller(id: &str) -> Definition {
    Definition::on_demand(id, Source::listener("teller"))
}

fn markers() -> Injection {
    Injection { form: Some(BlockForm::Markers), ..Injection::default() }
}

/// An agent of a world with these feeds, which its prompts show so.
fn showing(world: &World, feeds: &[Definition], injection: Injection) -> Agent {
    let feeds = Feeds::new(feeds.to_vec()).unwrap().injected(injection).unwrap();
    world.agent(&[]).feeds(feeds)
}

#[test]
fn markers_show_each_refresh_and_each_prompt_can_be_told_from_the_log() {
    let world = World::new(&[(5, ON), (0, DONE)]).saying(&[(0, Ok("All is well."))]);
    let agent = showing(&world, &[teller("fleet-alerts")], markers());
    let came = world.ask(agent, &["Go."]);
    let at = |seconds: u64| {
        format!(
            "--- BEGIN FEED: fleet-alerts (from teller, refreshed 2026-01-01T00:00:0{seconds}Z) \
             ---\nAll is well.\n--- END FEED: fleet-alerts ---"
        )
    };
    let late_texts: Vec<String> = came.late.iter().map(|it| unmarked(it)).collect();
    assert_eq!(late_texts, [at(0), at(5)]);
    assert_eq!(came.recorded("fleet-alerts").len(), 2);
    let all: Vec<Entry> = came.entries.iter().map(|it| (&**it).into()).collect();
    let turns = all.iter().filter(|it| it.name().local() == "cognition_in");
    let told: Vec<String> = turns.map(|it| late(&recall(&all, it.seq()).unwrap().prompt)).collect();
    assert_eq!(told, came.late);
}

#[test]
fn without_times_unchanged_content_is_recorded_once() {
    let world = World::new(&[(5, ON), (0, DONE)]).saying(&[(0, Ok("All is well."))]);
    let injection = Injection { refreshed: Some(false), ..markers() };
    let came = world.ask(showing(&world, &[teller("alerts")], injection), &["Go."]);
    let block = "--- BEGIN FEED: alerts (from teller) ---\nAll is well.\n--- END FEED: alerts ---";
    let late: Vec<String> = came.late.iter().map(|it| unmarked(it)).collect();
    assert_eq!(late, [block, block]);
    assert_eq!(came.recorded("alerts").len(), 1);
}

#[test]
fn an_agent_sets_how_many_bytes_its_feeds_have() {
    let world = World::new(&[(0, DONE)]).saying(&[(0, Ok("0123456789"))]);
    let injection =
        Injection { feed_bytes_max: Some(4), feeds_bytes_max: Some(280), ..Injection::default() };
    let came = world.ask(showing(&world, &[teller("a"), teller("b")], injection), &["Go."]);
    let a = "<context_feed id=\"a\" status=\"truncated\">\n0123\n[Content truncated]\n\
        </context_feed>\n";
    let b = "<context_feed id=\"b\" status=\"skipped\">\n[total feed size cap reached; \
        block_bytes=81 total_before=220 max_total_bytes=280]\n</context_feed>";
    assert_eq!(came.late, [format!("{a}{b}")]);
    // The log says what was cut and what was skipped.
    let cut = came.recorded("a").remove(0);
    assert!(cut.contains("why=\"of 10 bytes, the first 4 are kept\""), "{cut}");
    let begun = came.entries.iter().find(|it| it.name.local() == "cognition_in").unwrap();
    let begun: Entry = (&**begun).into();
    let begun = begun.decode::<CognitionIn>().unwrap();
    let skipped = SkippedFeed { id: "b".into(), bytes: 81, before: 220, bytes_max: 280 };
    assert_eq!(begun.skipped, [skipped]);
}

#[test]
fn a_feed_for_references_stands_in_no_prompt_and_has_its_value() {
    let world = World::new(&[(0, "<response>I know: $secret.</response>")]);
    let world = world.saying(&[(0, Ok("42"))]);
    let came = world.ask(world.agent(&[teller("secret").referenced()]), &["Go."]);
    assert_eq!(came.late, [""]);
    assert!(came.said().contains("I know: 42."), "{}", came.said());
}

#[test]
fn what_cannot_be_shown_so_is_refused() {
    let wrong = |injection| Feeds::default().injected(injection).unwrap_err().to_string();
    let nothing = Injection { feed_bytes_max: Some(0), ..Injection::default() };
    let least =
        "feed_bytes_max is at least 1, and feeds_bytes_max 256; `enabled: false` shows nothing";
    assert_eq!(wrong(nothing), least);
    let large = Injection { feed_bytes_max: Some(65_537), ..Injection::default() };
    let unlike = "feed_bytes_max is 65537, and feeds_bytes_max 65536: no feed of that size would \
        be shown";
    assert_eq!(wrong(large), unlike);
    let times = Injection { refreshed: Some(true), ..Injection::default() };
    assert_eq!(wrong(times), "`refreshed` is for `form: markers`: no other form shows times");
}

/// The body of the request that a provider gets from an agent with two feeds.
async fn body(wire: Wire) -> Value {
    let refused = vec![head("400 Bad Request", "content-length: 2\r\n"), say("{}")];
    let server = Server::start(vec![refused]).await;
    let model = Remote::at(wire, server.url(), "m").key(Secret::new("sk-1")).max_tokens(64);
    let clock = |id: &str| {
        let source = Source::listener("calculate");
        let sum = source.params(serde_json::json!({"expression": "6*7"}));
        Definition::on_demand(id, sum).cache_ttl(Duration::from_secs(60))
    };
    let feeds = [clock("answer").position(Position::SystemAppend), clock("late-answer")];
    let injection = Injection { refreshed: Some(false), ..markers() };
    let parts = ["protocol", "peers", "metadata", "todos", "budget"];
    let feeds = Feeds::new(feeds).unwrap().injected(injection).unwrap();
    let feeds = parts.into_iter().fold(feeds, Feeds::without);
    let agent = Agent::new("ada", Arc::new(model.build().unwrap())).prompt("You are exact.");
    let agent = agent.feeds(feeds);
    let ask = agent.ask("Go.").unwrap();
    let pump = start(agent, Vec::new());
    pump.ask_element(ask).await.unwrap();
    server.asked().remove(0).body
}

/// The text of a message's content, which may be a text or a list of parts.
fn content(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        parts => {
            let texts = parts.as_array().unwrap().iter().filter_map(|it| it["text"].as_str());
            texts.collect::<Vec<_>>().join("\n\n")
        }
    }
}

#[tokio::test]
async fn the_bodies_of_both_providers_have_the_same_blocks() {
    let block =
        |id: &str| format!("--- BEGIN FEED: {id} (from calculate) ---\n42\n--- END FEED: {id} ---");
    let system = format!("You are exact.\n\n{WRAPPER}{}", block("answer"));
    let user = format!("[console]\nGo.\n\n{WRAPPER}{}", block("late-answer"));
    let anthropic = body(Wire::AnthropicMessages).await;
    let told = &anthropic["system"];
    let told = told.as_str().or_else(|| told[0]["text"].as_str()).map(unmarked);
    assert_eq!(told, Some(system.clone()), "{anthropic:#}");
    let last = |it: &Value| unmarked(&content(it["messages"].as_array().unwrap().last().unwrap()));
    assert_eq!(last(&anthropic), user);
    let openai = body(Wire::OpenAiChat).await;
    let messages = openai["messages"].as_array().unwrap();
    assert_eq!(unmarked(&content(&messages[0])), system, "{openai:#}");
    assert_eq!(last(&openai), user, "{openai:#}");
}
