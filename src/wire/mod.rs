//! The data that crosses the boundary of a pump: envelopes, payloads and faults. The engine and the
//! listeners depend on this module, never the reverse.

pub mod budget;
pub mod missing_namespace;
pub mod catalog;
pub mod core;
#[doc(hidden)]
pub mod derive;
pub mod envelope;
mod failure;
pub mod fault;
pub mod meta;
pub mod payload;
pub mod value;

pub use bytes::Bytes;
pub use catalog::{Catalog, Checked};
pub use envelope::{Envelope, Facts, Outside, Shown, enclose, iso_time};
pub use failure::is_failure;
pub use fault::quoted;
pub use fault::{Code, Fault};
pub use jiff::{SignedDuration, Timestamp};
pub(crate) use payload::encode_sent;
pub use payload::{Live, Payload};
pub use uuid::Uuid;
pub use value::Json;
