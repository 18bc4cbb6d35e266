//! What must hold for any bytes: one function a target, each fails by panicking.

mod check;
mod envelope;
mod json;
mod read;
mod reply;
mod split;
mod sse;
mod write;

pub use check::check;
pub use envelope::envelope;
pub use json::json_to_xml;
pub use read::read;
pub use reply::reply;
pub use split::split;
pub use sse::sse;
pub use write::canonical_write;
