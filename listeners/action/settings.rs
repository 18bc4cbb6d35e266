//! The settings of `action`: which internal actions each agent may take. An internal action changes
//! the agent's own surroundings, such as its feeds.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// The settings of internal actions, which agents may take besides calling their peers.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The listeners that internal actions may call.
    pub internal: BTreeSet<String>,
    /// Maps each agent to the internal actions that it may take. An agent that isn't in the map may
    /// take all.
    pub agents: BTreeMap<String, InternalActions>,
}

/// Which internal actions an agent may take.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct InternalActions {
    /// Whether the agent may take internal actions at all.
    pub enabled: bool,
    /// The names of the actions that the agent may take. Empty means all.
    pub allowed_actions: Vec<String>,
    /// The names of the actions that the agent may not take, even if `allowed_actions` has them.
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
    /// Why the agent may not take the internal action with this name. None if it may.
    #[must_use]
    pub fn refusal(&self, name: &str) -> Option<String> {
        match () {
            () if self.allows(name) => None,
            () if !self.enabled => Some("your internal actions are switched off".to_owned()),
            () => Some(format!("you may not take the internal action {}", local(name))),
        }
    }

    /// Whether the agent may take the internal action with this name. `name` is written as
    /// `clear`, `feed.clear` or `{namespace}clear`. Only the payload's local name counts, here and
    /// in the lists.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        let is_listed = |all: &[String]| all.iter().any(|it| local(it) == local(name));
        let is_allowed = self.allowed_actions.is_empty() || is_listed(&self.allowed_actions);
        self.enabled && is_allowed && !is_listed(&self.blocked_actions)
    }
}

/// The local name in a name such as `feed.clear` or `{namespace}clear`.
fn local(name: &str) -> &str {
    name.rsplit(['.', '}']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_action_is_blocked_by_each_of_its_names() {
        let names = ["clear", "feed.clear", "{https://example.org/ns/v1}clear"];
        for blocked in names {
            let blocked_actions = vec![blocked.to_owned()];
            let settings = InternalActions { blocked_actions, ..InternalActions::default() };
            assert!(names.into_iter().all(|it| !settings.allows(it)), "{blocked}");
            assert!(settings.allows("clear_all"));
        }
    }

    #[test]
    fn a_refusal_says_what_is_switched_off() {
        let off = InternalActions { enabled: false, ..InternalActions::default() };
        let told = |it: &InternalActions, name| it.refusal(name).unwrap_or_default();
        assert_eq!(told(&off, "feed.clear"), "your internal actions are switched off");
        let blocked_actions = vec!["clear".to_owned()];
        let some = InternalActions { blocked_actions, ..InternalActions::default() };
        assert_eq!(told(&some, "feed.clear"), "you may not take the internal action clear");
        assert_eq!(told(&some, "add"), "");
    }
}
