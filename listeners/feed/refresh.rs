//! The fold `Refreshes`: the feeds that are being refreshed, and the times of the next refreshes.
//! For each message to `feed`, the fold computes effects, which the message's handler carries out.
//!
//! The fold knows no schemas and no listeners, only the requests to the sources, the answers and
//! their times.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pumphouse::limits::FeedLimits;
use pumphouse::log::Flags;
use pumphouse::prelude::*;
use pumphouse::wire::core::{ThreadResult, ThreadSpawned, ThreadStatus};
use serde_json::Value;

use super::super::action::variables::{Reference, names_in, references_in};
use super::super::metadata::Metadatas;
use super::super::schedule::{CurrentThread, Latest, OpenCalls};
use super::super::words::agent::{Response, Stopped};
use super::answers::{content, is_partial, refused, stopped, told};
use super::definition::{Definition, Source, micros};
use super::registry::{Registered, Registry};
use super::words::{FeedUnasked, FeedsDue, FeedsRefreshed, FetchContextFeed, NAME, RefreshFeeds};

/// The fold of the feeds that are being refreshed.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Refreshes {
    registry: Registry,
    metadata: Metadatas,
    agents: BTreeMap<String, AgentFeeds>,
    /// The unanswered requests to sources, each with its feed.
    calls: OpenCalls<SourceCall>,
    /// Maps the entry number of each unanswered `fetch_context_feed` to its entry.
    fetches: BTreeMap<u64, Entry>,
    /// The requested wake-up times that are still ahead, in microseconds since the epoch. The flag
    /// says whether a turn waits for feeds until then.
    armed: BTreeSet<(bool, u64)>,
    /// The log has each `feeds-due` twice: when it begins to wait, and when it is due. The cause of
    /// the second entry is the first one, or a `feeds-refreshed` that ended the wait early. This
    /// set has the numbers of these causes.
    reasons: BTreeSet<u64>,
    latest: Latest<Effect>,
    thread: CurrentThread,
}

/// Maps each metadata field in a feed's parameters to its value.
type Referenced = BTreeMap<String, Value>;

/// Identifies a feed of an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FeedId {
    pub(super) agent: String,
    pub(super) id: String,
}

/// A request to the source of a feed. `fetch` is None if a refresh sent the request.
#[derive(Clone, Debug)]
struct SourceCall {
    of: FeedId,
    /// The entry number of the request.
    number: u64,
    fetch: Option<Fetch>,
    metadata: Referenced,
}

/// The `fetch_context_feed` that caused a request to a source.
#[derive(Clone, Debug)]
struct Fetch {
    asked: Entry,
    /// The feed's source at the time of the request.
    source: Option<Source>,
}

/// An effect of a message, which the message's handler carries out.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    /// Asks the feed's source.
    Ask(FeedId),
    /// Records the answer of the feed's source. None if the source finished without an answer.
    Take(FeedId, Option<Element>),
    /// Records that the source didn't answer, or answered with an error. The text is the reason.
    /// The number is the time of the last good answer, in microseconds since the epoch. None if the
    /// feed has no content that may still be shown.
    Lost(FeedId, String, Option<u64>),
    /// Answers a `fetch_context_feed` with the answer of the feed's source, or with the reason why
    /// there is none.
    Fetched(Entry, FeedId, Result<Option<Element>, String>),
    /// Answers an agent's `refresh-feeds`, which is the entry. The agent's turn no longer waits for
    /// a feed.
    Ready(Entry),
    /// Sets a timer for this `feeds-due` message.
    Wake(FeedsDue),
}

/// The state of an agent's feeds.
#[derive(Clone, Debug, Default)]
struct AgentFeeds {
    /// Whether the agent has asked for its feeds since its last final response or stop.
    is_at_work: bool,
    feeds: BTreeMap<String, FeedState>,
    refresh: Option<PendingRefresh>,
}

