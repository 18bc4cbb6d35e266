//! The forms of prompts. A form specifies how a thread is rendered. Each turn records the number of
//! its form.

use std::borrow::Cow;

use pumphouse::model::Tool;

use super::super::escape_tags::escape_tags;
use super::super::thread_mark::without_mark;
use super::words::CognitionIn;

/// The newest form of prompts. New turns use it. Older forms never change, so that the prompts of
/// old turns keep their digests:
///
/// 1. The form of 0.1.0: results are JSON in escaped XML, and messages of peers are the payloads'
///    XML.
/// 2. Results are text, and errors are sentences. Only the text of another agent's response is
///    shown, even within a `thread-result`.
/// 3. A long result is cut. Native calls and their results have the form that their provider uses.
/// 4. The prompt ends with a list of the actions and threads that run and of the actions and
///    responses that are held. The heading of a message is its sender's name alone, and messages of
///    the console have no heading. A reply that was cut off before its first word isn't mentioned.
/// 5. The limit `feeds_bytes_max` applies to the feeds at all positions together.
/// 6. Each line of the pump's own ends with the thread's mark, as in `[ada #7f3a9c]`, and so do the
///    markers of feeds. Messages of the console have a heading. A text that holds the mark is
///    changed.
pub const RENDERING: u32 = 6;

/// The maximum number of bytes of a result that a prompt shows by default.
pub const RESULT_BYTES: u64 = 32 * 1_024;

/// The elements with which a prompt surrounds texts of others: results, and from form 6 on feeds.
const BLOCKS: [&str; 3] = ["action-result", "thread-result", "context_feed"];

/// How a thread is rendered as a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Form<'a> {
    /// The number of the form, from 1 to [`RENDERING`].
    pub number: u32,
    /// The largest number of bytes of a result that the prompt shows, from form 3 on.
    pub result_bytes: u64,
    /// Whether native calls and their results are shown in the provider's own protocol.
    pub is_native: bool,
    /// The media types of attachments that the model accepts.
    pub attachments: &'a [String],
    /// The mark of the thread, from form 6 on. Empty if the lines of the pump have none.
    pub mark: &'a str,
}

impl<'a> Form<'a> {
    /// The form with this number, and with the defaults for everything else.
    #[must_use]
    pub fn new(number: u32) -> Form<'a> {
        Form { number, result_bytes: RESULT_BYTES, is_native: false, attachments: &[], mark: "" }
    }

    /// The form of the prompt of a recorded turn whose model was offered these tools.
    #[must_use]
    pub fn of(it: &'a CognitionIn, tools: &[Tool]) -> Form<'a> {
        let result_bytes = it.result_bytes_max.unwrap_or(RESULT_BYTES);
        let mark = it.mark.as_deref().unwrap_or_default();
        Form { result_bytes, attachments: &it.attachments, mark, ..Form::new(it.rendering) }
            .offering(tools)
    }

    /// A line of the pump's own: the text in brackets, with the mark.
    pub(super) fn line(&self, text: &str) -> String {
        match self.mark {
            "" => format!("[{text}]"),
            mark => format!("[{text} {mark}]"),
        }
    }

    /// A text of others as the prompt quotes it: without what could be taken for a result, for a
    /// feed, or for a line of the pump.
    pub(super) fn quoted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.mark {
            "" => escape_tags(text, &BLOCKS[..2]),
            mark => without_mark(escape_tags(text, &BLOCKS), mark),
        }
    }

    /// Adapts the form to a model that is offered these tools. From form 3 on, a form with tools is
    /// native.
    #[must_use]
    pub fn offering(self, tools: &[Tool]) -> Form<'a> {
        Form { is_native: self.number > 2 && !tools.is_empty(), ..self }
    }
}
