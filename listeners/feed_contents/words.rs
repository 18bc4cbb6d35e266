//! Payloads about feeds.

use pumphouse::prelude::*;
use pumphouse::wire::Timestamp;

pub use super::definition::Position;
use super::definition::{Definition, FeedKind, Inject, Source, Transform};
use super::injection::Injection;

/// The name of the listener `feed`.
pub const NAME: &str = "feed";

/// A feed's content for an agent's prompts, recorded whenever it changes.
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
    /// Its source: a listener, or a part of the pump.
    #[payload(attribute, example = "system_clock")]
    pub source: String,
    /// Whether the content is up to date.
    #[payload(attribute)]
    pub status: FeedStatus,
    /// Its place in a prompt; by default at the end.
    #[payload(attribute)]
    pub position: Option<Position>,
    /// When the content was up to date; only if it is stale, or if prompts show times.
    #[payload(attribute)]
    pub as_of: Option<Timestamp>,
    /// Why it couldn't be refreshed, or how much of it was cut.
    #[payload(attribute)]
    pub why: Option<String>,
    /// The content; empty if the refresh failed. Stale content is in an earlier `context_feed`.
    #[payload(text, example = "2024-06-15T12:34:56Z")]
    pub text: String,
}

/// Whether a feed's content is up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
pub enum FeedStatus {
    /// It is up to date.
    #[default]
    Fresh,
    /// It is old: it couldn't be refreshed.
    Stale,
    /// There is none: the refresh failed.
    Unavailable,
    /// It is up to date, but was cut.
    Truncated,
}

impl FeedStatus {
    /// The status as payloads and prompts write it.
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

/// The content of a feed, from a source that says how long it is fresh. A source may answer any
/// other payload, too. Its content is fresh for the feed's `cache_ttl`.
#[derive(Clone, Debug, Default, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1")]
pub struct FeedContent {
    /// Seconds for which it is fresh; 0 if each turn must ask again.
    #[payload(attribute, example = "60")]
    pub fresh_for: f64,
    /// When the content was up to date, if this is known.
    #[payload(attribute, no_example)]
    pub as_of: Option<Timestamp>,
    /// Whether the content is old, because its origin can't be reached.
    #[payload(attribute, no_example)]
    pub is_stale: Option<bool>,
    /// Whether the content is for one turn only. If so, later turns don't show it, even if the
    /// source fails.
    #[payload(attribute, no_example)]
    pub is_for_one_turn: Option<bool>,
    /// The content.
    #[payload(text, value, example = "Fleet nominal. 7 agents healthy. No alerts.")]
    pub text: String,
}

/// The feeds that an agent is configured with. The listener `feed` reads them from the thread's
/// history.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", bookkeeping)]
pub struct DeclareFeeds {
    /// How prompts show them; absent if all settings are the defaults.
    #[payload(no_example)]
    pub injection: Option<Injection>,
    /// The feeds.
    pub feed: Vec<Definition>,
}

/// Refreshes an agent's feeds that aren't fresh. The answer is `feeds-refreshed`, once each feed
/// that the next turn waits for is refreshed or has failed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", bookkeeping)]
pub struct RefreshFeeds {
    /// The turn that is to show them.
    #[payload(attribute)]
    pub turn: u64,
}

/// An agent's turn no longer waits for feeds: they are refreshed, or their sources failed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", reserved, bookkeeping)]
pub struct FeedsRefreshed {
    /// The turn that is to show them.
    #[payload(attribute)]
    pub turn: u64,
}

/// Changes a feed of the calling agent; fields not given stay as they are. The answer is
/// `context_feed_updated`.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "update_context_feed")]
pub struct UpdateContextFeed {
    /// The feed.
    #[payload(attribute, example = "system_metrics")]
    pub id: String,
    /// When it is refreshed.
    #[payload(attribute, rename = "type", no_example)]
    pub kind: Option<FeedKind>,
    /// Seconds between refreshes; for `periodic` only, at least 1.
    #[payload(attribute, example = "60")]
    pub interval: Option<f64>,
    /// Whether it is refreshed and shown.
    #[payload(attribute)]
    pub enabled: Option<bool>,
    /// Seconds for which its content stays fresh.
    #[payload(attribute, no_example)]
    pub cache_ttl: Option<f64>,
    /// How many tokens of it are shown, at four characters each.
    #[payload(attribute, no_example)]
    pub max_tokens: Option<u64>,
    /// Seconds that a turn waits for it; at most 600.
    #[payload(attribute, no_example)]
    pub timeout: Option<f64>,
    /// Its place in a prompt.
    #[payload(attribute, no_example)]
    pub position: Option<Position>,
    /// Whether prompts show it.
    #[payload(attribute, no_example)]
    pub inject: Option<Inject>,
    /// What it shows of its source's answer.
    #[payload(no_example)]
    pub transform: Option<Transform>,
    /// Its source.
    #[payload(no_example)]
    pub source: Option<Source>,
}

/// Removes a feed of the calling agent. The answer is `context_feed_removed`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "remove_context_feed")]
pub struct RemoveContextFeed {
    /// The feed.
    #[payload(attribute, example = "recent_errors")]
    pub id: String,
}

/// Lists the feeds of the calling agent. The answer is `context_feeds`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "list_context_feeds")]
pub struct ListContextFeeds {}

/// The feeds of an agent: first those of its settings, then those that it added.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "context_feeds", reserved)]
pub struct ContextFeeds {
    /// The feeds.
    pub feed: Vec<ListedFeed>,
}

/// A feed in a list of feeds.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct ListedFeed {
    /// The feed.
    #[payload(attribute, example = "system_metrics")]
    pub id: String,
    /// Its source: a listener, or a part of the pump.
    #[payload(attribute, example = "system_monitor_tool")]
    pub source: String,
    /// Whether prompts show it.
    #[payload(attribute)]
    pub is_shown: bool,
    /// Whether its content is up to date; absent if it wasn't refreshed yet.
    #[payload(attribute)]
    pub status: Option<FeedStatus>,
    /// When its content was recorded last.
    #[payload(attribute)]
    pub refreshed: Option<Timestamp>,
    /// The size of its content, in bytes.
    #[payload(attribute)]
    pub bytes: u64,
}

