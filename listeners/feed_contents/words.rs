//! Payloads about feeds.

use pumphouse::prelude::*;
use pumphouse::wire::Timestamp;

pub use super::definition::Position;
use super::definition::{Definition, FeedKind, Source};

/// The name of the listener `feed`.
pub const NAME: &str = "feed";

/// What a feed holds, for the prompts of the agent that it is recorded for. It is recorded when
/// that has changed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(
    ns = "https://xml-pipeline.org/ns/agent/v1",
    rename = "context_feed",
    reserved,
    bookkeeping
)]
pub struct ContextFeed {
    /// The feed.
    #[payload(attribute, example = "current_datetime")]
    pub id: String,
    /// What it is from: a listener, or a part of the pump.
    #[payload(attribute, example = "system_clock")]
    pub source: String,
    /// What is to be thought of it.
    #[payload(attribute)]
    pub status: FeedStatus,
    /// Where it stands in a prompt; at the end unless said.
    #[payload(attribute)]
    pub position: Option<Position>,
    /// When what it holds was true, where that is no more.
    #[payload(attribute)]
    pub as_of: Option<Timestamp>,
    /// What went wrong.
    #[payload(attribute)]
    pub why: Option<String>,
    /// What it holds; nothing where it isn't to be had, or what it held before still stands.
    #[payload(text, example = "2024-06-15T12:34:56Z")]
    pub text: String,
}

/// What is to be thought of what a feed holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
pub enum FeedStatus {
    /// It is so.
    #[default]
    Fresh,
    /// It was so, and could not be had anew.
    Stale,
    /// It could not be had.
    Unavailable,
    /// It is so, and goes on.
    Truncated,
}

impl FeedStatus {
    /// The status as the word that payloads and prompts have.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            FeedStatus::Fresh => "fresh",
            FeedStatus::Stale => "stale",
            FeedStatus::Unavailable => "unavailable",
            FeedStatus::Truncated => "truncated",
        }
    }
}

/// The feeds that an agent is set up with: for `feed`, which reads it in the thread's history.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", bookkeeping)]
pub struct DeclareFeeds {
    /// Each of them.
    pub feed: Vec<Definition>,
}

/// Has an agent's feeds had anew that aren't as of now. The answer is `feeds-refreshed`, when all
/// that its next turn waits for are there or can't be had.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", bookkeeping)]
pub struct RefreshFeeds {
    /// The turn that is to show them.
    #[payload(attribute)]
    pub turn: u64,
}

/// What can be had of an agent's feeds is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", reserved, bookkeeping)]
pub struct FeedsRefreshed {
    /// The turn that is to show it.
    #[payload(attribute)]
    pub turn: u64,
}

/// Changes a feed of the agent that asks; what isn't said stays as it is. The answer is
/// `context_feed_updated`.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "update_context_feed")]
pub struct UpdateContextFeed {
    /// The feed.
    #[payload(attribute, example = "system_metrics")]
    pub id: String,
    /// How often it is had anew.
    #[payload(attribute, rename = "type", no_example)]
    pub kind: Option<FeedKind>,
    /// The seconds between two times, where it is periodic.
    #[payload(attribute, example = "60")]
    pub interval: Option<f64>,
    /// Whether it is had and shown.
    #[payload(attribute)]
    pub enabled: Option<bool>,
    /// For how many seconds what was had will do.
    #[payload(attribute, no_example)]
    pub cache_ttl: Option<f64>,
    /// How many tokens of it are shown, at four characters each.
    #[payload(attribute, no_example)]
    pub max_tokens: Option<u64>,
    /// How many seconds a turn waits for it.
    #[payload(attribute, no_example)]
    pub timeout: Option<f64>,
    /// Where it stands in a prompt.
    #[payload(attribute, no_example)]
    pub position: Option<Position>,
    /// Where it comes from.
    #[payload(no_example)]
    pub source: Option<Source>,
}

/// Takes a feed of the agent that asks away. The answer is `context_feed_removed`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "remove_context_feed")]
pub struct RemoveContextFeed {
    /// The feed.
    #[payload(attribute, example = "recent_errors")]
    pub id: String,
}

/// An agent has a feed more.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "context_feed_added", reserved)]
pub struct ContextFeedAdded {
    /// The agent.
    #[payload(attribute, example = "researcher")]
    pub agent: String,
    /// The feed.
    pub feed: Definition,
}

/// An agent's feed is another.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "context_feed_updated", reserved)]
pub struct ContextFeedUpdated {
    /// The agent.
    #[payload(attribute, example = "researcher")]
    pub agent: String,
    /// The feed as it is now.
    pub feed: Definition,
}

/// An agent has a feed less.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "context_feed_removed", reserved)]
pub struct ContextFeedRemoved {
    /// The agent.
    #[payload(attribute, example = "researcher")]
    pub agent: String,
    /// The feed.
    #[payload(attribute, example = "recent_errors")]
    pub id: String,
}

/// A feed can't be added, changed or taken away.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "context_feed_refused", reserved)]
pub struct ContextFeedRefused {
    /// Why not, and what would do.
    #[payload(attribute, example = "no feed is called recent_erorrs; did you mean recent_errors?")]
    pub message: String,
}

/// A feed's source can't be asked: for the listener `feed` itself.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", reserved, bookkeeping)]
pub struct FeedUnasked {
    /// The agent.
    #[payload(attribute, example = "researcher")]
    pub agent: String,
    /// The feed.
    #[payload(attribute, example = "recent_errors")]
    pub id: String,
    /// Why not.
    #[payload(text, example = "nobody here is called log_servcie")]
    pub why: String,
}

/// The next time at which something about a thread's feeds is due: for the listener `feed` itself.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", reserved, bookkeeping)]
pub struct FeedsDue {
    /// When, in microseconds since the epoch.
    #[payload(attribute)]
    pub at: u64,
    /// Whether a turn waits for it: then it is over when the turn begins.
    #[payload(attribute)]
    pub is_awaited: bool,
}