/// An agent's request to refresh its feeds before a turn, and the feeds that the turn waits for.
#[derive(Clone, Debug)]
struct PendingRefresh {
    asked: Entry,
    pending: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
struct FeedState {
    had_at: Option<u64>,
    /// The time until which the content is fresh, in microseconds since the epoch. None if the
    /// source named no time.
    fresh_until: Option<u64>,
    /// Whether a failure of the source makes the content unavailable, instead of stale.
    is_for_one_turn: bool,
    failed_at: Option<u64>,
    /// The deadline for the source's answer, in microseconds since the epoch. None if no answer is
    /// awaited.
    until: Option<u64>,
    /// Whether the request to the source waits for other feeds, to which its parameters refer.
    is_held: bool,
    value: Option<Element>,
    /// The metadata with which the source was last asked.
    metadata: Referenced,
    /// The entry number of the newest request that a `fetch_context_feed` caused and that the
    /// source has answered without an error. 0 if there is none.
    fetched_by: u64,
}

impl Refreshes {
    /// The effects of the message with this number. Empty if the message isn't the newest entry.
    pub(super) fn of(&self, seq: u64) -> Arc<[Effect]> {
        self.latest.of(seq)
    }

    /// The metadata of the thread's agents.
    pub(super) fn metadata(&self) -> &Metadatas {
        &self.metadata
    }

    /// The feeds of the thread's agents.
    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Whether an agent must request its feeds before a turn. `now` is the time of the turn, in
    /// microseconds since the epoch. The request is needed if one of the feeds
    ///
    /// - was never refreshed,
    /// - is awaited, and the turn has to wait for it,
    /// - has content that is too old or was made with other metadata, or
    /// - is periodic, and the agent isn't at work, since periodic refreshes are paused then.
    pub(in super::super) fn is_due(&self, agent: &str, now: u64) -> bool {
        let state = self.agents.get(agent);
        let is_at_work = state.is_some_and(|it| it.is_at_work);
        let definitions = self.registry.of(agent).iter().map(|it| &it.definition);
        definitions.filter(|it| it.is_enabled()).any(|definition| {
            let state = state.and_then(|it| it.feeds.get(&definition.id));
            let Some(state) = state else { return true };
            state.is_awaited(definition)
                || state.until.is_none() && state.is_old(definition, now)
                || state.has_other(&referenced(&self.metadata, agent, definition))
                || definition.is_periodic() && !is_at_work
        })
    }

    /// The last good answer of a feed's source.
    pub(super) fn value(&self, agent: &str, id: &str) -> Option<&Element> {
        self.agents.get(agent)?.feeds.get(id)?.value.as_ref()
    }

    /// Drops the unfinished refreshes at the beginning of a fork. They continue only in the thread
    /// in which they began.
    fn forked(&mut self) {
        self.calls = OpenCalls::default();
        self.fetches.clear();
        self.armed.clear();
        self.reasons.clear();
        for agent_feeds in self.agents.values_mut() {
            agent_feeds.refresh = None;
            agent_feeds.feeds.values_mut().for_each(|it| (it.until, it.is_held) = (None, false));
        }
    }

    /// Records requests to sources, answers of `feed`, and the end of agents' work.
    fn observe(&mut self, entry: &Entry) {
        if let Some(asked) = entry.reply_to().filter(|_| entry.from() == NAME) {
            self.fetches.retain(|_, it| it.id() != asked);
        }
        if entry.from() == NAME || (entry.is::<ThreadSpawned>() && entry.is_from_core()) {
            self.observe_call(entry);
        }
        if entry.is_refused() || entry.is_from_identity() {
            return;
        }
        if entry.is::<FeedsRefreshed>() && entry.from() == NAME {
            self.reasons.insert(entry.seq());
        }
        let is_over =
            entry.is::<Stopped>() || entry.decode_if::<Response>().is_some_and(|it| it.is_final);
        if let Some(agent_feeds) = self.agents.get_mut(entry.from()).filter(|_| is_over) {
            agent_feeds.is_at_work = false;
        }
    }

