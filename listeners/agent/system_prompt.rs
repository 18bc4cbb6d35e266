//! The system prompt of an agent with the configuration for reading replies and the tools that the
//! model is offered.
//!
//! The protocol comes first and the agent's own prompt after it, so that the prompts of agents
//! share a prefix.

use std::sync::Arc;

use pumphouse::listener::Described;
use pumphouse::prelude::*;
use pumphouse::reply::{self, Config, Markup};

use super::super::action::words::NAME as ACTION;
use super::super::feed::definition::{METADATA, PEERS, PROTOCOL};
use super::super::metadata::show;
use super::Agent;
use super::abilities::{self, AWAIT};
use super::answer_format::AnswerFormat;
use super::peer_text::{call, is_shown};
use super::settings::{Dialect, FinalWithActions, Settings, Wake};
use super::tools::{LeftOut, Tools, offered};
use super::words::is_offered;

/// The protocol for a model that writes its calls as elements.
const TAGS: &str = include_str!("protocol.txt");
/// The protocol for a model that makes its calls in its provider's own protocol.
const NATIVE: &str = include_str!("native.txt");
/// The protocol for a model with native calls whose answer is JSON.
const NATIVE_ANSWER: &str = include_str!("native_answer.txt");

/// The names and the headings of a system prompt's parts, in their order.
pub const HEADINGS: [(&str, &str); 6] = [
    ("protocol", "# How you write"),
    ("abilities", "# What you may write besides"),
    ("prompt", "# Who you are"),
    ("metadata", "# Metadata"),
    ("endings", "# What ends your work besides"),
    ("peers", "# Whom you may call"),
];

/// The system prompt of an agent. The reader configuration, the tools and the answer format belong
/// to this prompt.
#[derive(Debug)]
pub(super) struct SystemPrompt {
    pub(super) text: String,
    /// The configuration by which the model's replies are read.
    pub(super) reading: Arc<Config>,
    /// The tools that the model is offered in its provider's own protocol.
    pub(super) tools: Tools,
    /// The format of the model's answer. None if the model needn't follow one.
    pub(super) format: Option<Arc<AnswerFormat>>,
}

impl SystemPrompt {
    /// Builds the system prompt. `format` is None if the model needn't follow an answer format.
    pub(super) fn new(
        agent: &Agent,
        all: &Capabilities,
        format: Option<Arc<AnswerFormat>>,
    ) -> SystemPrompt {
        let Agent { name, settings, .. } = agent;
        let seen = all.seen_by(name);
        let peers = peers(name, &seen);
        let is_native = settings.dialect == Dialect::Native;
        let has = |part: &str| settings.context_feeds.has(part);
        let [(_, protocol), (_, besides), (_, own), (_, fields), (_, endings), (_, call_whom)] =
            HEADINGS;
        let mut text = String::new();
        let mut part = |title: &str, body: &str| {
            match body.trim() {
                "" => {}
                // The agent's own prompt needs no heading if nothing comes before it.
                body if text.is_empty() && title == own => text += body,
                body if text.is_empty() => text += &format!("{title}\n\n{body}"),
                body => text += &format!("\n\n{title}\n\n{body}"),
            }
        };
        if has(PROTOCOL) {
            let protocol_text = match format {
                Some(_) => {
                    let text = NATIVE_ANSWER.replace("{delivered}", &delivered(settings));
                    text.replace("{references}", references(settings, true))
                }
                None => how_to_write(settings),
            };
            part(protocol, protocol_text.strip_prefix(protocol).unwrap_or(&protocol_text));
            // A model whose answer is JSON writes no elements.
            let abilities = format.is_none().then(|| abilities::text(settings));
            part(besides, &abilities.unwrap_or_default());
        }
        match settings.prompt.as_str() {
            "" => part(own, &format!("You are the agent {name}.")),
            prompt => part(own, prompt),
        }
        if has(METADATA) {
            part(fields, &show::declared(&settings.metadata));
        }
        if let Some(it) = &format {
            part(endings, &it.text(&seen));
        } else if has(PEERS) {
            part(endings, &finals(settings, &seen));
        }
        if has(PEERS) && !is_native {
            let shown = peers.iter().filter(|it| it.name != ACTION && is_shown(settings, &it.name));
            let shown: Vec<String> = shown.map(|it| call(&seen, it)).collect();
            part(call_whom, &shown.join("\n"));
        }
        let mut tools = if is_native { offered(&seen, &peers) } else { Tools::default() };
        let left_out = tools.leave_out(&*agent.model);
        if has(PEERS) {
            let line = |it: LeftOut| format!("- {} can't be called: {}\n", it.name, it.why);
            part(call_whom, &left_out.into_iter().map(line).collect::<String>());
        }
        text.shrink_to_fit();
        let reading = reading(settings, markup(agent, &seen, &peers).tool_call());
        SystemPrompt { text, reading, tools, format }
    }
}

/// The peers of an agent among the listeners that it can see.
pub(super) fn peers<'a>(agent: &str, seen: &'a Capabilities) -> Vec<&'a Described> {
    let named = seen.listener(agent).and_then(|it| it.peers.clone()).unwrap_or_default();
    seen.listeners().iter().filter(|it| named.contains(&it.name)).collect()
}

