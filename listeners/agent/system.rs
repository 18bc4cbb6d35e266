//! What an agent's model is told before all else, by the rules of its turn, and what follows from
//! it: how its replies are read, and the tools that it is offered.
//!
//! From rules 5 on the protocol comes first and the agent's own prompt behind it, so that agents
//! share a prefix. Older rules have the text of `before.rs`.

use std::sync::Arc;

use pumphouse::listener::Described;
use pumphouse::prelude::*;
use pumphouse::reply::{self, Config, Markup};

use super::super::action::words::NAME as ACTION;
use super::super::feed::definition::{METADATA, PEERS, PROTOCOL};
use super::super::metadata::show;
use super::Agent;
use super::abilities;
use super::answer_format::AnswerFormat;
use super::peer_text::{call, is_shown};
use super::settings::{Dialect, FinalWithActions, Settings};
use super::tools::{Tools, offered};
use super::words::is_offered;

/// How a model writes that writes its calls as elements, and
const TAGS: &str = include_str!("protocol_5.txt");
/// how one writes that makes its calls in its provider's own protocol.
const NATIVE: &str = include_str!("native_5.txt");
/// The same where its answer is JSON.
const NATIVE_ANSWER: &str = include_str!("native_answer.txt");

/// The headings of the parts, in their order.
pub const HEADINGS: [(&str, &str); 6] = [
    ("protocol", "# How you write"),
    ("abilities", "# What you may write besides"),
    ("prompt", "# Who you are"),
    ("metadata", "# Metadata"),
    ("endings", "# What ends your work besides"),
    ("peers", "# Whom you may call"),
];

/// What an agent's model is told before all else, and what follows from it.
#[derive(Debug)]
pub(super) struct SystemPrompt {
    pub(super) text: String,
    /// How its replies are read.
    pub(super) reading: Arc<Config>,
    /// What it is offered in its provider's own protocol.
    pub(super) tools: Tools,
    /// The form of its answer, where it is held to one.
    pub(super) format: Option<Arc<AnswerFormat>>,
}

impl SystemPrompt {
    /// What an agent is told by rules 5 and later ones, whose answer may have a form.
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
                // Where nothing stands before it, a prompt is all there is.
                body if text.is_empty() && title == own => text += body,
                body if text.is_empty() => text += &format!("{title}\n\n{body}"),
                body => text += &format!("\n\n{title}\n\n{body}"),
            }
        };
        if has(PROTOCOL) {
            let protocol_text = match format {
                Some(_) => NATIVE_ANSWER.replace("{delivered}", &delivered(settings)),
                None => how_to_write(settings),
            };
            part(protocol, protocol_text.strip_prefix(protocol).unwrap_or(&protocol_text));
            // Where its answer is JSON, a model writes no elements.
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
        let tools = if is_native { offered(&seen, &peers) } else { Tools::default() };
        let reading = reading(settings, markup(agent, &seen, &peers).tool_call());
        SystemPrompt { text, reading, tools, format }
    }
}

/// The peers of an agent, of those that it may know of.
pub(super) fn peers<'a>(agent: &str, seen: &'a Capabilities) -> Vec<&'a Described> {
    let named = seen.listener(agent).and_then(|it| it.peers.clone()).unwrap_or_default();
    seen.listeners().iter().filter(|it| named.contains(&it.name)).collect()
}

/// How replies with these names as markup are read: made once for all turns of an agent.
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

/// The names that mean something in an agent's replies.
pub(super) fn markup(agent: &Agent, seen: &Capabilities, peers: &[&Described]) -> Markup {
    let mut markup = Markup::default().root(&agent.name);
    for local in &agent.settings.final_payloads {
        markup = markup.peer(local);
    }
    for it in peers {
        let schemas = it.takes.iter().filter_map(|name| seen.schema(name));
        for schema in schemas.filter(|it| is_offered(it)) {
            markup = markup.peer(schema.name.local());
        }
    }
    markup
}

/// The protocol, as an agent's settings have it.
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
    let said = "Rome has more people: ${rome}, and Paris has ${paris}.";
    let example = match is_text {
        true => said.to_owned(),
        false => format!("<response{last}>{said}</response>"),
    };
    let text = template.replace("{responses}", &responses).replace("{text}", text);
    text.replace("{example}", &example)
}

/// When a final response is delivered.
fn delivered(settings: &Settings) -> String {
    let calls = if settings.dialect == Dialect::Native { "calls" } else { "actions" };
    match settings.final_with_actions {
        FinalWithActions::Trust => "It is delivered at once".to_owned(),
        _ => format!(
            "It is delivered when your {calls} have succeeded; if one failed, you get another turn"
        ),
    }
}

/// The payloads that end an agent's work, as they are written.
fn finals(settings: &Settings, seen: &Capabilities) -> String {
    let mut text = String::new();
    for local in &settings.final_payloads {
        for schema in seen.named(local).iter().filter_map(|it| seen.schema(it)) {
            // A namespace needn't be written.
            let namespace = format!(" xmlns=\"{}\"", schema.name.namespace());
            text += &format!("{}\n", seen.prompt(schema).replace(&namespace, ""));
        }
    }
    text
}
