//! What a reply is made of.

use serde_json::Value;

use crate::model::{Error, Price, Wire};

/// A piece of a reply, as it comes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Piece {
    /// An attempt that failed before this one; such pieces come first.
    Tried(Error),
    /// Which of several models answers, where a [router](crate::model::Router) chose it: it comes
    /// before what that model says.
    Answering(Answering),
    /// Text, in the order in which it was written. Its borders mean nothing.
    Text(String),
    /// Reasoning that a provider shows beside the text.
    Reasoning(String),
    /// Why the model declines, in its own words, where a provider tells that from text.
    Refusal(String),
    /// A native call, whole.
    Call(Call),
    /// A call of a tool that the provider has run itself: nobody else runs it.
    ServerCall(Call),
    /// What the provider signed, and wants back beside the calls.
    Signed(Signed),
    /// What the turn has used.
    Usage(Usage),
    /// Why the reply is over: the last piece.
    Stop(Stop),
}

/// The model that answers a turn, of several.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answering {
    /// Its name among them.
    pub name: String,
    /// What it is, as [`Model::describe`](crate::model::Model::describe) says it.
    pub model: String,
    /// What its tokens cost, where that is known.
    pub price: Option<Price>,
}

/// A native call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// What the provider calls it; empty where it doesn't.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its arguments as the model wrote them: JSON, if the model kept to it and wasn't stopped.
    pub arguments: String,
}

impl Call {
    /// A call of a tool with arguments.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Call {
        Call { id: id.into(), name: name.into(), arguments: arguments.into() }
    }
}

/// Something that a provider signed or encrypted, mostly reasoning, and that it wants back as it is
/// where the calls of the reply go back. Other wires don't know it.
///
/// ```
/// use pumphouse::model::{Signed, Wire};
///
/// let block = r#"{"type":"redacted_thinking","data":"EmwKAhgB"}"#;
/// let signed = Signed::new(Wire::AnthropicMessages, 0, block);
/// assert_eq!(signed.place, 0);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signed {
    /// The wire that knows it.
    pub wire: Wire,
    /// Where it stands: 0 before the reply's text, 1 behind it, 2 behind the first call, and so on.
    pub place: u64,
    /// What goes back: JSON, as the wire has it.
    pub json: String,
}

impl Signed {
    /// Something that a wire wants back, and where.
    #[must_use]
    pub fn new(wire: Wire, place: u64, json: impl Into<String>) -> Signed {
        Signed { wire, place, json: json.into() }
    }

    /// What goes back at a place over a wire: another wire's isn't in it.
    pub(crate) fn at(
        all: &[Signed],
        wire: Wire,
        place: impl Fn(u64) -> bool,
    ) -> impl Iterator<Item = Value> {
        let own = all.iter().filter(move |it| it.wire == wire && place(it.place));
        own.filter_map(|it| serde_json::from_str(&it.json).ok())
    }
}

/// Tokens of a turn, as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Of the prompt.
    pub input: u64,
    /// Of the reply, reasoning included.
    pub output: u64,
    /// Of the prompt, those that the provider had kept.
    pub cached: u64,
    /// Of the prompt, those that the provider keeps for later prompts.
    pub cache_written: u64,
    /// Of the reply, those of reasoning.
    pub reasoning: u64,
    /// What it cost in millionths of the provider's money, where it says so.
    pub cost_micros: Option<u64>,
}

impl Usage {
    /// So many tokens of the prompt and of the reply.
    #[must_use]
    pub fn new(input: u64, output: u64) -> Usage {
        Usage { input, output, ..Usage::default() }
    }
}

/// Why a reply is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The model had said what it had to say, or one of the prompt's stop texts came.
    End,
    /// One of the prompt's stop texts came, where a provider tells that from `End`.
    StopText,
    /// As many tokens as it was allowed, or as fit its window: it stopped in the middle.
    MaxTokens,
    /// It waits for the results of its native calls.
    Calls,
    /// The provider held the rest back.
    Filtered,
    /// Something that a provider has a word of its own for.
    Other(String),
}

impl Stop {
    /// In a word, as the log has it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Stop::End => "end",
            Stop::StopText => "stop-text",
            Stop::MaxTokens => "max-tokens",
            Stop::Calls => "calls",
            Stop::Filtered => "filtered",
            Stop::Other(word) => word,
        }
    }
}

/// Of its own word; whatever is no word of ours is a provider's.
impl From<&str> for Stop {
    fn from(word: &str) -> Stop {
        match word {
            "end" => Stop::End,
            "stop-text" => Stop::StopText,
            "max-tokens" => Stop::MaxTokens,
            "calls" => Stop::Calls,
            "filtered" => Stop::Filtered,
            word => Stop::Other(word.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_its_word() {
        let own = [Stop::End, Stop::StopText, Stop::MaxTokens, Stop::Calls, Stop::Filtered];
        for stop in own.into_iter().chain([Stop::Other("eos".to_owned())]) {
            assert_eq!(Stop::from(stop.as_str()), stop);
        }
    }
}
