//! Renders a thread as a prompt. This module is pure, so the same entries always give the same
//! bytes.
//!
//! The agent's own replies have the role `assistant`, word for word. Everything that was sent to
//! the agent has the role `user`, except the results of native calls, which have the role `tool`.
//! Adjacent texts of one role become one message. The prompt ends with the feeds at the position
//! `late` and a line that lists what is under way for the agent. Without this end, the prompt of a
//! turn is usually a prefix of the next turn's prompt. Hiding messages or showing them again
//! changes the part before the end, and so does a change of a feed in the system prompt.

use std::collections::BTreeSet;

use pumphouse::model::{Prompt, PromptMessage, Role};
use pumphouse::prelude::*;
use pumphouse::wire::core::{ThreadCancelled, ThreadResult, ThreadStatus};
use pumphouse::xml::{Child, escape_attribute};

use super::super::action::words::ActionResult;
use super::super::feed::PromptFeeds;
use super::super::feed::words::{ContextFeed, FeedsRefreshed};
use super::super::words::turn_policy::number;
use super::attachments::{Attachments, Part};
use super::cut_reply;
use super::cut_result::shown;
use super::hidden_messages::hidden_messages;
use super::native::Natives;
pub use super::prompt_form::{Form, RENDERING, RESULT_BYTES};
use super::prompt_order::{late, under_way};
use super::words::{
    CognitionIn, CognitionOut, Correction, Interrupt, Notice, Response, Stopped, flag,
};

/// The listener that ends, pauses and resumes threads for agents.
const THREAD: &str = "thread";
/// The text of the line above a late result. A result of an action or a thread is late if the work
/// that asked for it had ended.
const LATE: &str = "A late result, of work that you have answered:";

/// Renders the prompt of a turn from the system prompt, the entries in view and the feeds. `form`
/// has the version of the rendering and its options.
///
/// `feeds` are those that [`Shown`](super::super::feed::Shown) computes from all entries up to the
/// last one that the prompt shows, and from the agent's own entries between that one and the turn's
/// `cognition_in`.
#[must_use]
pub fn render(
    form: Form<'_>,
    agent: &str,
    root: &Name,
    system: &str,
    view: &[Entry],
    feeds: &PromptFeeds,
) -> Prompt {
    let [prepended, appended, last] = feeds.texts(form.mark);
    let interrupted = form.line(INTERRUPTED);
    let parts = [prepended, system.to_owned(), appended].into_iter();
    let parts: Vec<String> = parts.filter(|it| !it.is_empty()).collect();
    let mut prompt = Prompt::new(parts.join("\n\n"));
    let late = late(agent, view);
    // Messages that came while the model wrote are placed after its reply. So are messages that
    // came just before the turn and that the turn's prompt didn't show.
    let mut during: Option<Vec<Part>> = None;
    let mut hidden = hidden_messages(form, agent, view);
    let unseen = unseen(agent, view);
    let natives = Natives::of(form, agent, view);
    let mut attachments = Attachments::of(form, view);
    for entry in view.iter().filter(|it| !it.is_refused() && !natives.tells(it)) {
        if unseen.contains(&entry.seq()) {
            during.get_or_insert_default();
        }
        if let Some(hidden) = hidden.take_if(|it| it.first < entry.seq()) {
            put(&mut prompt, Role::User, &hidden.text);
        }
        let heard = if let Some(part) = attachments.take(entry.seq()) {
            Some(part)
        } else if entry.from() == agent {
            if entry.is::<CognitionIn>() {
                during = Some(during.unwrap_or_default());
            } else if entry.is::<CognitionOut>() {
                wrote(form, entry, &natives, &mut prompt);
                during.take().into_iter().flatten().for_each(|it| put_part(&mut prompt, it));
            }
            // One interrupt may stop the work of several askers, with an `agent-stopped` for each.
            // The prompt mentions the interrupt once.
            let is_told = |it: &str| it == interrupted && has_last(&prompt, during.as_deref(), it);
            told(form, entry).filter(|it| !is_told(it)).map(Part::from)
        } else if entry.to() == Some(agent) {
            let heard = heard(form, root, entry);
            let is_late = late.contains(&entry.seq());
            let above = |it| format!("{}\n{it}", form.line(LATE));
            heard.map(|it| if is_late { above(it) } else { it }.into())
        } else {
            None
        };
        match (&mut during, heard) {
            (Some(during), Some(part)) => during.push(part),
            (None, Some(part)) => put_part(&mut prompt, part),
            (_, None) => {}
        }
    }
    during.into_iter().flatten().for_each(|it| put_part(&mut prompt, it));
    let under_way = under_way(form, agent, view);
    for text in [last, under_way].iter().filter(|it| !it.is_empty()) {
        put_late(&mut prompt, text);
    }
    prompt
}