    fn observe_call(&mut self, entry: &Entry) {
        let asked = entry.key().as_deref().and_then(named).or_else(|| {
            // A source that works in a thread of its own answers later.
            let asked = entry.reply_to().filter(|_| entry.is::<ThreadSpawned>());
            asked.and_then(|_| self.calls.replied(entry)).map(|it| it.of.clone())
        });
        let Some(of) = asked else { return };
        let call = match self.calls.replied(entry) {
            Some(call) => call.clone(),
            None => {
                let asked = entry.cause().and_then(|it| self.fetches.get(&it.seq)).cloned();
                let source = self.source(&of).cloned();
                let fetch = asked.map(|asked| Fetch { asked, source });
                let metadata = match &fetch {
                    Some(_) => self
                        .registry
                        .get(&of.agent, &of.id)
                        .map(|it| referenced(&self.metadata, &of.agent, &it.definition)),
                    None => self.state(&of).map(|it| it.metadata.clone()),
                };
                let metadata = metadata.unwrap_or_default();
                SourceCall { of, number: entry.seq(), fetch, metadata }
            }
        };
        self.calls.record(entry, call);
    }

    /// Applies a message to `feed`, and returns the message's effects.
    fn input(&mut self, entry: &Entry) -> Vec<Effect> {
        let (now, mut effects) = (entry.at_us(), Vec::new());
        if entry.is::<FeedsDue>() {
            let Ok(FeedsDue { at, is_awaited }) = entry.decode() else { return effects };
            if entry.cause().is_none_or(|it| !self.reasons.contains(&it.seq)) {
                self.reasons.insert(entry.seq());
                return effects;
            }
            self.armed.remove(&(is_awaited, at));
            if self.armed.is_empty() {
                self.reasons.clear();
            }
            self.due(now, &mut effects);
        } else if entry.is::<FetchContextFeed>() {
            self.fetches.insert(entry.seq(), entry.clone());
            return effects;
        } else if entry.is::<RefreshFeeds>() {
            self.refresh(entry, &mut effects);
        } else if let Ok(FeedUnasked { agent, id, why }) = entry.decode() {
            self.lost(now, FeedId { agent, id }, why, &mut effects);
        } else if let Some((asked, answer)) = self.answer(entry) {
            self.answered(now, asked, answer, &mut effects);
        }
        self.arm(&mut effects);
        effects
    }

    /// Handles the answer of a feed's source.
    fn answered(
        &mut self,
        now: u64,
        SourceCall { of, number, fetch, metadata }: SourceCall,
        answer: Result<Option<Element>, String>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(Fetch { asked, source }) = fetch else {
            let state = self.state(&of);
            let newest = state.as_ref().map_or(0, |it| it.fetched_by);
            if state.is_some_and(|it| it.metadata != metadata) {
                // The source has been asked again since, with other parameters.
                return;
            }
            return match answer {
                // A later request, caused by a `fetch_context_feed`, has been answered already.
                Ok(_) if number < newest => {}
                Ok(answer) => self.had(now, of, answer, effects),
                Err(why) => self.lost(now, of, why, effects),
            };
        };
        effects.push(Effect::Fetched(asked, of.clone(), answer.clone()));
        let is_same = self.source(&of) == source.as_ref();
        // A failure ends only the fetch. A turn may still wait for another request to this source.
        let Ok(answer) = answer else { return };
        let is_wanted = |it: &&mut FeedState| {
            is_same && it.fetched_by < number && (it.until.is_none() || it.metadata == metadata)
        };
        if let Some(state) = self.state(&of).filter(is_wanted) {
            (state.fetched_by, state.is_held, state.metadata) = (number, false, metadata);
            self.had(now, of, answer, effects);
        }
    }

    /// The source of a feed, as the feed is defined now.
    fn source(&self, of: &FeedId) -> Option<&Source> {
        self.registry.get(&of.agent, &of.id)?.definition.source.as_ref()
    }

