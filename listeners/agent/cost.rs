//! Estimates the tokens of a prompt's parts. This module is pure.

use pumphouse::model::estimate::tokens_of_bytes;
use pumphouse::model::{Attached, Prompt, Role};

use super::super::feed::shown::WRAPPER;
use super::system_prompt::HEADINGS;

/// Estimates the tokens of each part of a prompt, in the order of the parts. Empty parts are left
/// out. Four bytes count as a token, and attachments by [`Attached::tokens`]. The provider's own
/// count is known only after the turn.
#[must_use]
pub fn by_part(prompt: &Prompt) -> Vec<(&'static str, u64)> {
    let mut all: Vec<(&'static str, usize)> = Vec::new();
    let mut add =
        |part: &'static str, bytes: usize| match all.iter_mut().find(|(it, _)| *it == part) {
            Some((_, sum)) => *sum += bytes,
            None if bytes > 0 => all.push((part, bytes)),
            None => {}
        };
    let (system, feeds) = split(&prompt.system);
    for (part, text) in parts(system) {
        add(part, text.len());
    }
    let tool = |it: &pumphouse::model::Tool| {
        it.name.len() + it.description.len() + it.parameters.to_string().len()
    };
    add("tools", prompt.tools.iter().map(tool).sum());
    let format =
        prompt.format.as_ref().map(|it| it.description.len() + it.schema.to_string().len());
    add("answer", format.unwrap_or_default());
    for it in &prompt.messages {
        let (said, feeds) = split(&it.text);
        let calls = it.calls.iter().map(|it| it.name.len() + it.arguments.len());
        let part = match it.role {
            Role::Assistant => "own replies",
            Role::Tool => "results",
            _ => "messages",
        };
        add(part, said.len() + calls.sum::<usize>());
        add("feeds", feeds.len());
    }
    add("feeds", feeds.len());
    let attached = prompt.messages.iter().flat_map(|it| &it.attached).map(Attached::tokens);
    let attached = Some(attached.sum()).filter(|it| *it > 0).map(|it: u64| ("attachments", it));
    let texts = all.into_iter().map(|(part, bytes)| (part, tokens_of_bytes(bytes as u64)));
    texts.chain(attached).collect()
}

/// Splits a text into the part before the feeds at its end, and these feeds. A text without feeds,
/// or with feeds only at its beginning, isn't split.
fn split(text: &str) -> (&str, &str) {
    let at = text.rfind(WRAPPER).filter(|at| *at > 0);
    text.split_at(at.unwrap_or(text.len()))
}

/// Splits a system prompt into parts by its headings. The text before the first heading is the
/// agent's own prompt.
fn parts(system: &str) -> Vec<(&'static str, &str)> {
    let begins = |heading: &str| {
        let mut all = system.match_indices(heading);
        all.find(|(at, _)| {
            let rest = &system[at + heading.len()..];
            (*at == 0 || system[..*at].ends_with('\n')) && rest.starts_with('\n')
        })
    };
    let found = HEADINGS.iter().filter_map(|(part, it)| Some((begins(it)?.0, *part)));
    let mut found: Vec<(usize, &str)> = found.collect();
    found.sort_unstable();
    let mut all = vec![("prompt", &system[..found.first().map_or(system.len(), |it| it.0)])];
    for (place, (from, part)) in found.iter().enumerate() {
        let to = found.get(place + 1).map_or(system.len(), |it| it.0);
        all.push((part, &system[*from..to]));
    }
    all.retain(|(_, text)| !text.is_empty());
    all
}
