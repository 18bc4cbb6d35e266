//! What several verbs share. Nothing here knows a verb.

pub(crate) mod screen;
pub(crate) mod signals;
pub(crate) mod time;
pub(crate) mod traces;
pub(crate) mod filters;
pub(crate) mod data;
pub(crate) mod folder;
pub(crate) mod follow;
pub(crate) mod incoming;
pub(crate) mod organism;
pub(crate) mod program_paths;
pub(crate) mod connect;
pub(crate) mod ask;
pub(crate) mod transcript;
#[cfg(test)]
pub(crate) mod kept;

/// The version, and the commit that the program was built from.
pub(crate) const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("PUMPHOUSE_BUILT_FROM"), ")");
