//! The listener `feed-values` keeps the contents of feeds that are set from outside, such as a
//! notice for all agents.
//!
//! ```yaml
//! listeners:
//!   - use: agent
//!     name: octopus
//!     model: local
//!     context_feeds:
//!       - {id: notice, set_by: [ops]}
//! ```
//!
//! An operator, or a sender that the feed's `set_by` lists, sets the content with `set-feed`. The
//! content is an entry of the thread `organism`, so it outlives the sender's session and each of
//! the agent's threads. Before a turn, the listener `feed` asks for the content. It records the
//! content in the agent's thread if the content has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use pumphouse::listener::{DoorAccess, Effects, Organism, OrganismFold, OrganismThread};
use pumphouse::log::Flags;
use pumphouse::prelude::*;
use pumphouse::schema::nearest;
use pumphouse::wire::Timestamp;

use super::caller::caller;
use super::feed_contents::definition::{Definition, Feeds, SourceKind};
use super::feed_contents::pump_sources::stamp;
use super::feed_contents::words::{FeedContent, NAME as FEED};

/// The listener's name.
pub const NAME: &str = "feed-values";
/// The maximum size of a content, in bytes.
const TEXT_BYTES_MAX: usize = 64 * 1_024;

/// Sets the content of an agent's feed, from the agent's next turn on. The answer is
/// `feed-set`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1")]
pub struct SetFeed {
    /// The agent.
    #[payload(attribute, example = "octopus")]
    pub agent: String,
    /// The feed.
    #[payload(attribute, example = "notice")]
    pub id: String,
    /// The content; empty if the prompts are to show none.
    #[payload(text, example = "The exchange closes at noon.")]
    pub text: String,
}

/// Asks for the content of a feed that is set from outside. The answer is `feed-content`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1")]
pub struct GetFeed {
    /// The agent.
    #[payload(attribute, example = "octopus")]
    pub agent: String,
    /// The feed.
    #[payload(attribute, example = "notice")]
    pub id: String,
}

/// A feed has this content from now on. The thread `organism` records the content, too.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", reserved)]
pub struct FeedSet {
    /// The agent.
    #[payload(attribute, example = "octopus")]
    pub agent: String,
    /// The feed.
    #[payload(attribute, example = "notice")]
    pub id: String,
    /// Who set it.
    #[payload(attribute, example = "ops")]
    pub by: String,
    /// The content.
    #[payload(text, example = "The exchange closes at noon.")]
    pub text: String,
}

/// A feed can't be set or read.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1")]
pub struct FeedNotSet {
    /// Why, and how to correct it.
    #[payload(value, example = "octopus has no feed notcie that can be set; did you mean notice?")]
    pub text: String,
}

/// The feeds that are set from outside. Each has the senders that may set it, besides operators.
#[derive(Clone, Debug, Default)]
pub struct SettableFeeds(BTreeMap<(String, String), Vec<String>>);

impl SettableFeeds {
    /// Adds those of an agent's feeds whose source has the type `set`.
    #[must_use]
    pub fn with(mut self, agent: &str, feeds: &Feeds) -> SettableFeeds {
        let is_set = |it: &&Definition| {
            it.source.as_ref().is_some_and(|source| source.kind == SourceKind::Set)
        };
        for definition in feeds.declared().iter().filter(is_set) {
            let key = (agent.to_owned(), definition.id.clone());
            self.0.insert(key, definition.set_by.clone().unwrap_or_default().sender);
        }
        self
    }

