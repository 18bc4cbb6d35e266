//! The forms of prompts. A form specifies how a thread is rendered. Each turn records the number of
//! its form.

use std::borrow::Cow;

use pumphouse::model::Tool;

use super::super::escape_tags::escape_tags;
use super::super::thread_mark::without_mark;
use super::words::CognitionIn;

/// The number of the form of prompts. A change of the form takes the next number, here and in the
/// log's format. A prompt of another form isn't rebuilt.
///
/// Each line of the pump's own ends with the thread's mark, as in `[ada #7f3a9c]`, and so do the
/// markers of feeds. A text that holds the mark is changed. Results are text, errors are sentences,
/// and a long result is cut. Native calls and their results have the form that their provider uses.
/// The prompt ends with a list of the actions and threads that run and of the actions and responses
/// that are held.
pub const RENDERING: u32 = 1;

/// The maximum number of bytes of a result that a prompt shows by default.
pub const RESULT_BYTES: u64 = 32 * 1_024;

/// The elements with which a prompt surrounds texts of others: results and feeds.
const BLOCKS: [&str; 3] = ["action-result", "thread-result", "context_feed"];

/// How a thread is rendered as a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Form<'a> {
    /// The largest number of bytes of a result that the prompt shows.
    pub result_bytes: u64,
    /// Whether native calls and their results are shown in the provider's own protocol.
    pub is_native: bool,
    /// The media types of attachments that the model accepts.
    pub attachments: &'a [String],
    /// The mark of the thread. Empty if the lines of the pump have none.
    pub mark: &'a str,
}

impl<'a> Form<'a> {
    /// The form with this mark, and with the defaults for everything else.
    #[must_use]
    pub fn new(mark: &'a str) -> Form<'a> {
        Form { result_bytes: RESULT_BYTES, is_native: false, attachments: &[], mark }
    }

    /// The form of the prompt of a recorded turn whose model was offered these tools.
    #[must_use]
    pub fn of(it: &'a CognitionIn, tools: &[Tool]) -> Form<'a> {
        let result_bytes = it.result_bytes_max.unwrap_or(RESULT_BYTES);
        Form { result_bytes, attachments: &it.attachments, ..Form::new(&it.mark) }.offering(tools)
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
        self.unmarked(escape_tags(text, &BLOCKS))
    }

    /// A text without what could be taken for the mark.
    pub(super) fn unmarked<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        match self.mark {
            "" => text,
            mark => without_mark(text, mark),
        }
    }

    /// Adapts the form to a model that is offered these tools: a form with tools is native.
    #[must_use]
    pub fn offering(self, tools: &[Tool]) -> Form<'a> {
        Form { is_native: !tools.is_empty(), ..self }
    }
}