/// The text of the line at the place where the agent's work was interrupted.
const INTERRUPTED: &str = "You were interrupted: what you were asked before is over.";

/// Whether a prompt ends with this text, counting the parts that came during a turn.
fn has_last(prompt: &Prompt, during: Option<&[Part]>, text: &str) -> bool {
    match during.and_then(<[Part]>::last) {
        Some(last) => last.text == text,
        None => prompt.messages.last().is_some_and(|it| it.text.ends_with(text)),
    }
}

/// The numbers of the entries that came just before a turn and that the turn's prompt didn't show.
fn unseen(agent: &str, view: &[Entry]) -> BTreeSet<u64> {
    let (mut unseen, mut until) = (BTreeSet::new(), None);
    for entry in view.iter().rev() {
        if entry.from() == agent && entry.is::<CognitionIn>() {
            until = number(entry, "until");
        } else if until.is_some_and(|until| entry.seq() > until) {
            unseen.insert(entry.seq());
        }
    }
    unseen
}

fn put(prompt: &mut Prompt, role: Role, text: &str) {
    match prompt.messages.last_mut() {
        Some(last) if last.role == role && last.calls.is_empty() => {
            last.text.push_str("\n\n");
            last.text.push_str(text);
        }
        _ => prompt.messages.push(PromptMessage::new(role, text)),
    }
}

/// Adds a text that later prompts don't have, and counts its bytes in `late_bytes`.
fn put_late(prompt: &mut Prompt, text: &str) {
    let before = prompt.messages.last().map_or(0, |it| it.text.len());
    let count = prompt.messages.len();
    put(prompt, Role::User, text);
    let after = prompt.messages.last().map_or(0, |it| it.text.len());
    prompt.late_bytes += if prompt.messages.len() > count { after } else { after - before };
}

/// Adds a part with the role `user`, with its attachment if it has one.
fn put_part(prompt: &mut Prompt, it: Part) {
    put(prompt, Role::User, &it.text);
    if let Some(last) = prompt.messages.last_mut() {
        last.attached.extend(it.attached);
    }
}

/// The text for a message to the agent from another sender. None for the records of feeds.
pub(super) fn heard(form: Form<'_>, root: &Name, entry: &Entry) -> Option<String> {
    if entry.is::<ContextFeed>() || entry.is::<FeedsRefreshed>() || is_of_others(entry) {
        return None;
    }
    if entry.is::<ActionResult>() {
        let it = entry.decode().ok()?;
        let (text, note) = shown(entry.seq(), &it, form.result_bytes);
        return Some(result(form, &it, &text, &note));
    }
    if let Some(text) = responded(form, entry) {
        return Some(text);
    }
    let element = entry.element().ok()?;
    let has_elements = element.children().any(|it| matches!(it, Child::Element(_)));
    let text = match entry.name() == root && !has_elements {
        true => element.text().into_owned(),
        false => String::from_utf8_lossy(entry.body()).into_owned(),
    };
    Some(headed(form, entry.from(), &text))
}

/// Whether the entry is about a thread that the agent neither opened nor steers. A trigger, for
/// example, answers a change of metadata with the end of the run that the change has made needless.
fn is_of_others(entry: &Entry) -> bool {
    entry.is::<ThreadCancelled>() && entry.from() != THREAD
}

