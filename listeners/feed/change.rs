//! Handles the changes that agents make to their feeds: `add_context_feed`, `update_context_feed`
//! and `remove_context_feed`, mostly sent as actions of the type `internal`.

use pumphouse::limits::FeedLimits;
use pumphouse::listener::Described;
use pumphouse::prelude::*;
use pumphouse::schema::nearest;

use super::super::action::call::{self, Called};
use super::super::action::words::ActionError;
use super::super::caller::caller;
use super::OWN;
use super::definition::{BUILT_IN, Definition, Source, SourceKind, Transform};
use super::metadata;
use super::registry::Registry;
use super::shown::Shown;
use super::words::{
    ContextFeedAdded, ContextFeedRefused, ContextFeedRemoved, ContextFeedUpdated,
    RemoveContextFeed, UpdateContextFeed,
};

pub(super) async fn add(
    message: Message,
    history: History,
    shown: Fold<Shown>,
    capabilities: Capabilities,
    feed: Definition,
) -> Result<Result<ContextFeedAdded, ContextFeedRefused>, Fault> {
    let agent = match whose(&message, &history, &capabilities).await? {
        Ok(agent) => agent,
        Err(refused) => return Ok(Err(refused)),
    };
    let registry = shown.registry();
    let refused = |message: String| Ok(Err(ContextFeedRefused { message }));
    if BUILT_IN.contains(&&*feed.id) || registry.get(&agent, &feed.id).is_some() {
        let text = format!("a feed {} is there already; update_context_feed changes it", feed.id);
        return refused(text);
    }
    let (max, there) = (FeedLimits::default().feeds_max, registry.of(&agent).len());
    if there >= max {
        let text = format!("feeds_max is {max}, and {there} feeds are there");
        return refused(format!("{text}; take one away with remove_context_feed"));
    }
    match sound(&capabilities, &agent, &feed) {
        Ok(()) => Ok(Ok(ContextFeedAdded { agent, feed })),
        Err(message) => refused(message),
    }
}

pub(super) async fn update(
    message: Message,
    history: History,
    shown: Fold<Shown>,
    capabilities: Capabilities,
    update: UpdateContextFeed,
) -> Result<Result<ContextFeedUpdated, ContextFeedRefused>, Fault> {
    let agent = match whose(&message, &history, &capabilities).await? {
        Ok(agent) => agent,
        Err(refused) => return Ok(Err(refused)),
    };
    let Some(before) = shown.registry().get(&agent, &update.id) else {
        return Ok(Err(unknown(shown.registry(), &agent, &update.id)));
    };
    let by = update.definition();
    let feed = before.definition.updated(by.clone());
    if let Some(Err(message)) = by.transform.as_ref().map(Transform::check_of_agent) {
        return Ok(Err(ContextFeedRefused { message: format!("{}: {message}", feed.id) }));
    }
    // If the update names no source, the feed keeps its source, which was checked before.
    let checked = match by.source {
        Some(_) => sound(&capabilities, &agent, &feed),
        None => feed.check(),
    };
    Ok(match checked {
        Ok(()) => Ok(ContextFeedUpdated { agent, feed }),
        Err(message) => Err(ContextFeedRefused { message }),
    })
}

pub(super) async fn remove(
    message: Message,
    history: History,
    shown: Fold<Shown>,
    capabilities: Capabilities,
    RemoveContextFeed { id }: RemoveContextFeed,
) -> Result<Result<ContextFeedRemoved, ContextFeedRefused>, Fault> {
    let agent = match whose(&message, &history, &capabilities).await? {
        Ok(agent) => agent,
        Err(refused) => return Ok(Err(refused)),
    };
    Ok(match shown.registry().get(&agent, &id) {
        Some(_) => Ok(ContextFeedRemoved { agent, id }),
        None => Err(unknown(shown.registry(), &agent, &id)),
    })
}

/// Finds the listener that is the source of a feed that an agent itself added. An agent whose peers
/// are listed can name only these peers.
///
/// # Errors
/// Fails if no listener or payload has this name, or if the agent may not name it. The text is the
/// same in both cases. Also fails if the name has several meanings; the text lists them.
pub(super) fn source<'a>(
    all: &'a Capabilities,
    agent: &str,
    source: &Source,
) -> Result<Called<'a>, ActionError> {
    let peers = all.listener(agent).and_then(|it| it.peers.clone());
    let name = source.name.as_deref().unwrap_or_default();
    call::find(all, name, &source.given(), |found| {
        let name = &found.listener.name;
        !OWN.contains(&&**name) && peers.as_ref().is_none_or(|peers| peers.contains(name))
    })
}

/// The agent whose feeds a message is about: the caller of `feed`. The inner error refuses a caller
/// that isn't a listener.
pub(super) async fn whose(
    message: &Message,
    history: &History,
    capabilities: &Capabilities,
) -> Result<Result<String, ContextFeedRefused>, Fault> {
    let whose = caller(message, history).await?;
    let is_listener = capabilities.listener(&whose).is_some();
    let message = format!("{whose} is no agent, and has no feeds");
    Ok(if is_listener { Ok(whose) } else { Err(ContextFeedRefused { message }) })
}

fn sound(all: &Capabilities, agent: &str, feed: &Definition) -> Result<(), String> {
    feed.check()?;
    if let Some(transform) = &feed.transform {
        transform.check_of_agent().map_err(|it| format!("{}: {it}", feed.id))?;
    }
    match &feed.source {
        Some(found) if found.kind == SourceKind::Set => {
            let text = "an agent can't define a feed of the type set; the manifest does";
            Err(format!("{}: {text}", feed.id))
        }
        Some(found) if found.kind == SourceKind::Metadata => {
            let peers = all.listener(agent).and_then(|it| it.peers.clone());
            let is_peer = |it: &Described| peers.as_ref().is_none_or(|all| all.contains(&it.name));
            let named = metadata::named(all, found, is_peer);
            named.map(drop).map_err(|it| format!("{}: {it}", feed.id))
        }
        Some(found) if found.kind != SourceKind::Internal => {
            source(all, agent, found).map(drop).map_err(|it| it.message)
        }
        _ => Ok(()),
    }
}

pub(super) fn unknown(registry: &Registry, agent: &str, id: &str) -> ContextFeedRefused {
    if BUILT_IN.contains(&id) {
        let message = format!("{id} is made by the pump; whoever sets the agent up turns it off");
        return ContextFeedRefused { message };
    }
    let ids = registry.of(agent).iter().map(|it| &*it.definition.id);
    let near = nearest(id, ids).map(|it| format!("; did you mean {it}?")).unwrap_or_default();
    ContextFeedRefused { message: format!("no feed is called {id}{near}") }
}

impl UpdateContextFeed {
    fn definition(self) -> Definition {
        let UpdateContextFeed {
            id,
            kind,
            interval,
            enabled,
            cache_ttl,
            max_tokens,
            timeout,
            position,
            inject,
            transform,
            source,
        } = self;
        Definition {
            id,
            kind,
            interval,
            enabled,
            cache_ttl,
            max_tokens,
            timeout,
            position,
            inject,
            transform,
            set_by: None,
            source,
        }
    }
}
