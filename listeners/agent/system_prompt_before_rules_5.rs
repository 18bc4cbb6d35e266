//! The system prompt under rules older than 5. It never changes, since replays compare it with the
//! log.

use pumphouse::prelude::*;

use super::super::feed::definition;
use super::super::metadata::show;
use super::Agent;
use super::settings::Dialect;
use super::system_prompt::{SystemPrompt, markup, peers, reading};
use super::tools::{Tools, offered_before_5};
use super::words::is_offered;

/// The protocol for a model that writes its calls as elements.
const TAGS: &str = include_str!("protocol_before_5.txt");
/// The protocol for a model that makes its calls in its provider's own protocol.
const NATIVE: &str = include_str!("native_before_5.txt");

impl SystemPrompt {
    /// Builds the system prompt of an agent under rules before 5.
    pub(super) fn before_5(agent: &Agent, all: &Capabilities) -> SystemPrompt {
        let Agent { name, settings, .. } = agent;
        // Where an element may have any content, its example shows a payload that the agent may
        // send. Therefore the examples are made from `seen`.
        let seen = all.seen_by(name);
        let mut text = settings.prompt.clone();
        let peers = peers(name, &seen);
        let heading = format!("You are the agent {name}.\n\n");
        text = if text.is_empty() { heading } else { format!("{text}\n\n") };
        let is_native = settings.dialect == Dialect::Native;
        let has = |part: &str| settings.context_feeds.has(part);
        if has(definition::PROTOCOL) {
            text += if is_native { NATIVE } else { TAGS };
        }
        let fields = show::declared(&settings.metadata);
        if has(definition::METADATA) && !fields.is_empty() {
            text += &format!("\n# Metadata\n\n{fields}\n");
        }
        let are_told = has(definition::PEERS) && !is_native;
        if are_told && !peers.is_empty() {
            text += "\n# Whom you may call\n";
        }
        for local in settings.final_payloads.iter().filter(|_| are_told) {
            for schema in seen.named(local).iter().filter_map(|it| seen.schema(it)) {
                text += &format!("\n{}\nThis ends your work.\n", seen.prompt(schema));
            }
        }
        for it in peers.iter().filter(|_| are_told) {
            let about = it.text.as_deref().unwrap_or_default();
            text += &format!("\n## {}\n{about}\n", it.name);
            let schemas = it.takes.iter().filter_map(|name| seen.schema(name));
            for schema in schemas.filter(|it| is_offered(it)) {
                text += &format!("\n{}\n", seen.prompt(schema));
            }
        }
        let tools = if is_native { offered_before_5(&seen, &peers) } else { Tools::default() };
        let reading = reading(settings, markup(agent, &seen, &peers));
        SystemPrompt { text, reading, tools, format: None }
    }
}
