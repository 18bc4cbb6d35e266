//! The values of the agent's metadata at a place of its reply.

use serde_json::Value;

use super::generation::OngoingGeneration;

impl OngoingGeneration<'_> {
    /// The value of a field of the agent's metadata at this place of the reply.
    pub(super) fn field(&self, name: &str) -> Option<Value> {
        let fields = &self.context.agent().settings.metadata;
        let before = || self.context.metadata.known.value(fields, name).cloned();
        self.said.get(name).cloned().or_else(before)
    }

    /// The value of a declared field of the agent's metadata at this place of the reply. Null if it
    /// has no value. None if the agent has no such field.
    pub(super) fn declared_field(&self, name: &str) -> Option<Value> {
        self.context.agent().settings.metadata.get(name)?;
        Some(self.field(name).unwrap_or_default())
    }
}
