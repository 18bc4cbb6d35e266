//! The settings of `action`: what actions may do besides calling an agent's peers.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// What actions may do beside calling an agent's peers.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The listeners that actions of the type `internal` call.
    pub internal: BTreeSet<String>,
    /// Which of their payloads an agent may call; all, where it isn't named.
    pub agents: BTreeMap<String, InternalActions>,
}

/// Which internal actions an agent may take.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct InternalActions {
    /// Whether it may take any.
    pub enabled: bool,
    /// Those it may take; all, where none is named.
    pub allowed_actions: Vec<String>,
    /// Those it may not take, whatever else is said.
    pub blocked_actions: Vec<String>,
}

impl Default for InternalActions {
    fn default() -> InternalActions {
        let (allowed_actions, blocked_actions) = (Vec::new(), Vec::new());
        InternalActions { enabled: true, allowed_actions, blocked_actions }
    }
}

impl Settings {
    /// Whether an agent may take an internal action.
    #[must_use]
    pub fn allows(&self, agent: &str, name: &str) -> bool {
        self.agents.get(agent).is_none_or(|it| it.allows(name))
    }
}

impl InternalActions {
    /// Whether an internal action may be taken.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        let local = name.rsplit('.').next().unwrap_or(name);
        let is_listed = |all: &[String]| all.iter().any(|it| it == name || it == local);
        let is_allowed = self.allowed_actions.is_empty() || is_listed(&self.allowed_actions);
        self.enabled && is_allowed && !is_listed(&self.blocked_actions)
    }
}
