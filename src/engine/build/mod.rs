//! Building a pump: plugins and factories in, every complaint at once or a plan out.

mod recover;
pub(crate) mod door;
pub(crate) mod plan;
pub(crate) mod factory;
pub(crate) mod complaints;
pub(crate) mod builder;
mod plugin;
