//! Definitions of feeds: the source, how often a feed is refreshed, and how long its content may
//! be. [`Feeds`] are the settings of an agent's feeds.

use std::fmt;
use std::time::Duration;

use pumphouse::limits::FeedLimits;
use pumphouse::prelude::*;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};

use super::injection::Injection;
use super::pump_sources::Internal;
pub use super::source::{Source, SourceKind};
pub use super::transform::Transform;

/// The id of the part of a prompt that says how to write a reply.
pub const PROTOCOL: &str = "protocol";
/// The id of the part that describes the payloads of the agent's peers.
pub const PEERS: &str = "peers";
/// The id of the part that shows the agent's metadata.
pub const METADATA: &str = "metadata";
/// The id of the part that shows the open checklists.
pub const TODOS: &str = "todos";
/// The id of the part that shows budgets that are nearly spent.
pub const BUDGET: &str = "budget";

/// A feed's place in a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// At the end, after the history, so that all before it can be cached.
    #[default]
    Late,
    /// Before the system text.
    #[payload(rename = "system_prepend")]
    SystemPrepend,
    /// After the system text.
    #[payload(rename = "system_append")]
    SystemAppend,
}

impl Position {
    /// All positions, in the order in which a prompt has them.
    pub(super) const ALL: [Position; 3] =
        [Position::SystemPrepend, Position::SystemAppend, Position::Late];
}

/// Whether prompts show a feed's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Inject {
    /// Each prompt shows it.
    #[default]
    Always,
    /// No prompt shows it. It is refreshed, and `$id` refers to it.
    Referenced,
}

/// Adds a feed to the calling agent's prompts, from its next turn on. The answer is
/// `context_feed_added`.
#[derive(Clone, Debug, PartialEq, Payload, Deserialize)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "add_context_feed")]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Definition {
    /// The feed's name: `$id` refers to its content.
    #[payload(attribute, example = "recent_errors")]
    pub id: String,
    /// When it is refreshed; by default before each turn.
    #[payload(attribute, rename = "type")]
    #[serde(default, rename = "type")]
    pub kind: Option<FeedKind>,
    /// Seconds between refreshes; for `periodic` only, at least 1.
    #[payload(attribute, no_example)]
    #[serde(default)]
    pub interval: Option<f64>,
    /// Whether it is refreshed and shown; default true.
    #[payload(attribute)]
    #[serde(default, deserialize_with = "truth")]
    pub enabled: Option<bool>,
    /// Seconds for which its content stays fresh; default 0.
    #[payload(attribute, no_example)]
    #[serde(default)]
    pub cache_ttl: Option<f64>,
    /// How many tokens of it are shown, at four characters each.
    #[payload(attribute, example = "1000")]
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// Seconds that a turn waits for it; default 10, at most 600.
    #[payload(attribute, no_example)]
    #[serde(default)]
    pub timeout: Option<f64>,
    /// Its place in a prompt; by default at the end.
    #[payload(attribute)]
    #[serde(default)]
    pub position: Option<Position>,
    /// Whether prompts show it; default `always`.
    #[payload(attribute, no_example)]
    #[serde(default)]
    pub inject: Option<Inject>,
    /// What it shows of its source's answer; by default all.
    #[payload(no_example)]
    #[serde(default)]
    pub transform: Option<Transform>,
    /// For the source type `set`: who may set its content with `set-feed`, besides operators.
    #[payload(no_example)]
    #[serde(default)]
    pub set_by: Option<Setters>,
    /// Its source; required.
    #[serde(default)]
    pub source: Option<Source>,
}

/// When a feed is refreshed, and from which type of source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload, Deserialize)]
#[serde(rename_all = "snake_case")]
// The enum is exhaustive, since code that handles feeds must know each kind.
pub enum FeedKind {
    /// Before each turn.
    #[default]
    #[payload(rename = "on_demand")]
    OnDemand,
    /// Every `interval` seconds while the agent is at work.
    Periodic,
    /// Before each turn, from the pump itself.
    Internal,
    /// Before each turn, from a `relic`.
    Relic,
    /// Before each turn, from a `tool`.
    Tool,
    /// Before each turn, from a `workflow`.
    Workflow,
    /// Before each turn, from an `llm`.
    Llm,
}

/// The senders that may set a feed, besides operators. A manifest writes them as a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload, Deserialize)]
#[serde(from = "Vec<String>")]
pub struct Setters {
    /// Identities and listeners.
    #[payload(example = "ops")]
    pub sender: Vec<String>,
}

impl From<Vec<String>> for Setters {
    fn from(sender: Vec<String>) -> Setters {
        Setters { sender }
    }
}

