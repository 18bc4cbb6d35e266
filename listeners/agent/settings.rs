//! How an agent is set up.

use std::sync::Arc;
use std::time::Duration;

use pumphouse::limits::{ActionLimits, ReplyLimits};
use pumphouse::model::Model;
use pumphouse::reply::Streaming;

use super::super::action::InternalActions;
use super::super::feed::Feeds;
use super::super::metadata::Fields;
pub use super::super::mind::FinalWithActions;
use super::form::RESULT_BYTES;
use super::words::Dispatch;

/// How an agent is set up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// What it is for, for those who may call it.
    pub describe: String,
    /// What its model is told before all else.
    pub prompt: String,
    /// How its model writes calls.
    pub dialect: Dialect,
    /// When the actions of a turn begin.
    pub dispatch: Dispatch,
    /// Whether a response is final that doesn't say.
    pub final_default: bool,
    /// Whether the text of a reply that ends without calls is its response. Unless said, so it is
    /// where the dialect is native.
    pub text_is_response: Option<bool>,
    /// What becomes of a final response while actions of its turn are unfinished.
    pub final_with_actions: FinalWithActions,
    /// Payloads beside `response` that end its work, by their local names.
    pub final_payloads: Vec<String>,
    /// How many turns its work has, from the message or tick that begins it.
    pub max_turns: u64,
    /// Where calls of it run.
    pub agent_calls: Calls,
    /// The fields in which it says how it is.
    pub metadata: Fields,
    /// What it is told beside its history.
    pub context_feeds: Feeds,
    /// What its prompt offers besides calling its peers.
    pub abilities: Vec<Ability>,
    /// Which actions it may take that change its own surroundings.
    pub internal_actions: InternalActions,
    /// What becomes of a prompt that doesn't fit the model's window.
    pub on_context_full: OnFull,
    /// Which model writes summaries; the agent's own unless said.
    pub summary_model: Option<Arc<dyn Model>>,
    /// How much stays in view where that is a clear.
    pub context_keep: Keep,
    /// How many bytes of a result a prompt shows.
    pub result_bytes_max: u64,
    /// How long it waits for a provider that takes no more requests for a while.
    pub rate_limit_wait_max: Duration,
    /// How large the parts of a reply may be.
    pub reply_limits: ReplyLimits,
    /// How `<tool_use>` is spelled, and how long a call and a text may be, where a document
    /// `streaming_config` says so.
    pub streaming_config: Option<Streaming>,
    /// How many tokens a reply may have.
    pub max_tokens: Option<u32>,
    /// How freely the model chooses.
    pub temperature: Option<f64>,
    /// What its actions may come to.
    pub action_limits: ActionLimits,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            describe: String::new(),
            prompt: String::new(),
            dialect: Dialect::Tags,
            dispatch: Dispatch::Immediate,
            final_default: true,
            text_is_response: None,
            final_with_actions: FinalWithActions::Hold,
            final_payloads: Vec::new(),
            max_turns: 50,
            agent_calls: Calls::OwnThread,
            metadata: Fields::default(),
            context_feeds: Feeds::default(),
            abilities: Ability::ALL.to_vec(),
            internal_actions: InternalActions::default(),
            on_context_full: OnFull::Clear,
            summary_model: None,
            context_keep: Keep::Messages(10),
            result_bytes_max: RESULT_BYTES,
            rate_limit_wait_max: Duration::from_secs(15 * 60),
            reply_limits: ReplyLimits::default(),
            streaming_config: None,
            max_tokens: None,
            temperature: None,
            action_limits: ActionLimits::default(),
        }
    }
}

impl Settings {
    /// Whether the text of a reply that ends without calls is its response.
    #[must_use]
    pub fn text_is_response(&self) -> bool {
        self.text_is_response.unwrap_or(self.dialect == Dialect::Native)
    }
}

/// How a model writes its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// As `<action>` and `<tool_use>`.
    #[default]
    Tags,
    /// As JSON in the text too.
    ToolUse,
    /// In its provider's own protocol: what its peers take is offered there. Elements are
    /// understood as well.
    Native,
}

/// Where calls of an agent run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Calls {
    /// In a thread of its own, below the caller's.
    #[default]
    OwnThread,
    /// In the caller's.
    SameThread,
}

/// How much of a thread stays in view where old messages are hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// So many messages, the first one counted.
    Messages(u64),
    /// The newest messages that have no more tokens together, and the first.
    Tokens(u64),
}

/// Something that an agent may do besides calling its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ability {
    /// Open threads below its own.
    Spawn,
    /// Set timers.
    Timers,
    /// Keep a checklist.
    Todo,
    /// Hide older messages.
    Clear,
    /// Have feeds added to its prompt.
    Feeds,
}

impl Ability {
    /// All of them.
    pub const ALL: [Ability; 5] =
        [Ability::Spawn, Ability::Timers, Ability::Todo, Ability::Clear, Ability::Feeds];
}

/// What becomes of a prompt that doesn't fit the model's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFull {
    /// Old messages are hidden.
    #[default]
    Clear,
    /// The same, and a model writes a summary of them, which prompts show in their place.
    Summarise,
    /// The agent stops.
    Stop,
}
