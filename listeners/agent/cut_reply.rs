//! Replies that end before the model was done: at the limit of their tokens, or because the
//! connection broke. What a model is told about such a reply, and about a call that was cut in it.

use super::prompt_form::Form;
use super::words::{CognitionOut, Interrupt};

/// A reply that ended before the model was done.
#[derive(Clone, Copy, Debug)]
pub(super) struct CutReply {
    /// Whether the reply has as many tokens as it may have.
    is_full: bool,
    /// The tokens that it has, if the provider counted them.
    tokens: Option<u64>,
}

impl CutReply {
    /// A reply that was cut with this many tokens: because it has as many as it may have, or by a
    /// failure.
    pub(super) fn new(is_full: bool, tokens: Option<u64>) -> CutReply {
        CutReply { is_full, tokens }
    }

    /// The notice about a call that was cut.
    pub(super) fn call(self, call: &str) -> String {
        match self.is_full {
            true => format!(
                "{call} did not run: your reply reached {} within it, and no reply has more. Do \
                 it in pieces: a smaller call in each reply.",
                limit(self.tokens)
            ),
            false => format!("{call} did not run: the reply ended within it"),
        }
    }

    /// The notice about an answer with a schema that was cut. None if the agent was interrupted.
    pub(super) fn answer(self, stop: &str) -> Option<String> {
        let what = match self.is_full {
            true => format!("your reply reached {} within it", limit(self.tokens)),
            false => "your reply broke off within it".to_owned(),
        };
        let text = || {
            format!(
                "Your answer was not delivered: {what}. Nothing of it is kept: give it again, \
                 whole, and shorter."
            )
        };
        (stop != Interrupt::WORD).then(text)
    }

    /// The correction of a reply that was cut before it said anything. None if it wasn't full.
    pub(super) fn nothing(self) -> Option<String> {
        let text = || {
            format!(
                "[Your reply reached {} before it said anything. Be brief.]",
                limit(self.tokens)
            )
        };
        self.is_full.then(text)
    }
}

/// The line in a prompt behind a reply that was cut.
pub(super) fn told(form: Form<'_>, it: &CognitionOut) -> String {
    let (is_full, is_out) = (it.error.is_none() && it.truncated, it.went_out == Some(true));
    let what = match (is_full, it.completion_percentage) {
        (true, _) => format!("Your reply reached {}, and ends there", limit(it.tokens_out)),
        (false, Some(percent)) => format!("Previous response was interrupted at {percent}%"),
        (false, None) => "Previous response was interrupted".to_owned(),
    };
    let has_element = it.text.contains("<response");
    let goes_on = is_out && it.stop != Interrupt::WORD;
    let more = match (goes_on, has_element) {
        (true, false) => ". What there is of it was delivered: go on exactly where it ends.",
        (true, true) if is_full => {
            ". What there is of it was delivered: open <response> again, and go on exactly where \
             it ends."
        }
        // An open `<response>` shows by itself that the answer goes on.
        _ => "",
    };
    form.line(&format!("{what}{more}"))
}

fn limit(tokens: Option<u64>) -> String {
    match tokens.filter(|it| *it > 0) {
        Some(tokens) => format!("its limit of {tokens} tokens"),
        None => "its limit of tokens".to_owned(),
    }
}
