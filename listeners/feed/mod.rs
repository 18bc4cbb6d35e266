//! The listener `feed` keeps the feeds of agents up to date. A feed is content that an agent's
//! prompts show beside the thread's history, such as the time or the load of the machine.
//!
//! ```
//! # extern crate pumphouse_listeners as pumphouse;
//! use std::time::Duration;
//! use pumphouse::listeners::feed::{Definition, Feeds, Source};
//!
//! let clock = Source::internal("system_clock");
//! let load = Source::listener("system_monitor");
//! let feeds = Feeds::new([
//!     Definition::on_demand("current_datetime", clock),
//!     Definition::periodic("system_metrics", Duration::from_secs(30), load).max_tokens(500),
//! ])?;
//! # let _ = feeds;
//! # Ok::<(), pumphouse::listeners::feed::definition::WrongFeed>(())
//! ```
//!
//! Before a turn, an agent asks `feed` to refresh the feeds whose content is too old. `feed` asks
//! the sources of these feeds. It records changed content for the agent as `context_feed`. The
//! agent's prompts show the content at their end, or at the feed's `position`. `docs/feeds.md` is
//! the manual.

mod answers;
mod refresh;
mod metadata;
mod change;
mod list;

use super::feed_contents::pump_sources;
pub use super::feed_contents::{definition, injection, registry, shown, words};

use std::borrow::Cow;
use std::collections::BTreeMap;

use pumphouse::listener::{FromContext, IntoEmit, Record, TreeHistory};
use pumphouse::log::Flags;
use pumphouse::prelude::*;
use pumphouse::wire::Timestamp;
use pumphouse::xml::writable;
use serde_json::{Map, Value};

use self::definition::SourceKind;
pub use self::definition::{Definition, Feeds, Source};
pub use self::injection::Injection;
use self::pump_sources::{AgentStatus, Facts, Internal, OpenAction};
pub(super) use self::refresh::Refreshes;
use self::refresh::{Effect, FeedId, key};
pub use self::shown::{Feed, PromptFeeds, Shown};
pub use self::words::NAME;
use self::words::{
    ContextFeed, ContextFeedFetched, ContextFeedRefused, DeclareFeeds, FeedContent, FeedStatus,
    FeedUnasked, FeedsDue, FeedsRefreshed, FetchContextFeed, RefreshFeeds,
};
use super::action::value::{known, value};
use super::action::variables::{KnownValue, Lookup};
use super::action::{self, Actions, call};
use super::feed_values::{self, GetFeed};
use super::metadata::METADATA;
use super::mind::Minds;
use super::timer::Timers as Clocks;

/// Makes the listener `feed`.
#[must_use]
pub fn feed() -> Listener {
    Listener::new(NAME)
        .on(async |_: DeclareFeeds| {})
        .on_each::<(RefreshFeeds, FeedsDue, FeedUnasked), _>(handle)
        .on(async |handling: Handling, it: FetchContextFeed| handling.fetch(it).await)
        .on(list::feeds)
        .on(list::tools)
        .on_any_reply(handle)
        .on(change::add)
        .on(change::update)
        .on(change::remove)
        .fold::<Refreshes>()
        .fold::<Shown>()
        .fold::<Actions>()
        .fold::<Minds>()
        .fold::<Clocks>()
        .wakes(refresh::wakes)
        .serial()
        .reaction()
        .grant::<Timers>()
        .grant::<EmitCore>()
        .describe("Has agents' feeds had anew, and keeps which they have.")
}

/// Has feeds anew that are due, and takes the answers of their sources.
async fn handle(handling: Handling, _: Element) -> Result<Emissions, Fault> {
    handling.handle().await
}

/// A message to `feed`, and the contexts of the handler.
#[derive(FromContext)]
struct Handling {
    message: Message,
    history: History,
    tree: TreeHistory,
    refreshes: Fold<Refreshes>,
    shown: Fold<Shown>,
    actions: Fold<Actions>,
    minds: Fold<Minds>,
    clocks: Fold<Clocks>,
    capabilities: Capabilities,
    clock: Clock,
    random: Random,
    record: Record,
}

/// The contents that a handler computes from internal sources or by transforms. The log doesn't
/// have these contents yet. None if the feed becomes unavailable.
type FreshContents = BTreeMap<FeedId, Option<KnownValue>>;

