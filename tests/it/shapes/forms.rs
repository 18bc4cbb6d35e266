//! Scalars with a form of their own, such as timestamps and UUIDs, and lists of scalars.

use pumphouse::Payload;
use pumphouse::wire::{Bytes, SignedDuration, Timestamp, Uuid};

/// What has a form of its own.
#[derive(Payload)]
#[payload(ns = "urn:shapes", rename = "forms")]
pub(super) struct Root {
    #[payload(attribute)]
    pub(super) at: Timestamp,
    #[payload(attribute)]
    pub(super) id: Option<Uuid>,
    /// In bytes.
    #[payload(list)]
    pub(super) sizes: Vec<i64>,
    #[payload(list)]
    pub(super) ids: Option<Vec<Uuid>>,
    pub(super) data: Bytes,
    pub(super) span: Vec<SignedDuration>,
}
