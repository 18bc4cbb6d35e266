//! Agents: listeners that answer with the help of a model.
//!
//! ```
//! # extern crate pumphouse_listeners as pumphouse;
//! use std::sync::Arc;
//! use pumphouse::listeners::{agent::{Agent, words::Response}, core, agent_support};
//! use pumphouse::model::Scripted;
//! use pumphouse::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Scripted::replies(["<thought>Easy.</thought><response>It is 42.</response>"]);
//! let agent = Agent::new("oracle", Arc::new(model)).prompt("You know all answers.");
//! let ask = agent.ask("What is six times seven?")?;
//! let builder = pumphouse::builder().with((core(), agent_support()));
//! let pump = builder.with(agent.listener()).build()?.start();
//! let answer = pump.ask_element(ask).await?;
//! assert_eq!(answer.decode::<Response>()?.text, "It is 42.");
//! # pump.shutdown().await?;
//! # Ok(()) }
//! ```
//!
//! An agent owns one payload, its root, with any content: `{…/ns/oracle/v1}oracle`. A message with
//! the root gives the agent work. Each *turn* shows the thread to the model, and converts the
//! model's reply into payloads while the model writes it. The work may need another turn. Then the
//! agent sends itself a message, which begins that turn unless the agent has to wait.
//! `docs/agents.md` is the manual.

pub mod builtin_feeds;
mod escape;
mod cut_result;
mod prompt_form;
mod cut_reply;
mod prompt_order;
pub mod action_templates;
pub mod settings;
mod abilities;
mod thought;
mod peer_text;
mod tools;
mod answer_format;
pub mod system_prompt;
pub mod offered_tools;
mod context;
mod handed_metadata;
mod native;
pub mod attachments;
mod hidden_messages;
pub mod render;
pub mod recall;
mod transcript_event;
pub mod transcript;
pub mod messages;
mod call_text;
mod compensation;
mod stream_field;
mod blocks;
mod tag_text;
mod outside_words;
mod strict_element;
mod reply_parts;
mod provider_limits;
mod metadata_references;
mod partial;
mod generated;
mod generation;
mod generated_payloads;
mod deliver_partial;
mod generation_metadata;
mod read_reply;
mod outcome;
mod prompt_feeds;
mod between_turns;
mod charge;
pub mod cost;
mod write_summary;
mod context_full;
mod resume;
mod turn;

pub use super::mind;
pub use super::words::agent as words;
pub use super::words::agent::root;

use std::sync::Arc;
use std::time::Duration;

use pumphouse::listener::{Charges, Organism};
use pumphouse::model::Model;
use pumphouse::prelude::*;
use pumphouse::schema::Schema;

use self::words::{ModelDown, ModelUp};
use super::action::Actions;
use super::agent_context::AgentFacts;
use super::feed::words::ContextFeed;
use super::feed::{Feeds, Refreshes, Shown};
use super::metadata::{Fields, Metadatas};
use super::todo::{list::Todos, words::StepsOpen};
use offered_tools::OfferedTools;
use settings::Settings;

/// The time limit of a turn. It is long because models are slow; interrupts and budgets end turns
/// earlier.
const TURN_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The listeners of the house staff that every agent relies on.
const STAFF: [&str; 6] = ["action", "feed", "thread", "timer", "todo", "view"];

/// The listener to which agents report changes of their metadata.
const TRIGGER: &str = "trigger";

/// A listener that answers with the help of a model.
#[derive(Clone, Debug)]
pub struct Agent {
    name: String,
    model: Arc<dyn Model>,
    peers: Vec<String>,
    settings: Settings,
}

impl Agent {
    /// Creates an agent with a name and a model, without peers and with the default settings.
    #[must_use]
    pub fn new(name: impl Into<String>, model: Arc<dyn Model>) -> Agent {
        Agent { name: name.into(), model, peers: Vec::new(), settings: Settings::default() }
    }

    /// Sets the agent's own part of the system prompt.
    #[must_use]
    pub fn prompt(mut self, text: impl Into<String>) -> Agent {
        self.settings.prompt = text.into();
        self
    }

    /// Sets the listeners that the agent may call. By default there are none.
    #[must_use]
    pub fn peers<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Agent {
        self.peers = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the fields of the agent's metadata. By default there are none.
    #[must_use]
    pub fn metadata(mut self, fields: Fields) -> Agent {
        self.settings.metadata = fields;
        self
    }

    /// Sets the feeds that the prompt shows beside the history. By default there are none.
    #[must_use]
    pub fn feeds(mut self, feeds: Feeds) -> Agent {
        self.settings.context_feeds = feeds;
        self
    }

    /// Replaces all settings, including prompt, metadata and feeds that were set before.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Agent {
        self.settings = settings;
        self
    }

    /// The name of the payload that the agent owns.
    #[must_use]
    pub fn root(&self) -> Name {
        root(&self.name)
    }

    /// Returns the payload that gives the agent work, with this text.
    ///
    /// # Errors
    /// If the text has a character that XML doesn't have.
    pub fn ask(&self, text: &str) -> Result<Element, Fault> {
        ask(&self.name, text)
    }

    /// Sets the folder in which the agent works. `AgentContext` reports it.
    #[must_use]
    pub fn workspace(mut self, path: impl Into<String>) -> Agent {
        self.settings.workspace = Some(path.into());
        self
    }

    /// The facts about the agent that its listener declares.
    fn facts(&self) -> AgentFacts {
        let mut facts = AgentFacts::default();
        facts.fields.clone_from(&self.settings.metadata);
        facts.workspace_path.clone_from(&self.settings.workspace);
        facts.organism.clone_from(&self.settings.organism);
        facts
    }

    /// Builds the listener that the pump runs.
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
        let trigger = self.settings.has_triggers.then_some(TRIGGER);
        let facts = self.facts();
        let is_native = self.settings.dialect == settings::Dialect::Native;
        let offered = OfferedTools::new(self.name.clone(), self.model.clone());
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
            .fold::<Refreshes>()
            .may_emit::<ContextFeed>()
            .may_emit::<StepsOpen>()
            .may_emit::<Done>()
            .may_emit::<ModelDown>()
            .may_emit::<ModelUp>()
            .worker()
            .timeout(TURN_TIME_MAX)
            .turns_max(max_turns)
            .grant::<Charges>()
            .grant::<Organism>()
            .agent()
            .model(model)
            .attachments(attachments)
            .peers(peers)
            .relies_on(STAFF.into_iter().chain(trigger))
            .describe(text)
            .extension(facts)
            .stateless();
        let it = if is_native { it.extension(offered) } else { it };
        if own_thread { it.own_thread() } else { it }
    }
}

/// Returns the payload that gives the agent of this name work, with this text.
///
/// # Errors
/// If the text has a character that XML doesn't have.
pub fn ask(agent: &str, text: &str) -> Result<Element, Fault> {
    outcome::root(&root(agent), &[], text)
}