impl Definition {
    /// A feed that is refreshed before each turn.
    #[must_use]
    pub fn on_demand(id: impl Into<String>, source: Source) -> Definition {
        Definition {
            id: id.into(),
            kind: Some(FeedKind::OnDemand),
            interval: None,
            enabled: None,
            cache_ttl: None,
            max_tokens: None,
            timeout: None,
            position: None,
            inject: None,
            transform: None,
            set_by: None,
            source: Some(source),
        }
    }

    /// A feed that is refreshed at intervals while its agent has work.
    #[must_use]
    pub fn periodic(id: impl Into<String>, every: Duration, source: Source) -> Definition {
        let interval = Some(every.as_secs_f64());
        let kind = Some(FeedKind::Periodic);
        Definition { kind, interval, ..Definition::on_demand(id, source) }
    }

    /// A feed whose content is set with `set-feed`, by operators or by these senders.
    #[must_use]
    pub fn set_by<S: Into<String>>(
        id: impl Into<String>,
        senders: impl IntoIterator<Item = S>,
    ) -> Definition {
        let sender = senders.into_iter().map(Into::into).collect();
        Definition { set_by: Some(Setters { sender }), ..Definition::on_demand(id, Source::set()) }
    }

    /// Sets for how long the content stays fresh. In this time, the source isn't asked again. If
    /// the source's answer says how long it is fresh, the answer's time counts instead.
    #[must_use]
    pub fn cache_ttl(self, ttl: Duration) -> Definition {
        Definition { cache_ttl: Some(ttl.as_secs_f64()), ..self }
    }

    /// Sets how many tokens of the content are shown, at four characters each.
    #[must_use]
    pub fn max_tokens(self, tokens: u64) -> Definition {
        Definition { max_tokens: Some(tokens), ..self }
    }

    /// Sets how long a turn waits for the source.
    #[must_use]
    pub fn timeout(self, limit: Duration) -> Definition {
        Definition { timeout: Some(limit.as_secs_f64()), ..self }
    }

    /// Sets the feed's place in a prompt.
    #[must_use]
    pub fn position(self, position: Position) -> Definition {
        Definition { position: Some(position), ..self }
    }

    /// Sets what the feed shows of its source's answer.
    #[must_use]
    pub fn transform(self, transform: Transform) -> Definition {
        Definition { transform: Some(transform), ..self }
    }

    /// Turns the feed off: it is neither refreshed nor shown.
    #[must_use]
    pub fn disabled(self) -> Definition {
        Definition { enabled: Some(false), ..self }
    }