    /// Finds the request that an entry answers, and removes it from the unanswered requests.
    /// Returns the request and its outcome. None if the entry answers no request to a source.
    fn answer(&mut self, entry: &Entry) -> Option<(SourceCall, Result<Option<Element>, String>)> {
        if entry.is::<ThreadResult>() && entry.is_from_core() {
            let result = entry.decode_if::<ThreadResult>()?;
            let asked = self.calls.take_in_thread(&result.thread)?;
            let stopped = result.payload.as_ref().and_then(stopped);
            return Some((
                asked,
                match (stopped, result.status) {
                    (Some(why), _) => Err(why),
                    (None, ThreadStatus::Completed | ThreadStatus::Empty) => Ok(result.payload),
                    (None, ThreadStatus::Cancelled) => {
                        Err(format!("{} was cancelled", result.thread))
                    }
                    (None, ThreadStatus::Failed) => Err(format!("{} failed", result.thread)),
                },
            ));
        }
        if entry.is::<ThreadSpawned>() || is_partial(entry) {
            return None;
        }
        let asked = self.calls.take_replied(entry)?;
        if let Some(why) = refused(entry).or_else(|| entry.element().ok().and_then(stopped)) {
            return Some((asked, Err(why)));
        }
        let has_failed = entry.flags().contains(Flags::ERROR);
        let error = || format!("{} answered an error: {}", entry.from(), told(entry));
        let value = || entry.element().ok().filter(|_| !entry.is::<Done>()).cloned();
        Some((asked, if has_failed { Err(error()) } else { Ok(value()) }))
    }

    /// Handles an agent's request before a turn: begins to refresh the agent's feeds.
    fn refresh(&mut self, entry: &Entry, effects: &mut Vec<Effect>) {
        let (agent, now) = (entry.from(), entry.at_us());
        let agent_feeds = self.agents.entry(agent.to_owned()).or_default();
        agent_feeds.is_at_work = true;
        let mut pending = BTreeSet::new();
        for definition in self.registry.of(agent).iter().map(|it| &it.definition) {
            let state = agent_feeds.feeds.entry(definition.id.clone()).or_default();
            if !definition.is_enabled() {
                continue;
            }
            let metadata = referenced(&self.metadata, agent, definition);
            if state.has_other(&metadata) || state.until.is_none() && state.is_old(definition, now)
            {
                state.begin(definition, metadata, now);
                if definition.internal().is_some() {
                    effects.push(Effect::Ask(FeedId {
                        agent: agent.to_owned(),
                        id: definition.id.clone(),
                    }));
                }
            }
            if state.is_awaited(definition) {
                pending.insert(definition.id.clone());
            }
        }
        agent_feeds.refresh = Some(PendingRefresh { asked: entry.clone(), pending });
        self.go_on(agent, effects);
    }

    fn had(&mut self, now: u64, asked: FeedId, answer: Option<Element>, effects: &mut Vec<Effect>) {
        let Some(state) = self.state(&asked) else { return };
        (state.until, state.failed_at, state.had_at) = (None, None, Some(now));
        let content = answer.as_ref().and_then(content);
        state.fresh_until =
            content.as_ref().map(|it| now.saturating_add(micros(it.fresh_for.max(0.0))));
        state.is_for_one_turn = content.as_ref().is_some_and(|it| it.is_for_one_turn == Some(true));
        state.value.clone_from(&answer);
        let agent = asked.agent.clone();
        effects.push(Effect::Take(asked, answer));
        self.go_on(&agent, effects);
    }

    fn lost(&mut self, now: u64, asked: FeedId, why: String, effects: &mut Vec<Effect>) {
        let agent = asked.agent.clone();
        self.give_up(now, asked, why, effects);
        self.go_on(&agent, effects);
    }

    fn give_up(&mut self, now: u64, asked: FeedId, why: String, effects: &mut Vec<Effect>) {
        let Some(state) = self.state(&asked).filter(|it| it.until.is_some()) else { return };
        (state.until, state.is_held, state.failed_at) = (None, false, Some(now));
        let had_at = state.had_at.filter(|_| !state.is_for_one_turn);
        state.value = state.value.take().filter(|_| had_at.is_some());
        effects.push(Effect::Lost(asked, why, had_at));
    }

    /// The state of a feed, if the feed still exists.
    fn state(&mut self, of: &FeedId) -> Option<&mut FeedState> {
        self.registry.get(&of.agent, &of.id)?;
        self.agents.get_mut(&of.agent)?.feeds.get_mut(&of.id)
    }

