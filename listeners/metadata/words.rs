//! Payloads of metadata.

use pumphouse::prelude::*;
use pumphouse::schema::json;
use pumphouse::wire::Json;

/// An agent's changes to the fields of its own state, and those that were refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", bookkeeping)]
pub struct Metadata {
    /// The turn.
    #[payload(attribute)]
    pub turn: u64,
    /// The changed fields, as a JSON object.
    #[payload(example = "{\"status\":\"CODING\"}")]
    pub fields: Option<String>,
    /// The fields that weren't changed.
    pub error: Vec<MetadataError>,
}

impl Metadata {
    /// The message about the changed fields. None if no field was changed.
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
