//! What the workers, the handle and the arguments of handlers share.
//!
//! Each module uses only those that stand above it here, the rooms above this one, and nothing
//! else of the engine.

pub(crate) mod gate;
pub(crate) mod owed;
pub(crate) mod counts;
pub(crate) mod followers;
pub(crate) mod refusals;
pub(crate) mod inbox;
pub(crate) mod runtime;
pub(crate) mod shared;
pub(crate) mod metrics;
pub(crate) mod lifecycle;
pub(crate) mod refusal_report;