    /// Asks the sources of held feeds whose parameters refer to no awaited feed. Answers the
    /// agent's `refresh-feeds` once the turn waits for no feed.
    fn go_on(&mut self, agent: &str, effects: &mut Vec<Effect>) {
        let Some(agent_feeds) = self.agents.get_mut(agent) else { return };
        let awaited: BTreeSet<String> = agent_feeds.awaited().map(str::to_owned).collect();
        for definition in self.registry.of(agent).iter().map(|it| &it.definition) {
            let is_free = refers_to(definition)
                .iter()
                .all(|of| *of == definition.id || !awaited.contains(*of));
            if let Some(state) =
                agent_feeds.feeds.get_mut(&definition.id).filter(|it| it.is_held && is_free)
            {
                state.is_held = false;
                state.metadata = referenced(&self.metadata, agent, definition);
                effects.push(Effect::Ask(FeedId {
                    agent: agent.to_owned(),
                    id: definition.id.clone(),
                }));
            }
        }
        let Some(refresh) = &mut agent_feeds.refresh else { return };
        refresh.pending.retain(|it| awaited.contains(it));
        if refresh.pending.is_empty() {
            effects.extend(agent_feeds.refresh.take().map(|it| Effect::Ready(it.asked)));
        }
    }

    /// Handles a wake-up: gives up on sources that took too long, and begins periodic refreshes.
    fn due(&mut self, now: u64, effects: &mut Vec<Effect>) {
        let agents: Vec<String> = self.agents.keys().cloned().collect();
        for agent in agents {
            let is_at_work = self.agents.get(&agent).is_some_and(|it| it.is_at_work);
            for Registered { definition: it, .. } in self.registry.of(&agent).to_vec() {
                let asked = FeedId { agent: agent.clone(), id: it.id.clone() };
                let referenced = referenced(&self.metadata, &agent, &it);
                let Some(state) = self.state(&asked) else { continue };
                if state.until.is_some_and(|until| until <= now) {
                    let why = match state.is_held {
                        true => format!("it waits for {}", refers_to(&it).join(", ")),
                        false => format!("no answer came in {} s", it.timeout_us() as f64 / 1e6),
                    };
                    self.give_up(now, asked, why, effects);
                } else if is_at_work && state.next(&it).is_some_and(|next| next <= now) {
                    state.begin(&it, referenced, now);
                    if it.internal().is_some() {
                        effects.push(Effect::Ask(asked));
                    }
                }
            }
            self.go_on(&agent, effects);
        }
    }

    /// Requests the next wake-up times: one for feeds that a turn waits for, and one for all other
    /// feeds.
    fn arm(&mut self, effects: &mut Vec<Effect>) {
        let (mut awaited, mut others) = (Vec::new(), Vec::new());
        for (agent, agent_feeds) in &self.agents {
            for definition in self.registry.of(agent).iter().map(|it| &it.definition) {
                let Some(state) = agent_feeds.feeds.get(&definition.id) else { continue };
                let is_pending = agent_feeds
                    .refresh
                    .as_ref()
                    .is_some_and(|of| of.pending.contains(&definition.id));
                match state.until {
                    Some(until) if is_pending => awaited.push(until),
                    Some(until) => others.push(until),
                    None => {
                        others.extend(state.next(definition).filter(|_| agent_feeds.is_at_work));
                    }
                }
            }
        }
        for (is_awaited, times) in [(true, awaited), (false, others)] {
            let Some(at) = times.into_iter().min() else { continue };
            let mut armed = self.armed.iter().filter(|it| it.0 == is_awaited);
            if armed.next().is_none_or(|it| at < it.1) {
                self.armed.insert((is_awaited, at));
                effects.push(Effect::Wake(FeedsDue { at, is_awaited }));
            }
        }
    }
}

/// Whether the entry `came` causes the early delivery of a waiting `feeds-due` message. Such an
/// entry is a `feeds-refreshed` in the same thread. Only messages with `is_awaited` are delivered
/// early.
pub(super) fn wakes(waiting: &Entry, came: &Entry) -> bool {
    came.is::<FeedsRefreshed>()
        && came.from() == NAME
        && came.thread() == waiting.thread()
        && waiting.decode_if::<FeedsDue>().is_some_and(|it| it.is_awaited)
}

impl Apply for Refreshes {
    fn apply(&mut self, entry: &Entry) {
        if self.thread.enter(entry) {
            self.forked();
        }
        self.registry.apply(entry);
        self.metadata.apply(entry);
        self.observe(entry);
        let is_handled = entry.to() == Some(NAME) && entry.receivers() > 0 && !entry.is_refused();
        let effects = if is_handled { self.input(entry) } else { Vec::new() };
        self.latest.set(entry, effects);
    }
}

impl AgentFeeds {
    /// The feeds that await answers of their sources.
    fn awaited(&self) -> impl Iterator<Item = &str> {
        self.feeds.iter().filter(|(_, it)| it.until.is_some()).map(|(id, _)| &**id)
    }
}

impl FeedState {
    /// Whether the content is too old, and the last failure is long enough ago to ask the source
    /// again.
    fn is_old(&self, definition: &Definition, now: u64) -> bool {
        let pause = u64::try_from(FeedLimits::default().pause.as_micros()).unwrap_or(u64::MAX);
        let within = |at: Option<u64>, span| at.is_some_and(|at| now < at.saturating_add(span));
        let is_fresh = match self.fresh_until.filter(|_| !definition.is_periodic()) {
            Some(until) => now < until,
            None => within(self.had_at, definition.ttl_us()),
        };
        !is_fresh && !within(self.failed_at, pause)
    }

