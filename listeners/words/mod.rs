//! The payloads of actions, agents, models and operators. They have a module of their own, since
//! several listeners need them.

pub mod model;
pub mod action;
pub mod operator;
pub(super) mod action_limits;
pub mod agent;
pub(super) mod turn_policy;
