//! Reads the answers of feeds' sources.

use pumphouse::prelude::*;
use pumphouse::wire::core::SystemThreadError;

use super::super::action::words::PartialResult;
use super::super::todo::words::StepsOpen;
use super::super::words::agent::{Response, Stopped};
use super::words::FeedContent;

/// The content of a feed, if the source answered `feed-content`.
pub(super) fn content(answer: &Element) -> Option<FeedContent> {
    let is_it = answer.is(FeedContent::NAME.namespace(), FeedContent::NAME.local());
    FeedContent::decode(answer).ok().filter(|_| is_it)
}

/// The reason why an agent stopped. None if the element isn't an `agent-stopped`.
pub(super) fn stopped(element: &Element) -> Option<String> {
    let is_it = element.is(Stopped::NAME.namespace(), Stopped::NAME.local());
    let stopped = Stopped::decode(element).ok().filter(|_| is_it)?;
    Some(format!("the agent stopped, {}: {}", stopped.reason, stopped.text))
}

/// Whether an entry is a partial answer, after which another answer comes.
pub(super) fn is_partial(entry: &Entry) -> bool {
    let is_part = entry.is::<StepsOpen>() || entry.is::<PartialResult>();
    is_part || entry.decode_if::<Response>().is_some_and(|it| !it.is_final)
}

/// The reason why the pump answered in place of the source. None if the source itself answered.
pub(super) fn refused(entry: &Entry) -> Option<String> {
    if !entry.is_from_core() {
        return None;
    }
    if let Some(error) = entry.decode_if::<SystemThreadError>() {
        return Some(error.message);
    }
    entry.decode_if::<Huh>().map(|it| format!("{}: {}", it.code, it.message))
}

/// The content of the child element `text` in an error's payload, or the payload's local name if it
/// has no such element.
pub(super) fn told(error: &Entry) -> String {
    let element = error.element().ok();
    let text = element.and_then(|it| it.elements().find(|it| it.local() == "text"));
    text.map_or_else(|| error.name().local().to_owned(), |it| it.text().into_owned())
}
