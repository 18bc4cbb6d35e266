//! Prompts that are made again from the log.

use pumphouse::listeners::agent::recall::{Forgotten, recall};
use pumphouse::listeners::agent::settings::Settings;
use pumphouse::listeners::feed::{Definition, Feeds, Source};
use pumphouse::listeners::metadata::{Field, Fields};

use super::transcript::thread;
use super::*;

const REPLIES: [&str; 3] = [
    r#"<thought>…</thought><action mode="async" id="sum">{"name": "calculate",
        "parameters": {"expression": "6*7"}}</action>"#,
    r#"<clear-context keep="2"/><response final="false">Soon.</response>"#,
    "<response>It is ${sum}.</response>",
];

#[tokio::test]
async fn every_turns_prompt_is_what_its_model_was_shown() {
    let (model, seen) = remembering(REPLIES);
    let mut settings = Settings::default();
    (settings.max_tokens, settings.temperature) = (Some(1_000), Some(0.7));
    let agent = oracle(model).settings(settings).prompt("You know it all.").peers(["calculate"]);
    let thread = thread(agent).await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3);
    for entry in &thread {
        let turn = thread[..usize::try_from(entry.seq()).unwrap()].iter();
        let turn = turn.filter(|it| it.name().local() == "cognition_in").count();
        match recall(&thread, entry.seq()) {
            Ok(it) => assert_eq!((&*it.agent, &it.prompt), ("oracle", &seen[turn - 1])),
            Err(why) => assert!(turn == 0 && matches!(why, Forgotten::NoTurn), "{why}"),
        }
    }
}

#[tokio::test]
async fn what_feeds_and_metadata_showed_is_recalled_too() {
    let (model, seen) = remembering([
        "<metadata>{\"status\": \"BUSY\"}</metadata><response final=\"false\">…</response>",
        "<metadata>{\"status\": \"NONE\"}</metadata><response final=\"false\">…</response>",
        "<response>42</response>",
    ]);
    let status = Field::choice("status", ["IDLE", "BUSY"]).default("IDLE");
    let clock = Definition::on_demand("now", Source::internal("system_clock"));
    let agent = oracle(model).metadata(Fields::new([status]).unwrap());
    let thread = thread(agent.feeds(Feeds::new([clock]).unwrap())).await;
    let seen = seen.lock().unwrap();
    let turns = thread.iter().filter(|it| it.name().local() == "cognition_in");
    let prompts: Vec<Prompt> = turns.map(|it| recall(&thread, it.seq()).unwrap().prompt).collect();
    assert_eq!(prompts, *seen);
    assert!(prompts[1].messages.last().unwrap().text.contains("status: BUSY"));
}

#[tokio::test]
async fn a_prompt_that_is_another_now_is_not_shown() {
    let (model, _) = remembering(REPLIES);
    let mut thread = thread(oracle(model)).await;
    // The question is lost.
    let last = thread.last().unwrap().seq();
    thread.remove(0);
    assert!(matches!(recall(&thread, last), Err(Forgotten::Different { .. })));
}