/// The emissions of a handler of `feed`. They are sent in the order of these fields.
#[derive(Default, IntoEmit)]
struct Emissions {
    contents: Vec<Note<To<ContextFeed, String>>>,
    questions: Vec<Request<To<Element, String>>>,
    /// The feeds whose sources can't be asked. Each message goes to `feed` itself, which then
    /// counts the feed as failed.
    unasked: Vec<Again<FeedUnasked>>,
    /// Answers to `fetch_context_feed`.
    fetched: Vec<Result<Reply<ContextFeedFetched>, Reply<ContextFeedRefused>>>,
    /// Answers to agents whose turns no longer wait for a feed.
    refreshed: Vec<Reply<FeedsRefreshed>>,
    timers: Vec<Later<FeedsDue>>,
}

impl Handling {
    async fn handle(mut self) -> Result<Emissions, Fault> {
        let mut emissions = Emissions::default();
        let mut fresh = FreshContents::new();
        for effect in &*self.refreshes.of(self.message.seq()) {
            match effect {
                Effect::Ask(of) => self.ask(of, &mut fresh, &mut emissions).await?,
                Effect::Take(of, answer) => {
                    self.take(of, answer.as_ref(), &mut fresh, &mut emissions);
                }
                Effect::Fetched(asked, of, answer) => match answer {
                    Ok(answer) => {
                        let content = self.transformed(of, self.content(answer.as_ref()));
                        let feed = content.map(|it| self.feed(of, &it));
                        let gone = || "the feed was removed meanwhile".to_owned();
                        let feed = feed.and_then(|it| it.ok_or_else(gone));
                        let answer = feed.map(|it| fetched(asked, it));
                        emissions.fetched.push(answer.map_err(|why| refused(asked, &why)));
                    }
                    Err(why) => emissions.fetched.push(Err(refused(asked, why))),
                },
                Effect::Lost(of, why, had_at) => match self.recorded(of) {
                    Some(then) => emissions.contents.push(Note(To(of.agent.clone(), then))),
                    None => self.lose(of, why, *had_at, &mut fresh, &mut emissions),
                },
                Effect::Ready(asked) => {
                    if let Ok(RefreshFeeds { turn }) = asked.decode() {
                        let refreshed = FeedsRefreshed { turn };
                        emissions.refreshed.push(Reply(asked.clone(), refreshed));
                    }
                }
                Effect::Wake(due) => {
                    let later = Later::at(due.at, due.clone());
                    emissions.timers.push(if due.is_awaited { later } else { later.unawaited() });
                }
            }
        }
        Ok(emissions)
    }

    fn definition(&self, of: &FeedId) -> Option<&Definition> {
        self.refreshes.registry().get(&of.agent, &of.id).map(|it| &it.definition)
    }

    fn source(&self, of: &FeedId) -> Option<&Source> {
        self.definition(of)?.source.as_ref()
    }

    /// Asks a feed's source. An internal source answers at once, and its answer is recorded.
    async fn ask(
        &mut self,
        of: &FeedId,
        fresh: &mut FreshContents,
        emissions: &mut Emissions,
    ) -> Result<(), Fault> {
        let Some(internal) = self.definition(of).map(Definition::internal) else { return Ok(()) };
        let Some(internal) = internal else {
            match self.question(of, fresh) {
                Ok((listener, payload)) => {
                    let key = key(&self.message, of);
                    emissions.questions.push(Request::new(To(listener, payload)).key(key));
                }
                Err(why) => {
                    let FeedId { agent, id } = of.clone();
                    emissions.unasked.push(Again(FeedUnasked { agent, id, why: writable(&why) }));
                }
            }
            return Ok(());
        };
        let text = self.internal(of, internal).await?;
        match text.and_then(|it| self.transformed(of, Content::text(it))) {
            Ok(content) => {
                fresh.insert(of.clone(), Some(call::content(&content.text)));
                self.record(of, &content, emissions);
            }
            Err(why) => self.lose(of, &why, None, fresh, emissions),
        }
        Ok(())
    }

    /// Handles a `fetch_context_feed`: asks the feed's source. If the source is internal or can't
    /// be asked, `feed` answers at once.
    async fn fetch(
        mut self,
        FetchContextFeed { id, agent }: FetchContextFeed,
    ) -> Result<Emissions, Fault> {
        let mut emissions = Emissions::default();
        let agent = self.agent_of_fetch(agent).await?;
        let registry = self.refreshes.registry();
        let agent = agent.and_then(|agent| match registry.get(&agent, &id) {
            Some(_) => Ok(agent),
            None => Err(change::unknown(registry, &agent, &id)),
        });
        let of = match agent {
            Ok(agent) => FeedId { agent, id },
            Err(no) => {
                emissions.fetched.push(Err(Reply(self.message.0.clone(), no)));
                return Ok(emissions);
            }
        };
        let asked = self.message.0.clone();
        match self.definition(&of).and_then(Definition::internal) {
            Some(internal) => match self
                .internal(&of, internal)
                .await?
                .and_then(|it| self.transformed(&of, Content::text(it)))
            {
                Ok(content) => {
                    self.record(&of, &content, &mut emissions);
                    let feed = self.feed(&of, &content);
                    emissions.fetched.extend(feed.map(|it| Ok(fetched(&asked, it))));
                }
                Err(why) => emissions.fetched.push(Err(refused(&asked, &why))),
            },
            None => match self.question(&of, &FreshContents::new()) {
                Ok((listener, payload)) => {
                    let key = key(&self.message, &of);
                    emissions.questions.push(Request::new(To(listener, payload)).key(key));
                }
                Err(why) => emissions.fetched.push(Err(refused(&asked, &why))),
            },
        }
        Ok(emissions)
    }

