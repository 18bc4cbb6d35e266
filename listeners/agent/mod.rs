//! Agents: listeners whose mind is a model.
//!
//! ```
//! use std::sync::Arc;
//! use pumphouse::listeners::{agent::{Agent, words::Response}, core, mind};
//! use pumphouse::model::Scripted;
//! use pumphouse::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Scripted::replies(["<thought>Easy.</thought><response>It is 42.</response>"]);
//! let agent = Agent::new("oracle", Arc::new(model)).prompt("You know all answers.");
//! let ask = agent.ask("What is six times seven?")?;
//! let builder = pumphouse::builder().with((core(), mind()));
//! let pump = builder.with(agent.listener()).build()?.start();
//! let answer = pump.ask_element(ask).await?;
//! assert_eq!(answer.decode::<Response>()?.text, "It is 42.");
//! # pump.shutdown().await?;
//! # Ok(()) }
//! ```
//!
//! An agent owns one payload, its root, which holds anything: `{…/ns/oracle/v1}oracle`. Whoever
//! sends it one gives it something to do. Each *turn* consumes all that waits for the agent in the
//! thread, shows the thread to its model, and turns what that writes into payloads while it is
//! written. A turn without a final response is followed by another one, by a message to itself.
//! `docs/agents.md` is the manual.

pub mod builtin_feeds;
mod escape;
mod form;
mod prompt_order;
pub mod settings;
mod abilities;
mod thought;
mod peer_text;
mod tools;
mod answer_format;
pub mod system;
mod before;
mod context;
mod native;
pub mod attachments;
pub mod render;
pub mod recall;
pub mod transcript;
pub mod messages;
mod write;
mod provider;
mod generation;
mod listen;
mod outcome;
mod between_turns;
mod charge;
pub mod cost;
mod summary;
mod resume;
mod turn;

pub use super::mind;
pub use super::words::agent as words;
pub use super::words::agent::root;

use std::sync::Arc;
use std::time::Duration;

use pumphouse::listener::Charges;
use pumphouse::model::Model;
use pumphouse::prelude::*;
use pumphouse::schema::Schema;

use super::action::Actions;
use super::feed::words::ContextFeed;
use super::feed::{Feeds, Shown};
use super::metadata::{Fields, Metadatas};
use super::todo::{list::Todos, words::StepsOpen};
use settings::Settings;

/// How long a turn may take: models are slow, and doors and budgets bound them.
const TURN_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The house staff that every agent speaks to.
const STAFF: [&str; 6] = ["action", "feed", "thread", "timer", "todo", "view"];

/// A listener whose mind is a model.
#[derive(Clone, Debug)]
pub struct Agent {
    name: String,
    model: Arc<dyn Model>,
    peers: Vec<String>,
    settings: Settings,
}

impl Agent {
    /// An agent of this name and mind.
    #[must_use]
    pub fn new(name: impl Into<String>, model: Arc<dyn Model>) -> Agent {
        Agent { name: name.into(), model, peers: Vec::new(), settings: Settings::default() }
    }

    /// What its model is told before all else.
    #[must_use]
    pub fn prompt(mut self, text: impl Into<String>) -> Agent {
        self.settings.prompt = text.into();
        self
    }

    /// The listeners that it may call; none unless said.
    #[must_use]
    pub fn peers<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Agent {
        self.peers = names.into_iter().map(Into::into).collect();
        self
    }

    /// The fields in which it says how it is; none unless said.
    #[must_use]
    pub fn metadata(mut self, fields: Fields) -> Agent {
        self.settings.metadata = fields;
        self
    }

    /// What it is told beside its history; nothing unless said.
    #[must_use]
    pub fn feeds(mut self, feeds: Feeds) -> Agent {
        self.settings.context_feeds = feeds;
        self
    }

    /// All else that can be set.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Agent {
        self.settings = settings;
        self
    }

    /// The payload that it owns.
    #[must_use]
    pub fn root(&self) -> Name {
        root(&self.name)
    }

    /// Something for it to do, in words.
    ///
    /// # Errors
    /// Where the text holds what XML can't.
    pub fn ask(&self, text: &str) -> Result<Element, Fault> {
        ask(&self.name, text)
    }

    /// The listener.
    #[must_use]
    pub fn listener(self) -> Listener {
        let doc = "Something for the agent to do: text, or any elements.";
        let schema = Schema::any(self.root(), doc);
        let text = match self.settings.describe.as_str() {
            "" => format!("The agent {}.", self.name),
            text => text.to_owned(),
        };
        let (name, peers) = (self.name.clone(), self.peers.clone());
        let own_thread = self.settings.agent_calls == settings::Calls::OwnThread;
        let max_turns = self.settings.max_turns;
        let (model, attachments) = (self.model.describe(), self.model.attachments());
        let mind = context::AgentState::new(self);
        let it = Listener::with_state(name, Arc::new(mind))
            .on_named(schema, turn::turn)
            .on(turn::interrupted)
            .on_any_reply(turn::turn)
            .fold::<mind::Minds>()
            .fold::<Actions>()
            .fold::<Metadatas>()
            .fold::<Todos>()
            .fold::<builtin_feeds::Budgets>()
            .fold::<Shown>()
            .may_emit::<ContextFeed>()
            .may_emit::<StepsOpen>()
            .may_emit::<Done>()
            .serial()
            .shared()
            .idempotent()
            .recorded()
            .timeout(TURN_TIME_MAX)
            .turns_max(max_turns)
            .grant::<Charges>()
            .agent()
            .model(model)
            .attachments(attachments)
            .peers(peers)
            .relies_on(STAFF)
            .describe(text)
            .stateless();
        if own_thread { it.own_thread() } else { it }
    }
}

/// Something for the agent of this name to do, in words.
///
/// # Errors
/// Where the text holds what XML can't.
pub fn ask(agent: &str, text: &str) -> Result<Element, Fault> {
    outcome::root(&root(agent), &[], text)
}
