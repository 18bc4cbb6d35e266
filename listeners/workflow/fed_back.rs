//! Outputs of a run that set metadata of the agent that the run works for.

use pumphouse::listener::{Described, NoteAbove, TreeHistory};
use pumphouse::prelude::*;
use serde_json::{Map, Value};

use super::super::agent_context::AgentFacts;
use super::super::caller::opener;
use super::super::metadata::words::Metadata;
use super::super::words::action::Action;
use super::runs::OpenRun;
use super::words::WorkflowResult;

/// The agent whose metadata the outputs of a run set. None if no agent began the run, by an action
/// or by a trigger on its metadata. Also None if the agent's declaration doesn't let the workflow
/// set metadata.
///
/// # Errors
/// Fails if the log can't be read.
pub(super) async fn agent_to_set(
    message: &Entry,
    input: &Value,
    (tree, capabilities): (&TreeHistory, &Capabilities),
    workflow: &str,
) -> Result<Option<String>, Fault> {
    let lets = |it: &Described| {
        let fields = it.extension::<AgentFacts>().map(|it| &it.fields);
        fields.is_some_and(|it| it.from_workflows.iter().any(|it| it == workflow))
    };
    if message.seq() != 1 || !capabilities.listeners().iter().any(lets) {
        return Ok(None);
    }
    let Some(asked) = opener(message, tree).await? else { return Ok(None) };
    // A trigger names the agent in the input of the run.
    let agent = match asked.is::<Action>() {
        true => Some(asked.from()),
        false => input.get("agent").and_then(Value::as_str).filter(|_| !asked.is_from_identity()),
    };
    let agent = agent.filter(|it| capabilities.listener(it).is_some_and(lets));
    Ok(agent.map(str::to_owned))
}

/// The metadata that a run's outputs set: those outputs that have the name of a field. None if
/// there is no such output.
pub(super) fn metadata(
    open: &OpenRun,
    result: &WorkflowResult,
    capabilities: &Capabilities,
) -> Option<NoteAbove<Metadata>> {
    let agent = open.sets.clone()?;
    let declared = &capabilities.listener(&agent)?.extension::<AgentFacts>()?.fields;
    // An output whose reference leads to nothing is null.
    let outputs = result.outputs.0.as_object()?.iter().filter(|(_, value)| !value.is_null());
    let own = outputs.filter(|(name, _)| declared.get(name).is_some());
    let values: Map<String, Value> =
        own.map(|(name, value)| (name.clone(), value.clone())).collect();
    if values.is_empty() {
        return None;
    }
    let by = Some(result.workflow.clone());
    Some(NoteAbove(Metadata { agent: Some(agent), by, ..declared.checked(values) }))
}