    /// The agent whose feed is fetched. An operator has to name it; an agent fetches only its own
    /// feeds. The inner error refuses any other message.
    async fn agent_of_fetch(
        &self,
        named: Option<String>,
    ) -> Result<Result<String, ContextFeedRefused>, Fault> {
        if self.message.flags().contains(Flags::FROM_OPERATOR) {
            let who = self.message.from();
            let advice = "name the agent, as in agent=\"octopus\"";
            let message = format!("{who} is no agent, and has no feeds; {advice}");
            return Ok(named.ok_or(ContextFeedRefused { message }));
        }
        let calling = change::whose(&self.message, &self.history, &self.capabilities).await?;
        Ok(calling.and_then(|calling| match named {
            Some(other) if other != calling => {
                let message = format!("{other} is another agent: only operators fetch its feeds");
                Err(ContextFeedRefused { message })
            }
            _ => Ok(calling),
        }))
    }

    /// The answer of an internal source, or the reason why it has none.
    async fn internal(
        &mut self,
        of: &FeedId,
        internal: Result<Internal, String>,
    ) -> Result<Result<String, String>, Fault> {
        let first = self.history.read(0, 1).await?;
        let status = match internal {
            Ok(Internal::Debug) => self.status(&of.agent),
            _ => AgentStatus::default(),
        };
        let source = self.source(of).filter(|it| it.kind == SourceKind::Metadata);
        let metadata = match source {
            Some(source) => match self.other_metadata(source).await? {
                Ok(it) => it,
                Err(why) => return Ok(Err(why)),
            },
            None => Map::new(),
        };
        let facts = Facts {
            metadata,
            status,
            now_us: self.clock.now_us(),
            chance: self.random.next_u64(),
            opened_us: first.first().map_or(0, Entry::at_us),
            entries: self.message.seq(),
            turns: self.minds.of(&of.agent).turns,
        };
        let text = internal.and_then(|it| it.answer(&facts));
        Ok(text.map(|it| writable(&it)))
    }

    /// The status of an agent, for the source `debug_context`.
    fn status(&self, agent: &str) -> AgentStatus {
        let open = self.actions.graph().open(agent);
        let open = open.map(|(action, state)| OpenAction {
            id: action.id.clone(),
            name: action.name.clone(),
            turn: action.turn,
            state,
        });
        AgentStatus {
            thread: self.message.thread().to_string(),
            agent: agent.to_owned(),
            threads: self.minds.of(agent).threads(),
            actions: open.collect(),
            timers: self.clocks.all().collect(),
        }
    }

    /// The listener that is a feed's source, and the payload to send to it. An error says why the
    /// source can't be asked.
    fn question(&self, of: &FeedId, fresh: &FreshContents) -> Result<(String, Element), String> {
        let registered = self.refreshes.registry().get(&of.agent, &of.id);
        let (Some(registered), Some(source)) = (registered, self.source(of)) else {
            return Err("it has no source".to_owned());
        };
        if source.kind == SourceKind::Set {
            let FeedId { agent, id } = of.clone();
            let payload = GetFeed { agent, id }.encode().map_err(|it| it.to_string())?;
            return Ok((feed_values::NAME.to_owned(), payload));
        }
        let name = source.name.as_deref().unwrap_or_default();
        let (all, agent) = (&self.capabilities, &*of.agent);
        let called = match registered.is_added {
            true => change::source(all, agent, source),
            false => {
                call::find(all, name, &source.given(), |it| !OWN.contains(&&*it.listener.name))
            }
        };
        let called = called.map_err(|it| it.message)?;
        let params = self.params(of, &called, source, fresh)?;
        let payload = call::from_json(called.schema, &params)?;
        Ok((called.listener.name.clone(), payload))
    }