/// Builds the configuration for reading replies, with these names as markup.
pub(super) fn reading(settings: &Settings, markup: Markup) -> Arc<Config> {
    let dialect = match settings.dialect {
        Dialect::ToolUse => reply::Dialect::ToolUse,
        Dialect::Tags | Dialect::Native => reply::Dialect::Tags,
    };
    let mut config = Config::default().marked_up(markup).speaking(dialect);
    config.limits = settings.reply_limits;
    if let Some(it) = &settings.streaming_config {
        config = config.streaming(it);
    }
    Arc::new(config)
}

/// The names of elements that have a meaning in an agent's replies.
pub(super) fn markup(agent: &Agent, seen: &Capabilities, peers: &[&Described]) -> Markup {
    let mut markup = Markup::default().root(&agent.name);
    if agent.settings.control_flow {
        markup = markup.control();
    }
    for local in &agent.settings.final_payloads {
        markup = markup.peer(local);
    }
    for it in peers {
        let schemas = it.takes.iter().filter_map(|name| seen.schema(name));
        for schema in schemas.filter(|it| is_offered(it)) {
            markup = markup.peer(schema.name.local());
        }
    }
    // A peer's payload of this name keeps its meaning.
    markup.core(AWAIT)
}

/// The text of the protocol for an agent's settings.
fn how_to_write(settings: &Settings) -> String {
    let is_native = settings.dialect == Dialect::Native;
    let template = if is_native { NATIVE } else { TAGS };
    let (partial, last) = match settings.final_default {
        true => (" final=\"false\"", ""),
        false => ("", " final=\"true\""),
    };
    let calls = if is_native { "calls" } else { "actions" };
    let delivered = delivered(settings);
    let is_text = settings.text_is_response();
    let answer = match is_text {
        true => format!(
            "A reply of plain text without {calls} is your final response: you stop with it. \
             {delivered}. Text beside {calls} is shown to nobody."
        ),
        false => format!(
            "<response{last}>…</response> is your final response: you stop with it. {delivered}."
        ),
    };
    let responses = format!(
        "<response{partial}>…</response> tells whoever asked what you have so far, and you go on.\n\
         {answer}"
    );
    let text = match is_text {
        true => "Write no element but these.",
        false => "Text outside of all elements reaches nobody: answer within <response>.",
    };
    let said = match settings.has_references() {
        true => "Rome has more people: ${rome}, and Paris has ${paris}.",
        false => "Rome has more people: 2.8 million, and Paris has 2.1 million.",
    };
    let example = match is_text {
        true => said.to_owned(),
        false => format!("<response{last}>{said}</response>"),
    };
    let waiting = match settings.wake {
        Wake::Each if is_native => "",
        Wake::Each => {
            "; write only a thought to wait for it, or <await/> to have your next turn once all of \
             it is done"
        }
        Wake::All => "; you have your next turn once all of it is done",
    };
    let text = template.replace("{responses}", &responses).replace("{text}", text);
    let text = text.replace("{waiting}", waiting);
    text.replace("{example}", &example).replace("{references}", references(settings, false))
}

/// The lines that say which texts stand for results. `is_answer` says that the model's answer is
/// JSON, which has no references.
fn references(settings: &Settings, is_answer: bool) -> &'static str {
    match (settings.has_references(), settings.dialect, is_answer) {
        (false, ..) => "",
        (true, Dialect::Tags, _) => {
            "A parameter that is nothing but $fetch, ${fetch} or ${fetch.title} stands for the \
             result of the action with that id or output_key, and waits for it; so does it in a \
             response, anywhere but in code. Any other text stays as you write it; $$fetch is the \
             text $fetch.\n"
        }
        (true, _, true) => {
            "An argument that is nothing but ${ID} or ${ID.title} stands for the result of the \
             call with that id. Any other text stays as you write it; $${ID} is the text ${ID}.\n"
        }
        (true, _, false) => {
            "An argument that is nothing but ${ID} or ${ID.title} stands for the result of the \
             call with that id; so does it in a response, anywhere but in code. Any other text \
             stays as you write it; $${ID} is the text ${ID}.\n"
        }
    }
}

/// The sentence that says when a final response is delivered.
fn delivered(settings: &Settings) -> String {
    let calls = if settings.dialect == Dialect::Native { "calls" } else { "actions" };
    match settings.final_with_actions {
        FinalWithActions::Trust => "It is delivered at once".to_owned(),
        _ => format!(
            "It is delivered when your {calls} have succeeded; if one failed, you get another turn"
        ),
    }
}

/// The text about the payloads that end an agent's work.
fn finals(settings: &Settings, seen: &Capabilities) -> String {
    let mut text = String::new();
    for local in &settings.final_payloads {
        for schema in seen.named(local).iter().filter_map(|it| seen.schema(it)) {
            // Models needn't write the namespace.
            let namespace = format!(" xmlns=\"{}\"", schema.name.namespace());
            text += &format!("{}\n", seen.prompt(schema).replace(&namespace, ""));
        }
    }
    text
}
