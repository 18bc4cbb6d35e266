//! Parts in parts, and one part in two places.

use pumphouse::Payload;

/// Something sent from here to there.
#[derive(Payload)]
#[payload(ns = "urn:shapes", rename = "parcel")]
pub(super) struct Root {
    /// Where it begins.
    pub(super) from: Address,
    /// Where it ends.
    pub(super) to: Address,
    pub(super) item: Vec<Item>,
}

/// Where somebody lives.
#[derive(Payload)]
pub(super) struct Address {
    pub(super) street: String,
    #[payload(pattern = "[0-9]{5}")]
    pub(super) code: String,
}

/// One thing in it.
#[derive(Payload)]
pub(super) struct Item {
    #[payload(attribute, min = 1)]
    pub(super) count: u32,
    #[payload(text)]
    pub(super) what: String,
}