/// Asks the source of one of the calling agent's feeds now, even if the feed is fresh or not
/// enabled. An operator has to name the agent. The answer is `context_feed_fetched`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "fetch_context_feed")]
pub struct FetchContextFeed {
    /// The feed.
    #[payload(attribute, example = "system_metrics")]
    pub id: String,
    /// The agent; for operators only.
    #[payload(attribute, no_example)]
    pub agent: Option<String>,
}

/// The content that the source of a feed answered.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "context_feed_fetched", reserved)]
pub struct ContextFeedFetched {
    /// The feed.
    #[payload(attribute, example = "system_metrics")]
    pub id: String,
    /// Whether the content is up to date and complete.
    #[payload(attribute)]
    pub status: FeedStatus,
    /// The content.
    #[payload(text, value, example = "{\"cpu\": 45.2, \"memory\": 62.8}")]
    pub text: String,
}

/// Lists the tools that the calling agent's actions may call. The answer is `available_tools`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "list_available_tools")]
pub struct ListAvailableTools {}

/// The tools that an agent's actions may call.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "available_tools", reserved)]
pub struct AvailableTools {
    /// The tools.
    pub tool: Vec<AvailableTool>,
}

/// A tool in a list of tools.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct AvailableTool {
    /// The name by which an action calls it.
    #[payload(attribute, example = "calculate")]
    pub name: String,
    /// What it does.
    #[payload(text, example = "Computes an arithmetic expression.")]
    pub text: String,
}

/// A feed was added to an agent.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "context_feed_added", reserved)]
pub struct ContextFeedAdded {
    /// The agent.
    #[payload(attribute, example = "researcher")]
    pub agent: String,
    /// The feed.
    pub feed: Definition,
}

/// A feed of an agent was changed.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "context_feed_updated", reserved)]
pub struct ContextFeedUpdated {
    /// The agent.
    #[payload(attribute, example = "researcher")]
    pub agent: String,
    /// The feed as it is now.
    pub feed: Definition,
}

/// A feed of an agent was removed.
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

/// A feed can't be added, changed, removed, fetched or listed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "context_feed_refused", reserved)]
pub struct ContextFeedRefused {
    /// Why not, and how to correct it.
    #[payload(attribute, example = "no feed is called recent_erorrs; did you mean recent_errors?")]
    pub message: String,
}

/// A feed's source can't be asked. Internal to the listener `feed`.
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

/// Wakes the listener `feed` at its next deadline or refresh. Internal to the listener `feed`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", reserved, bookkeeping)]
pub struct FeedsDue {
    /// When, in microseconds since the epoch.
    #[payload(attribute)]
    pub at: u64,
    /// Whether a turn waits for feeds until then. If so, this message comes early once they are
    /// refreshed.
    #[payload(attribute)]
    pub is_awaited: bool,
}
