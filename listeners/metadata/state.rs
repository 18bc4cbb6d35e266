//! The fold of the metadata that agents have reported.

use std::collections::BTreeMap;

use pumphouse::prelude::*;
use pumphouse::schema::json;
use serde_json::{Map, Value};

use super::Fields;
use super::words::{Metadata, MetadataError};

/// A fold of the metadata of a thread's agents.
#[derive(Clone, Debug, Default)]
pub struct Metadatas(BTreeMap<String, KnownFields>);

/// The metadata of one agent.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct KnownFields {
    values: BTreeMap<String, Value>,
    /// The agent that also gets this agent's later changes.
    pub shared_with: Option<String>,
    /// The last turn that wrote metadata.
    pub turn: u64,
    /// The errors of that turn's updates.
    pub errors: Vec<MetadataError>,
    /// Whether that turn's updates set any field.
    pub has_changed: bool,
}

impl Apply for Metadatas {
    fn apply(&mut self, entry: &Entry) {
        if let Some((agent, metadata)) = Metadata::from_below(entry) {
            self.0.entry(agent).or_default().set(&metadata);
            return;
        }
        // Only an agent's messages to itself count, so a client can't set metadata.
        if !entry.is::<Metadata>() || entry.is_refused() || entry.to() != Some(entry.from()) {
            return;
        }
        if let Some(metadata) = entry.decode_if::<Metadata>() {
            self.0.entry(entry.from().to_owned()).or_default().take(metadata);
        }
    }
}

impl Metadatas {
    /// The agents whose metadata the thread records, in the order of their names.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The metadata of an agent.
    #[must_use]
    pub fn of(&self, agent: &str) -> KnownFields {
        self.0.get(agent).cloned().unwrap_or_default()
    }
}

impl KnownFields {
    /// The value of a field: the one that the agent set, or else the default. None if there is
    /// neither.
    #[must_use]
    pub fn value<'a>(&'a self, fields: &'a Fields, name: &str) -> Option<&'a Value> {
        let field = fields.get(name)?;
        // The declaration may have changed since, and may not allow the value any more.
        let value = self.values.get(name).filter(|it| field.accepts(it).is_ok());
        value.or_else(|| field.initial())
    }

    /// The values of all declared fields, by name. A field without a value is null.
    #[must_use]
    pub fn all(&self, fields: &Fields) -> Map<String, Value> {
        let value = |name: &str| self.value(fields, name).cloned().unwrap_or_default();
        fields.all().map(|it| (it.name().to_owned(), value(it.name()))).collect()
    }

    /// The fields that were set, by name, with their values. Fields that are no longer declared are
    /// included.
    pub fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Records values that a child thread has set, but none of the child thread's errors.
    fn set(&mut self, metadata: &Metadata) {
        self.values.extend(metadata.changed().map(|it| it.into_fields()).unwrap_or_default());
    }

    /// Records an update of the agent's metadata.
    pub fn take(&mut self, metadata: Metadata) {
        if metadata.turn != self.turn {
            (self.turn, self.has_changed) = (metadata.turn, false);
            self.errors.clear();
        }
        self.errors.extend(metadata.error);
        if metadata.shares == Some(true) {
            self.shared_with = metadata.by;
        }
        let fields = metadata.fields.and_then(|it| json::read(&it).ok());
        if let Some(Value::Object(fields)) = fields {
            self.has_changed = true;
            self.values.extend(fields);
        }
    }
}
