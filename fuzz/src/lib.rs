//! What must hold for any bytes: one function a target, each fails by panicking.

mod check;
mod envelope;
mod read;
mod reply;
mod split;
mod write;

pub use check::check;
pub use envelope::envelope;
pub use read::read;
pub use reply::reply;
pub use split::split;
pub use write::canonical_write;
