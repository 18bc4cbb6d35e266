//! The listener `agent_context`: answers with the metadata, turns, actions and settings of an
//! agent.
//!
//! ```yaml
//! listeners:
//!   - {use: agent_context, settings: {environment: [HOME]}}
//! ```

use std::collections::BTreeMap;

use pumphouse::prelude::*;
use pumphouse::schema::nearest;
use serde::Deserialize;

use super::text::clean;
use pumphouse::listeners::agent_context::{AgentContext, AgentFacts, CallingAgent, Variables};

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "agent_context";

/// Asks what is known of an agent. The answer is `agent-context`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent_context/v1")]
pub struct GetAgentContext {
    /// The agent's name; by default the calling agent. A named agent is looked for in this thread
    /// first, and then in the other threads of the tree, from the newest to the oldest.
    #[payload(attribute, example = "coder")]
    pub agent: Option<String>,
}

/// No context of an agent was found.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent_context/v1")]
pub struct NoAgentContext {
    /// Why.
    #[payload(value, example = "there is no agent codr; did you mean coder?")]
    pub text: String,
}

/// The `settings` of `use: agent_context` in a manifest.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Settings {
    /// The names of variables of the pump's environment. Each `agent-context` contains those that
    /// are set.
    pub environment: Vec<String>,
}

/// Makes the listener `agent_context`. This function reads the values of the environment variables,
/// once.
///
/// # Errors
/// If the settings list a name that no environment variable can have.
pub fn agent_context(settings: &Settings) -> Result<Listener, String> {
    let wrong = |it: &&String| it.is_empty() || it.contains(['=', '\0']);
    if let Some(name) = settings.environment.iter().find(wrong) {
        return Err(format!("environment: {name:?} can't be the name of a variable"));
    }
    #[expect(clippy::disallowed_methods, reason = "the manifest lists these variables")]
    let value = |name: &String| Some((name.clone(), std::env::var(name).ok()?));
    let variables: BTreeMap<String, String> =
        settings.environment.iter().filter_map(value).collect();
    Ok(Listener::new(NAME)
        .own_namespace()
        .on(read)
        .extension(Variables::from_iter(variables))
        .describe("Says what is known of an agent: its metadata, turns, actions and settings.")
        .reader())
}

async fn read(
    agent: CallingAgent,
    all: Capabilities,
    GetAgentContext { agent: named }: GetAgentContext,
) -> Result<Result<AgentContext, NoAgentContext>, Fault> {
    let context = match &named {
        Some(name) => agent.context_of(name).await?,
        None => agent.context().await?,
    };
    Ok(context.ok_or_else(|| NoAgentContext { text: clean(&missing(named.as_deref(), &all)) }))
}

/// Returns the reason why no context was found.
fn missing(named: Option<&str>, all: &Capabilities) -> String {
    let Some(name) = named else {
        return "no agent asks; name one, as in agent=\"coder\"".to_owned();
    };
    let agents = all.listeners().iter().filter(|it| it.extension::<AgentFacts>().is_some());
    let agents: Vec<&str> = agents.map(|it| it.name.as_str()).collect();
    if name.trim().is_empty() {
        return format!("agent is empty; there is {}", agents.join(", "));
    }
    match nearest(name, agents.iter().copied()) {
        _ if agents.contains(&name) => format!("{name} had no turn in this session"),
        Some(near) => format!("there is no agent {name}; did you mean {near}?"),
        None => format!("there is no agent {name}; there is {}", agents.join(", ")),
    }
}
