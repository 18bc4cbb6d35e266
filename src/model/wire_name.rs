//! The names of the wires.

use std::fmt;
use std::str::FromStr;

/// A wire: the form of a provider's requests and replies.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::Wire;
///
/// assert_eq!("gemini".parse(), Ok(Wire::Gemini));
/// assert_eq!(Wire::AnthropicMessages.to_string(), "anthropic-messages");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
// Exhaustive, since a program that lists the wires must know each.
pub enum Wire {
    /// Anthropic's messages.
    AnthropicMessages,
    /// OpenAI's chat completions, which most others speak, too.
    #[default]
    OpenAiChat,
    /// OpenAI's responses.
    OpenAiResponses,
    /// Google's `generateContent`.
    Gemini,
    /// Ollama's own chat.
    Ollama,
}

impl Wire {
    /// Every wire.
    pub const ALL: [Wire; 5] = [
        Wire::AnthropicMessages,
        Wire::OpenAiChat,
        Wire::OpenAiResponses,
        Wire::Gemini,
        Wire::Ollama,
    ];

    /// The wire's name in manifests.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Wire::AnthropicMessages => "anthropic-messages",
            Wire::OpenAiChat => "openai-chat",
            Wire::OpenAiResponses => "openai-responses",
            Wire::Gemini => "gemini",
            Wire::Ollama => "ollama",
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Wire {
    type Err = NoWire;

    fn from_str(name: &str) -> Result<Wire, NoWire> {
        Wire::ALL.into_iter().find(|it| it.name() == name).ok_or(NoWire)
    }
}

/// The error of a name that no wire has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoWire;

impl fmt::Display for NoWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Wire::ALL.map(Wire::name).join(", ");
        write!(f, "no wire has this name; there are {names}")
    }
}

impl std::error::Error for NoWire {}
