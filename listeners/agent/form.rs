//! The forms of prompts, and how much of a result each shows.

use pumphouse::model::Tool;

use super::super::view::part;
use super::words::CognitionIn;

/// The newest form of prompts, in which new turns are shown. Older forms stay as they were, so that
/// the prompts of old turns still have their digests:
///
/// 1. Results are JSON in escaped XML, and what peers say is the payload's XML. Of 0.1.0.
/// 2. Results are text, errors are sentences, and a response of another agent is its text, also as
///    the end of a thread.
/// 3. A long result is cut, and native calls and their results stand as their provider has them.
/// 4. What runs and what waits stands at the end, a message is headed by its sender's name alone,
///    and a reply that was cut before its first word isn't mentioned.
pub const RENDERING: u32 = 4;

/// How many bytes of a result a prompt shows unless said.
pub const RESULT_BYTES: u64 = 32 * 1_024;

/// How a prompt is made of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Form<'a> {
    /// The form, one of 1 to [`RENDERING`].
    pub number: u32,
    /// How many bytes of a result it shows, from form 3 on.
    pub result_bytes: u64,
    /// Whether calls in the provider's own protocol, and their results, stand in that.
    pub is_native: bool,
    /// The media types of attachments that the model takes.
    pub attachments: &'a [String],
}

impl<'a> Form<'a> {
    /// A form, as it is where nothing else is said.
    #[must_use]
    pub fn new(number: u32) -> Form<'a> {
        Form { number, result_bytes: RESULT_BYTES, is_native: false, attachments: &[] }
    }

    /// The form in which a turn was shown its prompt, in which it was offered such tools.
    #[must_use]
    pub fn of(it: &'a CognitionIn, tools: &[Tool]) -> Form<'a> {
        let result_bytes = it.result_bytes_max.unwrap_or(RESULT_BYTES);
        Form { result_bytes, attachments: &it.attachments, ..Form::new(it.rendering) }
            .offering(tools)
    }

    /// The same where the model is offered such tools.
    #[must_use]
    pub fn offering(self, tools: &[Tool]) -> Form<'a> {
        Form { is_native: self.number > 2 && !tools.is_empty(), ..self }
    }
}

/// As much of a result as a prompt shows, and what it says of the rest.
pub(super) fn shown(entry: u64, mut text: String, most: u64) -> (String, String) {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let size = text.len();
    if size <= most {
        return (text, String::new());
    }
    let (_, to) = part(&text, 0, most);
    text.truncate(to);
    let note = format!(
        "\n[{to} of {size} bytes are shown. For more call read-result with \
         {{\"entry\": {entry}, \"from\": {to}}}.]"
    );
    (text, note)
}