    /// The value to which a name in a feed's parameters refers: the result of an action, the
    /// agent's metadata, or the content of another feed.
    fn value<'a>(&'a self, agent: &str, name: &str, fresh: &'a FreshContents) -> Lookup<'a> {
        let all = &self.capabilities;
        if let Some(value) = self.actions.graph().value(agent, name) {
            return call::lookup(all, &value);
        }
        if let Some(value) = self.own_metadata(agent).filter(|_| name == METADATA) {
            return Lookup::Value(Cow::Owned(value));
        }
        let feed = FeedId { agent: agent.to_owned(), id: name.to_owned() };
        let held = || self.shown.get(agent, name).filter(|it| it.is_had());
        if let Some(value) = fresh.get(&feed) {
            value.as_ref().map_or(Lookup::Unavailable, |it| Lookup::Value(Cow::Borrowed(it)))
        } else if let Some(value) = self.refreshes.value(agent, name)
            && !self.has_transform(agent, name)
        {
            Lookup::Value(Cow::Owned(with_json(known(all, value))))
        } else if let Some(value) = held() {
            Lookup::Value(Cow::Owned(call::content(&value.text)))
        } else if self.refreshes.registry().get(agent, name).is_some() {
            Lookup::Unavailable
        } else {
            Lookup::Unknown
        }
    }

    /// Records the answer of a feed's source.
    fn take(
        &self,
        of: &FeedId,
        answer: Option<&Element>,
        fresh: &mut FreshContents,
        emissions: &mut Emissions,
    ) {
        match self.transformed(of, self.content(answer)) {
            Ok(content) => {
                if self.has_transform(&of.agent, &of.id) {
                    fresh.insert(of.clone(), Some(call::content(&content.text)));
                }
                self.record(of, &content, emissions);
            }
            Err(why) => self.lose(of, &why, None, fresh, emissions),
        }
    }

    fn has_transform(&self, agent: &str, id: &str) -> bool {
        let registered = self.refreshes.registry().get(agent, id);
        registered.is_some_and(|it| it.definition.transform.is_some())
    }

    /// Applies the feed's transform, if it has one, to the content of an answer. An error says why
    /// the transform can't be applied.
    fn transformed(&self, of: &FeedId, content: Content) -> Result<Content, String> {
        match self.definition(of).and_then(|it| it.transform.as_ref()) {
            Some(transform) => {
                let text = transform.apply(&content.text)?;
                Ok(Content { text: writable(&text), ..content })
            }
            None => Ok(content),
        }
    }

    /// Converts a source's answer to the content of a feed.
    fn content(&self, answer: Option<&Element>) -> Content {
        if let Some(FeedContent { text, as_of, is_stale, .. }) = answer.and_then(answers::content) {
            return Content { text, as_of, is_stale: is_stale == Some(true) };
        }
        let text = match answer.map(|it| value(&self.capabilities, it)) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            Some(value) => format!("{value:#}"),
        };
        Content::text(text)
    }

    /// A feed with new content, which is cut to the size that the feed may have. None if the feed
    /// doesn't exist any more.
    fn feed(&self, of: &FeedId, content: &Content) -> Option<Feed> {
        let definition = self.definition(of)?;
        let injection = self.refreshes.registry().injection(&of.agent);
        let (text, is_cut) = fitted(&content.text, definition, injection.feed_bytes());
        let status = match (content.is_stale, is_cut) {
            (true, _) => FeedStatus::Stale,
            (false, true) => FeedStatus::Truncated,
            (false, false) => FeedStatus::Fresh,
        };
        let is_told = content.is_stale || injection.shows_times();
        let feed = Feed {
            status,
            position: definition.position.unwrap_or_default(),
            as_of: content.as_of.filter(|_| is_told),
            ..Feed::fresh(&of.id, text)
        };
        Some(feed.with_source(source_name(definition)))
    }

    /// Records a feed if it has changed. An unchanged feed is recorded only if prompts show the
    /// time of its refresh.
    fn record(&self, of: &FeedId, content: &Content, emissions: &mut Emissions) {
        let Some(feed) = self.feed(of, content) else { return };
        let injection = self.refreshes.registry().injection(&of.agent);
        let is_shown = self.definition(of).is_some_and(Definition::is_shown);
        let shows_time = is_shown && injection.shows_times();
        let before = self.shown.get(&of.agent, &of.id);
        let is_recorded = before.is_some_and(|it| it.shows_the_same(&feed, &injection));
        if shows_time || !is_recorded {
            let (whole, kept) = (content.text.len(), feed.text.len());
            let cut = || format!("of {whole} bytes, the first {kept} are kept");
            let why = match self.recorded(of) {
                Some(then) => then.why,
                None => (feed.status == FeedStatus::Truncated).then(cut),
            };
            note(of, feed, why.as_deref(), emissions);
        }
    }

    /// The content that the handler recorded for this feed in the original run. None outside a
    /// replay.
    fn recorded(&self, of: &FeedId) -> Option<ContextFeed> {
        let all = self.record.0.iter().flatten().filter(|it| it.to() == Some(&of.agent));
        let all = all.filter_map(Entry::decode_if::<ContextFeed>);
        let is_had = |it: &FeedStatus| matches!(it, FeedStatus::Fresh | FeedStatus::Truncated);
        all.filter(|it| is_had(&it.status)).find(|it| it.id == of.id)
    }

    /// Records that a feed's source has failed, unless the same status is recorded already.
    /// `had_at` is the time of the source's last good answer. If it is given and the feed has
    /// content, the feed becomes stale. Otherwise the feed becomes unavailable.
    fn lose(
        &self,
        of: &FeedId,
        why: &str,
        had_at: Option<u64>,
        fresh: &mut FreshContents,
        emissions: &mut Emissions,
    ) {
        let before = self.shown.get(&of.agent, &of.id);
        let had_at = had_at.filter(|_| before.is_some_and(|it| !it.text.is_empty()));
        let status = if had_at.is_some() { FeedStatus::Stale } else { FeedStatus::Unavailable };
        if status == FeedStatus::Unavailable {
            fresh.insert(of.clone(), None);
        }
        if before.is_some_and(|it| it.status == status) {
            return;
        }
        let definition = self.definition(of);
        let position = definition.and_then(|it| it.position).unwrap_or_default();
        let as_of = had_at.map(pump_sources::stamp);
        let feed = Feed { status, position, as_of, ..Feed::fresh(&of.id, "") };
        let source = definition.map(source_name).unwrap_or_default();
        note(of, feed.with_source(source), Some(why), emissions);
    }
}

