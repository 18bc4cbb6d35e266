//! The settings of an agent.

use std::sync::Arc;
use std::time::Duration;

use pumphouse::limits::{ActionLimits, ReplyLimits};
use pumphouse::model::Model;
use pumphouse::reply::Streaming;

use super::super::action::InternalActions;
use super::super::action::words::{Dialect as CallDialect, References};
use super::super::feed::Feeds;
use super::super::metadata::Fields;
pub use super::super::mind::{FinalWithActions, Wake};
use super::action_templates::Templates;
use super::prompt_form::RESULT_BYTES;
use super::words::Dispatch;

/// The settings of an agent. Write `..Settings::default()` for the others: a later version may have
/// more.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The description of the agent, which its callers read.
    pub describe: String,
    /// The agent's own part of the system prompt.
    pub prompt: String,
    /// How the model writes calls.
    pub dialect: Dialect,
    /// Whether parameters and responses may have references such as `${id}`. None means that this
    /// holds only for [`Dialect::Tags`].
    pub references: Option<bool>,
    /// When the actions of a turn start.
    pub dispatch: Dispatch,
    /// Whether a response without the attribute `final` is final.
    pub final_default: bool,
    /// Whether the text of a reply without calls is the agent's final response. None means that
    /// this holds only for [`Dialect::Native`].
    pub text_is_response: Option<bool>,
    /// What happens to a final response while actions of its turn are unfinished.
    pub final_with_actions: FinalWithActions,
    /// The local names of payloads besides `response` that end the agent's work.
    pub final_payloads: Vec<String>,
    /// When results of actions begin the agent's next turn.
    pub wake: Wake,
    /// The maximum number of turns for one work, counted from the message or tick that begins the
    /// work.
    pub max_turns: u64,
    /// The thread in which the agent works when another listener calls it.
    pub agent_calls: Calls,
    /// The fields of the agent's metadata.
    pub metadata: Fields,
    /// The folder in which the agent works, as `AgentContext` reports it. None if the folder isn't
    /// known.
    pub workspace: Option<String>,
    /// The name of the agent's pump, as `AgentContext` reports it.
    pub organism: Option<String>,
    /// Whether the agent reports changes of its metadata to the listener `trigger`. If so, the pump
    /// must have this listener.
    pub has_triggers: bool,
    /// The feeds that the prompt shows beside the history.
    pub context_feeds: Feeds,
    /// The abilities that the prompt offers besides calling peers.
    pub abilities: Vec<Ability>,
    /// The internal actions that the agent may call. An internal action changes the agent's own
    /// environment, for example its feeds.
    pub internal_actions: InternalActions,
    /// What the agent does if a prompt doesn't fit the model's window.
    pub on_context_full: OnFull,
    /// The model that writes summaries. None means the agent's own model.
    pub summary_model: Option<Arc<dyn Model>>,
    /// The messages that stay in view when a clear makes a prompt fit the window.
    pub context_keep: Keep,
    /// The maximum number of bytes of a result that a prompt shows.
    pub result_bytes_max: u64,
    /// The longest time that the agent waits for the end of its provider's rate limit.
    pub rate_limit_wait_max: Duration,
    /// Limits on the sizes of a reply's parts.
    pub reply_limits: ReplyLimits,
    /// The document `streaming_config`, which sets the spelling of `<tool_use>` and the maximum
    /// lengths of a call and of a text. None if there is no such document.
    pub streaming_config: Option<Streaming>,
    /// The maximum number of tokens of a reply. None means that of the model.
    pub max_tokens: Option<u32>,
    /// The sampling temperature of the model. None means the model's default.
    pub temperature: Option<f64>,
    /// Limits on the agent's actions.
    pub action_limits: ActionLimits,
    /// Whether replies may have blocks around actions: conditions, loops, parallel actions, and
    /// `<rollback>`. Also whether actions may have the fields `stream` and `compensate`.
    pub control_flow: bool,
    /// Templates of actions, by their names. The agent fills in their placeholders.
    pub action_templates: Templates,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            describe: String::new(),
            prompt: String::new(),
            dialect: Dialect::Tags,
            references: None,
            dispatch: Dispatch::Immediate,
            final_default: true,
            text_is_response: None,
            final_with_actions: FinalWithActions::Hold,
            final_payloads: Vec::new(),
            wake: Wake::Each,
            max_turns: 50,
            agent_calls: Calls::OwnThread,
            metadata: Fields::default(),
            workspace: None,
            organism: None,
            has_triggers: false,
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
            control_flow: false,
            action_templates: Templates::default(),
        }
    }
}

impl Settings {
    /// Whether the text of a reply without calls is the agent's final response.
    #[must_use]
    pub fn text_is_response(&self) -> bool {
        self.text_is_response.unwrap_or(self.dialect == Dialect::Native)
    }

    /// Whether parameters and responses may have references such as `${id}`.
    #[must_use]
    pub fn has_references(&self) -> bool {
        self.references.unwrap_or(self.dialect == Dialect::Tags)
    }

    /// Which texts are references in an action that was written in this form. None where the form
    /// itself decides.
    pub(super) fn references_of(&self, form: Option<CallDialect>) -> Option<References> {
        let is_tags = form.is_none_or(|it| it == CallDialect::Tags);
        match (self.has_references(), self.dialect, is_tags) {
            (true, Dialect::Tags, true) | (false, _, false) => None,
            (true, ..) => Some(References::Braced),
            (false, _, true) => Some(References::None),
        }
    }
}

/// How a model writes its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// As `<action>`, `<tool_use>` and `<tool_call>`.
    #[default]
    Tags,
    /// As `Tags`, and also as JSON in the text.
    ToolUse,
    /// In the provider's own protocol, which offers the peers' payloads as tools. Elements are
    /// understood as well.
    Native,
}

/// The thread in which an agent works when another listener calls it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Calls {
    /// A thread of the agent's own, below the caller's thread.
    #[default]
    OwnThread,
    /// The caller's thread.
    SameThread,
}

/// The messages of a thread that stay in view when a clear hides old ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// This number of messages, including the first one of the thread.
    Messages(u64),
    /// The first message, and the newest messages that have at most this number of tokens together.
    Tokens(u64),
}

/// An ability: something that an agent may do besides calling its peers.
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
    /// All abilities.
    pub const ALL: [Ability; 5] =
        [Ability::Spawn, Ability::Timers, Ability::Todo, Ability::Clear, Ability::Feeds];
}

/// What an agent does if a prompt doesn't fit the model's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFull {
    /// A clear hides old messages.
    #[default]
    Clear,
    /// A clear hides old messages. In their place, prompts show a summary that a model wrote.
    Summarise,
    /// The agent stops.
    Stop,
}