    /// Whether the feed is refreshed and shown.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.enabled != Some(false)
    }

    /// Keeps the content out of prompts. `$id` still refers to it.
    #[must_use]
    pub fn referenced(self) -> Definition {
        Definition { inject: Some(Inject::Referenced), ..self }
    }

    /// Whether prompts show the feed's content.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.is_enabled() && self.inject != Some(Inject::Referenced)
    }

    /// Whether the feed is refreshed at intervals.
    #[must_use]
    pub fn is_periodic(&self) -> bool {
        self.kind == Some(FeedKind::Periodic)
    }

    /// The definition after an update. Fields that `by` doesn't set stay as they are. `id` and
    /// `set_by` never change.
    #[must_use]
    pub fn updated(&self, by: Definition) -> Definition {
        Definition {
            id: self.id.clone(),
            kind: by.kind.or(self.kind),
            interval: by.interval.or(self.interval),
            enabled: by.enabled.or(self.enabled),
            cache_ttl: by.cache_ttl.or(self.cache_ttl),
            max_tokens: by.max_tokens.or(self.max_tokens),
            timeout: by.timeout.or(self.timeout),
            position: by.position.or(self.position),
            inject: by.inject.or(self.inject),
            transform: by.transform.or_else(|| self.transform.clone()),
            set_by: self.set_by.clone(),
            source: by.source.or_else(|| self.source.clone()),
        }
    }

    /// For how long the content stays fresh, in microseconds. For a periodic feed, this is the
    /// interval.
    pub(in super::super) fn ttl_us(&self) -> u64 {
        let seconds = if self.is_periodic() { self.interval } else { self.cache_ttl };
        micros(seconds.unwrap_or(0.0))
    }

    /// How long a turn waits for the source, in microseconds.
    pub(in super::super) fn timeout_us(&self) -> u64 {
        micros(self.timeout.unwrap_or_else(|| FeedLimits::default().timeout.as_secs_f64()))
    }

    /// The internal source of the feed. None if the feed has another source. The inner error says
    /// what is wrong with the source's name or parameters.
    pub(in super::super) fn internal(&self) -> Option<Result<Internal, String>> {
        let source = self.source.as_ref()?;
        match source.kind {
            SourceKind::Internal => {
                let action = source.action.as_deref().unwrap_or_default();
                Some(Internal::read(action, source.params.as_ref().map(|it| &it.0)))
            }
            SourceKind::Metadata => Some(Ok(Internal::Metadata)),
            _ => None,
        }
    }

    /// Checks the definition. Whether its source exists isn't checked.
    ///
    /// # Errors
    /// Fails if the definition is wrong. The text says what is wrong, and what would be right.
    pub fn check(&self) -> Result<(), String> {
        self.named()?;
        let Some(source) = &self.source else {
            return Err(format!("{}: a feed needs a source", self.id));
        };
        source.check().and_then(|()| self.sound(source)).map_err(|it| format!("{}: {it}", self.id))
    }

    fn named(&self) -> Result<(), String> {
        let word = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
        let begins = self.id.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
        match begins && self.id.chars().all(word) {
            true => Ok(()),
            false => {
                let text = "it has letters, digits, _ and -, and begins with a letter or _";
                Err(format!("{:?} is no id of a feed: {text}", self.id))
            }
        }
    }

    fn sound(&self, source: &Source) -> Result<(), String> {
        let limits = FeedLimits::default();
        let least = limits.interval_min.as_secs_f64();
        match (self.is_periodic(), self.interval) {
            (true, None) => return Err("a periodic feed needs an interval".to_owned()),
            (true, Some(seconds)) if seconds < least || !seconds.is_finite() => {
                return Err(format!("an interval has at least {least} s, not {seconds}"));
            }
            (false, Some(_)) => {
                return Err("an interval is for a feed of the type periodic".to_owned());
            }
            _ => {}
        }
        let most = limits.timeout_max.as_secs_f64();
        if let Some(seconds) = self.timeout.filter(|it| !(*it > 0.0 && *it <= most)) {
            return Err(format!("a timeout is more than 0 s, up to {most}, not {seconds}"));
        }
        if let Some(seconds) = self.cache_ttl.filter(|it| !(*it >= 0.0 && it.is_finite())) {
            return Err(format!("cache_ttl is in seconds, from 0 on, not {seconds}"));
        }
        if self.max_tokens == Some(0) {
            return Err("max_tokens is at least 1; `enabled: false` shows nothing".to_owned());
        }
        if let Some(transform) = &self.transform {
            transform.check()?;
        }
        if self.set_by.is_some() && source.kind != SourceKind::Set {
            return Err("set_by is for a source of the type set".to_owned());
        }
        match self.kind.and_then(FeedKind::source) {
            Some(kind) if kind != source.kind => Err(format!(
                "its type is {}, and its source's {}",
                kind.as_str(),
                source.kind.as_str()
            )),
            _ => Ok(()),
        }
    }
}

impl FeedKind {
    /// The kind of source that this kind of feed must have, if only one is possible.
    fn source(self) -> Option<SourceKind> {
        match self {
            FeedKind::OnDemand | FeedKind::Periodic => None,
            FeedKind::Internal => Some(SourceKind::Internal),
            FeedKind::Relic => Some(SourceKind::Relic),
            FeedKind::Tool => Some(SourceKind::Tool),
            FeedKind::Workflow => Some(SourceKind::Workflow),
            FeedKind::Llm => Some(SourceKind::Llm),
        }
    }
}

/// The checked feeds of an agent, and the parts of its prompt that are turned off.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Feeds {
    declared: Vec<Definition>,
    without: Vec<String>,
    injection: Injection,
}

/// The reason why feeds can't be declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongFeed(String);

impl fmt::Display for WrongFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongFeed {}

/// The ids of the parts of a prompt that the pump itself makes.
pub const BUILT_IN: [&str; 5] = [PROTOCOL, PEERS, METADATA, TODOS, BUDGET];

impl Feeds {
    /// Checks feeds and collects them.
    ///
    /// # Errors
    /// Fails if a definition is wrong, if two feeds have the same id, or if there are more than
    /// `feeds_max` feeds.
    pub fn new(all: impl IntoIterator<Item = Definition>) -> Result<Feeds, WrongFeed> {
        let mut feeds = Feeds::default();
        for definition in all {
            feeds.add(definition).map_err(WrongFeed)?;
        }
        Ok(feeds)
    }

