//! Facts about an agent that its listener declares. They are known before the agent's first turn.

use pumphouse::listener::Described;

use super::super::metadata::Fields;

/// Facts about an agent that its listener declares. They are an
/// [extension](pumphouse::listener::Described::extension) of the listener.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AgentFacts {
    /// The fields of its metadata.
    pub fields: Fields,
    /// The folder in which it works.
    pub workspace_path: Option<String>,
    /// The name of its pump.
    pub organism: Option<String>,
}

/// Whether a listener is an agent.
pub(in super::super) fn is_agent(listener: &Described) -> bool {
    listener.extension::<AgentFacts>().is_some()
}
