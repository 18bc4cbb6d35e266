//! Payloads of metadata.

use pumphouse::prelude::*;

/// What an agent said about its own state, for itself: the fields that it changes, and those that
/// it couldn't.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", bookkeeping)]
pub struct Metadata {
    /// The turn.
    #[payload(attribute)]
    pub turn: u64,
    /// The fields that were changed, as a JSON object.
    #[payload(example = "{\"status\":\"CODING\"}")]
    pub fields: Option<String>,
    /// Those that were not.
    pub error: Vec<MetadataError>,
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
