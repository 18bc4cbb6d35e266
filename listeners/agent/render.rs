//! What a model is shown of a thread. Pure: entries in, a prompt out, so that whoever reads the
//! log afterwards gets the same bytes.
//!
//! What the agent wrote is the assistant's, word for word; all that it was sent is the user's.
//! Messages of one side that follow each other are one. What feeds hold stands at the very end: up
//! to there the prompt of a turn begins with the prompt of the turn before it, unless a clear hid
//! something meanwhile.

use pumphouse::listener::Clears;
use pumphouse::model::{Prompt, Role, Said};
use pumphouse::prelude::*;
use pumphouse::xml::Child;

use super::super::action::words::{ActionResult, Status};
use super::super::feed::Feed;
use super::super::feed::shown::block;
use super::super::feed::words::{ContextFeed, FeedsRefreshed, Position};
use super::order::late;
use super::words::{CognitionIn, CognitionOut, Correction, Notice, Response};

/// The form that this module writes; another number is another form.
pub const RENDERING: u32 = 1;

/// What stands before the result of an action, or of a thread, whose work was done when it came.
const LATE: &str = "[A late result, of work that you have answered:]";

/// The prompt of a turn: the newest system text, what is in view, and what feeds hold.
///
/// Those are what [`Shown`](super::super::feed::Shown) makes of the thread up to the `until` of the
/// turn's `cognition_in`, and of what the agent itself recorded between the two.
#[must_use]
pub fn render(agent: &str, root: &Name, system: &str, view: &[Entry], feeds: &[Feed]) -> Prompt {
    let parts = [block(feeds, Position::SystemPrepend), system.to_owned()];
    let parts = parts.into_iter().chain([block(feeds, Position::SystemAppend)]);
    let parts: Vec<String> = parts.filter(|it| !it.is_empty()).collect();
    let mut prompt = Prompt::new(parts.join("\n\n"));
    let late = late(agent, view);
    // What came while the model wrote stands behind what it wrote.
    let mut during: Option<Vec<String>> = None;
    let mut gap = gap(RENDERING, view);
    for entry in view.iter().filter(|it| !it.is_refused()) {
        if let Some(gap) = gap.take_if(|it| it.first < entry.seq()) {
            put(&mut prompt, Role::User, &gap.said);
        }
        let heard = if entry.from() == agent {
            if entry.is::<CognitionIn>() {
                during = Some(during.unwrap_or_default());
            } else if entry.is::<CognitionOut>() {
                wrote(entry, &mut prompt);
                during
                    .take()
                    .into_iter()
                    .flatten()
                    .for_each(|it| put(&mut prompt, Role::User, &it));
            }
            told(entry)
        } else if entry.to() == Some(agent) {
            let heard = heard(root, entry);
            heard.map(|it| if late.contains(&entry.seq()) { format!("{LATE}\n{it}") } else { it })
        } else {
            None
        };
        match (&mut during, heard) {
            (Some(during), Some(text)) => during.push(text),
            (None, Some(text)) => put(&mut prompt, Role::User, &text),
            (_, None) => {}
        }
    }
    during.into_iter().flatten().for_each(|it| put(&mut prompt, Role::User, &it));
    let last = block(feeds, Position::Late);
    if !last.is_empty() {
        put(&mut prompt, Role::User, &last);
    }
    prompt
}

fn put(prompt: &mut Prompt, role: Role, text: &str) {
    match prompt.messages.last_mut() {
        Some(last) if last.role == role => {
            last.text.push_str("\n\n");
            last.text.push_str(text);
        }
        _ => prompt.messages.push(Said { role, text: text.to_owned() }),
    }
}

/// Where messages are missing that a clear hides, and what is said of that.
struct Gap {
    /// The first entry that is hidden.
    first: u64,
    said: String,
}

/// What a prompt says in the place of what clears hide; from form 2 on.
///
/// The newest clear in force is always in view itself, so the view tells.
fn gap(form: u32, view: &[Entry]) -> Option<Gap> {
    let mut clears = Clears::default();
    view.iter().for_each(|it| clears.apply(it));
    let first = *clears.hidden().first().filter(|_| form >= 2)?.start();
    let said = match clears.messages() {
        Some(0) => return None,
        Some(1) => "[1 earlier message is hidden; nothing is lost.]".to_owned(),
        Some(count) => format!("[{count} earlier messages are hidden; nothing is lost.]"),
        None => "[Earlier messages are hidden; nothing is lost.]".to_owned(),
    };
    Some(Gap { first, said })
}

/// What somebody else sent the agent.
pub(super) fn heard(root: &Name, entry: &Entry) -> Option<String> {
    if entry.is::<ContextFeed>() || entry.is::<FeedsRefreshed>() {
        return None;
    }
    if entry.is::<ActionResult>() {
        return Some(result(&entry.decode().ok()?));
    }
    let element = entry.element().ok()?;
    let has_elements = element.children().any(|it| matches!(it, Child::Element(_)));
    let text = match entry.name() == root && !has_elements {
        true => element.text().into_owned(),
        false => String::from_utf8_lossy(entry.body()).into_owned(),
    };
    let from = entry.from();
    Some(if from == "core" { text } else { format!("[From {from}]\n{text}") })
}

/// A reply of the agent's, which stands for all that was in it.
fn wrote(entry: &Entry, prompt: &mut Prompt) {
    let Some(it) = entry.decode_if::<CognitionOut>() else { return };
    if !it.text.is_empty() {
        put(prompt, Role::Assistant, &it.text);
    }
    if it.is_partial {
        let percent = it.completion_percentage.map_or("?".to_owned(), |it| it.to_string());
        let text = format!("[Previous response was interrupted at {percent}%]");
        put(prompt, Role::User, &text);
    }
}

/// What the agent said to itself about its replies.
pub(super) fn told(entry: &Entry) -> Option<String> {
    if let Some(it) = entry.decode_if::<Correction>() {
        return Some(it.text);
    }
    if let Some(it) = entry.decode_if::<Notice>() {
        return Some(format!("[{}]", it.text));
    }
    let it = entry.decode_if::<Response>()?;
    it.was_held.then(|| "[Your final response was delivered.]".to_owned())
}

/// What came of an action, as a model reads it.
fn result(it: &ActionResult) -> String {
    let mut text = format!("<action-result id=\"{}\" status=\"{}\">", it.id, status(it.status));
    if let Some(error) = &it.error {
        text += &escape(&format!("{}: {}", error.code, error.message));
    }
    text += &escape(it.value.as_deref().unwrap_or_default());
    for warning in &it.warning {
        text += &escape(&format!("\nwarning: {warning}"));
    }
    text + "</action-result>"
}

/// What came of an action, in a word.
pub(super) fn status(it: Status) -> &'static str {
    match it {
        Status::Ok => "ok",
        Status::Failed => "failed",
        Status::Skipped => "skipped",
        Status::TimedOut => "timed-out",
        Status::Cancelled => "cancelled",
        Status::Unknown => "unknown",
    }
}

/// A tool's text can't end the element that it stands in.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