    /// Whether the source was last asked with metadata that differ from these.
    fn has_other(&self, metadata: &Referenced) -> bool {
        self.metadata != *metadata
    }

    /// Whether a turn waits for the source's answer. No turn waits for a periodic feed that has
    /// content.
    fn is_awaited(&self, definition: &Definition) -> bool {
        self.until.is_some() && !(definition.is_periodic() && self.had_at.is_some())
    }

    /// Begins a refresh. An internal source answers at once; the request to any other source is
    /// held until [`Refreshes::go_on`] sends it.
    fn begin(&mut self, definition: &Definition, metadata: Referenced, now: u64) {
        if self.has_other(&metadata) {
            // The feed's content was made with other parameters, so it is dropped.
            (self.had_at, self.fresh_until, self.value) = (None, None, None);
        }
        self.metadata = metadata;
        if definition.internal().is_some() {
            self.had_at = Some(now);
        } else {
            self.until = Some(now.saturating_add(definition.timeout_us()));
            self.is_held = true;
        }
    }

    /// The time of the next periodic refresh, in microseconds since the epoch. None if the feed
    /// isn't periodic or enabled, waits for an answer, or was never refreshed.
    fn next(&self, definition: &Definition) -> Option<u64> {
        let last = self.had_at.max(self.failed_at).filter(|_| self.until.is_none())?;
        (definition.is_periodic() && definition.is_enabled())
            .then(|| last.saturating_add(definition.ttl_us()))
    }
}

/// The names that a feed's parameters refer to.
fn refers_to(definition: &Definition) -> Vec<&str> {
    let mut names = Vec::new();
    if let Some(params) = definition.source.as_ref().and_then(|it| it.params.as_ref()) {
        names_in(&params.0, &mut names);
    }
    names
}

/// The metadata fields to which a feed's parameters refer, with their values. Fields that the agent
/// hasn't set are left out.
fn referenced(metadata: &Metadatas, agent: &str, definition: &Definition) -> Referenced {
    let (mut references, params) = (Vec::new(), definition.source.as_ref());
    if let Some(params) = params.and_then(|it| it.params.as_ref()) {
        references_in(&params.0, &mut references);
    }
    let mut fields = references.iter().filter_map(Reference::metadata_field).peekable();
    if fields.peek().is_none() {
        return Referenced::new();
    }
    let fields: BTreeSet<&str> = fields.collect();
    let known = metadata.of(agent);
    let own = known.values().filter(|(name, _)| fields.contains(name));
    own.map(|(name, it)| (name.to_owned(), it.clone())).collect()
}

/// The key of a request: the entry that caused it, the agent, and the feed.
pub(super) fn key(message: &Entry, of: &FeedId) -> String {
    format!("{}/{}/{}/{}", message.thread(), message.seq(), of.agent, of.id)
}

fn named(key: &str) -> Option<FeedId> {
    let mut parts = key.rsplit('/');
    let (id, agent) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    parts.next()?.parse::<u64>().ok()?;
    Some(FeedId { agent, id })
}