/// The content that a source answered.
struct Content {
    text: String,
    /// When the content was up to date, if the source says when.
    as_of: Option<Timestamp>,
    is_stale: bool,
}

impl Content {
    fn text(text: String) -> Content {
        Content { text, as_of: None, is_stale: false }
    }
}

fn note(of: &FeedId, feed: Feed, why: Option<&str>, emissions: &mut Emissions) {
    let context_feed = ContextFeed { why: why.map(writable), ..feed.recorded() };
    emissions.contents.push(Note(To(of.agent.clone(), context_feed)));
}

/// The answer to a `fetch_context_feed`.
fn fetched(asked: &Entry, feed: Feed) -> Reply<ContextFeedFetched> {
    let Feed { id, status, text, .. } = feed;
    Reply(asked.clone(), ContextFeedFetched { id, status, text })
}

fn refused(asked: &Entry, why: &str) -> Reply<ContextFeedRefused> {
    Reply(asked.clone(), ContextFeedRefused { message: writable(why) })
}

/// The name of a feed's source: a listener, a part of the pump, or the agent whose metadata the
/// feed shows.
fn source_name(definition: &Definition) -> &str {
    let source = definition.source.as_ref();
    source.map_or("", |it| match it.kind {
        SourceKind::Set => feed_values::NAME,
        _ => it.asked().unwrap_or_default(),
    })
}

/// Listeners that can't be the source of a feed.
const OWN: [&str; 2] = [NAME, action::NAME];

/// Cuts a text to the size that a feed may have. Returns whether something was cut off.
fn fitted<'a>(text: &'a str, definition: &Definition, bytes_max: usize) -> (&'a str, bool) {
    let characters = definition.max_tokens.map_or(u64::MAX, |it| it.saturating_mul(4));
    let characters = usize::try_from(characters).unwrap_or(usize::MAX);
    let max = text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    let end = text.floor_char_boundary(max.min(bytes_max));
    (&text[..end], end < text.len())
}

/// A value of a source. If it is a text that holds JSON, paths lead into this JSON, too. Fields of
/// the source's payload come first.
fn with_json(known: KnownValue) -> KnownValue {
    let Value::String(text) = &known.value else { return known };
    let read = call::content(text);
    let json = read.fields.or(Some(read.value).filter(|it| !it.is_string()));
    match (json, known.fields) {
        (Some(Value::Object(mut all)), Some(Value::Object(own))) => {
            all.extend(own);
            KnownValue { fields: Some(Value::Object(all)), ..known }
        }
        (json @ Some(_), None) => KnownValue { fields: json, ..known },
        (_, fields) => KnownValue { fields, ..known },
    }
}
