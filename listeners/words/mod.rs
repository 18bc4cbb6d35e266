//! The payloads of actions, agents and models. They have a module of their own, since several
//! listeners need them.

pub mod model;
pub mod action;
pub mod agent;
pub(super) mod turn_policy;
