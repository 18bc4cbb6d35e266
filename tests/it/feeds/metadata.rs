//! Metadata over whole turns: what is set, kept, refused and reported.

use pumphouse::listeners::agent::words::Response;
use pumphouse::listeners::feed::Feeds;
use pumphouse::listeners::feed::definition::BUILT_IN;
use pumphouse::listeners::metadata::{Field, Fields, Kind};

use super::world::block;
use super::*;

fn fields() -> Fields {
    let all = ["IDLE", "CODING", "PLANNING", "DEBUGGING", "TESTING", "TALKING"];
    Fields::new([
        Field::choice("status", all).default("IDLE"),
        Field::choice("priority", ["HIGH", "MEDIUM", "LOW"]).default("MEDIUM"),
        Field::choice("mode", ["AUTONOMOUS", "ASSISTED", "SUPERVISED"]).default("AUTONOMOUS"),
        Field::new("context", Kind::Object),
    ])
    .unwrap()
}

#[tokio::test]
async fn what_fits_is_kept_what_does_not_is_told_once_and_both_last() {
    let (model, seen) = remembering([
        r#"<metadata>
{
  "status": "CODING",
  "priority": "HIGH",
  "mode": "AUTONOMOUS",
  "context": {"project": "cortex-prime"}
}
</metadata>
<response final="false">I began.</response>"#,
        r#"<!-- Iteration N: LLM sets invalid value -->
<metadata>
{
  "status": "COMPILING",  // Invalid - not in enum
  "priority": "CRITICAL"   // Invalid - not in enum
}
</metadata>
<response final="false">I went on.</response>"#,
        "<response>Done.</response>",
        "<response>Still there.</response>",
    ]);
    let agent = agent(model).metadata(fields());
    let (first, again) = (agent.ask("Build it.").unwrap(), agent.ask("Are you there?").unwrap());
    let pump = start(agent, Vec::new());
    let answer = pump.ask_element(first).await.unwrap();
    let answer = loop {
        let story = story(&pump, answer.thread()).await;
        if story.iter().filter(|it| it.ends_with("> console: response")).count() == 3 {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    let last = pump.in_thread(answer.thread()).ask_element(again).await.unwrap();
    assert_eq!(last.decode::<Response>().unwrap().text, "Still there.");
    grows(&seen);
    let seen = seen.lock().unwrap().clone();
    let late: Vec<String> = seen.iter().map(late).collect();
    let first = "Current metadata:
  - status: IDLE
  - priority: MEDIUM
  - mode: AUTONOMOUS
  - context: not set";
    assert_eq!(late[0], block("metadata", first));
    let kept = r#"Current metadata:
  - status: CODING
  - priority: HIGH
  - mode: AUTONOMOUS
  - context: {"project":"cortex-prime"}"#;
    assert_eq!(late[1], block("metadata", kept));
    let wrong = r#"⚠️ Previous metadata update had errors:
  - status: "COMPILING" not in [IDLE, CODING, PLANNING, DEBUGGING, TESTING, TALKING]
  - priority: "CRITICAL" not in [HIGH, MEDIUM, LOW]

"#;
    let unchanged = kept.replace("metadata:", "metadata (unchanged):");
    assert_eq!(late[2], block("metadata", &format!("{wrong}{unchanged}")));
    assert_eq!(late[3], late[1]);
    assert!(
        seen[0]
            .system
            .contains("Available metadata fields (use <metadata> tag to update):\n- status: [IDLE")
    );
    // What is told is recorded where it changed, and nowhere else.
    let story = story(&pump, answer.thread()).await;
    let count = |what: &str| story.iter().filter(|it| *it == what).count();
    assert_eq!(count("ada > ada: metadata"), 2);
    assert_eq!(count("ada > ada: context_feed"), 4);
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn metadata_that_was_not_declared_are_a_notice() {
    let (model, seen) = remembering([
        "<metadata>{\"status\": \"CODING\"}</metadata><response final=\"false\">Hm.</response>",
        "<response>Done.</response>",
    ]);
    let agent = agent(model);
    let ask = agent.ask("Build it.").unwrap();
    let pump = start(agent, Vec::new());
    let answer = pump.ask_element(ask).await.unwrap();
    crate::eventually(async || seen.lock().unwrap().len() >= 2).await;
    let story = story(&pump, answer.thread()).await;
    assert!(!story.contains(&"ada > ada: metadata".to_owned()), "{story:?}");
    let seen = seen.lock().unwrap().clone();
    let told = "[<metadata> was not kept: you have no fields.]";
    let text = crate::agent::unmarked(&seen[1].messages[2].text);
    assert!(text.contains(told), "{text}");
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn parts_that_are_left_out_are_nowhere() {
    let (model, seen) = remembering(["<response>Done.</response>"]);
    let without = BUILT_IN.into_iter().fold(Feeds::default(), Feeds::without);
    let agent = agent(model).feeds(without).metadata(fields());
    let ask = agent.ask("Build it.").unwrap();
    let pump = start(agent, Vec::new());
    pump.ask_element(ask).await.unwrap();
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen[0].system, "You are exact.");
    assert_eq!(late(&seen[0]), "");
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_is_left_to_do_stands_at_the_end() {
    let (model, seen) = remembering([
        "<todo-until condition=\"all sources checked\"><step done=\"true\">Search web</step>
         <step done=\"false\">Analyze results</step></todo-until>",
        "<todo-complete><id>1</id></todo-complete>",
        "<response>Done.</response>",
    ]);
    let agent = agent(model);
    let ask = agent.ask("Check them.").unwrap();
    let pump = start(agent, Vec::new());
    pump.ask_element(ask).await.unwrap();
    grows(&seen);
    let seen = seen.lock().unwrap().clone();
    let late: Vec<String> = seen.iter().map(late).collect();
    assert_eq!(late[0], "");
    let told =
        late[1].split_once(": all sources checked\n  [x] Search web\n  [ ] Analyze results\n");
    assert!(
        told.is_some_and(|(id, _)| id.starts_with("<context_feed id=\"todos\">\n")),
        "{}",
        late[1]
    );
    pump.shutdown().await.unwrap();
}
