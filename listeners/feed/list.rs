//! Handles the questions that agents ask about themselves: `list_context_feeds` and
//! `list_available_tools`, mostly sent as actions of the type `internal`.

use pumphouse::prelude::*;
use pumphouse::schema::Schema;

use super::super::action::call::offered;
use super::change::whose;
use super::shown::Shown;
use super::source_name;
use super::words::{
    AvailableTool, AvailableTools, ContextFeedRefused, ContextFeeds, ListAvailableTools,
    ListContextFeeds, ListedFeed,
};

pub(super) async fn feeds(
    message: Message,
    history: History,
    shown: Fold<Shown>,
    capabilities: Capabilities,
    _: ListContextFeeds,
) -> Result<Result<ContextFeeds, ContextFeedRefused>, Fault> {
    let agent = match whose(&message, &history, &capabilities).await? {
        Ok(agent) => agent,
        Err(refused) => return Ok(Err(refused)),
    };
    let definitions = shown.registry().of(&agent).iter().map(|it| &it.definition);
    let listed = definitions.map(|definition| {
        let content = shown.get(&agent, &definition.id);
        ListedFeed {
            id: definition.id.clone(),
            source: source_name(definition).to_owned(),
            is_shown: definition.is_shown(),
            status: content.map(|it| it.status),
            refreshed: content.and_then(|it| it.refreshed),
            bytes: content.map_or(0, |it| it.text.len() as u64),
        }
    });
    Ok(Ok(ContextFeeds { feed: listed.collect() }))
}

pub(super) async fn tools(
    message: Message,
    history: History,
    capabilities: Capabilities,
    _: ListAvailableTools,
) -> Result<Result<AvailableTools, ContextFeedRefused>, Fault> {
    let agent = match whose(&message, &history, &capabilities).await? {
        Ok(agent) => agent,
        Err(refused) => return Ok(Err(refused)),
    };
    let all = &capabilities;
    let peers = all.listener(&agent).and_then(|it| it.peers.as_ref());
    let is_peer = |name: &String| *name != agent && peers.is_none_or(|it| it.contains(name));
    let callable = all.listeners().iter().filter(|it| is_peer(&it.name));
    let named = callable.flat_map(|it| offered(all, it));
    let tool = |(name, schema): (String, &Schema)| AvailableTool {
        name,
        text: schema.shape.doc.clone().into_owned(),
    };
    Ok(Ok(AvailableTools { tool: named.map(tool).collect() }))
}
