//! The payloads of actions and agents: what rooms above this one have in common.

pub mod model;
pub mod action;
pub mod agent;
pub(super) mod turn_policy;
