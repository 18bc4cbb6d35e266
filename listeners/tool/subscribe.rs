//! The listener `subscribe`: returns the metadata, the open checklists or the newest response of
//! another thread, mostly as the source of a feed.
//!
//! ```yaml
//! listeners:
//!   - {use: subscribe, grants: [read:identity]}
//!   - use: agent
//!     name: editor
//!     model: local
//!     context_feeds:
//!       - id: writer
//!         source: {type: tool, name: subscribe, params: {thread: sess-k3v9x2ma, of: metadata}}
//! ```
//!
//! The answer contains what the log has of the other thread when it gets the request. A feed sends
//! the request at the start of a turn. Later changes in the other thread don't start a turn of the
//! agent.
//!
//! `subscribe` reads the threads of the caller's tree. With the grant `read:identity`, `subscribe`
//! also reads the other trees that the same identity opened.

use std::collections::BTreeMap;

use pumphouse::listener::{DoorAccess, TreeHistory};
use pumphouse::prelude::*;
use pumphouse::schema::json as schema_json;
use serde_json::{Map, Value, json};

use pumphouse::listeners::metadata::Metadatas;
use pumphouse::listeners::todo::list::{Todo, Todos};
use pumphouse::listeners::words::agent::Response;

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "subscribe";
/// The maximum number of entries that are read from the log at once.
const PAGE: usize = 256;
/// The maximum number of entries of a thread. A longer thread is refused.
const ENTRIES_MAX: usize = 100_000;

/// Asks for a part of a thread's state. The answer is `subscribed`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/subscribe/v1")]
pub struct Subscribe {
    /// The thread.
    #[payload(example = "sess-k3v9x2ma")]
    pub thread: String,
    /// Which part of its state.
    pub of: Part,
    /// The agent whose metadata or response is wanted; by default all agents. Checklists belong to
    /// no agent.
    #[payload(no_example)]
    pub agent: Option<String>,
}

/// A part of a thread's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
#[non_exhaustive]
pub enum Part {
    /// The metadata that agents have set.
    #[default]
    Metadata,
    /// The open checklists.
    Todos,
    /// The newest response.
    Response,
}

/// A part of a thread's state.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/subscribe/v1")]
pub struct Subscribed {
    /// The thread's last entry when the state was read.
    #[payload(attribute, example = "sess-k3v9x2ma/12")]
    pub as_of: String,
    /// The state: JSON, or the text of a response.
    #[payload(text, value, example = "{\"writer\":{\"status\":\"DRAFTING\"}}")]
    pub text: String,
}

/// The thread can't be read.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/subscribe/v1")]
pub struct NotSubscribed {
    /// Why.
    #[payload(value, example = "no thread sess-k3v9x2ma can be read from here")]
    pub text: String,
}

/// Makes the listener `subscribe`.
#[must_use]
pub fn subscribe() -> Listener {
    Listener::new(NAME)
        .own_namespace()
        .on(read)
        .describe("Returns metadata, checklists or a response of another thread.")
        .reader()
        // It shows a sender what the sender may follow.
        .door(DoorAccess::Everybody)
        .stateless()
}

/// The state of a thread, computed from its entries.
#[derive(Default)]
struct ThreadState {
    metadata: Metadatas,
    todos: Todos,
    /// Maps an agent to its newest response.
    responses: BTreeMap<String, String>,
    newest: Option<String>,
}

async fn read(
    tree: TreeHistory,
    Subscribe { thread, of, agent }: Subscribe,
) -> Result<Result<Subscribed, NotSubscribed>, Fault> {
    let thread = ThreadId::new(&thread);
    let (mut state, mut last, mut count) = (ThreadState::default(), 0, 0);
    loop {
        let page = tree.read(&thread, last, PAGE).await?;
        let Some(newest) = page.last() else { break };
        last = newest.seq();
        count += page.len();
        if count > ENTRIES_MAX {
            let text = format!("{thread} has more than {ENTRIES_MAX} entries");
            return Ok(Err(NotSubscribed { text }));
        }
        page.iter().for_each(|it| state.apply(it));
    }
    if last == 0 {
        let text = format!("no thread {thread} can be read from here");
        return Ok(Err(NotSubscribed { text }));
    }
    let text = state.text(of, agent.as_deref());
    Ok(Ok(Subscribed { as_of: format!("{thread}/{last}"), text }))
}

impl ThreadState {
    fn apply(&mut self, entry: &Entry) {
        self.metadata.apply(entry);
        self.todos.apply(entry);
        if entry.is_refused() || entry.is_from_identity() {
            return;
        }
        if let Some(Response { text, .. }) = entry.decode_if::<Response>() {
            self.responses.insert(entry.from().to_owned(), text.clone());
            self.newest = Some(text);
        }
    }

    fn text(&self, of: Part, agent: Option<&str>) -> String {
        match (of, agent) {
            (Part::Metadata, Some(agent)) => schema_json::text(&Value::Object(self.fields(agent))),
            (Part::Metadata, None) => {
                let all = self.metadata.agents().map(|it| (it.to_owned(), self.fields(it).into()));
                schema_json::text(&Value::Object(all.collect()))
            }
            (Part::Todos, _) => {
                let list = |(_, it): (u64, &Todo)| todo(it);
                schema_json::text(&Value::Array(self.todos.all().map(list).collect()))
            }
            (Part::Response, Some(agent)) => self.responses.get(agent).cloned().unwrap_or_default(),
            (Part::Response, None) => self.newest.clone().unwrap_or_default(),
        }
    }

    fn fields(&self, agent: &str) -> Map<String, Value> {
        self.metadata.of(agent).values().map(|(name, it)| (name.to_owned(), it.clone())).collect()
    }
}

fn todo(it: &Todo) -> Value {
    let left: Vec<&str> = it.left().collect();
    json!({ "until": it.condition(), "left": left, "done": it.total() - it.open() })
}
