//! The pieces that a reply is made of.

use serde_json::Value;

use crate::model::error::Error;
use crate::model::price::Price;
use crate::model::usage::Usage;
use crate::model::wire_name::Wire;

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Piece {
    /// An attempt that failed before the one that succeeded. These pieces come before all that the
    /// model says.
    Tried(Error),
    /// The model that answers, if a [router](crate::model::Router) chose it. This piece comes
    /// before all that the model says.
    Answering(Answering),
    /// Text, in the order in which it was written. The boundaries between pieces have no meaning.
    Text(String),
    /// Reasoning that a provider shows beside the text.
    Reasoning(String),
    /// The model's own words on why it declines, if the provider marks them as a refusal.
    Refusal(String),
    /// A native call, whole.
    Call(Call),
    /// A call of a tool that the provider runs itself. Agents don't run it.
    ServerCall(Call),
    /// Data that the provider signed, and wants back beside the calls.
    Signed(Signed),
    /// The tokens that the turn has used.
    Usage(Usage),
    /// The reason for the reply's end. This is the last piece.
    Stop(Stop),
}

/// The model that answers a turn of a router.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answering {
    /// The model's name in the router.
    pub name: String,
    /// The model's description, from [`Model::describe`](crate::model::Model::describe).
    pub model: String,
    /// The price of the model's tokens, if known.
    pub price: Option<Price>,
}

/// A native call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The provider's id of the call. Empty if the provider gives none.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them. They may be broken JSON, for example if the reply was
    /// cut off.
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

/// Data that a provider signed or encrypted, mostly reasoning. The provider wants it back unchanged
/// when the calls of the reply go back. Other wires can't read it.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::{Signed, Wire};
///
/// let block = r#"{"type":"redacted_thinking","data":"EmwKAhgB"}"#;
/// let signed = Signed::new(Wire::AnthropicMessages, 0, block);
/// assert_eq!(signed.place, 0);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signed {
    /// The wire that the data belongs to.
    pub wire: Wire,
    /// The position of the data: 0 before the reply's text, 1 after the text, 2 after the first
    /// call, and so on.
    pub place: u64,
    /// The data as JSON, in the wire's own form.
    pub json: String,
}

impl Signed {
    /// Data that a wire wants back, with its position.
    #[must_use]
    pub fn new(wire: Wire, place: u64, json: impl Into<String>) -> Signed {
        Signed { wire, place, json: json.into() }
    }

    /// The data that goes back over a wire at the positions that `place` accepts. Data of other
    /// wires is skipped.
    pub(crate) fn at(
        all: &[Signed],
        wire: Wire,
        place: impl Fn(u64) -> bool,
    ) -> impl Iterator<Item = Value> {
        let own = all.iter().filter(move |it| it.wire == wire && place(it.place));
        own.filter_map(|it| serde_json::from_str(&it.json).ok())
    }
}

/// The reason for a reply's end.
#[derive(Clone, Debug, PartialEq, Eq)]
// Exhaustive: a reason without a variant is `Other`.
pub enum Stop {
    /// The model was done, or wrote one of the prompt's stop texts.
    End,
    /// The model wrote one of the prompt's stop texts, if the provider distinguishes that from
    /// `End`.
    StopText,
    /// The reply reached its limit of tokens, or the model's window. It ends in the middle.
    MaxTokens,
    /// The model waits for the results of its native calls.
    Calls,
    /// The provider's content filter held the rest back.
    Filtered,
    /// A reason of the provider's own, in the provider's word.
    Other(String),
}

impl Stop {
    /// The reason as one word, as the log writes it.
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

/// Parses the word of [`Stop::as_str`]. Any other word becomes [`Stop::Other`].
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