/// A text, escaped and headed by its sender.
fn headed(form: Form<'_>, from: &str, text: &str) -> String {
    format!("{}\n{}", form.line(from), form.quoted(text))
}

/// The text of another agent's response or stop. The entry may have it directly or within a
/// `thread-result`. None for other payloads.
fn responded(form: Form<'_>, entry: &Entry) -> Option<String> {
    if let Some(it) = entry.decode_if::<Response>() {
        return Some(headed(form, entry.from(), &it.text));
    }
    if let Some(it) = entry.decode_if::<Stopped>() {
        return Some(headed(form, entry.from(), &why(&it)));
    }
    let ThreadResult { thread, status, payload } = entry.decode_if()?;
    let payload = payload?;
    let text = match Response::decode(&payload) {
        Ok(it) if status == ThreadStatus::Completed => it.text,
        _ => why(&Stopped::decode(&payload).ok()?),
    };
    let text = form.quoted(&text);
    let status = match status {
        ThreadStatus::Completed => "completed",
        ThreadStatus::Cancelled => "cancelled",
        ThreadStatus::Empty => "empty",
        ThreadStatus::Failed => "failed",
    };
    Some(format!("<thread-result thread=\"{thread}\" status=\"{status}\">{text}</thread-result>"))
}

/// The reason why another agent stopped, as a sentence.
fn why(it: &Stopped) -> String {
    format!("It stopped, {}: {}", it.reason, it.text)
}

/// Adds a reply of the agent. The prompt shows the reply, but not the payloads that came from the
/// reply.
fn wrote(form: Form<'_>, entry: &Entry, natives: &Natives, prompt: &mut Prompt) {
    // A prompt shows all replies of its thread, and most are complete and have no native calls. To
    // save time, only the text is read from these.
    let is_complete = flag::<CognitionOut>(entry, "is_partial") == Some(false);
    if is_complete
        && entry.attribute("calls").is_none()
        && let Some(text) = entry.text()
    {
        if !text.is_empty() {
            put(prompt, Role::Assistant, &text);
        }
        return;
    }
    let Some(it) = entry.decode_if::<CognitionOut>() else { return };
    if let Some(said) = natives.said(form, &it) {
        prompt.messages.extend(said);
    } else if !it.text.is_empty() {
        put(prompt, Role::Assistant, &it.text);
    }
    if it.is_partial && !it.text.is_empty() {
        put(prompt, Role::User, &cut_reply::told(form, &it));
    }
}

/// The text for an entry of the agent itself: a correction, a notice, the stop after an interrupt,
/// or a delivered response that had waited. None for any other entry. Quotes of a
/// reply are escaped, so that they can't be taken for results.
pub(super) fn told(form: Form<'_>, entry: &Entry) -> Option<String> {
    let quoted = |text: &str| form.quoted(text).into_owned();
    if let Some(it) = entry.decode_if::<Correction>() {
        let line = it.text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        return Some(line.map_or_else(|| quoted(&it.text), |it| form.line(&quoted(it))));
    }
    if let Some(it) = entry.decode_if::<Notice>() {
        return Some(form.line(&quoted(&it.text)));
    }
    if flag::<Response>(entry, "was_held") == Some(false) {
        return None;
    }
    let is_stop = |it: &Stopped| it.reason == Interrupt::WORD;
    if entry.decode_if::<Stopped>().is_some_and(|it| is_stop(&it)) {
        return Some(form.line(INTERRUPTED));
    }
    let it = entry.decode_if::<Response>()?;
    let what = if it.is_final { "final response" } else { "response" };
    it.was_held.then(|| form.line(&format!("Your {what} was delivered.")))
}

/// The result of an action, as a model reads it.
fn result(form: Form<'_>, it: &ActionResult, text: &str, note: &str) -> String {
    let mut id = String::new();
    escape_attribute(&it.id, &mut id);
    let (status, text, note) = (it.status.as_str(), form.quoted(text), form.quoted(note));
    format!("<action-result id=\"{id}\" status=\"{status}\">{text}{note}</action-result>")
}