    /// Adds a feed.
    ///
    /// # Errors
    /// As in [`Feeds::new`].
    pub fn with(mut self, definition: Definition) -> Result<Feeds, WrongFeed> {
        self.add(definition).map_err(WrongFeed)?;
        Ok(self)
    }

    /// Leaves out a part of the prompt that the pump makes: one of [`BUILT_IN`].
    #[must_use]
    pub fn without(mut self, part: impl Into<String>) -> Feeds {
        self.without.push(part.into());
        self
    }

    /// Sets how prompts show the feeds.
    ///
    /// # Errors
    /// Fails if a limit is too small, if `feed_bytes_max` is set and larger than `feeds_bytes_max`,
    /// or if `refreshed` is set for a form that shows no times.
    pub fn injected(self, injection: Injection) -> Result<Feeds, WrongFeed> {
        injection.check().map_err(WrongFeed)?;
        Ok(Feeds { injection, ..self })
    }

    /// How prompts show the feeds.
    #[must_use]
    pub fn injection(&self) -> Injection {
        self.injection
    }

    /// The feeds, without the parts that the pump makes.
    #[must_use]
    pub fn declared(&self) -> &[Definition] {
        &self.declared
    }

    /// Whether prompts have this part, which is one of [`BUILT_IN`].
    #[must_use]
    pub fn has(&self, part: &str) -> bool {
        self.without.iter().all(|it| it != part)
    }

    /// The listeners that are sources of these feeds, as the sources name them.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.declared.iter().filter_map(|it| it.source.as_ref()?.name.as_deref())
    }

    fn add(&mut self, mut definition: Definition) -> Result<(), String> {
        if definition.set_by.is_some() {
            definition.source.get_or_insert_with(Source::set);
        }
        let twice = self.declared.iter().any(|other| other.id == definition.id)
            || !self.has(&definition.id);
        if twice {
            return Err(format!("the feed {} stands twice", definition.id));
        }
        if BUILT_IN.contains(&&*definition.id) {
            return self.leave_out(definition);
        }
        definition.check()?;
        let max = FeedLimits::default().feeds_max;
        if self.declared.len() == max {
            return Err(format!("more than {max} feeds are too many"));
        }
        self.declared.push(definition);
        Ok(())
    }

    /// Adds a definition for one of [`BUILT_IN`]. Such a definition can only turn the part off, so
    /// `enabled` is the only field that it may have besides `id`.
    fn leave_out(&mut self, definition: Definition) -> Result<(), String> {
        let Definition { id, enabled, .. } = &definition;
        let alone = Definition { enabled: *enabled, ..Definition::default_of(id) };
        if definition != alone {
            return Err(format!("{id} is made by the pump: only `enabled` can be said of it"));
        }
        if !definition.is_enabled() {
            self.without.push(definition.id);
        }
        Ok(())
    }
}

impl Definition {
    fn default_of(id: &str) -> Definition {
        let source = Source::internal("");
        Definition { kind: None, source: None, ..Definition::on_demand(id, source) }
    }
}

impl<'de> Deserialize<'de> for Feeds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Feeds, D::Error> {
        struct All;

        impl<'de> Visitor<'de> for All {
            type Value = Feeds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of feeds")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Feeds, A::Error> {
                let mut feeds = Feeds::default();
                while items.next_element_seed(One(&mut feeds))?.is_some() {}
                Ok(feeds)
            }
        }

        from.deserialize_seq(All)
    }
}

/// Reads one more feed of a list. An error is reported at this feed's place in the file.
struct One<'a>(&'a mut Feeds);

impl<'de> de::DeserializeSeed<'de> for One<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_newtype_struct("Feed", self)
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a feed, as in `{id: now, source: {type: internal, action: system_clock}}`")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.0.add(Definition::deserialize(from)?).map_err(de::Error::custom)
    }
}

/// Reads a boolean. The texts `true` and `false` count too, since a variable of the manifest gives
/// a text.
fn truth<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    struct Truth;

    impl Visitor<'_> for Truth {
        type Value = Option<bool>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("`true` or `false`")
        }

        fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Option<bool>, E> {
            Ok(Some(flag))
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<bool>, E> {
            let unlike = || E::invalid_value(de::Unexpected::Str(text), &self);
            text.parse().map(Some).map_err(|_| unlike())
        }
    }

    from.deserialize_any(Truth)
}

/// Converts seconds to microseconds. Negative and too large numbers become `u64::MAX`.
pub(in super::super) fn micros(seconds: f64) -> u64 {
    Duration::try_from_secs_f64(seconds)
        .map_or(u64::MAX, |it| u64::try_from(it.as_micros()).unwrap_or(u64::MAX))
}
