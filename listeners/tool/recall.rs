//! What was said before in the caller's thread, also what no prompt shows any more.
//!
//! ```yaml
//! listeners:
//!   - {use: recall}
//! ```
//!
//! It reads the thread that it is asked in, up to the question, and no other.

use std::collections::VecDeque;

use pumphouse::listener::Effects;
use pumphouse::prelude::*;
use pumphouse::wire::iso_time;
use pumphouse::xml::{Child, View as Part};

/// The listener's name unless another is given, by which its namespace goes.
const NAME: &str = "recall";
/// Entries that are read at a time.
const PAGE: usize = 256;
/// Entries that one answer names.
const FOUND_MAX: usize = 50;
/// The same unless the question says how many.
const FOUND_USUAL: usize = 10;
/// Characters of a question.
const QUESTION_CHARS_MAX: usize = 500;
/// Characters of an entry's text that an answer has.
const EXCERPT_CHARS: usize = 300;

/// Finds entries of the thread: those that have all that is said here, the newest last.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/recall/v1")]
pub struct Recall {
    /// Words that an entry's text has, in any order; large and small letters are the same.
    #[payload(example = "green tea")]
    pub text: Option<String>,
    /// Who sent it.
    #[payload(example = "ada")]
    pub from: Option<String>,
    /// What it is: the payload's name.
    #[payload(no_example)]
    pub name: Option<String>,
    /// The number of an entry before it.
    #[payload(no_example)]
    pub after: Option<u64>,
    /// The number of an entry behind it.
    #[payload(no_example)]
    pub before: Option<u64>,
    /// How many entries, the newest; 10 unless said, and 50 at the most.
    #[payload(no_example, min = 1)]
    pub limit: Option<u64>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/recall/v1")]
pub struct Recalled {
    /// How many older entries would do, too.
    #[payload(attribute)]
    pub left_out: u64,
    /// The entries, in their order.
    pub found: Vec<Found>,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Found {
    /// The entry's id.
    #[payload(attribute, example = "sess-k3v9x2ma/4")]
    pub entry: String,
    /// Who sent it.
    #[payload(attribute, example = "ada")]
    pub from: String,
    /// What it is.
    #[payload(attribute, example = "note")]
    pub name: String,
    /// When.
    #[payload(attribute, example = "2026-01-01T12:00:00Z")]
    pub time: String,
    /// Its text, or what stands around the first of the words.
    #[payload(text, example = "Two cups of green tea.")]
    pub text: String,
}

/// The question asks for too much, or for nothing.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/recall/v1")]
pub struct NotRecalled {
    /// Why.
    #[payload(value, example = "say which: by text, from, name, after or before")]
    pub text: String,
}

/// The listener `recall`.
#[must_use]
pub fn recall() -> Listener {
    let text = "Finds what was said before in this thread, also what isn't shown any more.";
    Listener::new(NAME).own_namespace().on(find).describe(text).effects(Effects::Reads)
}

async fn find(
    Message(question): Message,
    history: History,
    known: Capabilities,
    it: Recall,
) -> Result<Result<Recalled, NotRecalled>, Fault> {
    let wanted = match Wanted::new(&it) {
        Ok(it) => it,
        Err(text) => return Ok(Err(NotRecalled { text })),
    };
    let own = question.to().unwrap_or(NAME);
    let cause = question.cause().map(|it| it.seq);
    let (mut found, mut left_out) = (VecDeque::new(), 0);
    let mut after = it.after.unwrap_or(0);
    loop {
        let page = history.read(after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.seq();
        for entry in &page {
            let is_own = entry.from() == own || entry.to() == Some(own);
            let schema = known.schema(entry.name());
            let is_bookkeeping = schema.is_some_and(|it| it.bookkeeping) || repeats(entry);
            if is_own || is_bookkeeping || Some(entry.seq()) == cause || entry.is_refused() {
                continue;
            }
            found.extend(wanted.found(entry));
            if found.len() > wanted.limit {
                found.pop_front();
                left_out += 1;
            }
        }
        if it.before.is_some_and(|before| before <= after) {
            break;
        }
    }
    Ok(Ok(Recalled { left_out, found: found.into() }))
}

/// Whether an agent's entry says what another entry has, too: prompts, replies as they were
/// written, and actions, whose calls and answers stand beside them.
fn repeats(entry: &Entry) -> bool {
    let (namespace, local) = (entry.name().namespace(), entry.name().local());
    let is_action = ["action", "action-result"].contains(&local);
    namespace == pumphouse::name::AGENT && (is_action || local.starts_with("cognition_"))
}

/// What an entry must have.
struct Wanted<'a> {
    it: &'a Recall,
    words: Vec<String>,
    limit: usize,
}

impl Wanted<'_> {
    fn new(it: &Recall) -> Result<Wanted<'_>, String> {
        let text = it.text.as_deref().unwrap_or_default();
        if text.chars().count() > QUESTION_CHARS_MAX {
            return Err(format!("`text` has more than {QUESTION_CHARS_MAX} characters"));
        }
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let limits = it.after.is_some() || it.before.is_some();
        if words.is_empty() && it.from.is_none() && it.name.is_none() && !limits {
            return Err("say which: by text, from, name, after or before".to_owned());
        }
        let limit = it.limit.map_or(FOUND_USUAL, |it| usize::try_from(it).unwrap_or(FOUND_MAX));
        Ok(Wanted { it, words, limit: limit.clamp(1, FOUND_MAX) })
    }

