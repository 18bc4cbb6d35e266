//! The context of an agent, as a type and as a payload.

use std::collections::BTreeMap;

use pumphouse::prelude::*;
use pumphouse::wire::{Json, Timestamp};
use serde_json::{Value, json};

/// The names of the fields of an [`AgentContext`].
pub const FIELDS: [&str; 16] = [
    "session_id",
    "thread",
    "agent_name",
    "iteration_count",
    "started_at",
    "metadata",
    "tools",
    "workflows",
    "agents",
    "relics",
    "actions_executed",
    "thoughts",
    "responses",
    "environment",
    "workspace_path",
    "manifest",
];

/// What is known of an agent: its metadata, peers, newest actions and settings.
#[derive(Clone, Debug, Default, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent_context/v1")]
#[non_exhaustive]
pub struct AgentContext {
    /// The session: the first thread of the agent's tree.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub session_id: String,
    /// The thread in which the agent works.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub thread: String,
    /// The agent's name.
    #[payload(attribute, example = "coder")]
    pub agent_name: String,
    /// Its turns so far in this thread.
    #[payload(attribute)]
    pub iteration_count: u64,
    /// When its first turn in this thread began.
    #[payload(attribute)]
    pub started_at: Option<Timestamp>,
    /// Its metadata fields, as a JSON object; a field without a value is null.
    #[payload(example = "{\"status\":\"CODING\"}")]
    pub metadata: Json,
    /// The tools that it may call.
    #[payload(example = "calculate")]
    pub tools: Vec<String>,
    /// The workflows that it may run.
    #[payload(no_example)]
    pub workflows: Vec<String>,
    /// The agents that it may call.
    #[payload(no_example)]
    pub agents: Vec<String>,
    /// The relics that it may call.
    #[payload(no_example)]
    pub relics: Vec<String>,
    /// Its newest actions, at most 100.
    pub actions_executed: Vec<ExecutedAction>,
    /// Its newest thoughts, at most 100.
    #[payload(no_example)]
    pub thoughts: Vec<String>,
    /// Its newest responses, at most 100.
    #[payload(no_example)]
    pub responses: Vec<String>,
    /// The environment variables that the listener's settings name, if they are set.
    pub environment: BTreeMap<String, String>,
    /// The folder in which it works.
    #[payload(example = "/srv/project")]
    pub workspace_path: Option<String>,
    /// Its settings.
    pub manifest: AgentManifest,
}

/// An action of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload)]
#[non_exhaustive]
pub struct ExecutedAction {
    /// The id.
    #[payload(attribute, example = "sum")]
    pub id: String,
    /// What it called.
    #[payload(attribute, example = "calculate")]
    pub name: String,
    /// How it ended, or `running`.
    #[payload(attribute, example = "ok")]
    pub status: String,
}

/// The settings of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload)]
#[non_exhaustive]
pub struct AgentManifest {
    /// The pump's name.
    #[payload(attribute)]
    pub organism: Option<String>,
    /// The agent's name.
    #[payload(attribute, example = "coder")]
    pub name: String,
    /// What the agent is for.
    #[payload(attribute)]
    pub description: Option<String>,
    /// Its model.
    #[payload(attribute)]
    pub model: Option<String>,
    /// How many turns its work may have.
    #[payload(attribute)]
    pub max_turns: Option<u64>,
}

impl AgentContext {
    /// The value of one of [`FIELDS`] as JSON. None for any other name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Value> {
        let action = |it: &ExecutedAction| {
            let ExecutedAction { id, name, status } = it;
            json!({ "id": id, "name": name, "status": status })
        };
        Some(match name {
            "session_id" => json!(self.session_id),
            "thread" => json!(self.thread),
            "agent_name" => json!(self.agent_name),
            "iteration_count" => json!(self.iteration_count),
            "started_at" => json!(self.started_at.map(|it| it.to_string())),
            "metadata" => self.metadata.0.clone(),
            "tools" => json!(self.tools),
            "workflows" => json!(self.workflows),
            "agents" => json!(self.agents),
            "relics" => json!(self.relics),
            "actions_executed" => self.actions_executed.iter().map(action).collect(),
            "thoughts" => json!(self.thoughts),
            "responses" => json!(self.responses),
            "environment" => json!(self.environment),
            "workspace_path" => json!(self.workspace_path),
            "manifest" => {
                let AgentManifest { organism, name, description, model, max_turns } =
                    &self.manifest;
                json!({
                    "organism": organism,
                    "name": name,
                    "description": description,
                    "model": model,
                    "max_turns": max_turns,
                })
            }
            _ => return None,
        })
    }
}
