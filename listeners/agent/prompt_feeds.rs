//! The feeds of a turn: the request to refresh them, and the feeds that the prompt shows.

use std::sync::Arc;

use pumphouse::prelude::*;

use super::super::feed::words::{ContextFeed, DeclareFeeds, RefreshFeeds};
use super::super::feed::{self, Injection, PromptFeeds};
use super::Agent;
use super::builtin_feeds;
use super::context::TurnContext;
use super::outcome::Emissions;

impl TurnContext {
    /// Returns the request to refresh the agent's feeds. The turn has to wait for the answer. Empty
    /// if the request was sent already. None if there is nothing to wait for: the agent has no
    /// feeds, or they were refreshed or are still fresh. A replay requests a refresh if the
    /// recorded handling did so, since earlier versions also refreshed fresh feeds.
    pub(super) fn request_feeds(&self, turn: u64) -> Option<Emissions> {
        let Agent { name, settings, .. } = self.agent();
        let declared = settings.context_feeds.declared();
        let injection = settings.context_feeds.injection();
        let registry = self.feed_inputs.feeds.registry();
        let is_new = registry.declared(name) != declared || registry.injection(name) != injection;
        let has_none = !is_new && registry.of(name).is_empty();
        if has_none || self.mind.has_feeds {
            return None;
        }
        // A refresh that was requested before a fork is answered in the original thread. Therefore
        // a turn waits only for a request in its own thread.
        if self.mind.asked.as_ref().is_some_and(|it| it.thread == *self.message.thread()) {
            return Some(Emissions::default());
        }
        let is_due = match &self.record.0 {
            Some(record) => record.iter().any(|it| it.is::<RefreshFeeds>()),
            None => is_new || self.feed_inputs.refreshes.is_due(name, self.clock.begun_us()),
        };
        if !is_due {
            return None;
        }
        let mut emissions = Emissions::default();
        if is_new {
            let injection = Some(injection).filter(|it| *it != Injection::default());
            let declaration = DeclareFeeds { injection, feed: declared.to_vec() };
            emissions.add(Note(To(feed::NAME, declaration)));
        }
        emissions.add(To(feed::NAME, RefreshFeeds { turn }));
        Some(emissions)
    }

    /// Returns the feeds that the prompt shows, and the built-in feeds whose content has changed.
    pub(super) fn feeds(&self, is_short: bool) -> (PromptFeeds, Vec<ContextFeed>) {
        let Agent { name, settings, .. } = self.agent();
        let inputs = &self.feed_inputs;
        let nth = self.mind.turns_spent() + 1;
        let all = [
            builtin_feeds::metadata(&settings.metadata, &self.metadata.known, self.mind.turns),
            builtin_feeds::todos(&inputs.todos),
            builtin_feeds::budget(name, &inputs.budgets, nth, (settings.max_turns, is_short)),
        ];
        let shown = &inputs.feeds;
        let (mut new, mut changed) = (Vec::new(), Vec::new());
        for mut it in all.map(|it| it.with_source(builtin_feeds::SOURCE)) {
            if !settings.context_feeds.has(&it.id) {
                it.text.clear();
            }
            let before = shown.get(name, &it.id).map_or("", |it| &it.text);
            if it.text != before {
                changed.push(it.clone().recorded());
                new.push(Arc::new(it));
            }
        }
        (shown.with(name, &new), changed)
    }
}