    fn found(&self, entry: &Entry) -> Option<Found> {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|it| it == is);
        let (from, name) = (entry.from(), entry.name().local());
        let is_before = self.it.before.is_none_or(|it| entry.seq() < it);
        if !is_before || !fits(&self.it.from, from) || !fits(&self.it.name, name) {
            return None;
        }
        let mut text = String::new();
        write(entry.element().ok()?.view(), &mut text);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let lower = text.to_lowercase();
        if !self.words.iter().all(|it| lower.contains(&**it)) {
            return None;
        }
        let first = self.words.iter().filter_map(|it| lower.find(&**it)).min().unwrap_or(0);
        Some(Found {
            entry: entry.id().to_string(),
            from: from.to_owned(),
            name: name.to_owned(),
            time: iso_time(entry.at_us()),
            text: excerpt(&text, lower[..first].chars().count()),
        })
    }
}

/// All text of an element, its parts apart.
fn write(part: Part<'_>, to: &mut String) {
    for child in part.children() {
        match child {
            Child::Text(text) => to.push_str(text),
            Child::Element(it) => write(it, to),
        }
    }
    to.push(' ');
}

/// What stands around a character.
fn excerpt(text: &str, at: usize) -> String {
    let count = text.chars().count();
    let from = at.saturating_sub(EXCERPT_CHARS / 3).min(count.saturating_sub(EXCERPT_CHARS));
    let piece: String = text.chars().skip(from).take(EXCERPT_CHARS).collect();
    let (before, behind) = (from > 0, from + EXCERPT_CHARS < count);
    let mark = |is_cut: bool| if is_cut { "…" } else { "" };
    format!("{}{piece}{}", mark(before), mark(behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_what_was_looked_for() {
        assert_eq!(excerpt("a b", 2), "a b");
        let long = format!("{} tea {}", "x".repeat(500), "y".repeat(500));
        let piece = excerpt(&long, 501);
        assert!(piece.contains(" tea ") && piece.starts_with('…') && piece.ends_with('…'));
        assert_eq!(piece.chars().count(), EXCERPT_CHARS + 2);
        assert!(excerpt(&long, 1_003).ends_with('y'));
    }

    #[test]
    fn a_question_asks_for_something() {
        let nothing =
            Recall { text: None, from: None, name: None, after: None, before: None, limit: None };
        assert!(Wanted::new(&nothing).is_err());
        let many = Recall { after: Some(0), limit: Some(1_000), ..nothing.clone() };
        assert_eq!(Wanted::new(&many).map(|it| it.limit).ok(), Some(FOUND_MAX));
        let long = Recall { text: Some("x".repeat(501)), ..nothing };
        assert!(Wanted::new(&long).is_err());
    }
}