    /// Whether no feed is set from outside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Makes the listener `feed-values` for these feeds.
///
/// ```
/// # extern crate pumphouse_listeners as pumphouse;
/// use pumphouse::listeners::agent::Agent;
/// use pumphouse::listeners::feed::{Definition, Feeds};
/// use pumphouse::listeners::feed_values::{SettableFeeds, feed_values};
/// use pumphouse::model::Scripted;
///
/// let feeds = Feeds::new([Definition::set_by("notice", ["ops"])])?;
/// let values = feed_values(SettableFeeds::default().with("octopus", &feeds));
/// let model = Scripted::replies(["<response>I read: $notice</response>"]);
/// let octopus = Agent::new("octopus", std::sync::Arc::new(model)).feeds(feeds);
/// # let _ = (values, octopus);
/// # Ok::<(), pumphouse::listeners::feed::definition::WrongFeed>(())
/// ```
#[must_use]
pub fn feed_values(feeds: SettableFeeds) -> Listener {
    let values = Values { feeds: feeds.0, contents: OrganismFold::default() };
    Listener::with_state(NAME, Arc::new(values))
        .on(set)
        .on(get)
        .grant::<Organism>()
        .grant::<EmitCore>()
        .describe("Sets the contents of agents' feeds.")
        .effects(Effects::Writes)
        // Each feed says who may set it.
        .door(DoorAccess::Everybody)
        .serial()
        .idempotent()
        .stateless()
}

/// The state of the listener.
struct Values {
    /// Maps an agent and a feed to the senders that may set the feed.
    feeds: BTreeMap<(String, String), Vec<String>>,
    contents: OrganismFold<Contents>,
}

/// Maps an agent and a feed to the feed's content. A fold of the thread `organism`.
#[derive(Clone, Debug, Default)]
struct Contents(BTreeMap<(String, String), FeedContent>);

impl Apply for Contents {
    fn apply(&mut self, entry: &Entry) {
        let Some(FeedSet { agent, id, text, .. }) = entry.decode_if() else { return };
        let as_of: Option<Timestamp> = Some(stamp(entry.at_us()));
        let content = FeedContent { fresh_for: 0.0, as_of, text, ..FeedContent::default() };
        self.0.insert((agent, id), content);
    }
}

impl Values {
    /// The senders that may set a feed, besides operators.
    fn setters(&self, agent: &str, id: &str) -> Result<&[String], FeedNotSet> {
        if let Some(setters) = self.feeds.get(&(agent.to_owned(), id.to_owned())) {
            return Ok(setters);
        }
        let ids = self.feeds.keys().filter(|(it, _)| it == agent).map(|(_, id)| &**id);
        let near = nearest(id, ids).map(|it| format!("; did you mean {it}?"));
        let near = near.unwrap_or_default();
        Err(FeedNotSet { text: format!("{agent} has no feed {id} that can be set{near}") })
    }
}

async fn set(
    State(values): State<Arc<Values>>,
    message: Message,
    history: History,
    organism: OrganismThread,
    SetFeed { agent, id, text }: SetFeed,
) -> Result<Result<FeedSet, FeedNotSet>, Fault> {
    let setters = match values.setters(&agent, &id) {
        Ok(it) => it,
        Err(no) => return Ok(Err(no)),
    };
    let by = caller(&message, &history).await?;
    if !message.flags().contains(Flags::FROM_OPERATOR) && !setters.contains(&by) {
        let text = format!(
            "{by} may not set {id} of {agent}; operators and the senders in the feed's `set_by` \
             may set it"
        );
        return Ok(Err(FeedNotSet { text }));
    }
    if text.len() > TEXT_BYTES_MAX {
        let text = format!("{id} may have {TEXT_BYTES_MAX} bytes, and this has {}", text.len());
        return Ok(Err(FeedNotSet { text }));
    }
    let set = FeedSet { agent, id, by, text };
    organism.record(&set).await?;
    Ok(Ok(set))
}

async fn get(
    State(values): State<Arc<Values>>,
    message: Message,
    history: History,
    organism: OrganismThread,
    GetFeed { agent, id }: GetFeed,
) -> Result<Result<FeedContent, FeedNotSet>, Fault> {
    let setters = match values.setters(&agent, &id) {
        Ok(it) => it,
        Err(no) => return Ok(Err(no)),
    };
    let by = caller(&message, &history).await?;
    let is_operator = message.flags().contains(Flags::FROM_OPERATOR);
    if by != FEED && !is_operator && !setters.contains(&by) {
        let text = format!(
            "{by} may not read {id} of {agent}; operators and the senders in its `set_by` may"
        );
        return Ok(Err(FeedNotSet { text }));
    }
    let content = |contents: &Contents| contents.0.get(&(agent, id.clone())).cloned();
    // A feed that nobody has set yet is empty.
    let content = values.contents.with(&organism, content).await?;
    Ok(Ok(content.unwrap_or_default()))
}
