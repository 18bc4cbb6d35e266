//! The organism of `pumphouse demo agent`. A researcher answers a question. It hands a part of the
//! work to an analyst, and looks things up in a library, which needs time for each look-up. Both
//! agents have a scripted model. A feed shows the researcher the time, and the researcher reports
//! its status as metadata.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use pumphouse::model::{Script, Scripted};
use pumphouse::prelude::*;

use super::agent::Agent;
use super::feed::{Definition, Feeds, Source};
use super::metadata::{Field, Fields};

/// The question to the researcher.
pub const QUESTION: &str = "What is known of the tides?";

/// The researcher's first reply. Three look-ups begin in the middle of a thought. A calculation
/// waits for their results.
const FIRST: &str = r#"<metadata>{"status": "READING"}</metadata>
<thought>Three shelves will do, and they can be read side by side.
<action mode="async" id="basics">
{"name": "library", "parameters": {"shelf": "encyclopedia", "topic": "tides"}}</action>
<action mode="async" id="papers">
{"name": "library", "parameters": {"shelf": "papers", "topic": "tides"}, "retry": 2}</action>
<action mode="async" id="news">
{"name": "library", "parameters": {"shelf": "news", "topic": "tides"}}</action>
While they are fetched, somebody else can see to the numbers.</thought>
<todo-until condition="the report is written">
<step done="true">Look it up</step>
<step done="false">Write it down</step>
</todo-until>
<action id="numbers">
{"name": "spawn-thread", "parameters": {"suggested_sub_id": "numbers", "initial-payload":
{"payload": "<analyst xmlns='https://xml-pipeline.org/ns/analyst/v1'>How often?</analyst>"}}}
</action>
<action id="pages" depends_on="basics,papers,news">
{"name": "calculate", "parameters":
{"expression": "basics + papers + news", "values":
{"basics": "${basics.pages}", "papers": "${papers.pages}", "news": "${news.pages}"}}}</action>
<response final="false">Three shelves are being read; the numbers are seen to.</response>"#;

/// The researcher's second reply, which ends its work.
const LAST: &str = r#"<metadata>{"status": "WRITING"}</metadata>
<thought>All is there.</thought>
<response>The tides: ${basics.text} ${numbers.text} ${papers.text}
That is what ${pages} pages come to. In the news: ${news.text}</response>"#;

const NUMBERS: &str = "<thought>The moon crosses the sky once in 24 h 50 min.</thought>\
    <response>They come every 12 h 25 min.</response>";

/// Looks up a topic on a shelf of the library.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/library/v1")]
pub struct LookUp {
    /// The shelf.
    pub shelf: Shelf,
    /// The topic.
    #[payload(example = "tides")]
    pub topic: String,
}

/// A shelf of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Shelf {
    /// What is known of a topic.
    Encyclopedia,
    /// Results of research.
    Papers,
    /// Recent events.
    News,
}

/// The result of a look-up.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/library/v1")]
pub struct Found {
    /// What was found, in a sentence.
    #[payload(example = "The moon pulls at the sea.")]
    pub text: String,
    /// How many pages are about the topic.
    pub pages: u32,
}

type Sleep = Arc<dyn Fn(Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// A function that the library calls for each attempt at a look-up, with the key of the call.
type Note = Arc<dyn Fn(&str, &LookUp) + Send + Sync>;

#[derive(Clone)]
struct Library {
    sleep: Sleep,
    note: Note,
}

/// The researcher, the analyst and the library. The pump that they join also needs the
/// [`staff`](super::staff) and `calculate`.
///
/// The library and the scripted models wait with `sleep`. The library calls `note` for each attempt
/// at a look-up, with the key of the call. All attempts at a call have the same key.
#[expect(clippy::expect_used, reason = "a field and a feed that stand right here")]
pub fn demo<F: Future<Output = ()> + Send + 'static>(
    sleep: impl Fn(Duration) -> F + Send + Sync + 'static,
    note: impl Fn(&str, &LookUp) + Send + Sync + 'static,
) -> Vec<Listener> {
    let sleep: Sleep = Arc::new(move |time| Box::pin(sleep(time)));
    let note: Note = Arc::new(note);
    let mind = |replies: &[&str]| {
        let slow = |it: &&str| Script::text(*it).chunks(12).every(Duration::from_millis(20));
        let sleep = sleep.clone();
        let model = Scripted::replies(replies.iter().map(slow).collect::<Vec<_>>());
        Arc::new(model.sleeping(move |time| sleep(time)))
    };
    let peers = ["library", "calculate", "analyst"];
    let researcher = Agent::new("researcher", mind(&[FIRST, LAST])).peers(peers);
    let status = Field::choice("status", ["IDLE", "READING", "WRITING"]).default("IDLE");
    let metadata = Fields::new([status]).expect("the default is one of them");
    let clock = Definition::on_demand("now", Source::internal("system_clock"));
    let feeds = Feeds::new([clock]).expect("one feed has one name");
    let researcher = researcher.prompt("You find things out.").metadata(metadata).feeds(feeds);
    let analyst = Agent::new("analyst", mind(&[NUMBERS]));
    let library = Listener::with_state("library", Library { sleep, note })
        .on(look_up)
        .idempotent()
        .describe("Looks things up. A shelf takes its time.")
        .stateless();
    vec![library, analyst.prompt("You are good with numbers.").listener(), researcher.listener()]
}

async fn look_up(State(library): State<Library>, message: Message, it: LookUp) -> Found {
    if let Some(key) = message.key() {
        (library.note)(&key, &it);
    }
    let (ms, text, pages) = match it.shelf {
        Shelf::Encyclopedia => (300, "the moon pulls at the sea.", 12),
        Shelf::Papers => (500, "In narrow bays they reach 16 m.", 26),
        Shelf::News => (200, "a mill in Brittany runs on them.", 4),
    };
    (library.sleep)(Duration::from_millis(ms)).await;
    Found { text: text.to_owned(), pages }
}
