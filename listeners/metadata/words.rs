//! Payloads of metadata.

use pumphouse::prelude::*;
use pumphouse::schema::json;
use pumphouse::wire::Json;
use pumphouse::wire::core::ThreadNote;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Changes to an agent's metadata fields, and the changes that were refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", bookkeeping)]
pub struct Metadata {
    /// The turn of the agent that sends this; 0 if no turn set the fields.
    #[payload(attribute)]
    pub turn: u64,
    /// The agent whose fields these are, unless it sends this itself.
    #[payload(attribute, no_example, example = "coder")]
    pub agent: Option<String>,
    /// The agent or workflow that the values come from, unless the agent's own model wrote them.
    #[payload(attribute, no_example, example = "boss")]
    pub by: Option<String>,
    /// Whether later changes also go to the agent in `by`.
    #[payload(attribute, no_example)]
    pub shares: Option<bool>,
    /// The changed fields, as a JSON object.
    #[payload(example = "{\"status\":\"CODING\"}")]
    pub fields: Option<String>,
    /// The fields that weren't changed.
    pub error: Vec<MetadataError>,
}

impl Metadata {
    /// Returns the metadata that an entry records for an agent of its thread, and the agent's name.
    /// Either the agent itself or a child thread sent the entry. None for any other entry.
    #[must_use]
    pub fn recorded(entry: &Entry) -> Option<(String, Metadata)> {
        if entry.is_refused() || entry.is_from_identity() {
            return None;
        }
        if entry.to() != Some(entry.from()) {
            return Metadata::from_below(entry);
        }
        Some((entry.from().to_owned(), entry.decode_if()?))
    }

    /// Returns the metadata that a child thread sent for an agent of this thread, and the agent's
    /// name. None for any other entry.
    #[must_use]
    pub fn from_below(entry: &Entry) -> Option<(String, Metadata)> {
        let note = entry.decode_if::<ThreadNote>().filter(|_| !entry.is_refused())?;
        let payload = Some(&note.payload).filter(|it| it.name() == Metadata::NAME)?;
        let metadata = Metadata::read(payload.view()).ok()?;
        Some((metadata.agent.clone()?, metadata))
    }

    /// The message about the changed fields, for `trigger`. None if no field was changed.
    #[must_use]
    pub fn changed(&self) -> Option<MetadataChanged> {
        let fields = json::read(self.fields.as_ref()?).ok()?;
        Some(MetadataChanged { turn: self.turn, fields: Json(fields) })
    }
}

/// Tells the listener `trigger` that an agent has changed fields of its metadata.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", bookkeeping)]
pub struct MetadataChanged {
    /// The turn.
    #[payload(attribute)]
    pub turn: u64,
    /// The changed fields, as a JSON object.
    #[payload(value, example = "{\"status\":\"CODING\"}")]
    pub fields: Json,
}

impl MetadataChanged {
    /// The changed fields. Empty if they aren't an object.
    #[must_use]
    pub fn into_fields(self) -> Map<String, Value> {
        match self.fields.0 {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

/// The metadata that a called agent in a thread of its own gets from its caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Handed {
    /// Nothing.
    #[default]
    None,
    /// A copy of the values.
    Inherit,
    /// A copy of the values; later changes are also made for the caller.
    Share,
}

/// A field that wasn't changed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct MetadataError {
    /// The field.
    #[payload(attribute, example = "status")]
    pub field: String,
    /// Why not, as the model is told.
    #[payload(text, example = "status: \"COMPILING\" not in [IDLE, CODING]")]
    pub message: String,
}
